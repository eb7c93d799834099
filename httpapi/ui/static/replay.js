// A replay: recorded flows audited again, under the policy in force or another.
import { h, show, toast } from './dom.js';
import { get, post } from './api.js';
import { ident } from './text.js';
import { agentName, dateTime, millis, reason, verdict } from './words.js';

const spans = [[24, 'the last day'], [168, 'the last week'], [720, 'the last 30 days']];
const shown = 100; // changes that are listed at first

/** replayBox replays under a policy's text, null for the one in force. over() says when to stop looking. */
export function replayBox(text, over) {
  const span = h('select', { 'aria-label': 'How far back' }, spans.map(([n, t]) => h('option', { value: n, selected: n === 168 }, t)));
  const start = h('button', { type: 'button', class: 'replay', click: begin }, 'Replay it');
  const out = h('div', { class: 'stack', role: 'status' });
  const box = h('div', { class: 'stack' }, h('div', { class: 'row wrap' }, span, start), out);
  let mine = 0; // the job that is followed

  async function begin() {
    start.disabled = true;
    try {
      const job = await post('replay', text === null ? { hours: Number(span.value) } : { hours: Number(span.value), policy: text });
      mine = job.id;
      follow(job);
    } catch (err) {
      start.disabled = false;
      show(out, h('p', { class: 'problem' }, err.message));
    }
  }

  async function follow(job) {
    while (job.running && !over()) {
      show(out, h('div', { class: 'row' }, h('progress', { max: Math.max(job.of, 1), value: job.done, 'aria-label': 'Replayed' }), h('span', { class: 'dim' }, job.of ? `${job.done} of ${job.of}` : 'reading the log'),
        h('button', { type: 'button', class: 'small', click: () => post('replay/stop').catch((err) => toast(err.message, true)) }, 'Stop')));
      await new Promise((r) => setTimeout(r, 400));
      try {
        job = await get('replay');
      } catch { /* the daemon is away; the next turn asks again */ }
    }
    start.disabled = false;
    if (!over() && job.id === mine) draw(job);
  }

  function draw(job) {
    if (job.problem) return void show(out, h('p', { class: 'problem' }, job.problem));
    if (job.stopped) return void show(out, h('p', { class: 'dim' }, 'Stopped.'));
    if (job.report) show(out, report(job, text === null ? 'What would come out otherwise' : 'What the change would do'));
  }

  // What the last one found is shown again where it was asked for.
  get('replay').then((job) => {
    if (over() || !job.id || (!job.running && text !== null) || job.in_force !== (text === null)) return;
    mine = job.id;
    start.disabled = job.running;
    follow(job);
  }).catch((err) => { if (err.code === 'not_configured') box.replaceChildren(h('p', { class: 'dim' }, 'This daemon can’t.')); });
  return box;
}

const figure = (n, word, cls = '') => h('div', { class: 'figure' }, h('b', { class: n ? cls : '' }, n), h('span', null, word));

function report(job, label) {
  const r = job.report;
  const skipped = Object.entries(r.skipped).filter(([, n]) => n);
  const left = skipped.reduce((n, [, x]) => n + x, 0);
  const list = h('div', null);
  const more = h('button', { type: 'button', class: 'more', hidden: r.changes.length <= shown, click: () => { draw(r.changes.length); more.hidden = true; } }, `Show all ${r.changes.length}`);
  const draw = (n) => show(list, changes(r.changes.slice(0, n), label));
  draw(shown);
  return h('div', { class: 'report' },
    h('p', null, r.flows === 0 ? 'No flow of that time could be audited again.' : ['Of ', h('b', null, r.flows), ` ${r.flows === 1 ? 'flow' : 'flows'} since ${dateTime(r.since)}:`]),
    r.flows ? h('div', { class: 'figures' }, figure(r.added_stops, 'would be stopped now', 'amber'), figure(r.lost_stops, 'would not be stopped any more', 'red'), figure(r.other_changes, 'would come out in another way'), figure(r.same, 'come out the same')) : null,
    r.after.p50_ms || r.before.p50_ms ? h('p', { class: 'dim' }, `Half were decided within ${millis(r.before.p50_ms)} then and ${millis(r.after.p50_ms)} now; 95 % within ${millis(r.before.p95_ms)} and ${millis(r.after.p95_ms)}.`) : null,
    h('div', { class: 'honest' }, h('h3', null, 'What this can’t say'), h('ul', { class: 'plainlist' },
      r.redacted ? h('li', null, `${r.redacted} had secrets replaced in the log: what a secret raised then, it does not raise here.`) : null,
      skipped.map(([why, n]) => h('li', null, `${n} left out: ${why}.`)),
      r.flows + left >= job.limit ? h('li', null, `At most ${job.limit} flows are looked at, the newest; older ones were left out.`) : null,
      h('li', null, 'Suppressions, refusals and approvals are left aside.'))),
    r.changes.length ? [list, more] : null);
}

const changes = (rows, label) => h('div', { class: 'tablebox', tabindex: 0, role: 'region', 'aria-label': label }, h('table', { class: 'changes' },
  h('thead', null, h('tr', null, ['When', 'Agent', 'Transfer', 'Then', 'Now'].map((t) => h('th', { scope: 'col' }, t)))),
  h('tbody', null, rows.map((c) => h('tr', { class: c.kind }, h('td', { class: 'nowrap' }, h('a', { href: `#/d/${encodeURIComponent(c.decision_id)}` }, dateTime(c.time))), h('td', null, c.agent ? agentName(c.agent) : '–'),
    h('td', null, ident(c.source, 60), h('span', { class: 'dim' }, ' → '), ident(c.sink, 60)), h('td', null, verdict(c.before), h('br'), h('span', { class: 'dim' }, reason(c.before_reason))),
    h('td', null, verdict(c.after), h('br'), h('span', { class: 'dim' }, reason(c.after_reason), c.redacted ? ', on a text with secrets replaced' : null)))))));
