// Our words for what the daemon says in its own.
import { h } from './dom.js';
import { ident, plain } from './text.js';
import { now } from './api.js';

export const actions = {
  allow: { word: 'Allowed', cls: 'allow' },
  rewrite_and_continue: { word: 'Rewritten', cls: 'rewrite' },
  defer_to_human: { word: 'Asked you', cls: 'defer' },
  block: { word: 'Blocked', cls: 'block' },
};

export const codes = {
  CRED_SECRET: 'a secret', PII_CONTACT: 'personal contact data', FINANCIAL_DATA: 'financial data', EXTERNAL_SINK: 'leaves this machine',
  PRIVATE_ENDPOINT: 'a private address', AUTHORITY_CROSSING: 'crosses a line of authority',
  PERSISTENT_CONTEXT_UNTRUSTED: 'untrusted text that would stay', DANGEROUS_SIDE_EFFECT: 'a dangerous side effect',
  RECIPIENT_AMBIGUITY: 'an unclear recipient', PROMPT_CONTROL: 'instructions to the agent', ENCODED_PAYLOAD: 'encoded content',
  TOOL_OUTPUT_POISONING: 'instructions in a tool’s output', SENSITIVE_FILE_PATH: 'a sensitive file',
};

export const residuals = {
  sensitive_span: 'sensitive data', external_sink: 'data that leaves', side_effect: 'a side effect', irreversible_action: 'something irreversible',
  authority_crossing: 'crossing of authority', recipient_ambiguity: 'unclear recipient', prompt_control: 'instructions to the agent',
  tool_induction: 'inducement to use a tool', none: 'nothing',
};

// What the daemon's stable words mean to a person; others are shown as they are.
const reasons = {
  hard_rule: 'A hard rule matched', owner_rule: 'Your policy says so', rule_failed: 'A rule of your policy failed', no_policy: 'There is no policy',
  approved: 'You approved it', denied: 'You denied it', granted: 'An approval of yours covers it', ask_failed: 'You could not be asked', ask_missing: 'Nobody can be asked',
  approved_edit: 'You approved your own text in its place', edit_fine: 'You had a text checked; it would pass', edit_doubtful: 'You had a text checked; it would not pass',
  refused: 'You refused it for good', suppressed: 'A suppression of yours covers it',
  auditor_allow: 'The auditor found nothing wrong', auditor_block: 'The auditor found it harmful', auditor_defer: 'The auditor wants your word',
  auditor_rewrite: 'The auditor took something out', auditor_missing: 'No auditor is set up', auditor_not_ready: 'The auditor was not ready',
  auditor_timeout: 'The auditor took too long', auditor_malformed: 'The auditor’s answer made no sense', auditor_cancelled: 'The caller gave up',
  arbiter_allow: 'The stronger judge allowed it', arbiter_block: 'The stronger judge blocked it', arbiter_defer: 'The stronger judge wants your word',
  arbiter_rewrite: 'The stronger judge took something out', arbiter_not_ready: 'The stronger judge was not ready', no_arbiter: 'No stronger judge is set up',
  rewrite_invalid: 'The cleaned text was not valid', rewrite_riskier: 'The cleaned text was riskier', rewrite_hard_rule: 'A hard rule matched the cleaned text',
  rewrite_not_applied: 'The clean-up was not applied', incomplete_rewrite: 'The clean-up is not complete', log_failed: 'It could not be recorded',
  invalid_flow: 'The request was not valid', internal_error: 'Something failed inside', undecided: 'Nothing decided it',
  small_defer: 'The auditor wants your word', small_block: 'The auditor found it harmful', small_allow: 'The auditor found nothing wrong',
  high_residual: 'Risk would remain', high_uncertainty: 'The auditor is not sure', gray_zone: 'Neither clearly fine nor clearly harmful',
  needs_large_review: 'The auditor wants a stronger judge', unclear_allow: 'Not clearly fine', unclear_block: 'Not clearly harmful', unclear_defer: 'Not clearly one for you',
  context_prompt_control_residue: 'Holds instructions to the agent', context_tool_induction: 'Pushes the agent to use a tool',
  context_encoded_payload: 'Holds encoded content', context_persistent_poisoning: 'Untrusted text would stay', context_state_update: 'Changes what the agent keeps',
  authority_crossing: 'Crosses a line of authority', authority_approval_bypass: 'Goes round an approval', authority_recipient_rebinding: 'Changes who receives it',
  authority_destination_mismatch: 'Goes elsewhere than it says', capability_destructive: 'Destroys something', capability_irreversible: 'Can’t be undone',
  capability_payment: 'Spends money', capability_credential_access: 'Touches credentials', capability_external_disclosure: 'Leaves this machine',
  capability_sensitive_to_external: 'Sensitive data would leave', capability_private_workspace: 'Touches private files',
  capability_induced_action: 'The content asked for this action', capability_approval_bypass: 'Goes round an approval',
};

/** reason makes a stable word readable. */
export function reason(word) {
  if (Object.hasOwn(reasons, word)) return reasons[word];
  const text = String(word ?? '').replaceAll('_', ' ').replaceAll('-', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// What the agent would do, by the kind of sink; "to" is shown as a name.
const verbs = {
  exec: () => ['run a command'],
  message: (to) => ['send a message', to && [' to ', to]],
  web: (to) => ['send data', to && [' to ', to]],
  file: (to) => ['write a file', to && [' ', to]],
  memory: (to) => ['keep something in its memory', to && [' ', to]],
  reasoning: () => ['read content'],
  tool: (to) => ['use a tool', to && [' on ', to]],
  identity: (to) => ['change who it acts as', to && [' ', to]],
  policy: (to) => ['change a rule', to && [' ', to]],
  skill: (to) => ['install or change a skill', to && [' ', to]],
  config: (to) => ['change a setting', to && [' ', to]],
  plan: () => ['change its plan'],
  payment: (to) => ['make a payment', to && [' to ', to]],
  other: (to) => ['pass content on', to && [' to ', to]],
};

/** agentName shortens claude-code:claude-code, an agent named as its host. */
export function agentName(name, max = 40) {
  const [host, ...rest] = (name ?? '').split(':');
  return plain(rest.join(':') === host ? host : name, max);
}

/** target is where a flow goes. */
export const target = (flow) => flow.sink.destination || flow.sink.id || '';

/** sentence says what the agent wants to do, as nodes. */
export function sentence(flow) {
  const who = flow.session?.agent;
  const to = target(flow);
  const tool = flow.sink.tool;
  let what = (verbs[flow.sink.kind] ?? verbs.other)(to && ident(to, 80));
  if (flow.sink.kind === 'tool' && tool) what = ['use the tool ', ident(tool, 60), to && [' on ', ident(to, 80)]];
  else if (flow.sink.kind === 'reasoning') what = ['read content from ', flow.source.id ? ident(flow.source.id, 80) : sources[flow.source.kind] ?? 'elsewhere'];
  return [h('b', { class: 'who' }, who ? agentName(who) : 'An agent'), ' wants to ', what];
}

export const sources = {
  user: 'you', file: 'a file', web: 'the web', tool: 'a tool’s output', agent: 'the agent itself', memory: 'its memory', email: 'an e-mail',
  webhook: 'a webhook', skill: 'a skill', other: 'elsewhere',
};

export const trusts = {
  hostile: 'hostile', untrusted: 'not trusted', derived: 'derived from what is not trusted', trusted: 'trusted', owner: 'from you',
};

/** bodyLabel names what the payload is for that kind of sink. */
export const bodyLabel = (kind) => ({ exec: 'Command', message: 'Message', web: 'Data', file: 'Content', memory: 'Text to keep', tool: 'Arguments' }[kind] ?? 'Content');

export function left(until) {
  const s = Math.max(0, Math.round((Date.parse(until) - now()) / 1000));
  if (s >= 2 * 86400) return `${Math.floor(s / 86400)} days`;
  if (s >= 3600) return s % 3600 < 60 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  if (s >= 600) return `${Math.floor(s / 60)} min`;
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

export function ago(time) {
  const s = Math.max(0, Math.round((now() - Date.parse(time)) / 1000));
  if (s < 10) return 'just now';
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

export function millis(ms) {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 10) return `${ms.toFixed(0)} ms`;
  if (ms >= 0.1) return `${ms.toFixed(1)} ms`;
  return ms >= 0.01 ? `${ms.toFixed(2)} ms` : '<0.01 ms';
}

export const timeOfDay = (t) => new Date(t).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
export const dateTime = (t) => new Date(t).toLocaleString([], { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

/** verdict is the small coloured word for an action. */
export const verdict = (action, cls = '') => h('span', { class: `verdict ${actions[action]?.cls ?? 'block'} ${cls}` }, actions[action]?.word ?? 'Blocked');

/** says is what a judge's answer asks for. */
export const says = (action) => h('b', null, { allow: 'allow it', rewrite_and_continue: 'take parts out', defer_to_human: 'ask you' }[action] ?? 'block it');

/** meter is one number in [0,1] as a bar, with the limits it is compared to. */
export function meter(name, value, limits = [], hint = '') {
  const v = Math.min(1, Math.max(0, value));
  const level = name === 'Risk' || name === 'Residual' ? (v >= 0.55 ? 'high' : v >= 0.35 ? 'mid' : 'low') : '';
  const bar = h('span', { class: `bar ${level}`, role: 'meter', 'aria-label': name, 'aria-valuemin': 0, 'aria-valuemax': 1, 'aria-valuenow': v.toFixed(2) }, h('span', { class: 'fill' }));
  bar.style.setProperty('--v', v);
  for (const l of limits) {
    const tick = h('span', { class: 'tick', title: `${l.label} ${l.at}` });
    tick.style.setProperty('--v', l.at);
    bar.append(tick);
  }
  return h('div', { class: 'meter' }, h('span', { class: 'mname' }, name), bar, h('span', { class: 'num' }, v.toFixed(2)),
    limits.length || hint ? h('span', { class: 'limits' }, hint, limits.map((l, i) => [i ? ' · ' : '', l.label, ' ', l.at])) : null);
}
