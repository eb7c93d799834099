// One decision, explained from end to end.
import { h, show } from './dom.js';
import { get, hasKey, Offline } from './api.js';
import { find, ident, payload, sizeText, visible } from './text.js';
import { beside, jump, marksOf, meters, numbered, signalList } from './question.js';
import { wrong } from './mark.js';
import { chains } from './symbols.js';
import { actions, dateTime, millis, reason, residuals, says, sources, trusts, verdict } from './words.js';

export function decision(main, parts) {
  let gone = false;
  const draw = async (id) => {
    try {
      const doc = await get(`decisions/${encodeURIComponent(id)}`);
      if (!gone) show(main, doc.record.decision ? article(doc, () => { if (!gone) draw(id); }) : other(doc.record));
    } catch (err) {
      if (gone || !hasKey()) return;
      show(main, h('div', { class: 'empty' }, h('p', { class: 'big' }, err.status === 404 ? 'There is no such decision in the log.' : err.message),
        err instanceof Offline ? h('button', { click: () => draw(id) }, 'Try again') : h('a', { href: '#/decisions' }, 'All decisions')));
    }
  };
  draw(parts[1] ?? '');
  return {
    leave() { gone = true; },
    route(p) { draw(p[1] ?? ''); },
    key(e) {
      if (e.key === 'u') history.length > 1 ? history.back() : location.hash = '#/decisions';
      else if (e.key === 'm') main.querySelector('.more')?.click();
      else return false;
      return true;
    },
  };
}

const other = (r) => h('div', { class: 'empty' }, h('p', null, `Record ${r.index} is no decision but says: ${r.kind}.`));

function article(doc, again) {
  const r = doc.record;
  const d = r.decision;
  const f = r.flow ?? {};
  const v = doc.value ?? {};
  const signals = numbered(d.precheck?.signals, v.details);
  const by = (name, text) => (text ? h('a', { href: `#/decisions?${new URLSearchParams({ [name]: text })}`, title: `all decisions of this ${name}` }, ident(text, 60)) : null);
  return h('article', { class: 'decision' },
    h('header', null,
      h('p', { class: 'meta' }, h('a', { href: '#/decisions' }, 'Decisions'), ' / ', h('code', null, r.decision_id)),
      h('h1', { class: 'headline' }, verdict(d.action), ' ', h('span', null, reason(d.reason))),
      v.message ? h('p', { class: 'message' }, visible(v.message)) : null,
      d.observed !== undefined && d.observed !== null ? h('p', { class: 'outcome' }, 'This agent is only observed. Otherwise: ', verdict(d.observed), '.') : null),
    stages(d),
    h('section', null, h('h2', null, 'The transfer'), h('dl', { class: 'facts' },
      row('When', dateTime(r.time), h('span', { class: 'dim' }, `, took ${millis(d.latency_ms)}`), d.cached ? h('span', { class: 'dim' }, ' · known from an identical flow') : null),
      row('Agent', by('agent', v.agent), v.session ? [h('span', { class: 'dim' }, ' in session '), by('session', v.session)] : null),
      row('From', sources[f.source_kind] ?? f.source_kind, v.source ? [' ', ident(v.source, 400)] : null, f.source_trust ? h('span', { class: `trust ${f.source_trust}` }, trusts[f.source_trust] ?? f.source_trust) : null),
      row('To', f.sink_kind, v.tool ? [h('span', { class: 'dim' }, ' by '), by('tool', v.tool)] : null, [v.tool_action, v.sink, v.destination].filter(Boolean).map((x) => [' ', ident(x, 400)])),
      row('Across', f.boundary ? `the ${f.boundary} boundary of the ${f.surface} surface` : null),
      row('You asked for', v.intent ? visible(v.intent) : null),
      row('Permissions', v.permissions?.length ? v.permissions.map((p) => [ident(p, 60), ' ']) : null))),
    content(doc, signals),
    v.payload ? chains(v.payload) : null,
    wrong(doc, again),
    findings(d, signals),
    report('Auditor', d.report, v.evidence, d, doc, 0),
    report('Auditor, on the cleaned text', d.second_report, v.second_evidence, d, doc, 1),
    escalation(d, v),
    arbiter(d, v),
    proof(doc));
}

const row = (name, ...what) => (what.flat(Infinity).some((x) => x !== null && x !== undefined && x !== false && x !== '') ? [h('dt', null, name), h('dd', null, what)] : null);

// stages shows what ran, how long it took, and what decided.
function stages(d) {
  if (!d.trace?.length) return null;
  const by = new Map(); // a stage that runs twice is shown where it ran last
  for (const t of d.trace) {
    const before = by.get(t.stage)?.duration_ms ?? 0;
    by.delete(t.stage);
    by.set(t.stage, { ...t, duration_ms: before + t.duration_ms });
  }
  return h('ol', { class: 'stages', 'aria-label': 'Stages' }, [...by.values()].map((t) => {
    const decided = t.outcome !== 'next';
    return h('li', { class: decided ? `decided ${actions[t.outcome]?.cls ?? ''}` : null }, h('span', { class: 'name' }, t.stage),
      h('span', { class: 'ms' }, millis(t.duration_ms)), decided ? h('span', { class: 'said' }, actions[t.outcome]?.word.toLowerCase() ?? t.outcome) : null);
  }));
}

function content(doc, signals) {
  const { record: r, value: v } = doc;
  const total = r.flow?.payload?.bytes ?? 0;
  if (!v?.payload) return h('section', null, h('h2', null, 'Payload ', h('span', { class: 'dim' }, sizeText(total))), h('p', { class: 'note' }, r.value ? 'Its text has been erased; everything else about it stays.' : 'Its text was not kept.'));
  const marks = [...(doc.whole ? marksOf(signals) : []), ...find(v.payload, v.evidence)];
  const note = doc.whole ? null : h('p', { class: 'note' }, v.cut?.includes('payload') ? 'Only its beginning is kept. ' : null,
    'Secrets in it are replaced, so the places of findings can’t be marked exactly.');
  if (v.rewrite) {
    return h('section', null, h('h2', null, 'Payload and what went on instead'), note, beside(v.payload, v.rewrite));
  }
  return h('section', null, h('h2', null, 'Payload ', h('span', { class: 'dim' }, sizeText(total))), note, payload(v.payload, marks));
}

function findings(d, signals) {
  const p = d.precheck;
  if (!p) return null;
  const looked = `${p.bytes === p.total ? `All ${sizeText(p.total)}` : `${sizeText(p.bytes)} of ${sizeText(p.total)}`} looked at${p.decoded ? `, and ${sizeText(p.decoded)} more after decoding` : ''}${p.decoders?.length ? ` (${p.decoders.join(', ')})` : ''}.`;
  return h('section', null, h('h2', null, 'What the rules found'),
    p.hard_block ? h('p', { class: 'outcome denied' }, 'The hard rule ', h('code', null, p.hard_reason), ' stopped it.') : null,
    signals.length ? signalList(signals, jump) : h('p', null, 'Nothing.'),
    h('p', { class: 'note' }, looked, p.limits?.length ? h('span', { class: 'warnline' }, ` Stopped by a limit: ${p.limits.join(', ')}.`) : null));
}

function usage(d, i) {
  const u = d.usage?.[i];
  if (!u) return null;
  const name = u.model && !u.model.startsWith('hmac:') ? u.model : u.backend;
  return h('span', { class: 'dim' }, [name, millis(u.duration_ms), u.prompt_tokens ? `${u.prompt_tokens}+${u.output_tokens ?? 0} tokens` : null, u.windows > 1 ? `${u.windows} windows` : null].filter(Boolean).join(' · '));
}

function report(title, r, evidence, d, doc, i) {
  if (!r) return null;
  return h('section', null, h('h2', null, title, ' ', usage(d, i)),
    h('p', null, 'It says ', says(r.decision), ' and sees ', r.residual_risk_types?.length ? r.residual_risk_types.map((x) => residuals[x] ?? x).join(', ') : 'nothing', '.'),
    meters(r, doc.thresholds, i === 0 ? d.residual : undefined),
    doc.thresholds && !doc.same_policy ? h('p', { class: 'note' }, 'The limits are those in force now; the policy has changed since this decision.') : null,
    r.needs_large_review ? h('p', null, 'It asks for a stronger judge.') : null,
    evidence?.length ? h('ul', { class: 'evidence' }, evidence.map((x) => h('li', null, visible(x)))) : null);
}

function escalation(d, v) {
  if (!d.escalation?.length) return null;
  return h('section', null, h('h2', null, 'Why it was looked at again'), h('ul', { class: 'plainlist' }, d.escalation.map((code, i) => h('li', null, h('b', null, reason(code)),
    ' ', h('code', { class: 'dim' }, code), v.escalation?.[i] ? h('span', { class: 'dim' }, ' ', visible(v.escalation[i])) : null))));
}

function arbiter(d, v) {
  const a = d.arbiter;
  if (!a) return null;
  return h('section', null, h('h2', null, 'Stronger judge'), h('p', null, 'It says ', says(a.decision), `, risk ${a.risk.toFixed(2)}, and sees `, (a.residual_risk_types ?? []).map((x) => residuals[x] ?? x).join(', ') || 'nothing', '.'),
    v.arbiter_evidence?.length ? h('ul', { class: 'evidence' }, v.arbiter_evidence.map((x) => h('li', null, visible(x)))) : null,
    v.sent ? h('details', null, h('summary', null, 'What it was given: this left for it'), payload(v.sent, [], 'What left')) : d.sent ? h('p', { class: 'note' }, `${sizeText(d.sent.bytes)} left for it; that text was not kept.`) : null);
}

function proof(doc) {
  const p = doc.proof;
  const [, size, root] = p.checkpoint.split('\n');
  return h('section', null, h('h2', null, 'Recorded'),
    h('p', null, 'Record ', h('b', null, p.index), ' of ', h('b', null, size), '. ', doc.proof_holds
      ? h('span', { class: 'holds' }, 'Its place in the signed log has just been proved.') : h('span', { class: 'problem' }, 'Its proof does not hold: run auditd log verify.')),
    h('dl', { class: 'facts' }, row('Root', h('code', { class: 'id' }, root)), row('Policy', doc.record.decision.policy_digest ? h('code', { class: 'id' }, doc.record.decision.policy_digest) : null, doc.same_policy ? h('span', { class: 'dim' }, ' · in force') : null)),
    h('details', null, h('summary', null, 'The record, its proof and the signed checkpoint'),
      h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': 'Record' }, visible(JSON.stringify(JSON.parse(p.record), null, 2))),
      h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': 'Proof' }, visible(JSON.stringify(p.proof))),
      h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': 'Checkpoint' }, visible(p.checkpoint)),
      h('p', { class: 'note' }, 'In a terminal: ', h('code', null, `auditd log show ${doc.record.decision_id}`))));
}
