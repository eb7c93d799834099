// The page's side of its session. The cookie is half of it, and scripts can't
// see that; the other half is this key. It lies in the storage of this origin,
// which other ports of the same host can't read.

const slot = 'auditd.key';
const channel = new BroadcastChannel('auditd');
let key = sessionStorage.getItem(slot) ?? '';
let skew = 0; // the daemon's clock less ours, in milliseconds

/** Refused is an answer of the daemon that says no. */
export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Offline means that no daemon answered. */
export class Offline extends Error {}

/** now is the daemon's time. */
export const now = () => Date.now() + skew;

export function clock(text) {
  const t = Date.parse(text ?? '');
  if (Number.isFinite(t)) skew = t - Date.now();
}

export const hasKey = () => key !== '';

function setKey(k) {
  key = k;
  if (k) sessionStorage.setItem(slot, k);
  else sessionStorage.removeItem(slot);
}

channel.addEventListener('message', (e) => {
  const { ask, over, key: given, event, data } = e.data ?? {};
  if (ask === 'key' && key) channel.postMessage({ key });
  if (over) {
    setKey('');
    window.dispatchEvent(new Event('signed-out'));
  }
  if (given && given !== key) { // a tab has signed in anew: its cookie is now ours
    setKey(given);
    window.dispatchEvent(new Event('signed-in'));
  }
  if (event && key) listener(event, data);
});
let listener = () => {};

/** borrowKey asks the other tabs of this page for the key. */
export async function borrowKey() {
  if (key) return true;
  channel.postMessage({ ask: 'key' });
  for (let i = 0; i < 10 && !key; i++) await new Promise((r) => setTimeout(r, 25));
  return hasKey();
}

async function request(method, path, body, signal) {
  const headers = { 'X-Auditd-Page': key };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let res;
  try {
    res = await fetch('/ui/' + path, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      credentials: 'same-origin', cache: 'no-store', redirect: 'error', referrerPolicy: 'no-referrer',
    });
  } catch (err) {
    if (signal?.aborted) throw err;
    throw new Offline('the daemon does not answer');
  }
  if (res.ok) return res;
  let detail = {};
  try {
    detail = (await res.json()).error ?? {};
  } catch { /* not ours; the status says enough */ }
  const refused = new Refused(res.status, detail.code ?? '', detail.message ?? `the daemon answered ${res.status}`);
  if (refused.code === 'session') {
    setKey('');
    window.dispatchEvent(new Event('signed-out'));
  }
  throw refused;
}

async function json(method, path, body) {
  const res = await request(method, path, body);
  let doc;
  try {
    doc = await res.json();
  } catch {
    throw new Offline('the daemon broke off');
  }
  if (doc.now) clock(doc.now);
  return doc;
}

export const get = (path) => json('GET', path);
export const post = (path, body = {}) => json('POST', path, body);

/** login exchanges a one-time code for a session. */
export async function login(code) {
  const s = await post('login', { code });
  setKey(s.key);
  channel.postMessage({ key });
  return s;
}

export async function logout() {
  try {
    await post('logout');
  } finally {
    setKey('');
    channel.postMessage({ over: true });
    window.dispatchEvent(new Event('signed-out'));
  }
}

/**
 * follow tells on(event, data) of the daemon's events until the session ends;
 * "offline" and "hello" say how the connection is. A browser opens six
 * connections to a host, so one tab reads the stream and tells the others.
 */
export function follow(on) {
  listener = on;
  return navigator.locks.request('auditd.events', () => stream((event, data) => {
    on(event, data);
    channel.postMessage({ event, data });
  }));
}

// stream connects again whenever the connection breaks.
async function stream(on) {
  for (let wait = 500; hasKey(); wait = Math.min(wait * 2, 8000)) {
    const stop = new AbortController();
    let watchdog = 0;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), 40000); // the daemon beats every 15 s
    };
    try {
      alive();
      const res = await request('GET', 'events', undefined, stop.signal);
      for await (const [event, data] of events(res.body, alive)) {
        if (event === 'hello') {
          clock(data.now);
          wait = 500;
        }
        on(event, data);
      }
    } catch (err) {
      if (err instanceof Refused && err.code === 'session') return;
    } finally {
      clearTimeout(watchdog);
    }
    if (!hasKey()) return;
    on('offline', {});
    await new Promise((r) => setTimeout(r, wait));
  }
}

// events reads a text/event-stream; EventSource could not send our header.
async function* events(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    buffer += value;
    if (buffer.length > 1 << 20) return; // never ours
    for (let end; (end = buffer.indexOf('\n\n')) >= 0;) {
      const block = buffer.slice(0, end);
      buffer = buffer.slice(end + 2);
      let event = 'message';
      let data = '';
      for (const line of block.split('\n')) {
        if (line.startsWith('event: ')) event = line.slice(7);
        if (line.startsWith('data: ')) data += line.slice(6);
      }
      yield [event, JSON.parse(data || '{}')];
    }
  }
}
