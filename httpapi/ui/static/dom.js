// Elements are made here and nowhere else. Strings become text nodes: nothing
// that an attacker wrote is ever parsed as HTML.

/**
 * h makes an element. Attributes that are null or false are left out; a
 * function is an event listener; children are nodes, strings, lists or null.
 */
export function h(tag, attrs, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') el.addEventListener(name, value);
    else el.setAttribute(name, value === true ? '' : String(value));
  }
  add(el, children);
  return el;
}

/** svg makes an SVG element in the same way. */
export function svg(tag, attrs, ...children) {
  const el = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value !== null && value !== undefined && value !== false) el.setAttribute(name, String(value));
  }
  add(el, children);
  return el;
}

function add(el, children) {
  for (const c of children.flat(Infinity)) {
    if (c === null || c === undefined || c === false) continue;
    el.append(c instanceof Node ? c : document.createTextNode(String(c)));
  }
}

/** show replaces what an element holds. */
export function show(el, ...children) {
  el.replaceChildren();
  add(el, children);
  return el;
}

export const byId = (id) => document.getElementById(id);

let toastTimer = 0;

/** toast says something for a few seconds, to screen readers too. */
export function toast(text, bad = false) {
  const el = byId('toast');
  show(el, h('span', { class: bad ? 'bad' : null }, text));
  el.classList.add('on');
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => el.classList.remove('on'), 5000);
}

/** dialog shows a modal dialog; it is removed when it closes. */
export function dialog(label, ...children) {
  const el = h('dialog', { 'aria-label': label }, ...children);
  el.addEventListener('close', () => el.remove());
  el.addEventListener('click', (e) => { if (e.target === el) el.close(); });
  document.body.append(el);
  el.showModal();
  return el;
}

/** dialogOpen reports whether a dialog has the keyboard. */
export const dialogOpen = () => document.querySelector('dialog[open]') !== null;

/** waiting shows how many questions there are, in the tab's title too. */
export function waiting(n) {
  const pill = byId('waiting');
  pill.hidden = n === 0;
  pill.textContent = n;
  document.title = n ? `(${n}) auditd` : 'auditd';
}
