import { show } from './dom.js'; export function overview(main) { show(main); return {}; }
