// The owner's policy: read, change, check, apply, go back.
import { h, show, toast } from './dom.js';
import { get, post } from './api.js';
import { ident, visible } from './text.js';
import { dateTime } from './words.js';
import { beside } from './question.js';
import { replayBox } from './replay.js';

/** policySection draws the policy into el. */
export async function policySection(el) {
  let now;
  let past;
  try {
    [now, past] = [await get('policy'), (await get('policy/history')).policies];
  } catch (err) {
    show(el, err.status === 404 ? null : h('p', { class: 'problem' }, err.message));
    return;
  }
  const text = h('pre', { class: 'payload', tabindex: 0, role: 'region', 'aria-label': 'Policy' }, visible(now.text));
  show(el, h('section', null, h('h2', null, 'Policy'),
    h('p', { class: 'dim' }, now.source === 'built in' ? 'The built-in one: you have written none yet.' : ident(now.source), ' ', h('code', { class: 'id' }, now.digest.slice(0, 19)), '…'),
    text, h('div', { class: 'row wrap' }, h('button', { id: 'policy-edit', click: () => edit(now.text) }, 'Change it…')),
    past.length ? h('details', null, h('summary', null, `${past.length} earlier`), h('ul', { class: 'plainlist' }, past.map((p) => h('li', null,
      'until ', dateTime(p.until), ' ', h('code', { class: 'id dim' }, p.digest.slice(0, 19)), '… ', h('button', { class: 'small', click: () => back(p) }, 'Go back to it…'))))) : null));

  async function back(p) {
    try {
      edit((await get(`policy/history/${encodeURIComponent(p.digest)}`)).text);
    } catch (err) {
      toast(err.message, true);
    }
  }

  function edit(start) {
    const field = h('textarea', { id: 'policy-text', rows: 24, spellcheck: 'false', dir: 'ltr', input: () => changed() });
    field.value = start;
    const result = h('div', { class: 'stack', role: 'status' });
    const check = h('button', { type: 'button', id: 'policy-check', click: () => look() }, 'Check it');
    const apply = h('button', { class: 'primary', id: 'policy-apply', disabled: true }, 'Apply');
    let good = null;
    function changed() {
      good = null;
      apply.disabled = true;
      show(result);
    }
    async function look() {
      const t = field.value;
      try {
        const { problems } = await post('policy/check', { text: t });
        if (t !== field.value) return;
        if (problems.length) {
          show(result, h('ul', { class: 'problem plainlist' }, problems.map((x) => h('li', null, x.line ? h('button', { type: 'button', class: 'small', click: () => go(x.line) }, `line ${x.line}`) : 'whole', ' ', visible(x.problem)))));
          return;
        }
        show(result, h('h3', null, 'Checked'), h('p', { class: 'holds' }, t === now.text ? 'It is valid, and what is in force.' : 'It is valid. This is what changes:'), t === now.text ? null : [beside(now.text, t, 'In force', 'Changed'), h('h3', null, 'What it would have changed'), replayBox(t, () => !result.isConnected)]);
        good = t;
        apply.disabled = t === now.text;
      } catch (err) {
        show(result, h('p', { class: 'problem' }, err.message));
      }
    }
    function go(line) {
      const at = field.value.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
      field.focus();
      field.setSelectionRange(at, at + (field.value.split('\n')[line - 1]?.length ?? 0));
    }
    const submit = async (e) => {
      e.preventDefault();
      if (good === null || good !== field.value) return look();
      apply.disabled = true;
      try {
        await post('policy', { text: good, base: now.digest });
        toast('The policy is in force from the next decision on.');
        policySection(el);
      } catch (err) {
        show(result, h('p', { class: 'problem', role: 'alert' }, err.message));
      }
    };
    show(el, h('section', null, h('h2', null, 'Policy'), h('form', { class: 'stack', submit }, h('label', { for: 'policy-text' }, 'The policy, as YAML'), field, result,
      h('div', { class: 'row end' }, h('button', { type: 'button', click: () => policySection(el) }, 'Cancel'), check, apply))));
    field.focus();
    field.setSelectionRange(0, 0);
  }
}
