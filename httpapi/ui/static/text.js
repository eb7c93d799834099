// How text that an attacker wrote is shown: every character that is invisible,
// or that would move others about, appears as a badge with its name; findings
// are marked at their byte positions.
import { h } from './dom.js';

const names = {
  0x00: 'NUL', 0x07: 'BEL', 0x08: 'BS', 0x0b: 'VT', 0x0c: 'FF', 0x0d: 'CR', 0x1b: 'ESC', 0x7f: 'DEL', 0x9b: 'CSI', 0xad: 'SHY', 0x34f: 'CGJ',
  0x61c: 'ALM', 0x180e: 'MVS', 0x200b: 'ZWSP', 0x200c: 'ZWNJ', 0x200d: 'ZWJ', 0x200e: 'LRM', 0x200f: 'RLM', 0x2028: 'LSEP', 0x2029: 'PSEP',
  0x202a: 'LRE', 0x202b: 'RLE', 0x202c: 'PDF', 0x202d: 'LRO', 0x202e: 'RLO', 0x2060: 'WJ', 0x2066: 'LRI', 0x2067: 'RLI', 0x2068: 'FSI',
  0x2069: 'PDI', 0x3164: 'HANGUL FILLER', 0xfeff: 'BOM',
};
const meanings = {
  0x1b: 'escape: begins a terminal command', 0x9b: 'begins a terminal command', 0x200b: 'zero-width space', 0x200c: 'zero-width non-joiner',
  0x200d: 'zero-width joiner', 0x202a: 'left-to-right embedding', 0x202b: 'right-to-left embedding', 0x202c: 'end of a direction change',
  0x202d: 'left-to-right override', 0x202e: 'right-to-left override: the text after it reads backwards', 0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate', 0x2068: 'direction isolate', 0x2069: 'end of an isolate', 0xfeff: 'zero-width no-break space',
  0x0d: 'carriage return: what follows overwrites the line in a terminal',
};

// One alternative each: terminal sequences, tag characters, variation
// selectors in a row, runs of one kind of invisible, odd spaces.
const special = new RegExp([
  '(?<ansi>\\u001b(?:\\[[0-?]{0,64}[ -/]{0,8}[@-~]|\\][^\\u0007\\u001b\\n]{0,256}(?:\\u0007|\\u001b\\\\)?)?|\\u009b[0-?]{0,64}[ -/]{0,8}[@-~]?)',
  '(?<tags>[\\u{e0000}-\\u{e007f}]+)',
  '(?<vs>[\\ufe00-\\ufe0f]{2,}|[\\u{e0100}-\\u{e01ef}]+)',
  '(?<hid>([\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb])\\5*)',
  '(?<sp>[\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]+)',
  '(?<mix>(?=[\\p{L}\\p{M}]*\\p{Script=Latin})(?=[\\p{L}\\p{M}]*[\\p{Script=Cyrillic}\\p{Script=Greek}])[\\p{L}\\p{M}]{2,64})',
].join('|'), 'gu');

const hex = (cp) => 'U+' + cp.toString(16).toUpperCase().padStart(4, '0');

function badge(text, label, cls = '') {
  return h('span', { class: 'ctl ' + cls, title: label, role: 'img', 'aria-label': label }, text);
}

/** visible returns nodes that show a text with nothing hidden in it. */
export function visible(text) {
  const out = [];
  let at = 0;
  for (const m of text.matchAll(special)) {
    if (m.index > at) out.push(document.createTextNode(text.slice(at, m.index)));
    at = m.index + m[0].length;
    out.push(name1(m, text));
  }
  if (at < text.length) out.push(document.createTextNode(text.slice(at)));
  return out;
}

function name1(m, text) {
  const s = m[0];
  const g = m.groups;
  const count = [...s].length;
  const times = count > 1 ? ` ×${count}` : '';
  const cp = s.codePointAt(0);
  if (g.ansi !== undefined) {
    const rest = s.slice(1).replaceAll('\u0007', '␇').replaceAll('\u001b', '␛');
    return badge((cp === 0x1b ? 'ESC' : 'CSI') + rest, 'terminal control sequence', 'ansi');
  }
  if (g.tags !== undefined) {
    const hidden = [...s].map((c) => String.fromCharCode(c.codePointAt(0) - 0xe0000)).join('').replace(/[^ -~]/g, '·');
    return badge(`TAGS “${hidden}”`, `${count} invisible tag characters that spell: ${hidden}`, 'loud');
  }
  if (g.vs !== undefined) return badge(`VS${times}`, `${count} variation selectors in a row can hide data`, 'loud');
  if (g.sp !== undefined) return h('span', { class: 'sp', title: `${hex(cp)}${times}: a space that is not the usual one` }, s);
  if (g.mix !== undefined) return h('span', { class: 'mix', title: 'this word mixes alphabets that look alike' }, s);
  if (cp === 0x0d && count === 1 && text[m.index + 1] === '\n') return h('span', { class: 'cr', title: 'CR' }, '␍');
  const name = names[cp] ?? hex(cp);
  const loud = cp >= 0x202a && cp <= 0x202e || cp >= 0x2066 && cp <= 0x2069 ? 'loud' : '';
  return badge(name + times, `${meanings[cp] ?? 'invisible or control character'}, ${hex(cp)}${times}`, loud);
}

/** ident shows a name on one line: a path, a URL, a tool. */
export function ident(text, max = 160) {
  const flat = text.replace(/\s+/gu, ' ');
  const cut = [...flat.slice(0, 2 * max)].slice(0, max).join('');
  return h('code', { class: 'id' }, visible(cut), cut.length < flat.length ? '…' : null);
}

/** plain is a name for where there are only strings: nothing hidden passes. */
export function plain(text, max = 60) {
  return text.replace(special, (s) => (/^\p{L}/u.test(s) ? s : '�')).replace(/\s+/gu, ' ').slice(0, max);
}

const firstBytes = 16 << 10;
const chunkBytes = 64 << 10;

/**
 * payload shows a text of any size, the beginning first. marks are
 * {start, end, kind, n} in bytes of its UTF-8.
 */
export function payload(text, marks = [], label = 'Payload') {
  const bytes = new TextEncoder().encode(text);
  const pre = h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': label, dir: 'ltr' });
  const box = h('div', { class: 'payloadbox' }, pre);
  let at = 0;
  const more = h('button', { class: 'more', click: () => all() });
  const draw = (size) => {
    const end = boundary(bytes, Math.min(bytes.length, at + size));
    pre.append(...segments(bytes, at, end, marks));
    at = end;
    const left = bytes.length - at;
    more.textContent = `Show the other ${sizeText(left)}`;
    more.hidden = left === 0;
  };
  const all = async () => {
    more.disabled = true;
    // Each part lays the whole text out anew, so parts grow.
    for (let size = chunkBytes; at < bytes.length; size *= 2) {
      draw(size);
      await new Promise((r) => setTimeout(r)); // the page stays alive
    }
  };
  draw(firstBytes);
  if (!more.hidden) {
    box.append(more);
    const beyond = marks.filter((m) => m.start >= at).length;
    if (beyond) box.append(h('span', { class: 'warnline' }, ` ${beyond} marked ${beyond === 1 ? 'place is' : 'places are'} further down`));
  }
  return box;
}

// boundary moves a cut to the beginning of a character.
function boundary(bytes, i) {
  while (i > 0 && i < bytes.length && (bytes[i] & 0xc0) === 0x80) i--;
  return i;
}

function* segments(bytes, from, to, marks) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const here = marks.filter((m) => m.start < to && m.end > from && m.end > m.start);
  const cuts = new Set([from, to]);
  for (const m of here) {
    cuts.add(Math.max(from, boundary(bytes, m.start)));
    cuts.add(Math.min(to, boundary(bytes, m.end)));
  }
  const order = [...cuts].sort((a, b) => a - b);
  for (let i = 0; i + 1 < order.length; i++) {
    const [a, b] = [order[i], order[i + 1]];
    const nodes = visible(decoder.decode(bytes.subarray(a, b)));
    const on = here.filter((m) => m.start <= a && m.end >= b);
    if (on.length === 0) {
      yield* nodes;
      continue;
    }
    const kind = ['hard', 'soft', 'evidence'].find((k) => on.some((m) => m.kind === k)) ?? 'evidence';
    const numbers = [...new Set(on.filter((m) => m.n && m.start === a).map((m) => m.n))];
    yield h('mark', { class: kind, 'data-n': on.map((m) => m.n).filter(Boolean).join(' ') },
      numbers.length ? h('sup', { 'aria-label': `finding ${numbers.join(', ')}` }, numbers.join(',')) : null, nodes);
  }
}

/** find marks every place where an evidence string stands in the text. */
export function find(text, strings) {
  const marks = [];
  const encoder = new TextEncoder();
  for (const s of strings ?? []) {
    if (s.length < 4) continue;
    for (let i = text.indexOf(s), n = 0; i >= 0 && n < 20; i = text.indexOf(s, i + s.length), n++) {
      const start = encoder.encode(text.slice(0, i)).length;
      marks.push({ start, end: start + encoder.encode(s).length, kind: 'evidence' });
    }
  }
  return marks;
}

export function sizeText(n) {
  if (n < 1024) return `${n} ${n === 1 ? 'byte' : 'bytes'}`;
  if (n < 1 << 20) return `${(n / 1024).toFixed(n < 10240 ? 1 : 0)} KB`;
  return `${(n / (1 << 20)).toFixed(1)} MB`;
}
