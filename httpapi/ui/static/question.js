// One question, with all that a person needs to answer it.
import { h } from './dom.js';
import { find, ident, payload, sizeText, visible } from './text.js';
import { diff } from './diff.js';
import { editable } from './edit.js';
import { chains } from './symbols.js';
import { ago, bodyLabel, codes, left, meter, reason, residuals, sentence, sources, trusts } from './words.js';

/** detail shows an asked question; on.approve, on.edit, on.deny, on.remember, on.back act on it. */
export function detail(doc, on) {
  const q = doc.question;
  const f = q.flow;
  const open = !q.answer;
  const signals = numbered(doc.record?.decision?.precheck?.signals, doc.details);
  return h('article', { class: 'question' },
    h('button', { class: 'quiet backbutton', click: on.back }, '‹ All questions'),
    h('header', null,
      h('h2', { class: 'headline' }, f ? sentence(f) : visible(q.summary)),
      h('p', { class: 'meta' }, `asked ${ago(q.created)}`, f?.session?.id ? [' · session ', ident(f.session.id, 40)] : null,
        ' · ', h('a', { href: `#/d/${encodeURIComponent(q.decision_id)}` }, 'how it was decided'))),
    open ? null : outcome(q),
    f ? [effect(f, signals, q.report), why(q, signals, doc.thresholds, doc.message), origin(f), chains(f.payload), rewrite(f, q, open ? on.edit : null)] : h('p', { class: 'note' }, 'Its content has been deleted.'),
    open ? h('footer', { class: 'answer' },
      h('button', { class: 'primary', click: on.approve }, 'Approve…', h('kbd', null, 'a')),
      h('button', { class: 'deny', click: on.deny }, 'Deny', h('kbd', null, 'd')),
      h('button', { class: 'quiet', click: on.remember }, 'Deny and remember…'),
      h('span', { class: 'silence' }, h('span', { class: 'left', 'data-until': q.expires }, left(q.expires), ' left'), h('span', { class: 'wideonly' }, '; silence is a no'))) : null);
}

function outcome(q) {
  const text = { approved: 'Approved', denied: 'Denied', expired: 'Expired: nobody answered in time, which is a no' }[q.answer] ?? q.answer;
  return h('p', { class: `outcome ${q.answer}`, role: 'status' }, h('b', null, text), q.by ? ` by ${q.by}` : null, q.answered && q.answer !== 'expired' ? `, ${ago(q.answered)}` : null, '.');
}

/** numbered gives each signal with a place in the payload a number. */
export function numbered(signals, details) {
  let n = 0;
  return (signals ?? []).map((s, i) => ({ ...s, detail: details?.[i], n: s.spans?.length ? ++n : 0 }));
}

/** marksOf are the places of signals. */
export const marksOf = (signals) => signals.flatMap((s) => (s.spans ?? []).map((x) => ({ start: x.start, end: x.end, kind: s.severity, n: s.n })));

function effect(f, signals, report) {
  const rows = [
    ['Tool', f.sink.tool], ['Action', f.sink.action], ['Target', f.sink.id], ['Destination', f.sink.destination],
    ['Working in', f.session?.workspace], ['Permissions', f.sink.permissions?.join(', ')]].filter(([, v]) => v);
  const label = bodyLabel(f.sink.kind);
  const marks = [...marksOf(signals), ...find(f.payload, report?.evidence)];
  return h('section', null,
    rows.length ? h('dl', { class: 'facts' }, rows.map(([k, v]) => [h('dt', null, k), h('dd', null, ident(v, 400))])) : null,
    h('h3', null, label, ' ', h('span', { class: 'dim' }, sizeText(new TextEncoder().encode(f.payload).length))),
    payload(f.payload, marks, label));
}

/** signalList names what the deterministic checks found. */
export function signalList(signals, jump) {
  return h('ol', { class: 'signals' }, signals.map((s) => h('li', { class: s.severity },
    s.n ? h('button', { class: 'n', 'aria-label': `finding ${s.n}: show it in the payload`, click: (e) => jump(e, s.n) }, s.n) : h('span', { class: 'n none' }, '·'),
    h('span', { class: 'code' }, codes[s.code] ? reason(codes[s.code]) : s.code),
    s.severity === 'hard' ? h('span', { class: 'hardtag' }, 'hard rule') : null,
    h('span', { class: 'rule' }, s.rule), s.via?.length ? h('span', { class: 'via' }, `found after decoding ${s.via.join(' → ')}`) : null,
    s.detail ? h('span', { class: 'detail' }, visible(s.detail)) : null)));
}

export function jump(e, n) {
  const scope = e.target.closest('article');
  const mark = [...scope.querySelectorAll('mark')].find((m) => m.dataset.n.split(' ').includes(String(n)));
  if (!mark) {
    scope.querySelector('.more')?.click();
    return;
  }
  mark.scrollIntoView({ block: 'center', behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth' });
  mark.classList.remove('flash');
  void mark.offsetWidth;
  mark.classList.add('flash');
}

function why(q, signals, t, message) {
  const r = q.report;
  return h('section', null, h('h3', null, 'Why it asks'), message ? h('p', { class: 'said' }, visible(message)) : null,
    h('p', { class: 'reasons' }, [...new Set(q.reasons ?? [])].map((x) => h('span', { class: 'chip' }, reason(x)))),
    r ? meters(r, t) : h('p', { class: 'note' }, 'No model judged it.'),
    r?.residual_risk_types?.some((x) => x !== 'none') ? h('p', null, h('span', { class: 'dim' }, 'The auditor sees '), r.residual_risk_types.map((x) => residuals[x] ?? x).join(', '), '.') : null,
    r?.evidence?.length ? h('ul', { class: 'evidence' }, r.evidence.map((x) => h('li', null, visible(x)))) : null,
    signals.length ? signalList(signals, jump) : null);
}

/** meters are the numbers of a report with the limits of the predicate. */
export function meters(r, t, residual) {
  return h('div', { class: 'meters' },
    meter('Risk', r.risk, t ? [{ at: t.small_allow.risk_max, label: 'clear to allow up to' }, { at: t.small_block.risk_min, label: 'clear to block from' }] : []),
    meter('Uncertainty', r.uncertainty, t ? [{ at: t.small_allow.uncertainty_max, label: 'sure enough up to' }] : []),
    meter('Exploitability', r.exploitability, t ? [{ at: t.gray.exploitability_min, label: 'grey from' }] : []),
    meter('Impact', r.impact),
    residual === undefined ? null : meter('Residual', residual, t ? [{ at: t.small_allow.residual_max, label: 'fine up to' }] : []));
}

function origin(f) {
  return h('section', null, h('h3', null, 'Where it comes from'),
    h('dl', { class: 'facts' },
      h('dt', null, 'Source'), h('dd', null, sources[f.source.kind] ?? f.source.kind, f.source.id ? [' ', ident(f.source.id, 400)] : null,
        h('span', { class: `trust ${f.source.trust}` }, trusts[f.source.trust] ?? f.source.trust)),
      f.intent ? [h('dt', null, 'You asked for'), h('dd', null, visible(f.intent))] : null));
}

function rewrite(f, q, edit) {
  const safer = typeof q.rewrite === 'string';
  const from = safer ? q.rewrite : f.payload;
  const button = edit && editable(from) ? h('p', null, h('button', { class: 'small', click: () => edit(from) }, safer ? 'Edit it and send that…' : 'Send another text instead…', h('kbd', null, 'w'))) : null;
  if (!safer) return button ? h('section', null, button) : null;
  return h('section', null, h('h3', null, 'A safer version'),
    h('p', { class: 'note' }, 'The auditor would have passed on the text on the right. Approving passes on the original.'),
    beside(f.payload, q.rewrite), button);
}

const maxDiff = 64 << 10; // characters of either text that are compared

/** beside shows two texts with their differences. */
export function beside(a, b, first = 'Original', second = 'Rewrite') {
  if (a.length > maxDiff || b.length > maxDiff) {
    return h('div', { class: 'beside' }, h('div', null, h('h4', null, first), payload(a, [], first)), h('div', null, h('h4', null, second), payload(b, [], second)));
  }
  const parts = diff(a, b);
  const side = (title, drop, cls) => h('div', null, h('h4', null, title), h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': title, dir: 'ltr' },
    parts.filter((p) => p.kind !== drop).map((p) => (p.kind === 'same' ? visible(p.text) : h(cls, { class: 'change' }, visible(p.text))))));
  return h('div', { class: 'beside' }, side(first, 'ins', 'del'), side(second, 'del', 'ins'));
}
