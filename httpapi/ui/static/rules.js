// The owner's rules: standing orders, wider approvals, and the policy.
import { h, show, toast } from './dom.js';
import { get, hasKey, Offline, post } from './api.js';
import { ident, visible } from './text.js';
import { ago, dateTime, left, residuals } from './words.js';
import { orders } from './mark.js';
import { grants } from './grants.js';
import { policySection } from './policy.js';
import { replayBox } from './replay.js';

export function rules(main) {
  let gone = false;
  let ended = false;
  const standing = h('div', null);
  const owned = h('div', null);
  const wider = h('div', { class: 'standing flush' });
  const again = h('div', null);
  show(main, h('h1', { class: 'sr' }, 'Rules'), h('div', { class: 'overview rules' }, standing, wider, owned, again));

  async function draw() {
    let list;
    try {
      list = await orders(ended);
    } catch (err) {
      if (!gone && hasKey() && !(err instanceof Offline)) toast(err.message, true);
      return;
    }
    if (gone) return;
    const of = (effect) => list.filter((o) => o.effect === effect);
    show(standing,
      part('Suppressions', of('suppress'), 'Nothing is suppressed. When a decision was wrong, open it and choose “Suppress in this place”.'),
      part('Refusals', of('deny'), 'Nothing is refused for good. “Deny and remember” in the inbox does that.'),
      h('label', { class: 'choice' }, h('input', { type: 'checkbox', id: 'ended', checked: ended, change: (e) => { ended = e.target.checked; draw(); } }), h('span', null, 'Show those that have ended')));
    grants(wider);
  }

  const part = (title, list, none) => h('section', null, h('h2', null, title), list.length ? h('ul', { class: 'orders' }, list.map(item)) : h('p', { class: 'dim' }, none));

  function item(o) {
    const s = o.scope;
    const over = o.revoked || (o.expires && Date.parse(o.expires) < Date.now());
    const place = [['agent', s.agent], ['tool', s.tool], ['action', s.action], ['target', s.sink], ['to', s.destination], ['from', s.source ?? s.source_kind], ['workspace', s.workspace]].filter(([, v]) => v);
    return h('li', { class: over ? 'order over' : 'order' },
      h('p', { class: 'why' }, visible(o.reason)),
      h('p', { class: 'place' }, `into ${s.sink_kind}`, place.map(([k, v]) => [', ', h('span', { class: 'dim' }, k, ' '), ident(v, 120)]), s.payload ? ', exactly one payload' : null),
      o.effect === 'suppress' ? h('p', { class: 'place' }, h('span', { class: 'dim' }, 'not held against it: '), [...(o.rules ?? []).map((x) => h('code', null, x)), o.judgement ? `the auditor’s answer (${(o.residuals ?? []).map((x) => residuals[x] ?? x).join(', ') || 'nothing'})` : null].filter(Boolean).map((x, i) => [i ? ', ' : '', x])) : null,
      h('p', { class: 'meta' }, h('code', null, o.id), ` · given ${ago(o.created)}`, o.decision_id ? [' for ', h('a', { href: `#/d/${encodeURIComponent(o.decision_id)}` }, 'a decision')] : null,
        o.revoked ? ` · revoked ${dateTime(o.revoked)}` : o.expires ? (over ? ` · ended ${dateTime(o.expires)}` : ` · ${left(o.expires)} left`) : ' · until you revoke it'),
      over ? null : h('button', { class: 'small', click: (e) => revoke(e, o) }, 'Revoke'));
  }

  async function revoke(e, o) {
    e.target.disabled = true;
    try {
      await post(`standing/${encodeURIComponent(o.id)}/revoke`);
      toast('Revoked. It holds no more.');
    } catch (err) {
      toast(err.message, true);
    }
    draw();
  }

  draw();
  policySection(owned);
  const box = replayBox(null, () => gone);
  if (box) show(again, h('section', null, h('h2', null, 'Replay'), h('p', { class: 'dim' }, 'Audit what is on record again, as things are now, and see what would come out otherwise. It asks nobody and changes nothing. To try a change of the policy, use “Change it…” above.'), box));
  return {
    leave() { gone = true; },
    event(name) { if (name === 'hello') draw(); },
  };
}
