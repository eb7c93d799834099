// One file from both sides. What a symbol stands for is fetched when its owner
// asks for it, one piece at a time, and is text like everything here.
import { h, show, toast } from './dom.js';
import { get } from './api.js';
import { ident, sizeText, visible } from './text.js';
import { sources, trusts } from './words.js';

const colours = 6;
const firstPieces = 600; // of a file; the rest on demand

/** short is a symbol as it is shown; whole symbols are in titles. */
export const short = (token) => `symu…${token.slice(-5)}`;

/** cameFrom says where a symbol's content is from. */
export function cameFrom(s) {
  if (!s) return 'not known any more';
  return [sources[s.kind] ?? s.kind, s.origin ? [' ', ident(s.origin, 80)] : null, s.tool && s.tool !== 'fileview' ? [h('span', { class: 'dim' }, ' by '), ident(s.tool, 40)] : null, s.field && s.tool !== 'fileview' ? [h('span', { class: 'dim' }, ' in '), ident(s.field, 40)] : null];
}

/** symbolLink leads to what is known about a symbol. */
export const symbolLink = (token) => h('a', { href: `#/symbols/${encodeURIComponent(token)}`, title: token }, h('code', null, short(token)));

let onlySymbols = false;
let wanted = '';

/** listFiles draws the list of a view's files. */
export async function listFiles(el, id, current, now) {
  const list = h('ul', { role: 'list' });
  const note = h('p', { class: 'note', role: 'status' });
  const search = h('input', { type: 'search', placeholder: 'Part of a path', 'aria-label': 'Search files', value: wanted, spellcheck: 'false', input: () => { wanted = search.value; later(); } });
  const only = h('input', { type: 'checkbox', checked: onlySymbols, change: () => { onlySymbols = only.checked; fill(); } });
  show(el, search, h('label', { class: 'choice' }, only, h('span', null, 'only with symbols')), list, note);
  let timer = 0;
  const later = () => { clearTimeout(timer); timer = setTimeout(() => fill().catch((err) => toast(err.message, true)), 150); };
  async function fill() {
    const asked = wanted;
    const doc = await get(`views/${encodeURIComponent(id)}/files?${new URLSearchParams({ path: asked, symbols: onlySymbols ? '1' : '' })}`);
    if (!now() || asked !== wanted) return;
    show(list, doc.files.map((f) => h('li', null, h('a', { href: `#/views/${encodeURIComponent(id)}/files?${new URLSearchParams({ path: f.path })}`, 'aria-current': f.path === current ? 'true' : null },
      name(f.path), f.symbols ? h('span', { class: 'count', title: `${f.symbols} stretches are symbols for the agent` }, f.symbols) : null, f.unseen ? h('span', { class: 'dim' }, ' not seen') : null))));
    note.textContent = doc.files.length === 0 ? 'No file is like that.' : doc.more ? `The first ${doc.files.length}; type a part of the path.` : '';
  }
  await fill();
}

function name(path) {
  const at = path.lastIndexOf('/') + 1;
  return h('span', { class: 'fname' }, at ? h('span', { class: 'dim' }, visible(path.slice(0, at))) : null, visible(path.slice(at)));
}

/** filePane draws one file. */
export async function filePane(el, id, path, now) {
  let f;
  try {
    f = await get(`views/${encodeURIComponent(id)}/file?${new URLSearchParams({ path })}`);
  } catch (err) {
    if (now() && err.status === 404) {
      show(el, back(id), h('p', { class: 'empty' }, 'There is no such file any more.'));
      return;
    }
    throw err;
  }
  if (!now()) return;
  const hidden = f.pieces.reduce((n, p) => n + (p.symbol ? p.bytes : 0), 0);
  const all = f.pieces.reduce((n, p) => n + p.bytes, 0);
  show(el, back(id), h('header', { class: 'filehead' }, h('h2', null, ident(f.path, 300)),
    h('p', { class: 'dim' }, f.unshown ? `Not shown: ${f.unshown}.` : !f.agent ? 'The agent does not see this file.' : hidden ? `${Math.max(1, Math.round(100 * hidden / all))} % of its ${sizeText(all)} are symbols for the agent` : `The agent reads all of it, ${sizeText(all)}, as you do.`,
      f.agent && f.agent_path !== f.path ? [' · the agent knows it as ', ident(f.agent_path, 200)] : null)),
    f.unshown ? null : sides(f, (piece) => get(`views/${encodeURIComponent(id)}/original?${new URLSearchParams({ path, human: f.human, piece })}`)), legend(f));
}

const back = (id) => h('a', { class: 'backbutton', 'data-up': '', href: `#/views/${encodeURIComponent(id)}/files` }, '‹ All files');

/** numbers gives each symbol of a file its number, in order of appearance. */
function numbers(pieces) {
  const of = new Map();
  for (const p of pieces) if (p.symbol && !of.has(p.symbol)) of.set(p.symbol, of.size + 1);
  return of;
}

const colour = (n) => `sym s${(n - 1) % colours}`;

/** sides shows a file as its agent reads it, beside the person's; original(piece) fetches. */
function sides(f, original) {
  const of = numbers(f.pieces);
  const known = new Map(f.symbols.map((s) => [s.symbol, s]));
  const agent = h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': 'The agent reads', dir: 'ltr' });
  const human = h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': 'Your file', dir: 'ltr' });
  const more = h('button', { class: 'more small', click: () => draw(Infinity) });
  let at = 0;
  function draw(count) {
    const end = Math.min(f.pieces.length, at + count);
    for (; at < end; at++) {
      const p = f.pieces[at];
      if (!p.symbol) {
        agent.append(...visible(p.text));
        human.append(...visible(p.text));
        continue;
      }
      const n = of.get(p.symbol);
      agent.append(h('span', { class: colour(n), title: p.symbol }, h('sup', null, n), short(p.symbol)));
      human.append(covered(p, at, n, known.get(p.symbol), original));
    }
    more.hidden = at >= f.pieces.length;
    more.textContent = `Show the other ${f.pieces.length - at} stretches`;
  }
  draw(firstPieces);
  return h('div', { class: 'sides' }, h('div', null, h('h3', null, 'The agent reads'), f.agent ? agent : h('p', { class: 'note' }, 'Nothing.')), h('div', null, h('h3', null, 'Your file'), human), more);
}

// covered is what a symbol stands for, until its owner uncovers it.
function covered(p, i, n, info, original) {
  const box = h('span', { class: `${colour(n)} cover` });
  const secret = info?.secret;
  const cover = () => show(box, h('sup', null, n), secret ? `${sizeText(p.bytes)}, a secret`
    : h('button', { class: 'uncover', 'aria-label': `Show what symbol ${n} stands for, ${sizeText(p.bytes)}`, click: uncover }, sizeText(p.bytes)));
  async function uncover() {
    try {
      const { text } = await original(i);
      show(box, h('sup', null, n), visible(text), h('button', { class: 'uncover hide', 'aria-label': `Hide what symbol ${n} stands for`, click: () => { cover(); box.querySelector('button')?.focus(); } }, 'hide'));
      box.querySelector('button').focus();
    } catch (err) {
      toast(err.message, true);
    }
  }
  cover();
  return box;
}

// legend lists the symbols of a file.
function legend(f) {
  const of = numbers(f.pieces);
  if (of.size === 0) return null;
  const known = new Map(f.symbols.map((s) => [s.symbol, s]));
  return h('section', { class: 'legendbox' }, h('h3', null, 'Where they come from'), h('ul', { class: 'symbols' }, [...of].slice(0, 200).map(([token, n]) => {
    const s = known.get(token);
    return h('li', null, h('span', { class: colour(n) }, n), symbolLink(token), h('span', { class: 'from' }, cameFrom(s)),
      s ? h('span', { class: `trust ${s.trust}` }, s.secret ? 'secret' : trusts[s.trust] ?? s.trust) : null);
  })), of.size > 200 ? h('p', { class: 'note' }, `and ${of.size - 200} more`) : null);
}
