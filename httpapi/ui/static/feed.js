// The feed: every decision, the newest first. Only the rows on screen exist,
// so ten thousand scroll like ten.
import { h, show, toast } from './dom.js';
import { get, hasKey, Offline } from './api.js';
import { plain } from './text.js';
import { actions, agentName, codes, millis, reason, timeOfDay, verdict } from './words.js';

const fields = ['text', 'action', 'surface', 'code', 'agent', 'session', 'tool'];
let kept = null; // the feed as it was left, for the way back

export function feed(main, _, query) {
  const filter = Object.fromEntries(fields.map((f) => [f, query.get(f) ?? '']));
  const same = kept && JSON.stringify(kept.filter) === JSON.stringify(filter);
  let rows = same ? kept.rows : [];
  let next = same ? kept.next : null; // where older rows begin; below 0 there are none
  let top = same ? kept.top : 0; // records that are accounted for
  let latest = 0; // records that the daemon has told of
  let busy = false;
  let gone = false;
  let cursor = same ? kept.cursor : -1;

  const list = h('ul', { class: 'rows' });
  const box = h('div', { class: 'feed', tabindex: -1, scroll: () => requestAnimationFrame(draw) }, list);
  const status = h('p', { class: 'feedstatus', role: 'status' });
  const fresh = h('button', { class: 'fresh', hidden: true, click: () => reload() });
  const search = h('input', { type: 'search', placeholder: 'Search agent, tool, target, reason, id', 'aria-label': 'Search', value: filter.text, change: () => go({ text: search.value.trim() }) });
  const select = (name, label, options) => h('select', { 'aria-label': label, change: (e) => go({ [name]: e.target.value }) },
    h('option', { value: '' }, label), options.map(([v, t]) => h('option', { value: v, selected: filter[name] === v }, t)));
  const chips = ['agent', 'session', 'tool'].filter((f) => filter[f]).map((f) => h('button', { class: 'filterchip', 'aria-label': `Remove the filter ${f}`, click: () => go({ [f]: '' }) },
    h('span', { class: 'dim' }, f), ' ', plain(filter[f], 40), ' ×'));
  show(main, h('h1', { class: 'sr' }, 'Decisions'),
    h('div', { class: 'filters', role: 'search' }, search,
      select('action', 'Any outcome', Object.entries(actions).map(([v, a]) => [v, a.word])),
      select('surface', 'Any surface', [['context', 'Context'], ['authority', 'Authority'], ['capability', 'Capability']]),
      select('code', 'Any finding', Object.entries(codes).map(([v, t]) => [v, reason(t)])), chips),
    h('div', { class: 'rowhead', 'aria-hidden': 'true' }, ['Time', 'Outcome', 'Agent', 'Transfer', 'Why', 'Took'].map((t) => h('span', null, t))),
    h('div', { class: 'feedbox' }, fresh, box), status);

  const height = () => (matchMedia('(max-width: 879px)').matches ? 64 : 37);

  function go(change) {
    const q = new URLSearchParams();
    for (const [k, v] of Object.entries({ ...filter, ...change })) if (v) q.set(k, v);
    location.hash = `#/decisions${q.size ? `?${q}` : ''}`;
  }

  const params = (extra) => {
    const q = new URLSearchParams(extra);
    for (const f of fields) if (filter[f]) q.set(f, filter[f]);
    return `feed?${q}`;
  };

  async function attempt(work) {
    if (busy || gone) return;
    busy = true;
    let ok = false;
    try {
      await work();
      ok = true;
    } catch (err) {
      if (!(err instanceof Offline) && hasKey()) toast(err.message, true);
    } finally {
      busy = false;
    }
    if (gone) return;
    draw();
    if (ok && latest > top && fresh.hidden) newer(); // told of while it was busy
  }

  const reload = () => attempt(async () => {
    const doc = await get(params({}));
    rows = doc.rows;
    next = doc.next;
    top = doc.size;
    latest = Math.max(latest, top);
    fresh.hidden = true;
    box.scrollTop = 0;
  });

  const older = () => attempt(async () => {
    const doc = await get(params({ before: next }));
    rows = rows.concat(doc.rows);
    next = doc.next;
  });

  // newer puts what was decided since on top; without moving what is looked at.
  const newer = () => attempt(async () => {
    if (box.scrollTop > 5) {
      fresh.textContent = `${latest - top} newer`;
      fresh.hidden = latest <= top;
      return;
    }
    const doc = await get(params({ from: top }));
    if (doc.next >= 0) { // more than one answer holds
      rows = doc.rows;
      next = doc.next;
      cursor = -1;
    } else {
      rows = doc.rows.concat(rows);
      if (cursor >= 0) cursor += doc.rows.length;
    }
    top = doc.size;
  });

  const drawn = new Map(); // by position of the record

  function draw() {
    if (gone) return;
    const rh = height();
    list.style.height = `${rows.length * rh}px`;
    const first = Math.max(0, Math.floor(box.scrollTop / rh) - 8);
    const last = Math.min(rows.length, Math.ceil((box.scrollTop + box.clientHeight) / rh) + 8);
    const wanted = new Set();
    let before = null; // the row above: the order of the elements is that of the screen
    for (let i = first; i < last; i++) wanted.add(rows[i].index);
    for (const [k, el] of drawn) {
      if (!wanted.has(k)) {
        el.remove();
        drawn.delete(k);
      }
    }
    for (let i = first; i < last; i++) {
      const r = rows[i];
      let el = drawn.get(r.index);
      if (!el) {
        el = line(r);
        drawn.set(r.index, el);
      }
      if (el.parentNode !== list || el.previousSibling !== before) list.insertBefore(el, before ? before.nextSibling : list.firstChild);
      before = el;
      el.style.transform = `translateY(${i * rh}px)`;
      el.setAttribute('aria-posinset', i + 1);
      el.setAttribute('aria-setsize', next === -1 ? rows.length : -1);
      el.classList.toggle('cursor', i === cursor);
    }
    const filtered = fields.some((f) => filter[f]);
    status.textContent = rows.length === 0 && next === -1 ? (filtered ? 'No decision is like that.' : 'Nothing has been decided yet.')
      : next === -1 ? `${rows.length} ${rows.length === 1 ? 'decision' : 'decisions'}` : next === null ? '' : `${rows.length} shown, searched back to record ${next}`;
    if (next !== null && next >= 0 && last >= rows.length - 30) older();
  }

  async function move(by) {
    if (rows.length === 0) return;
    cursor = Math.min(rows.length - 1, Math.max(0, cursor + by));
    const rh = height();
    const y = cursor * rh;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + rh > box.scrollTop + box.clientHeight) box.scrollTop = y + rh - box.clientHeight;
    draw();
    drawn.get(rows[cursor].index)?.querySelector('a').focus({ preventScroll: true });
  }

  const resized = () => draw();
  window.addEventListener('resize', resized);
  if (same) {
    draw();
    box.scrollTop = kept.scroll;
    draw();
    newer();
  } else reload();

  return {
    leave() {
      gone = true;
      window.removeEventListener('resize', resized);
      kept = { filter, rows, next, top, cursor, scroll: box.scrollTop };
    },
    event(name, data) {
      if (name !== 'records' && name !== 'hello') return;
      latest = data.records;
      if (next !== null && latest > top) newer();
    },
    key(e) {
      if (e.key === 'j') move(1);
      else if (e.key === 'k') move(-1);
      else if (e.key === '/') search.focus();
      else return false;
      return true;
    },
  };
}

function line(r) {
  const from = r.source === 'agent' ? 'agent' : r.from || r.source;
  const to = r.sink === 'reasoning' ? `reading${r.tool ? ` (${r.tool})` : ''}` : [r.tool, r.to].filter(Boolean).join(' ') || r.sink;
  const what = r.preview ? h('code', { class: 'said' }, plain(r.preview, 120)) : null;
  return h('li', null, h('a', { href: `#/d/${encodeURIComponent(r.id)}`, class: 'feedrow' },
    h('time', { datetime: r.time }, timeOfDay(r.time)),
    verdict(r.action),
    h('span', { class: 'agent' }, r.agent ? agentName(r.agent, 30) : '–'),
    h('span', { class: 'transfer' }, plain(from, 60), h('span', { class: 'arrow' }, ' → '), plain(to, 80), what),
    h('span', { class: 'because' }, r.observed ? h('span', { class: 'dim' }, `only observed, else ${actions[r.observed]?.word.toLowerCase()} · `) : null, reason(r.reason)),
    h('span', { class: 'took' }, r.cached ? h('span', { class: 'dim', title: 'known from an identical flow' }, 'known') : millis(r.latency_ms))));
}
