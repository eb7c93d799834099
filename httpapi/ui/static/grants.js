// Wider approvals that are in force, each with its way back.
import { h, show, toast } from './dom.js';
import { get, post, Offline } from './api.js';
import { ident } from './text.js';
import { left } from './words.js';

/** grants draws the list into el. */
export async function grants(el) {
  let list;
  try {
    list = (await get('grants')).grants;
  } catch (err) {
    if (!(err instanceof Offline)) show(el);
    return;
  }
  const revoke = async (g) => {
    try {
      await post(`grants/${encodeURIComponent(g.id)}/revoke`);
      toast('Revoked. It asks again from now on.');
    } catch (err) {
      toast(err.message, true);
    }
    grants(el);
  };
  show(el, list.length ? [h('h2', null, 'Allowed without asking'), h('ul', null, list.map((g) => h('li', { class: 'grant' },
    h('span', { class: 'what' }, ident(g.scope.command, 60)),
    h('span', { class: 'meta' }, [g.scope.agent, g.scope.tool].filter(Boolean).map((x) => [ident(x, 30), ' ']), `${g.uses} left, used ${g.used}`, ' · ', `${left(g.until)} left`,
      g.this_session ? ' · one session' : null),
    h('button', { class: 'quiet small', click: () => revoke(g) }, 'Revoke'))))] : null);
}
