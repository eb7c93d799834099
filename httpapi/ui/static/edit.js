// The owner's own text in place of the payload: it is audited before it can go.
import { dialog, h, show } from './dom.js';
import { post } from './api.js';
import { visible } from './text.js';
import { beside, meters, numbered, signalList } from './question.js';

const maxEdit = 256 << 10; // characters that a text field stays usable with

/** editable reports whether a text can be changed in a text field unharmed. */
export const editable = (text) => text.length <= maxEdit && !/\r(?!\n)|\0/.test(text);

/** editDialog edits start; send(text) approves the result. */
export function editDialog(q, thresholds, start, send) {
  const crlf = start.includes('\r\n');
  const field = h('textarea', { id: 'edit', rows: 10, spellcheck: 'false', dir: 'ltr', input: () => changed() });
  field.value = start;
  const result = h('div', { class: 'stack', role: 'status' });
  const problem = h('p', { class: 'problem', role: 'alert' });
  const check = h('button', { type: 'button', click: () => audit() }, 'Check it');
  const go = h('button', { class: 'primary', disabled: true }, 'Approve this text');
  let checked = null; // the text that may be sent
  const form = h('form', { method: 'dialog', class: 'stack', submit },
    h('h2', null, 'Send another text'),
    h('p', { class: 'dim' }, 'What you write goes on in place of the original when the agent tries again. It is audited first; hard rules hold for it too.'),
    h('label', { for: 'edit' }, 'Text'), field, result, problem,
    h('div', { class: 'row end' }, h('button', { type: 'button', click: () => el.close() }, 'Cancel'), check, go));
  const el = dialog('Send another text', form);
  el.classList.add('wide');
  field.focus();

  const text = () => (crlf ? field.value.replace(/\r?\n/g, '\r\n') : field.value);
  function changed() {
    checked = null;
    go.disabled = true;
    show(result);
    problem.textContent = '';
  }

  async function audit() {
    const t = text();
    check.disabled = true;
    try {
      const { decision: d, problem: why } = await post(`questions/${encodeURIComponent(q.id)}/review`, { text: t });
      if (t !== text()) return;
      const signals = numbered(d.precheck?.signals?.map((s) => ({ ...s, spans: [] })), d.precheck?.signals?.map((s) => s.detail));
      show(result, h('p', { class: why ? 'problem' : 'holds' }, visible(why || (d.action === 'allow' ? 'The auditor would let this text pass.' : 'The auditor is not happy with it, but finds it no riskier than the original.'))),
        d.report ? meters(d.report, thresholds) : null, signals.length ? signalList(signals, () => {}) : null, h('h3', null, 'What changes'), beside(q.flow.payload, t));
      if (!why) {
        checked = t;
        go.disabled = false;
        go.focus();
      }
    } catch (err) {
      problem.textContent = err.message;
    } finally {
      check.disabled = false;
    }
  }

  async function submit(e) {
    e.preventDefault();
    if (checked === null || checked !== text()) {
      audit();
      return;
    }
    go.disabled = true;
    try {
      await send(checked);
      el.close();
    } catch (err) {
      if (err.status === 409 || err.status === 404) el.close();
      else {
        problem.textContent = err.message;
        go.disabled = false;
      }
    }
  }
}
