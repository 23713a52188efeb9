// A part of the page with its name, and what is said where a key may not see it.
import { h } from "../../lib/dom.js";

/** @param {import("../../lib/dom.js").Child} title @param {...import("../../lib/dom.js").Child} children @returns {HTMLElement} */
export function card(title, ...children) {
  return h("section", { class: "card sys-card" }, h("h2", null, title), ...children);
}

/** @param {string} title */
export const closed = (title) => card(title, h("p", { class: "muted" }, "Only for keys with the scope ", h("code", null, "audit:read"), ": this concerns every tenant of the host."));
