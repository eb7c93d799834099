import { show } from './dom.js'; export function decision(main) { show(main); return {}; }
