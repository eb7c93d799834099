// Symbols: what is known about each, what it was made from, and, on a click,
// what it stands for.
import { h, show, svg, toast } from './dom.js';
import { get } from './api.js';
import { ident, payload, plain, sizeText } from './text.js';
import { cameFrom, short, symbolLink } from './sides.js';
import { ago, dateTime, sources, trusts } from './words.js';

const trust = (s) => h('span', { class: `trust ${s.secret ? 'hostile' : s.trust}` }, s.secret ? 'secret' : trusts[s.trust] ?? s.trust);

/** symbolList draws the symbols, the youngest first. */
export async function symbolList(el, now) {
  const list = h('ul', { class: 'symbols all' });
  const more = h('button', { class: 'more', hidden: true, click: () => fill(more.dataset.before).catch((err) => toast(err.message, true)) }, 'Older ones');
  async function fill(before) {
    const doc = await get(`symbols${before ? `?before=${encodeURIComponent(before)}` : ''}`);
    if (!now()) return;
    list.append(...doc.symbols.map((s) => h('li', null, symbolLink(s.symbol), h('span', { class: 'from' }, cameFrom(s)), h('span', { class: 'dim' }, sizeText(s.size)), trust(s), h('span', { class: 'dim', title: dateTime(s.created) }, ago(s.created)))));
    more.hidden = !doc.more;
    if (doc.more) more.dataset.before = doc.symbols.at(-1).created;
    if (!list.children.length) show(el, h('p', { class: 'empty' }, 'There are no symbols.'));
  }
  show(el, list, more);
  await fill('');
}

/** symbolPage draws one symbol. */
export async function symbolPage(el, token, now) {
  const g = await get(`symbols/${encodeURIComponent(token)}/graph`);
  if (!now()) return;
  const s = g.symbols[0];
  const original = h('div', null);
  const reveal = async () => {
    try {
      const doc = await get(`symbols/${encodeURIComponent(token)}?original=1`);
      if (!now()) return;
      show(original, typeof doc.value === 'string' ? payload(doc.value, [], 'What it stands for') : h('p', { class: 'note' }, doc.size > 1 << 20 ? 'It is larger than what is shown here.' : 'It is shown to nobody.'));
    } catch (err) {
      toast(err.message, true);
    }
  };
  show(original, s.secret ? h('p', { class: 'note' }, 'A secret is shown to nobody.') : h('button', { id: 'reveal', click: reveal }, 'Show it'));
  show(el, h('article', { class: 'decision flush' },
    h('header', null, h('a', { class: 'backbutton always', 'data-up': '', href: '#/symbols' }, '‹ All symbols'), h('h2', { class: 'headline' }, h('code', { class: 'id' }, s.symbol))),
    h('dl', { class: 'facts' },
      h('dt', null, 'From'), h('dd', null, cameFrom(s), ' ', trust(s)),
      s.tool === 'fileview' ? [h('dt', null, 'Made'), h('dd', null, { content: 'of what stood in a file', split: 'of a part of another', name: 'of a file’s name' }[s.field] ?? 'of a file')] : null,
      s.agent ? [h('dt', null, 'For'), h('dd', null, ident(s.agent, 80))] : null,
      h('dt', null, 'Size'), h('dd', null, sizeText(s.size)),
      h('dt', null, 'Since'), h('dd', null, dateTime(s.created))),
    h('section', null, h('h2', null, 'What it was made from'), graph(g)),
    h('section', null, h('h2', null, 'What it stands for'), original)));
}

// A symbol as it stands in a text; whether it is genuine the daemon knows.
const tokenForm = /symu[0-9a-hjkmnp-tv-z]{32}u/gi;
const maxChains = 20;

/** chains tells what the symbols of a text were made from; null without any. */
export function chains(text) {
  const tokens = [...new Set((text.match(tokenForm) ?? []).map((t) => t.toLowerCase()))];
  if (tokens.length === 0) return null;
  const list = h('ul', { class: 'symbols chains' });
  const box = h('section', null, h('h3', null, 'What its symbols stand for'), list, tokens.length > maxChains ? h('p', { class: 'note' }, `and ${tokens.length - maxChains} more`) : null);
  for (const token of tokens.slice(0, maxChains)) {
    const item = h('li', null, symbolLink(token), h('span', { class: 'dim' }, '…'));
    list.append(item);
    get(`symbols/${encodeURIComponent(token)}/graph`).then((g) => {
      show(item, symbolLink(token), h('span', { class: 'from' }, g.symbols.map((s, i) => [i ? h('span', { class: 'dim' }, ' ← made from ') : null, cameFrom(s)])), trust(g.symbols[0]));
    }).catch(() => show(item, h('code', null, short(token)), h('span', { class: 'warnline' }, 'looks like a symbol and is none')));
  }
  return box;
}

const [boxW, boxH, gapX, gapY] = [216, 50, 20, 34];

// graph draws a symbol at the top and what it was made from below it.
function graph(g) {
  if (g.symbols.length === 1) return h('p', { class: 'dim' }, g.symbols[0].parents?.length ? 'Of symbols that are no longer kept.' : 'Of no other symbol: it came in as it is.');
  const nodes = new Map(g.symbols.map((s) => [s.symbol, { s, row: 0 }]));
  // A symbol stands below all that were made of it. Parents are older than what
  // was made of them, so there is no circle; the bound is for what should not be.
  for (let pass = 0, moved = true; moved && pass < g.symbols.length; pass++) {
    moved = false;
    for (const { s, row } of nodes.values()) {
      for (const p of s.parents ?? []) {
        const n = nodes.get(p);
        if (n && n.row <= row) {
          n.row = row + 1;
          moved = true;
        }
      }
    }
  }
  const rows = [];
  for (const n of nodes.values()) (rows[n.row] ??= []).push(n);
  const width = Math.max(...rows.map((r) => r.length)) * (boxW + gapX) - gapX;
  rows.forEach((r, y) => r.forEach((n, x) => {
    n.x = (width - (r.length * (boxW + gapX) - gapX)) / 2 + x * (boxW + gapX);
    n.y = y * (boxH + gapY);
  }));
  const lines = [...nodes.values()].flatMap((n) => (n.s.parents ?? []).map((p) => nodes.get(p)).filter(Boolean).map((p) => {
    const [x1, y1, x2, y2] = [n.x + boxW / 2, n.y + boxH, p.x + boxW / 2, p.y];
    return svg('path', { d: `M${x1} ${y1}C${x1} ${y1 + gapY / 2} ${x2} ${y2 - gapY / 2} ${x2} ${y2}` });
  }));
  const boxes = [...nodes.values()].map(({ s, x, y }) => svg('a', { href: `#/symbols/${encodeURIComponent(s.symbol)}` },
    svg('rect', { class: s.secret ? 'hostile' : s.trust, x: x + 0.5, y: y + 0.5, width: boxW - 1, height: boxH - 1, rx: 6 }),
    svg('text', { class: 'token', x: x + 12, y: y + 20 }, `${short(s.symbol)}  ${sizeText(s.size)}`),
    svg('text', { class: 'origin', x: x + 12, y: y + 38 }, plain((s.origin || (sources[s.kind] ?? s.kind)).replace(/^https?:\/\//, ''), 29))));
  const height = rows.length * (boxH + gapY) - gapY;
  return h('div', { class: 'graphbox', tabindex: 0, role: 'region', 'aria-label': 'Provenance' }, svg('svg', { class: 'graph', width, height, viewBox: `0 0 ${width} ${height}` }, lines, boxes),
    g.cut ? h('p', { class: 'note' }, 'It was made from more than is drawn.') : null);
}
