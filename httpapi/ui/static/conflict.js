// What an agent wrote that did not land, both versions, and one of both.
import { h, show, toast } from './dom.js';
import { get, post } from './api.js';
import { ident, visible } from './text.js';
import { diffLines } from './diff.js';
import { beside } from './question.js';
import { ago, dateTime } from './words.js';

/** conflictList draws what did not land. */
export async function conflictList(el, id, now) {
  const { conflicts } = await get(`views/${encodeURIComponent(id)}/conflicts`);
  if (!now()) return;
  show(el, conflicts.length === 0 ? h('p', { class: 'empty' }, 'Everything that the agent wrote has landed.')
    : h('ul', { class: 'orders conflicts' }, conflicts.map((c) => h('li', { class: 'order' },
      h('p', { class: 'why' }, h('a', { href: `#/views/${encodeURIComponent(id)}/conflicts/${encodeURIComponent(c.id)}` }, ident(c.path, 200))),
      h('p', { class: 'place' }, visible(c.reason)), h('p', { class: 'meta', title: dateTime(c.time) }, ago(c.time))))));
}

// agentText is a file in the agent's form: symbols in place of what they stand for.
const agentText = (f) => f.pieces.map((p) => p.symbol || p.text).join('');

const marks = ['<<<<<<< yours', '=======', '>>>>>>> the agent’s'];

// merged puts both versions into one text, what differs between marks.
function merged(mine, theirs) {
  const line = (s) => (s === '' || s.endsWith('\n') ? s : s + '\n');
  let out = '';
  const parts = diffLines(mine, theirs);
  for (let i = 0; i < parts.length; i++) {
    if (parts[i].kind === 'same') {
      out += parts[i].text;
      continue;
    }
    const both = { del: '', ins: '' };
    for (; i < parts.length && parts[i].kind !== 'same'; i++) both[parts[i].kind] += parts[i].text;
    i--;
    out = `${line(out)}${marks[0]}\n${line(both.del)}${marks[1]}\n${line(both.ins)}${marks[2]}\n`;
  }
  return out;
}

/** conflict draws one conflict and settles it. */
export async function conflict(el, id, which, now) {
  const path = `views/${encodeURIComponent(id)}/conflicts/${encodeURIComponent(which)}`;
  const doc = await get(path);
  if (!now()) return;
  const list = `#/views/${encodeURIComponent(id)}/conflicts`;
  const mine = doc.now && !doc.now.unshown ? agentText(doc.now) : null;
  const problem = h('p', { class: 'problem', role: 'alert' });
  const editor = h('div', null);
  const both = mine !== null && typeof doc.lost === 'string';

  async function settle(take, text) {
    try {
      const r = await post(path, { take, text, agent: doc.now?.agent ?? '' });
      const again = r.conflicts.find((c) => c.path === doc.path);
      if (again) {
        problem.textContent = `It did not land: ${again.reason}.`;
        return;
      }
      toast(take === 'mine' ? 'Settled: your version stays.' : 'Settled, and written into your file.');
      location.hash = list;
    } catch (err) {
      problem.textContent = err.message;
    }
  }

  function merge() {
    const field = h('textarea', { id: 'merge', rows: 18, spellcheck: 'false', dir: 'ltr' });
    field.value = merged(mine, doc.lost);
    const form = h('form', { class: 'stack', submit: (e) => {
      e.preventDefault();
      const left = marks.find((m) => field.value.split('\n').includes(m));
      if (left) problem.textContent = `The line “${left}” is still in it.`;
      else settle('text', field.value);
    } }, h('label', { for: 'merge' }, 'The text that your file is to have; a symbol in it becomes what it stands for'), field,
    h('div', { class: 'row end' }, h('button', { type: 'button', click: () => show(editor) }, 'Cancel'), h('button', { class: 'primary' }, 'Write this')));
    show(editor, form);
    field.focus();
    field.setSelectionRange(0, 0);
  }

  show(el, h('article', { class: 'oneconflict' }, h('a', { class: 'backbutton always', 'data-up': '', href: list }, '‹ All conflicts'),
    h('header', { class: 'filehead' }, h('h2', null, ident(doc.path, 300)), h('p', null, visible(doc.reason), h('span', { class: 'dim' }, ` · ${dateTime(doc.time)}`)),
      h('p', { class: 'note' }, 'Both are shown as the agent reads them: symbols stand for what it may not be told.')),
    both ? h('div', null, h('h3', { class: 'sr' }, 'Both versions'), beside(mine, doc.lost, 'Your file as it is now', 'What the agent wrote'))
      : [mine === null ? h('p', { class: 'note' }, doc.now ? `Your file is not shown: ${doc.now.unshown}.` : 'You have no such file.') : text('Your file as it is now', mine),
        typeof doc.lost === 'string' ? text('What the agent wrote', doc.lost) : h('p', { class: 'note' }, 'What the agent wrote can’t be shown.')],
    problem,
    h('div', { class: 'row wrap' }, h('button', { id: 'mine', click: () => settle('mine') }, doc.now ? 'Keep mine' : 'Leave it removed'),
      typeof doc.lost === 'string' ? h('button', { id: 'agents', click: () => settle('agent') }, 'Take the agent’s') : null,
      both && doc.exact && doc.now.exact ? h('button', { id: 'both', click: merge }, 'Merge them…') : null), editor));
}

const text = (title, s) => h('div', null, h('h3', null, title), h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': title, dir: 'ltr' }, visible(s)));
