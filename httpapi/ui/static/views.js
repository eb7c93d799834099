// The agents' views: what an isolated agent reads beside what you have, what
// its changes were, what did not land, and the symbols that stand for what it
// may not read.
import { h, show, toast } from './dom.js';
import { get, hasKey, Offline } from './api.js';
import { ident } from './text.js';
import { filePane, listFiles } from './sides.js';
import { history } from './history.js';
import { conflict, conflictList } from './conflict.js';
import { symbolList, symbolPage } from './symbols.js';

const tabs = [['files', 'Files'], ['history', 'History'], ['conflicts', 'Conflicts'], ['symbols', 'Symbols']];

export function views(main, parts, query) {
  let gone = false;
  let turn = 0; // of the latest drawing: an earlier one that ends later is dropped
  let roots = null;
  const root = h('div', { class: 'views' });
  show(main, h('h1', { class: 'sr' }, 'Views'), root);

  async function draw(p, q) {
    const mine = ++turn;
    const now = () => !gone && mine === turn;
    try {
      roots ??= (await get('views')).views;
      if (!now()) return;
      const symbolsOnly = p[0] === 'symbols';
      const id = symbolsOnly ? '' : p[1] || roots[0]?.id || '';
      if (!symbolsOnly && !roots.length) return void show(root, nobody());
      const tab = symbolsOnly ? 'symbols' : p[2] || 'files';
      const pane = h('div', { class: 'viewpane' });
      show(root, bar(id, tab), pane);
      if (symbolsOnly && p[1]) await symbolPage(pane, p[1], now);
      else if (symbolsOnly) await symbolList(pane, now);
      else if (tab === 'history') await history(pane, id, q.get('state'), now);
      else if (tab === 'conflicts' && p[3]) await conflict(pane, id, p[3], now);
      else if (tab === 'conflicts') await conflictList(pane, id, now);
      else await files(pane, id, q, now);
    } catch (err) {
      if (!now() || !hasKey()) return;
      if (err.status === 404 && err.code === 'not_configured') show(root, isolatesNobody());
      else if (err.status === 404) show(root, h('div', { class: 'empty' }, h('p', { class: 'big' }, 'There is nothing under this address.'), h('a', { href: '#/views' }, 'All views')));
      else if (err instanceof Offline) show(root, h('div', { class: 'empty' }, h('button', { click: () => draw(p, q) }, 'Try again')));
      else toast(err.message, true);
    }
  }

  function bar(id, tab) {
    const first = id || roots[0]?.id;
    const href = (t) => (t === 'symbols' ? '#/symbols' : `#/views/${encodeURIComponent(first)}/${t}`);
    const here = roots.find((v) => v.id === first);
    return h('div', { class: 'viewbar' },
      roots.length > 1 && tab !== 'symbols' ? h('select', { 'aria-label': 'Workspace', change: (e) => { location.hash = `#/views/${encodeURIComponent(e.target.value)}/${tab}`; } },
        roots.map((v) => h('option', { value: v.id, selected: v.id === first }, v.root)))
        : h('span', { class: 'where' }, here && tab !== 'symbols' ? ident(here.root, 80) : h('span', { class: 'dim' }, 'all workspaces')),
      h('nav', { class: 'tabs', 'aria-label': 'Of this workspace' }, tabs.filter(([t]) => first || t === 'symbols').map(([t, name]) => h('a', { href: href(t), 'aria-current': t === tab ? 'page' : null }, name))));
  }

  draw(parts, query);
  return {
    leave() { gone = true; },
    route: draw,
    event(name) { if (name === 'hello' && root.querySelector('.empty')) draw(parts, query); },
    key(e) {
      if (e.key === '/') root.querySelector('input[type=search]')?.focus();
      else if (e.key === 'u') location.hash = root.querySelector('[data-up]')?.getAttribute('href') ?? '#/views';
      else if (e.key === 'j' || e.key === 'k') step(root, e.key === 'j' ? 1 : -1);
      else return false;
      return true;
    },
  };
}

// step moves along the list on screen.
function step(root, by) {
  const links = [...root.querySelectorAll('.filelist a')];
  if (links.length === 0) return;
  const at = links.findIndex((a) => a === document.activeElement || a.getAttribute('aria-current') === 'true');
  const next = links[Math.min(links.length - 1, Math.max(0, at + by))];
  next.focus();
  next.click();
}

const nobody = () => h('div', { class: 'empty' }, h('p', { class: 'big' }, 'No isolated agent has worked with files yet.'), h('p', null, 'Its workspaces appear here once it has.'), h('p', null, h('a', { href: '#/symbols' }, 'Symbols')));

const isolatesNobody = () => h('div', { class: 'empty' }, h('p', { class: 'big' }, 'No agent is isolated.'),
  h('p', null, 'An isolated agent works on symbols in place of what it may not be told. One line in the policy switches it on, from the next start of the daemon:'),
  h('pre', { class: 'command' }, 'modes: [{agent: "openclaw:*", mode: both}]'));

async function files(pane, id, q, now) {
  const path = q.get('path') ?? '';
  const list = h('div', { class: 'filelist' });
  const file = h('div', { class: 'filepane' });
  show(pane, h('div', { class: path ? 'filegrid has-file' : 'filegrid' }, list, file));
  await listFiles(list, id, path, now);
  if (path) await filePane(file, id, path, now);
  else if (now()) show(file, h('p', { class: 'empty' }, 'Choose a file. What an agent may not read is coloured in it, on both sides.'));
}
