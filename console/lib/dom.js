// Elements, made by calls: text is always text, so nothing that a run wrote can become markup.
import { effect, signal } from "./signal.js";

/** @typedef {Node | string | number | null | undefined | false} Leaf */
/** @typedef {Leaf | Child[] | (() => Child)} Child */
/** @typedef {Record<string, any>} Props */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `onClick` and the like listen; `class` takes a text, a list or a map of flags; `dataset` and `style` take
 * maps (styles are set by script, which the page's policy allows); other names are attributes, or properties where
 * they begin with a dot. A function in the place of a value or a child follows the signals it reads.
 * @template {keyof HTMLElementTagNameMap | (string & {})} K
 * @param {K} tag @param {Props | null} [props] @param {...Child} children
 * @returns {K extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[K] : HTMLElement}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return /** @type {any} */ (element);
}

/** The same for SVG. @param {string} tag @param {Props | null} [props] @param {...Child} children @returns {SVGElement} */
export function svg(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return /** @type {SVGElement} */ (element);
}

/** @param {Element} element @param {string} name @param {any} value */
function set(element, name, value) {
  if (name.startsWith("on") && typeof value === "function") {
    element.addEventListener(name.slice(2).toLowerCase(), value);
  } else if (name === "ref") {
    value(element);
  } else if (typeof value === "function") {
    effect(() => put(element, name, value()));
  } else {
    put(element, name, value);
  }
}

/** @param {Element} element @param {string} name @param {any} value */
function put(element, name, value) {
  if (name === "class") element.setAttribute("class", classes(value));
  else if (name === "dataset") Object.assign(/** @type {HTMLElement} */ (element).dataset, value);
  else if (name === "style") {
    const style = /** @type {HTMLElement} */ (element).style;
    for (const [property, text] of Object.entries(value ?? {})) style.setProperty(property, text);
  } else if (name.startsWith(".")) /** @type {any} */ (element)[name.slice(1)] = value;
  else if (name === "value" && "value" in element) /** @type {any} */ (element).value = value ?? "";
  else if (name === "checked" && "checked" in element) /** @type {any} */ (element).checked = Boolean(value);
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** @param {any} value @returns {string} */
function classes(value) {
  if (Array.isArray(value)) return value.map(classes).filter(Boolean).join(" ");
  if (value && typeof value === "object") return Object.keys(value).filter((name) => value[name]).join(" ");
  return value ? String(value) : "";
}

/** @param {Node} parent @param {Child[]} children */
export function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else if (typeof child === "function") follow(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** What is pressed now, until the click has come of it. @type {Node | null} */
let pressed = null;
const letGo = signal(0);
const release = () => setTimeout(() => {
  pressed = null;
  letGo.value += 1;
});
globalThis.addEventListener?.("pointerdown", ({ button, target }) => (pressed = button === 0 ? /** @type {Node} */ (target) : null), true);
for (const end of ["pointerup", "pointercancel"]) globalThis.addEventListener?.(end, release, true);
// Browsers keep the end of a press to themselves where they opened something of their own, such as a menu.
globalThis.addEventListener?.("pointermove", ({ buttons }) => pressed && buttons === 0 && release(), true);
globalThis.addEventListener?.("blur", release);

/** A stretch of children that is made anew whenever what it read has changed. @param {Node} parent @param {() => Child} make */
function follow(parent, make) {
  const end = document.createComment("");
  parent.appendChild(end);
  /** @type {ChildNode[]} */
  let shown = [];
  effect(() => {
    const made = document.createDocumentFragment();
    const value = make();
    // What is pressed is not taken away: the click would be lost. It is made anew when it is let go.
    if (pressed && shown.some((node) => node.contains(pressed))) return void letGo.value;
    // What is shown again goes first and comes back with the rest.
    for (const node of shown) node.remove();
    append(made, Array.isArray(value) ? value : [value]);
    shown = [...made.childNodes];
    end.before(made);
  });
}

/** Empties an element and fills it. @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** @param {unknown} target @returns {boolean} whether typing there is typing */
export function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "range"].includes(target.type);
}

let made = 0;
/** An id for `aria-labelledby` and its like. @param {string} prefix */
export function uid(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}
