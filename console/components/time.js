// Times that stay true: `3 min ago` becomes `4 min ago` by itself. One clock for all of them, none while nobody looks.
import { h } from "../lib/dom.js";
import { absolute, duration, relative } from "../lib/format.js";

/** @type {Set<BtTime>} */
const shown = new Set();
/** @type {ReturnType<typeof setInterval> | undefined} */
let ticking;

function tick() {
  if (document.hidden) return;
  const now = Date.now();
  for (const one of shown) one.show(now);
}

export class BtTime extends HTMLElement {
  /** @type {() => string} */
  text = () => "";

  connectedCallback() {
    shown.add(this);
    ticking ??= setInterval(tick, 1000);
    this.show(Date.now());
  }

  disconnectedCallback() {
    shown.delete(this);
    if (shown.size === 0) {
      clearInterval(ticking);
      ticking = undefined;
    }
  }

  /** @param {number} _now */
  show(_now) {
    const text = this.text();
    if (this.textContent !== text) this.replaceChildren(text);
  }
}
customElements.define("bt-time", BtTime);

/** @param {string} title @param {() => string} text */
function live(title, text) {
  const element = /** @type {BtTime} */ (h("bt-time", { title }));
  element.text = text;
  return element;
}

/** How long ago, with the exact time as its title. @param {string | undefined | null} at @returns {HTMLElement | string} */
export function ago(at) {
  if (!at) return "–";
  return live(absolute(at), () => relative(at));
}

/** How long something took, or has taken so far. @param {string} from @param {string | null} [until] */
export function elapsed(from, until) {
  const start = Date.parse(from);
  const title = `since ${absolute(from)}${until ? ` until ${absolute(until)}` : ""}`;
  if (until) return h("span", { title }, duration(Date.parse(until) - start));
  return live(title, () => duration(Math.max(0, Date.now() - start)));
}
