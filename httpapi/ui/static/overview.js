// The overview: whether everything works, and what the last day was like.
import { h, show, svg, toast } from './dom.js';
import { get, hasKey, Offline, post } from './api.js';
import { ident, plain, sizeText, visible } from './text.js';
import { agentName, ago, dateTime, millis, reason } from './words.js';

export function overview(main) {
  let gone = false;
  let timer = 0;
  const root = h('div', { class: 'overview' });
  show(main, h('h1', { class: 'sr' }, 'Overview'), root);

  async function draw() {
    clearTimeout(timer);
    try {
      const doc = await get('overview');
      if (gone) return;
      const y = window.scrollY;
      show(root, health(doc), protection(doc), activity(doc), latencies(doc), agents(doc), counts(doc), models(doc), record(doc, verify));
      window.scrollTo(0, y);
    } catch (err) {
      if (!gone && hasKey() && !(err instanceof Offline)) toast(err.message, true);
    }
    if (!gone) timer = setTimeout(draw, 30000);
  }

  async function verify(e) {
    e.target.disabled = true;
    e.target.textContent = 'Verifying…';
    try {
      const v = await post('verify');
      toast(v.problem ? 'The log does not verify.' : `Verified ${v.summary.records} records.`, Boolean(v.problem));
    } catch (err) {
      toast(err.message, true);
    }
    draw();
  }

  draw();
  return {
    leave() {
      gone = true;
      clearTimeout(timer);
    },
    event(name) { if (name === 'hello' || name === 'questions') draw(); },
  };
}

function health(doc) {
  const bad = [...doc.missing];
  if (doc.log?.failure) bad.push(`The decision log takes no more records: ${doc.log.failure}`);
  if (doc.log?.verified?.problem) bad.push(doc.log.verified.problem);
  if (doc.owner_file_changed) bad.push('The passphrase file is not the one that this daemon uses. If you did not change it, somebody else did.');
  const ok = bad.length === 0;
  return h('section', { class: `health ${ok ? 'ok' : 'bad'}` },
    h('h2', null, ok ? 'Every flow can be decided.' : 'Something is missing; what needs it is stopped.'),
    ok ? null : h('ul', null, bad.map((b) => h('li', null, visible(b)))),
    h('p', { class: 'dim' }, `auditd ${doc.version}`, doc.waiting ? [' · ', h('a', { href: '#/' }, `${doc.waiting} waiting for you`)] : null));
}

// protection says of each agent what was tried with it, and when.
function protection(doc) {
  const plugs = (name) => doc.plugins.filter((p) => p.host === name);
  const list = doc.protection.map((p) => {
    const failed = p.paths.filter((x) => !x.passed).length;
    const [cls, word] = !p.tried ? ['mid', 'installed, not tried yet'] : failed ? ['bad', `${failed} of ${p.paths.length} paths failed`] : p.changed ? ['mid', 'its settings have changed since'] : ['ok', `${p.paths.length} of ${p.paths.length} paths hold`];
    return h('li', { class: 'protected' },
      h('p', null, h('b', null, p.title), p.version ? h('span', { class: 'dim' }, ` ${p.version}`) : null, h('span', { class: `state ${cls}` }, word)),
      h('p', { class: 'dim' }, p.tried ? [h('span', { title: dateTime(p.tried) }, `live canary ${ago(p.tried)}`), cls === 'ok' ? null : [' · ', h('code', null, `auditd verify ${p.agent}`), ' tries it again']] : [h('code', null, `auditd verify ${p.agent}`), ' tries it'],
        plugs(p.agent).map((x) => [' · ', x.alive && !x.fault ? `plugin ${plain(x.plugin, 20)} reported ${ago(x.last)}` : h('span', { class: 'warnline' }, x.fault ? plain(x.fault, 200) : `its plugin was last heard of ${ago(x.last)}`)])),
      h('details', null, h('summary', null, 'Paths'), h('ul', { class: 'paths' }, p.paths.map((x) => h('li', { class: x.passed ? 'ok' : 'bad' }, h('span', { class: 'sr' }, x.passed ? 'holds: ' : 'failed: '), x.name)),
        p.open.map((x) => h('li', { class: 'open' }, h('span', { class: 'sr' }, 'not covered: '), x)))));
  });
  return h('section', null, h('h2', null, 'Protected agents'), list.length ? h('ul', { class: 'protection' }, list)
    : h('p', { class: 'dim' }, 'auditd is in no agent’s configuration here: ', h('code', null, 'auditd install claude-code'), ' puts it there.'));
}

const kinds = [['block', 'Blocked'], ['defer', 'Asked you'], ['rewrite', 'Rewritten'], ['allow', 'Allowed']];

// activity is a bar for each hour, what was stopped at the bottom.
function activity(doc) {
  const hours = doc.hours ?? [];
  const sum = (k) => hours.reduce((n, x) => n + x[k], 0);
  const total = kinds.reduce((n, [k]) => n + sum(k), 0);
  if (total === 0) return h('section', null, h('h2', null, 'Last 24 hours'), h('p', { class: 'dim' }, 'Nothing was decided.'));
  const most = Math.max(...hours.map((x) => kinds.reduce((n, [k]) => n + x[k], 0)));
  const [w, ht] = [720, 120];
  const step = w / hours.length;
  const bars = hours.map((x, i) => {
    let y = ht;
    return kinds.map(([k]) => {
      const size = x[k] / most * (ht - 6);
      y -= size;
      return size > 0 ? svg('rect', { class: k, x: (i * step + 1.5).toFixed(1), y: y.toFixed(1), width: (step - 3).toFixed(1), height: Math.max(size, 1).toFixed(1) }) : null;
    });
  });
  const clock = (t) => new Date(t).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
  return h('section', null, h('h2', null, 'Last 24 hours', h('span', { class: 'dim' }, doc.partial ? ` the newest ${total} decisions, since ${clock(doc.since)}` : ` ${total} ${total === 1 ? 'decision' : 'decisions'}, at most ${most} in an hour`)),
    h('ul', { class: 'legend' }, kinds.map(([k, t]) => h('li', null, h('span', { class: `dot ${k}` }), t, ' ', h('b', null, sum(k)), h('span', { class: 'dim' }, ` ${(sum(k) / total * 100).toFixed(sum(k) / total < 0.1 && sum(k) ? 1 : 0)} %`)))),
    svg('svg', { class: 'chart', viewBox: `0 0 ${w} ${ht}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `Decisions by hour: ${kinds.map(([k, t]) => `${t} ${sum(k)}`).join(', ')}` },
      svg('line', { x1: 0, x2: w, y1: ht - 0.5, y2: ht - 0.5 }), bars),
    h('div', { class: 'axis', 'aria-hidden': 'true' }, [0, 6, 12, 18, 23].filter((i) => hours[i]).map((i) => h('span', null, clock(hours[i].start)))));
}

// latencies draws p50 to p95 on a scale of powers of ten.
function latencies(doc) {
  const rows = [...(doc.stages ?? []), ...(doc.whole ? [{ ...doc.whole, stage: 'in all' }] : [])];
  if (rows.length === 0) return null;
  const [low, high] = [Math.log10(0.01), Math.log10(Math.max(1000, ...rows.map((r) => r.max_ms)))];
  const at = (ms) => `${Math.min(100, Math.max(0, (Math.log10(Math.max(ms, 0.01)) - low) / (high - low) * 100))}%`;
  const range = (r) => {
    const el = h('span', { class: 'range', 'aria-hidden': 'true' }, h('span', { class: 'span' }), h('span', { class: 'mid' }));
    el.style.setProperty('--a', at(r.p50_ms));
    el.style.setProperty('--b', at(r.p95_ms));
    return el;
  };
  return h('section', null, h('h2', null, 'How long it takes'), table(['Stage', '', 'Half within', '95 % within', 'Longest', 'Flows'],
    rows.map((r) => [r.stage, range(r), millis(r.p50_ms), millis(r.p95_ms), millis(r.max_ms), r.count]), 'latency'));
}

function agents(doc) {
  if (!doc.agents?.length) return null;
  return h('section', null, h('h2', null, 'Agents'), table(['Agent', 'Seen', 'Flows', 'Stopped', 'Paths it used'], doc.agents.map((a) => [
    a.name ? h('a', { href: `#/decisions?${new URLSearchParams({ agent: a.name })}` }, agentName(a.name)) : h('span', { class: 'dim' }, 'name erased'),
    h('span', { class: 'nowrap', title: dateTime(a.last) }, ago(a.last)), a.flows, a.stopped,
    [a.paths.join(', '), a.observed ? h('span', { class: 'trust untrusted' }, 'observed only') : null]]), 'agents'));
}

function counts(doc) {
  const list = (title, rows, name) => (rows?.length ? h('div', null, h('h2', null, title), h('ul', { class: 'counts' }, rows.slice(0, 8).map((r) => {
    const bar = h('span', { class: 'cbar', 'aria-hidden': 'true' }, h('span', { class: 'all' }), h('span', { class: 'stop' }));
    bar.style.setProperty('--all', r.flows / rows[0].flows);
    bar.style.setProperty('--stop', r.stopped / rows[0].flows);
    return h('li', null, h('span', { class: 'cname' }, name(r.name)), h('span', { class: 'cnum' }, r.flows, h('span', { class: 'dim' }, r.stopped ? `, ${r.stopped} stopped` : '', r.false_alarms ? `, ${r.false_alarms} of them false (${Math.round(100 * r.false_alarms / Math.max(r.stopped, 1))} %)` : '')), bar);
  }))) : null);
  const parts = [list('Rules that matched', doc.rules, (n) => h('code', null, n)), list('Reasons', doc.reasons, reason)].filter(Boolean);
  return parts.length ? h('section', { class: 'two' }, parts) : null;
}

function models(doc) {
  if (!doc.models.length) return null;
  return h('section', null, h('h2', null, 'Models'), table(['Model', 'Role', 'State', ''], doc.models.map((m) => [
    [ident(m.name, 60), h('span', { class: 'dim' }, ` ${m.backend}`)], m.role, m.ready ? h('span', { class: 'holds' }, 'ready') : h('span', { class: 'warnline' }, 'not ready'), m.detail ? visible(m.detail) : m.purpose ?? ''])));
}

function record(doc, verify) {
  const l = doc.log;
  if (!l) return null;
  const v = l.verified;
  return h('section', null, h('h2', null, 'The record'), h('dl', { class: 'facts' },
    h('dt', null, 'Decision log'), h('dd', null, `${l.records} records`, v && !v.problem ? h('span', { class: 'dim' }, `, ${sizeText(v.summary.bytes)} in ${v.summary.segments} ${v.summary.segments === 1 ? 'segment' : 'segments'}`) : null),
    h('dt', null, 'Verified'), h('dd', null, v ? [v.problem ? h('span', { class: 'problem' }, visible(v.problem)) : h('span', { class: 'holds' }, `every one of ${v.summary.records} records`), h('span', { class: 'dim' }, ` ${ago(v.at)}, in ${millis(v.took_ms)}`)] : h('span', { class: 'dim' }, 'not since the daemon started'),
      ' ', h('button', { class: 'small', click: verify }, 'Verify now')),
    h('dt', null, 'Signed root'), h('dd', null, h('code', { class: 'id' }, l.checkpoint.split('\n')[2] ?? '')),
    h('dt', null, 'Verifier key'), h('dd', null, h('code', { class: 'id' }, l.verifier)),
    doc.storage?.length ? [h('dt', null, 'Storage'), h('dd', null, sizeText(doc.storage.reduce((n, x) => n + x.bytes, 0)), h('span', { class: 'dim' }, ': ', doc.storage.filter((x) => x.bytes > 0).slice(0, 6).map((x) => `${x.name} ${sizeText(x.bytes)}`).join(', ')))] : null,
    doc.policy ? [h('dt', null, 'Policy'), h('dd', null, ident(doc.policy.source), ' ', h('code', { class: 'id dim' }, doc.policy.digest))] : null));
}

function table(head, rows, cls = '') {
  return h('div', { class: 'tablebox', tabindex: 0, role: 'region', 'aria-label': head[0] }, h('table', { class: cls }, h('thead', null, h('tr', null, head.map((t) => h(t ? 'th' : 'td', t ? { scope: 'col' } : null, t)))),
    h('tbody', null, rows.map((r) => h('tr', null, r.map((c) => h('td', { class: typeof c === 'number' || /^[\d.]+ m?s$/.test(c) ? 'n' : null }, c)))))));
}
