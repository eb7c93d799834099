// The frame of the page: session, views, keys, and the stream of changes.
import { byId, dialog, dialogOpen, h, show, toast, waiting } from './dom.js';
import { borrowKey, follow, get, hasKey, login, logout, post, Refused } from './api.js';
import { inbox } from './inbox.js';
import { feed } from './feed.js';
import { decision } from './decision.js';
import { overview } from './overview.js';
import { rules } from './rules.js';
import { views } from './views.js';

const main = byId('main');
let view = null; // {leave, key, event}
let following = false;

// Each route makes a view: an object with any of leave(), key(event),
// event(name, data) and route(parts).
const routes = { '': inbox, q: inbox, decisions: feed, d: decision, overview, views, symbols: views, rules };
const navOf = { '': 'inbox', q: 'inbox', decisions: 'decisions', d: 'decisions', overview: 'overview', views: 'views', symbols: 'views', rules: 'rules' };

function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').map((p) => { try { return decodeURIComponent(p); } catch { return ''; } });
  if (!hasKey()) return signIn();
  const make = routes[parts[0]] ?? inbox;
  for (const a of byId('nav').querySelectorAll('a')) {
    if (a.dataset.view === (navOf[parts[0]] ?? 'inbox')) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  if (view?.make === make && view.route) {
    view.route(parts, new URLSearchParams(query));
    return;
  }
  view?.leave?.();
  show(main);
  window.scrollTo(0, 0);
  view = { make, ...make(main, parts, new URLSearchParams(query)) };
}

function frame(on) {
  byId('nav').hidden = !on;
  byId('tools').hidden = !on;
}

function signIn(problem = '') {
  view?.leave?.();
  view = null;
  frame(false);
  offline(false);
  document.title = 'auditd';
  const field = h('input', { id: 'code', type: 'text', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off' });
  const form = h('form', {
    class: 'signin',
    submit: (e) => {
      e.preventDefault();
      const code = field.value.trim().replace(/^.*#code=/, '');
      if (code) enter(code);
    },
  },
  h('h1', null, 'Sign in'),
  h('p', null, 'In a terminal, run'),
  h('pre', { class: 'command' }, 'auditd login'),
  h('p', null, 'and open the link that it prints. It works once, for a minute.'),
  h('p', { class: 'problem', role: 'alert' }, problem || null),
  h('details', null, h('summary', null, 'The link opens in another browser?'),
    h('label', { for: 'code' }, 'Paste the link or its code here'), h('div', { class: 'row' }, field, h('button', { class: 'primary' }, 'Sign in'))));
  show(main, form);
}

async function enter(code) {
  try {
    await login(code);
    start();
  } catch (err) {
    signIn(err instanceof Refused && err.status === 401 ? 'That link has been used or is too old. Run auditd login again.' : err.message);
  }
}

function start() {
  frame(true);
  if (location.hash.startsWith('#code=')) history.replaceState(null, '', '#/');
  route();
  if (!following) {
    following = true;
    follow(event).finally(() => { following = false; });
  }
}

function event(name, data) {
  if (name === 'offline') offline(true);
  else offline(false);
  if (name === 'questions' && document.hidden) notify();
  view?.event?.(name, data);
  if (name !== 'offline' && view?.make !== inbox) count(name);
}

// Outside the inbox the number of questions is all that is wanted of them.
async function count(name) {
  if (name !== 'questions' && name !== 'hello') return;
  try {
    waiting((await get('questions')).questions.length);
  } catch { /* the next event tries again */ }
}

// notify tells an owner who looks elsewhere that something waits; never what.
// It is off until the owner turns it on, in the help.
let notified = 0;
async function notify() {
  if (globalThis.Notification?.permission !== 'granted' || Date.now() - notified < 5000) return;
  notified = Date.now();
  try {
    const { questions } = await get('questions');
    if (questions.some((l) => Date.now() - Date.parse(l.question.created) < 10000)) new Notification('auditd', { body: 'An agent waits for your word.', tag: 'auditd' });
  } catch { /* no daemon, no question */ }
}

function offline(is) {
  const el = byId('offline');
  if (is === !el.hidden) return;
  el.hidden = !is;
  document.body.classList.toggle('is-offline', is);
  show(el, is ? [h('b', null, 'The daemon does not answer.'), ' Whatever asks it is being stopped meanwhile. This page connects again by itself.'] : null);
}

// A session ends when nobody has used it for a while; using the page counts,
// and its own traffic does not.
let renewed = Date.now();
function used() {
  if (!hasKey() || Date.now() - renewed < 60000) return;
  renewed = Date.now();
  post('session').catch(() => {});
}

const shortcuts = [
  ['Inbox', [['j', 'k', 'next and previous'], ['a', 'approve: shows what that unlocks, Enter confirms'], ['d', 'deny'], ['n', 'deny and remember it'], ['w', 'write another text and send that'], ['e', 'why: the whole decision'], ['m', 'show the whole payload']]],
  ['Decisions', [['j', 'k', 'next and previous'], ['Enter', 'open'], ['/', 'search'], ['u', 'back to the list']]],
  ['Views', [['j', 'k', 'next and previous'], ['/', 'search'], ['u', 'back to the list']]],
  ['Everywhere', [['1', '…', '5', 'Inbox, Decisions, Overview, Views, Rules'], ['?', 'this list'], ['Esc', 'close']]],
];

function help() {
  const el = dialog('Keyboard shortcuts', h('h2', null, 'Keyboard shortcuts'),
    shortcuts.map(([title, rows]) => h('section', null, h('h3', null, title), h('dl', { class: 'keys' },
      rows.map((r) => [h('dt', null, r.slice(0, -1).map((k) => h('kbd', null, k))), h('dd', null, r[r.length - 1])])))),
    h('div', { class: 'row end' }, h('button', { class: 'quiet', click: () => { el.close(); logout().catch(() => {}); } }, 'Sign out'),
      globalThis.Notification?.permission === 'default' ? h('button', { class: 'quiet', click: () => Notification.requestPermission().then(() => el.close()) }, 'Notify me of new questions') : null,
      h('button', { click: () => el.close() }, 'Close')));
}

document.addEventListener('keydown', (e) => {
  used();
  if (e.ctrlKey || e.metaKey || e.altKey || dialogOpen() || !hasKey()) return;
  if (e.target.closest?.('input, textarea, select')) {
    if (e.key === 'Escape') e.target.blur();
    return;
  }
  const go = { 1: '#/', 2: '#/decisions', 3: '#/overview', 4: '#/views', 5: '#/rules' }[e.key];
  if (go) location.hash = go;
  else if (e.key === '?') help();
  else if (!view?.key?.(e)) return;
  e.preventDefault();
});
document.addEventListener('pointerdown', used);
byId('help').addEventListener('click', help);
byId('logout').addEventListener('click', () => logout().catch(() => {}));
window.addEventListener('signed-out', () => {
  document.querySelectorAll('dialog').forEach((d) => d.close());
  signIn(view ? 'You are signed out.' : '');
});
window.addEventListener('signed-in', () => { if (!view) start(); });
window.addEventListener('hashchange', () => {
  if (location.hash.startsWith('#code=')) enter(location.hash.slice(6));
  else route();
});
window.addEventListener('unhandledrejection', (e) => toast(e.reason?.message ?? 'Something went wrong', true));

const code = location.hash.startsWith('#code=') ? location.hash.slice(6) : '';
if (code) {
  history.replaceState(null, '', '#/'); // the code goes from the address bar and the history
  enter(code);
} else if (await borrowKey()) start();
else signIn();
