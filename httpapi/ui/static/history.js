// The states of a workspace, what each changed, and the way back.
import { dialog, h, show, toast } from './dom.js';
import { get, post } from './api.js';
import { visible } from './text.js';
import { ago, dateTime } from './words.js';

const maxLines = 2000; // of a patch that are drawn

/** history draws the states of a view, and what one of them changed. */
export async function history(el, id, state, now) {
  const { states } = await get(`views/${encodeURIComponent(id)}/log?limit=200`);
  if (!now()) return;
  if (states.length === 0) return void show(el, h('p', { class: 'empty' }, 'Nothing has changed yet.'));
  const current = state ?? '';
  const pane = h('div', { class: 'filepane' });
  show(el, h('div', { class: current ? 'filegrid has-file' : 'filegrid' }, h('div', { class: 'filelist' }, h('ul', { role: 'list' }, states.map((s) => h('li', null,
    h('a', { href: `#/views/${encodeURIComponent(id)}/history?state=${s.id}`, 'aria-current': s.id === current ? 'true' : null },
      h('span', { class: 'fname' }, visible(s.message)), h('span', { class: 'dim', title: dateTime(s.time) }, ago(s.time))))))), pane));
  const chosen = states.find((s) => s.id === current);
  if (!current) return void show(pane, h('p', { class: 'empty' }, 'Choose a state to see what it changed.'));
  const { text } = await get(`views/${encodeURIComponent(id)}/diff?state=${encodeURIComponent(current)}`);
  if (!now()) return;
  show(pane, h('a', { class: 'backbutton', 'data-up': '', href: `#/views/${encodeURIComponent(id)}/history` }, '‹ All states'),
    h('header', { class: 'filehead' }, h('h2', null, chosen ? visible(chosen.message) : 'An earlier state'),
      h('p', { class: 'dim' }, chosen ? [dateTime(chosen.time), ' · '] : null, h('code', null, current.slice(0, 12)), ' · as the agent saw it'),
      states[0].id === current ? h('p', { class: 'note' }, 'This is how it is now.') : h('p', null, h('button', { id: 'revert', click: () => revert(id, chosen ?? { id: current }) }, 'Go back to this state…'))),
    patch(text));
}

// patch colours a patch by its lines.
function patch(text) {
  const lines = text.split('\n');
  const kind = (l) => (/^(?:\+\+\+|---|diff|index|new file|deleted file|old mode|new mode|similarity|rename)/.test(l) ? 'meta' : l[0] === '+' ? 'ins' : l[0] === '-' ? 'del' : l.startsWith('@@') ? 'hunk' : '');
  if (!text.trim()) return h('p', { class: 'note' }, 'It changed nothing that the agent sees.');
  return h('div', null, h('pre', { class: 'payload patch', tabindex: 0, role: 'region', 'aria-label': 'What it changed', dir: 'ltr' },
    lines.slice(0, maxLines).map((l) => h('span', { class: kind(l) || null }, visible(l), '\n'))),
  lines.length > maxLines ? h('p', { class: 'note' }, `The first ${maxLines} of ${lines.length} lines; auditd view diff prints all.`) : null);
}

function revert(id, state) {
  const problem = h('p', { class: 'problem', role: 'alert' });
  const go = h('button', { class: 'primary', click: send }, 'Go back');
  const el = dialog('Go back to this state', h('h2', null, 'Go back to this state'),
    h('p', null, 'Your files and the agent’s become what they were', state.time ? ` on ${dateTime(state.time)}` : '', '. What was changed since stays in the history, so you can come back.'),
    problem, h('div', { class: 'row end' }, h('button', { click: () => el.close() }, 'Cancel'), go));
  go.focus();
  async function send() {
    go.disabled = true;
    try {
      const r = await post(`views/${encodeURIComponent(id)}/revert`, { state: state.id });
      el.close();
      toast(r.conflicts.length ? `${r.to_human} files were brought back; ${r.conflicts.length} could not be, see Conflicts.` : `${r.to_human} ${r.to_human === 1 ? 'file was' : 'files were'} brought back.`, r.conflicts.length > 0);
      location.hash = `#/views/${encodeURIComponent(id)}/history?at=${Date.now()}`;
    } catch (err) {
      go.disabled = false;
      problem.textContent = err.message;
    }
  }
}
