// "This was wrong": a mark on a decision, and the way to a suppression.
import { dialog, h, toast } from './dom.js';
import { get, now, post } from './api.js';
import { ident, plain, sizeText } from './text.js';
import { dateTime, residuals } from './words.js';

const words = { false_alarm: 'A false alarm', miss: 'A miss' };
const days = [[1, 'one day'], [7, 'a week'], [30, '30 days'], [90, '90 days']];

/** wrong is the section of a decision that takes the owner's mark. */
export function wrong(doc, again) {
  const r = doc.record;
  const d = r.decision;
  if (!doc.families) return null; // this daemon keeps no marks
  const stopped = d.action !== 'allow' || (d.observed ?? 'allow') !== 'allow';
  const missable = d.action !== 'block' || d.observed;
  const m = doc.mark;
  const withdraw = async () => {
    try {
      await post('marks', { decision_id: r.decision_id, what: 'withdrawn' });
      toast('The mark is withdrawn.');
    } catch (err) {
      toast(err.message, true);
    }
    again();
  };
  return h('section', { class: 'wrong' }, h('h2', null, 'Was this wrong?'),
    m ? h('p', null, h('b', null, words[m.what]), ', you said', m.note ? [': ', h('q', null, plain(m.note, 400))] : '', h('span', { class: 'dim' }, ` · ${dateTime(m.time)} · ${m.payload ? 'its text is kept with the case' : 'its text is not kept'}`),
      ' ', h('button', { class: 'quiet small', click: withdraw }, 'Withdraw')) : null,
    h('div', { class: 'row wrap' },
      stopped ? h('button', { click: () => markDialog(doc, 'false_alarm', again) }, 'It should have passed…') : null,
      missable ? h('button', { click: () => markDialog(doc, 'miss', again) }, 'It should have been stopped…') : null,
      doc.suppression?.order ? h('button', { click: () => suppressDialog(doc.suppression.order, again) }, 'Suppress in this place…') : null),
    stopped && doc.suppression?.problem ? h('p', { class: 'note' }, doc.suppression.problem) : null,
    d.suppressed?.length ? h('p', { class: 'note' }, 'Followed: ', d.suppressed.map((x) => [h('code', null, x.by), x.rules?.length ? ` took away ${x.rules.join(', ')}. ` : ' kept the auditor’s stop from being enforced. '])) : null);
}

function markDialog(doc, what, again) {
  const r = doc.record;
  const v = doc.value ?? {};
  const whole = Boolean(v.payload) && !v.cut?.includes('payload');
  const note = h('textarea', { id: 'note', rows: 3, maxlength: 1000 });
  const keep = h('input', { id: 'keep', type: 'checkbox', disabled: !whole });
  const part = what === 'miss' ? h('textarea', { id: 'part', rows: 3 }) : null;
  const family = h('select', { id: 'family' }, h('option', { value: '' }, 'guess'), doc.families.map((f) => h('option', { value: f }, f.replaceAll('_', ' '))));
  const problem = h('p', { class: 'problem', role: 'alert' });
  const form = h('form', { method: 'dialog', class: 'stack', submit },
    h('h2', null, what === 'miss' ? 'It should have been stopped' : 'It should have passed'),
    h('p', { class: 'dim' }, 'This is filed as a labelled case on this machine, for tuning. It changes nothing by itself.'),
    h('label', { for: 'note' }, 'Why, in your words'), note,
    h('label', { class: 'choice' }, keep, h('span', null, `Keep its text with the case (${sizeText(new TextEncoder().encode(v.payload ?? '').length)})`,
      h('span', { class: 'dim' }, whole ? ' as the log has it, secrets replaced' : ' – it is not whole in the log any more'))),
    part ? [h('label', { for: 'part' }, 'The part that should not have got through, if not all of it'), part] : null,
    h('label', { for: 'family' }, 'What it is a case of'), family,
    problem,
    h('div', { class: 'row end' }, h('button', { type: 'button', click: () => el.close() }, 'Cancel'), h('button', { class: 'primary' }, 'File it')));
  const el = dialog('Mark this decision', form);
  note.focus();
  async function submit(e) {
    e.preventDefault();
    try {
      await post('marks', { decision_id: r.decision_id, what, note: note.value.trim(), payload: keep.checked, family: family.value, part: part?.value ?? '' });
      el.close();
      toast('Filed.');
      again();
      if (what === 'false_alarm' && doc.suppression?.order) suppressDialog(doc.suppression.order, again, note.value.trim());
    } catch (err) {
      problem.textContent = err.message;
    }
  }
}

/** suppressDialog shows a suppression before it is given. */
export function suppressDialog(order, done, why = '') {
  const s = order.scope;
  const field = (id, value) => (value ? h('input', { id, value, spellcheck: 'false', autocomplete: 'off' }) : null);
  const source = field('scope-source', s.source);
  const sink = field('scope-sink', s.sink);
  const anyAgent = h('input', { type: 'checkbox', id: 'any-agent' });
  const reason = h('input', { id: 'reason', value: why, maxlength: 1000, required: true });
  const until = h('select', { id: 'until' }, days.map(([n, t]) => h('option', { value: n, selected: n === 30 }, t)));
  const problem = h('p', { class: 'problem', role: 'alert' });
  const fixed = [['Into', s.sink_kind], ['Tool', s.tool], ['Action', s.action], ['Destination', s.destination], ['From', s.source ?? s.source_kind], ['Agent', s.agent]].filter(([, x]) => x);
  const form = h('form', { method: 'dialog', class: 'stack', submit },
    h('h2', null, 'Suppress in this place'),
    h('p', null, 'Where all of this is the same,'),
    h('dl', { class: 'facts' }, fixed.map(([k, x]) => [h('dt', null, k), h('dd', null, ident(x, 200))]),
      s.payload ? [h('dt', null, 'Payload'), h('dd', null, 'exactly this one')] : null),
    source ? [h('label', { for: 'scope-source' }, 'Source (* within a path element, ** across them)'), source] : null,
    sink ? [h('label', { for: 'scope-sink' }, 'Target (* within a path element, ** across them)'), sink] : null,
    s.agent ? h('label', { class: 'choice' }, anyAgent, h('span', null, 'whichever agent')) : null,
    h('div', { class: 'unlocks' }, h('h3', null, 'This is not held against it any more'),
      h('ul', { class: 'plainlist' }, (order.rules ?? []).map((x) => h('li', null, 'the finding ', h('code', null, x))),
        order.judgement ? h('li', null, 'the auditor’s answer, while it sees ', (order.residuals ?? []).map((x) => residuals[x] ?? x).join(', ') || 'nothing', order.residuals?.length ? ' and nothing else' : '') : null),
      h('p', { class: 'note' }, 'Hard rules, your policy and findings of another kind still stop it. Every decision that follows this says so.')),
    h('label', { for: 'reason' }, 'Why'), reason,
    h('label', { for: 'until' }, 'For'), until, problem,
    h('div', { class: 'row end' }, h('button', { type: 'button', click: () => el.close() }, 'Cancel'), h('button', { class: 'primary' }, 'Suppress')));
  const el = dialog('Suppress in this place', form);
  reason.focus();
  async function submit(e) {
    e.preventDefault();
    const scope = { ...s };
    if (source) scope.source = source.value.trim();
    if (sink) scope.sink = sink.value.trim();
    if (anyAgent.checked) delete scope.agent;
    const button = form.querySelector('.primary');
    button.disabled = true;
    try {
      await post('standing', { ...order, scope, reason: reason.value.trim(), expires: new Date(now() + Number(until.value) * 86400e3).toISOString() });
      el.close();
      toast('Suppressed. It is listed under Rules, with its way back.');
      done();
    } catch (err) {
      button.disabled = false;
      problem.textContent = err.message;
    }
  }
}

/** denyDialog makes a no last. */
export function denyDialog(q, deny) {
  const f = q.flow;
  const exact = h('input', { type: 'radio', name: 'reach', value: 'exact', checked: true });
  const all = h('input', { type: 'radio', name: 'reach', value: 'all' });
  const reason = h('input', { id: 'reason', maxlength: 1000 });
  const until = h('select', { id: 'until' }, [[0, 'until I revoke it'], ...days].map(([n, t]) => h('option', { value: n }, t)));
  const problem = h('p', { class: 'problem', role: 'alert' });
  const place = [f.session?.agent, f.sink.tool, f.sink.action, f.sink.id, f.sink.destination].filter(Boolean);
  const form = h('form', { method: 'dialog', class: 'stack', submit },
    h('h2', null, 'Deny, and remember it'),
    h('fieldset', null, h('legend', { class: 'sr' }, 'What is refused'),
      h('label', { class: 'choice' }, exact, h('span', null, 'exactly this payload into this target')),
      h('label', { class: 'choice' }, all, h('span', null, 'whatever ', place.map((x) => [ident(x, 80), ' ']), h('span', { class: 'dim' }, `into ${f.sink.kind}`)))),
    h('label', { for: 'reason' }, 'Why (the agent is told)'), reason,
    h('label', { for: 'until' }, 'For how long'), until, problem,
    h('div', { class: 'row end' }, h('button', { type: 'button', click: () => el.close() }, 'Cancel'), h('button', { class: 'deny' }, 'Deny and remember')));
  const el = dialog('Deny, and remember it', form);
  reason.focus();
  async function submit(e) {
    e.preventDefault();
    const remember = { exact: exact.checked, reason: reason.value.trim() };
    if (Number(until.value)) remember.expires = new Date(now() + Number(until.value) * 86400e3).toISOString();
    const button = form.querySelector('.deny');
    button.disabled = true;
    try {
      await deny(remember);
      el.close();
    } catch (err) {
      button.disabled = false;
      if (err.status === 409 || err.status === 404) el.close();
      else problem.textContent = err.message;
    }
  }
}

/** orders reads the standing orders. */
export const orders = async (ended) => (await get(`standing${ended ? '?ended=1' : ''}`)).orders;
