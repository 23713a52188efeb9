// Any JSON value as a tree that opens where it is clicked. Nothing is drawn before it is opened and long lists come in
// parts, so the size of a value does not matter.
import { h } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";

const PART = 100;
const LONG = 600;

/** @param {unknown} value @returns {value is object} */
const opens = (value) => typeof value === "object" && value !== null && Object.keys(value).length > 0;

export class BtJson extends HTMLElement {
  /** @private @type {unknown} */
  shown = undefined;
  /** How many levels are open at first. */
  depth = 2;

  connectedCallback() {
    if (this.hasAttribute("role")) return;
    this.setAttribute("role", "tree");
    this.addEventListener("keydown", (event) => this.press(event));
  }

  get value() {
    return this.shown;
  }

  set value(value) {
    this.shown = value;
    this.replaceChildren(this.item(null, value, 0));
    this.querySelector("[role=treeitem]")?.setAttribute("tabindex", "0");
  }

  /** @private @param {string | null} name @param {unknown} value @param {number} level @returns {HTMLElement} */
  item(name, value, level) {
    const item = h("div", { role: "treeitem", tabindex: "-1" });
    const line = h("span", { class: "jv-line" }, name !== null && h("span", { class: "jv-key" }, name), name !== null && ": ");
    item.append(line);
    if (!opens(value)) {
      line.append(...leaf(value));
      return item;
    }
    line.classList.add("opens");
    line.append(h("span", { class: "jv-sum" }, summary(value)));
    item.setAttribute("aria-expanded", "false");
    line.addEventListener("click", () => this.toggle(item));
    Object.assign(item, { fillIn: () => this.children_(value, level + 1) });
    // A very wide value stays closed: opening it is cheap, drawing it unasked is not.
    if (level < this.depth && Object.keys(value).length <= PART) this.toggle(item, true);
    return item;
  }

  /** @private @param {object} value @param {number} level */
  children_(value, level) {
    const group = h("div", { role: "group" });
    const entries = Object.entries(value);
    const more = (/** @type {number} */ from) => {
      for (const [name, inner] of entries.slice(from, from + PART)) group.append(this.item(name, inner, level));
      const left = entries.length - from - PART;
      if (left <= 0) return;
      const button = h("button", { type: "button", class: "small quiet", onClick: () => (button.remove(), more(from + PART)) }, `Show ${number(Math.min(PART, left))} more of ${number(left)}`);
      group.append(button);
    };
    more(0);
    return group;
  }

  /** @private @param {HTMLElement} item @param {boolean} [open] */
  toggle(item, open = item.getAttribute("aria-expanded") !== "true") {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(open));
    const group = item.querySelector(":scope > [role=group]");
    if (open && !group) item.append(/** @type {any} */ (item).fillIn());
    else if (!open) group?.remove();
  }

  /** @private @param {KeyboardEvent} event */
  press(event) {
    const item = event.target instanceof HTMLElement ? event.target.closest("[role=treeitem]") : null;
    if (!(item instanceof HTMLElement) || event.target !== item) return;
    const all = /** @type {HTMLElement[]} */ ([...this.querySelectorAll("[role=treeitem]")]);
    const at = all.indexOf(item);
    const open = item.getAttribute("aria-expanded");
    /** @type {HTMLElement | null | undefined} */
    let to;
    if (event.key === "ArrowDown") to = all[at + 1];
    else if (event.key === "ArrowUp") to = all[at - 1];
    else if (event.key === "Home") to = all[0];
    else if (event.key === "End") to = all.at(-1);
    else if (event.key === "ArrowRight" && open === "false") this.toggle(item, true);
    else if (event.key === "ArrowRight") to = all[at + 1];
    else if (event.key === "ArrowLeft" && open === "true") this.toggle(item, false);
    else if (event.key === "ArrowLeft") to = item.parentElement?.closest("[role=treeitem]");
    else if (event.key === "Enter" || event.key === " ") this.toggle(item);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    item.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }
}
customElements.define("bt-json", BtJson);

/** @param {unknown} value @returns {HTMLElement[]} */
function leaf(value) {
  if (typeof value !== "string") {
    const text = value !== null && typeof value === "object" ? (Array.isArray(value) ? "[]" : "{}") : String(value);
    return [h("span", { class: `jv-${value === null || typeof value === "object" ? "null" : typeof value === "boolean" ? String(value) : "number"}` }, text)];
  }
  const text = h("span", { class: "jv-string" }, JSON.stringify(value.slice(0, LONG)));
  if (value.length <= LONG) return [text];
  const button = h("button", { type: "button", class: "small quiet", onClick: (/** @type {Event} */ event) => {
    event.stopPropagation();
    text.textContent = JSON.stringify(value);
    button.remove();
  } }, `Show all ${number(value.length)} characters`);
  return [text, button];
}

/** @param {object} value */
function summary(value) {
  if (Array.isArray(value)) return `[ ${plural(value.length, "item")} ]`;
  const names = Object.keys(value);
  const some = names.slice(0, 4).join(", ");
  return `{ ${some.slice(0, 60)}${names.length > 4 || some.length > 60 ? ", …" : ""} }`;
}

/** @param {unknown} value @param {number} [depth] levels open at first */
export function jsonView(value, depth = 2) {
  const view = /** @type {BtJson} */ (document.createElement("bt-json"));
  view.depth = depth;
  view.value = value;
  return view;
}
