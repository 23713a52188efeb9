// Memory and workspace are two ways to keep something: one is a click from the other.
import { h } from "../../lib/dom.js";
import { address, link } from "../../lib/router.js";

/** @param {"memory" | "workspace"} here */
export function keptNav(here) {
  const one = (/** @type {"memory" | "workspace"} */ id, /** @type {string} */ label) => link(address(`/${id}`), { class: "button small", "aria-current": id === here ? "page" : null }, label);
  return h("nav", { class: "kept-nav", "aria-label": "What is kept" }, one("memory", "Memory"), one("workspace", "Workspace"));
}
