import { show } from './dom.js'; export function feed(main) { show(main); return {}; }
