// The inbox: questions that wait for the owner, grouped by shape, and the one
// that is looked at.
import { h, show, toast, waiting } from './dom.js';
import { get, hasKey, now, Offline, post, Refused } from './api.js';
import { visible } from './text.js';
import { agentName, ago, left, sentence } from './words.js';
import { detail } from './question.js';
import { approveDialog } from './approve.js';
import { grants } from './grants.js';
import { denyDialog } from './mark.js';
import { editDialog } from './edit.js';

const few = 4; // questions of one shape that are listed at first
const settle = 400; // milliseconds for which a question must have been on screen before a key answers it

export function inbox(main, parts) {
  let list = []; // listed questions, the oldest of each agent first
  let refused = {}; // by agent: questions that found no place
  let selected = parts[0] === 'q' ? parts[1] : '';
  let shownAt = 0;
  let current = null; // the asked question on screen
  let loading = 0; // number of the latest request for it
  let drawn = ''; // what the list shows
  let gone = false;

  const items = h('div', { class: 'items' });
  const standing = h('div', { class: 'standing' });
  const aside = h('aside', { class: 'list', 'aria-label': 'Questions that wait for you' }, items, standing);
  const pane = h('section', { class: 'pane', 'aria-label': 'Question' });
  const root = h('div', { class: 'inbox' }, aside, pane);
  show(main, h('h1', { class: 'sr' }, 'Inbox'), root);

  const ids = () => groups(list).flatMap((g) => g.map((l) => l.question.id));
  const at = (id) => list.find((l) => l.question.id === id);

  async function load() {
    try {
      const doc = await get('questions');
      if (gone) return;
      list = doc.questions;
      refused = doc.refused ?? {};
      draw();
      if (!selected && list.length && wide()) open(ids()[0], false);
      else if (selected && !at(selected) && current?.id === selected && !current.answer) refresh();
      else if (!selected || (selected && current?.id !== selected)) refresh();
    } catch (err) {
      if (!(err instanceof Offline) && hasKey()) toast(err.message, true);
    }
  }

  const wide = () => matchMedia('(min-width: 880px)').matches;

  function draw() {
    waiting(list.length);
    const sorted = groups(list);
    const shape = JSON.stringify([sorted.map((g) => g.map((l) => l.question.id)), refused]);
    if (shape !== drawn) {
      drawn = shape;
      for (const key of made.keys()) if (!at(key.split(' ')[0])) made.delete(key);
      const focused = items.contains(document.activeElement) ? document.activeElement.dataset.id : null;
      show(items, Object.entries(refused).map(([who, n]) => h('p', { class: 'flood', role: 'status' }, h('b', null, agentName(who) || 'An agent'), ` asked ${n} more ${n === 1 ? 'question' : 'questions'} than it may have waiting; they were refused.`)), sorted.length ? sorted.map((g) => group(g)) : h('div', { class: 'empty' }, h('p', { class: 'big' }, 'Nothing waits for you.'),
        h('p', null, 'When an agent wants to do something that needs your word, it appears here at once.')));
      if (focused) items.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
    }
    root.classList.toggle('nothing', list.length === 0 && !selected);
    choose();
  }

  // choose shows in the list what is selected.
  function choose() {
    for (const a of items.querySelectorAll('.item')) {
      if (a.dataset.id !== selected) a.removeAttribute('aria-current');
      else a.setAttribute('aria-current', 'true');
    }
    if (items.querySelector('li[hidden] .item[aria-current]')) return unfold(at(selected).question.group);
    root.classList.toggle('has-selection', selected !== '');
  }

  // Elements stay the same as long as their question is there: a click that
  // began before a redraw still ends on its element.
  const made = new Map();
  function reuse(key, make) {
    if (!made.has(key)) made.set(key, make());
    return made.get(key);
  }

  function group(g) {
    if (g.length === 1) return h('ul', null, item(g[0], false));
    return h('section', { class: 'group' }, h('div', { class: 'ghead' },
      h('h2', { class: 'what' }, sentence(g[0].question.flow)),
      h('span', { class: 'meta' }, `${g.length} of the same kind`), h('button', { class: 'quiet small', click: () => denyAll(g) }, `Deny all ${g.length}`)),
    h('ul', null, g.map((l, i) => {
      const li = item(l, true);
      li.hidden = i >= few && g.length > few + 1 && !unfolded.has(g[0].question.group);
      return li;
    })), g.length > few + 1 && !unfolded.has(g[0].question.group) ? h('button', { class: 'quiet small rest', click: () => unfold(g[0].question.group) }, `Show the other ${g.length - few}`) : null);
  }

  // Many questions of one shape are folded: they must not push others out of sight.
  const unfolded = new Set();
  function unfold(shape) {
    unfolded.add(shape);
    drawn = '';
    draw();
  }

  // item is one question; in a group the head says what they have in common.
  const item = (l, grouped) => reuse(`${l.question.id} ${grouped}`, () => newItem(l, grouped));

  function newItem(l, grouped) {
    const q = l.question;
    const risk = q.report?.risk;
    const level = q.hard ? 'hard' : risk >= 0.55 ? 'high' : risk >= 0.35 ? 'mid' : 'low';
    const a = h('a', { class: 'item', href: `#/q/${encodeURIComponent(q.id)}`, 'data-id': q.id },
    h('span', { class: `level ${level}` }),
    grouped ? null : h('span', { class: 'what' }, sentence(q.flow)),
    h('span', { class: 'preview' }, l.preview ? visible(l.preview.slice(0, 140).replace(/\s+/gu, ' ')) : `${l.bytes} bytes`),
    h('span', { class: 'meta' }, q.hard ? h('span', { class: 'hardtag' }, 'hard finding') : null, h('span', { 'data-since': q.created }, ago(q.created)), countdown(q.expires)));
    return h('li', null, a);
  }

  const countdown = (until) => h('span', { class: 'left', 'data-until': until }, left(until), ' left');

  async function open(id, push = true) {
    selected = id;
    if (push && location.hash !== `#/q/${encodeURIComponent(id)}`) location.hash = `#/q/${encodeURIComponent(id)}`;
    choose();
    items.querySelector('.item[aria-current]')?.scrollIntoView({ block: 'nearest' });
    await refresh();
  }

  async function refresh() {
    const mine = ++loading;
    pane.classList.toggle('stale', Boolean(current) && current.id !== selected); // what is on screen is not what is chosen
    if (!selected) {
      pane.classList.remove('stale');
      current = null;
      show(pane, list.length ? h('div', { class: 'empty' }, h('p', null, 'Choose a question.')) : null);
      return;
    }
    try {
      const doc = await get(`questions/${encodeURIComponent(selected)}`);
      if (gone || mine !== loading) return;
      const before = current;
      current = doc.question;
      current.scope = doc.grant;
      current.thresholds = doc.thresholds;
      current.recorded = Boolean(doc.record);
      pane.classList.remove('stale');
      if (before?.id === current.id && before.answer === current.answer && before.recorded === current.recorded) return;
      show(pane, detail(doc, { approve, edit, deny, remember, back }));
      pane.scrollTop = 0;
      if (!wide()) window.scrollTo(0, 0);
      shownAt = performance.now();
    } catch (err) {
      if (mine !== loading) return;
      if (err instanceof Refused && err.status === 404) {
        current = null;
        pane.classList.remove('stale');
        show(pane, h('div', { class: 'empty' }, h('p', null, 'There is no such question any more.')));
      } else if (hasKey() && !(err instanceof Offline)) toast(err.message, true);
    }
  }

  function back() {
    selected = '';
    location.hash = '#/';
  }

  // ready guards against a key that was meant for the question before.
  const ready = () => current && !current.answer && current.id === selected && performance.now() - shownAt > settle && Date.parse(current.expires) > now();

  function approve() {
    if (ready()) approveDialog(current, (grant) => answer(current.id, 'approve', grant));
  }

  function deny() {
    if (ready()) answer(current.id, 'deny').catch(() => {}); // it has said why
  }

  function edit(from) {
    if (!ready()) return;
    const { id } = current;
    editDialog(current, current.thresholds, from, (text) => answer(id, 'approve', undefined, undefined, text));
  }

  function remember() {
    if (!ready()) return;
    const { id } = current;
    denyDialog(current, (how) => answer(id, 'deny', undefined, how));
  }

  async function answer(id, word, grant, remember, instead) {
    const order = ids();
    const next = order[order.indexOf(id) + 1] ?? order[order.indexOf(id) - 1] ?? '';
    try {
      await post(`questions/${encodeURIComponent(id)}`, { answer: word, grant, remember, instead });
      toast(instead !== undefined ? 'Approved. Your text goes on in place of the original when the agent tries again.' : word === 'approve' ? 'Approved. The agent may do exactly this when it tries again.' : remember ? 'Denied, and refused from now on. It is listed under Rules.' : 'Denied. The agent is told no.');
      list = list.filter((l) => l.question.id !== id);
      if (selected === id) selected = wide() ? next : '';
      draw();
      if (selected) open(selected);
      else back();
      if (grant) drawGrants();
    } catch (err) {
      if (err instanceof Refused && err.status === 409) toast(err.code === 'expired' ? 'It has expired, which is a no.' : 'It was answered elsewhere.', true);
      else toast(err instanceof Offline ? 'Not answered: the daemon does not answer.' : err.message, true);
      load();
      throw err;
    }
  }

  async function denyAll(g) {
    let denied = 0;
    for (const l of g) {
      try {
        await post(`questions/${encodeURIComponent(l.question.id)}`, { answer: 'deny' });
        denied++;
      } catch (err) {
        if (!(err instanceof Refused && err.status === 409)) {
          toast(err.message, true);
          break;
        }
      }
    }
    if (denied) toast(`Denied ${denied}.`);
    if (g.some((l) => l.question.id === selected)) selected = '';
    await load();
  }

  function move(by) {
    const order = ids();
    if (order.length === 0) return;
    const i = order.indexOf(selected);
    open(order[i < 0 ? 0 : Math.min(order.length - 1, Math.max(0, i + by))]);
  }

  // Countdowns and ages follow the clock; what has run out leaves the list.
  const tick = setInterval(() => {
    for (const el of root.querySelectorAll('[data-until]')) {
      el.textContent = `${left(el.dataset.until)} left`;
      el.classList.toggle('soon', Date.parse(el.dataset.until) - now() < 60000);
    }
    for (const el of root.querySelectorAll('[data-since]')) el.textContent = ago(el.dataset.since);
    const over = list.filter((l) => Date.parse(l.question.expires) <= now());
    if (over.length) {
      list = list.filter((l) => !over.includes(l));
      draw();
      if (over.some((l) => l.question.id === selected)) refresh();
    }
  }, 1000);

  const drawGrants = () => grants(standing);
  load();
  drawGrants();

  return {
    leave() {
      gone = true;
      clearInterval(tick);
    },
    route(p) {
      const id = p[0] === 'q' ? p[1] : '';
      if (id !== selected || !current) open(id, false);
    },
    event(name) {
      if (name === 'questions' || name === 'hello') load();
      if (name === 'questions') drawGrants();
      if (name === 'records' && current && !current.recorded) refresh(); // its findings are there now
    },
    key(e) {
      if (e.key === 'j' || e.key === 'ArrowDown' && e.target === document.body) move(1);
      else if (e.key === 'k' || e.key === 'ArrowUp' && e.target === document.body) move(-1);
      else if (e.key === 'a') approve();
      else if (e.key === 'd') deny();
      else if (e.key === 'n') remember();
      else if (e.key === 'w' && current?.flow) edit(current.rewrite ?? current.flow.payload);
      else if (e.key === 'u' && selected) back();
      else if (e.key === 'e' && current) location.hash = `#/d/${encodeURIComponent(current.decision_id)}`;
      else if (e.key === 'm') pane.querySelector('.more')?.click();
      else return false;
      return true;
    },
  };
}

// groups puts questions of one shape together, in the order of their oldest.
function groups(list) {
  const by = new Map();
  for (const l of list) {
    const k = l.question.group || l.question.id;
    if (!by.has(k)) by.set(k, []);
    by.get(k).push(l);
  }
  return [...by.values()];
}
