// What an approval unlocks, shown before it is given.
import { dialog, h, show } from './dom.js';
import { ident, visible } from './text.js';
import { now } from './api.js';
import { sentence } from './words.js';

/** approveDialog asks how far an approval goes; answer(grant) gives it. */
export function approveDialog(q, answer) {
  const f = q.flow;
  const scope = q.scope;
  const choice = (value, text, extra, checked) => h('label', { class: 'choice' },
    h('input', { type: 'radio', name: 'reach', value, checked, change: () => draw() }), h('span', null, text, extra));
  const uses = h('input', { id: 'uses', type: 'number', min: 1, max: 1000, value: 5, 'aria-label': 'How many further calls',
    focus: () => pick('uses') });
  const hours = h('select', { id: 'hours', 'aria-label': 'For how long', focus: () => pick('time') },
    [[0.25, '15 minutes'], [1, 'one hour'], [8, '8 hours']].map(([v, t]) => h('option', { value: v, selected: v === 1 }, t)));
  const unlocks = h('div', { class: 'unlocks' });
  const form = h('form', { method: 'dialog', submit },
    h('h2', null, 'Approve?'),
    h('p', { class: 'lead' }, sentence(f)),
    h('fieldset', null, h('legend', { class: 'sr' }, 'How far it goes'),
      choice('once', 'Once', null, true),
      scope ? [choice('uses', 'Once, and ', [uses, ' more times']),
        f.session?.id ? choice('session', 'Up to 1000 times in this session', null) : null,
        choice('time', 'Up to 1000 times for ', hours)] : null),
    unlocks,
    h('p', { class: 'problem', role: 'alert' }),
    h('div', { class: 'row end' }, h('button', { type: 'button', click: () => el.close() }, 'Cancel'), h('button', { class: 'primary', autofocus: true }, 'Approve')));
  const el = dialog('Approve', form);
  el.querySelector('button.primary').focus();

  const reach = () => form.elements.reach.value;
  function pick(value) {
    form.elements.reach.value = value;
    draw();
  }

  function draw() {
    const wide = reach() !== 'once';
    const rows = wide ? [
      ['Agent', scope.agent], ['Tool', scope.tool], ['Kind', scope.sink_kind], ['Target', scope.sink[0]], ['Action', scope.sink[1]],
      ['Destination', scope.sink[2]], ['Workspace', scope.sink[3]]].filter(([, v]) => v) : [];
    show(unlocks,
      h('h3', null, 'This unlocks'),
      wide ? h('div', null, h('p', null, 'exactly the call that waits, and further calls where all of this is the same:'),
        h('dl', { class: 'facts' }, rows.map(([k, v]) => [h('dt', null, k), h('dd', null, ident(v))]),
          h('dt', null, 'Command'), h('dd', null, h('pre', { class: 'command' }, visible(scope.command.slice(0, 2000)))),
          f.session?.id && reach() === 'session' ? [h('dt', null, 'Session'), h('dd', null, ident(f.session.id))] : null))
        : h('p', null, 'exactly the payload that you see, into exactly this target, one time, when the agent tries again within ten minutes. Nothing else.'),
      scope ? null : h('p', { class: 'note' }, q.hard
        ? 'A hard rule matched, so it can only be approved one call at a time.'
        : 'What it would run can run other things, or its payload can’t be told from others like it, so it can only be approved one call at a time.'),
    );
  }

  async function submit(e) {
    e.preventDefault();
    let grant;
    if (reach() === 'uses') grant = { uses: Math.min(1000, Math.max(1, Number(uses.value) || 1)) };
    if (reach() === 'session') grant = { session: true };
    if (reach() === 'time') grant = { until: new Date(now() + Number(hours.value) * 3600e3).toISOString() };
    const button = el.querySelector('button.primary');
    button.disabled = true;
    try {
      await answer(grant);
      el.close();
    } catch (err) {
      button.disabled = false;
      if (err.status === 409 || err.status === 404) el.close();
      else form.querySelector('.problem').textContent = err.message;
    }
  }
  draw();
}
