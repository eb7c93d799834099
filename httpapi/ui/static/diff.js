// The difference of two texts, by words or lines, as parts {same|del|ins}.

const maxSteps = 600; // of the search; beyond it the middle is replaced whole

const words = (s) => s.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];

const lines = (s) => s.match(/[^\n]*\n|[^\n]+$/g) ?? [];

/** diffLines is diff by lines. */
export const diffLines = (a, b) => diff(a, b, lines);

export function diff(a, b, split = words) {
  const x = split(a);
  const y = split(b);
  let head = 0;
  while (head < x.length && head < y.length && x[head] === y[head]) head++;
  let tail = 0;
  while (tail < x.length - head && tail < y.length - head && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail++;
  const parts = [];
  push(parts, 'same', x.slice(0, head));
  for (const [kind, list] of middle(x.slice(head, x.length - tail), y.slice(head, y.length - tail))) push(parts, kind, list);
  push(parts, 'same', x.slice(x.length - tail));
  return parts;
}

function push(parts, kind, list) {
  if (list.length === 0) return;
  const last = parts[parts.length - 1];
  if (last && last.kind === kind) last.text += list.join('');
  else parts.push({ kind, text: list.join('') });
}

// middle is Myers' search for the shortest edit, with a bound.
function middle(x, y) {
  const n = x.length;
  const m = y.length;
  if (n === 0 || m === 0) return [['del', x], ['ins', y]];
  let v = new Map([[1, 0]]);
  const trace = [];
  for (let d = 0; d <= Math.min(n + m, maxSteps); d++) {
    trace.push(new Map(v));
    for (let k = -d; k <= d; k += 2) {
      let i = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? v.get(k + 1) ?? 0 : (v.get(k - 1) ?? 0) + 1;
      while (i < n && i - k < m && x[i] === y[i - k]) i++;
      v.set(k, i);
      if (i >= n && i - k >= m) return walk(trace, x, y);
    }
  }
  return [['del', x], ['ins', y]];
}

function walk(trace, x, y) {
  const out = [];
  let i = x.length;
  let j = y.length;
  for (let d = trace.length - 1; d >= 0 && (i > 0 || j > 0); d--) {
    const v = trace[d];
    const k = i - j;
    const prev = k === -d || (k !== d && (v.get(k - 1) ?? -1) < (v.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const pi = d === 0 ? 0 : v.get(prev) ?? 0;
    const pj = d === 0 ? 0 : pi - prev;
    while (i > pi && j > pj) {
      out.push(['same', [x[--i]]]);
      j--;
    }
    if (d === 0) break;
    if (i > pi) out.push(['del', [x[--i]]]);
    else if (j > pj) out.push(['ins', [y[--j]]]);
  }
  return out.reverse();
}
