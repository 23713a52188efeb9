// `j` and `k` for lists that are short enough not to be virtual: the links of the rows are what is focused.
import { onEnd } from "../lib/signal.js";

/** @param {HTMLElement} root @param {string} selector what a row is focused by @param {string} group @returns {import("../lib/keys.js").Command[]} */
export function rowKeys(root, selector, group = "List") {
  const move = (/** @type {1 | -1} */ by) => {
    const rows = /** @type {HTMLElement[]} */ ([...root.querySelectorAll(selector)]);
    const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by))];
    to?.focus();
    to?.scrollIntoView({ block: "nearest" });
  };
  return [
    { keys: "j", label: "Next row", group, run: () => move(1) },
    { keys: "k", label: "Previous row", group, run: () => move(-1) },
  ];
}

/** `/` finds. @param {HTMLInputElement} field @returns {import("../lib/keys.js").Command} */
export function findKey(field) {
  const leave = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && field.blur();
  field.addEventListener("keydown", leave);
  onEnd(() => field.removeEventListener("keydown", leave));
  return { keys: "/", label: "Find", group: "List", run: () => (field.focus(), field.select()) };
}
