// What a screen shows while it has nothing to show: loading, empty, an error. All have a next step.
import { h } from "../lib/dom.js";
import { asApiError } from "../lib/error.js";

/** Grey lines where content will be. @param {number} [lines] */
export function loading(lines = 6) {
  const widths = ["62%", "84%", "47%", "73%", "56%", "90%"];
  return h("div", { class: "page", role: "status", "aria-label": "Loading" },
    Array.from({ length: lines }, (_, i) => h("span", { class: "skeleton", style: { width: widths[i % widths.length] ?? "60%" } })));
}

/** @param {string} title @param {...import("../lib/dom.js").Child} more what it means and what to do */
export function empty(title, ...more) {
  return h("div", { class: "state" }, h("h2", null, title), ...more.map((one) => (typeof one === "string" ? h("p", { class: "muted" }, one) : one)));
}

/** @param {unknown} error @param {() => void} [again] */
export function failed(error, again) {
  const { message, hint, code } = asApiError(error);
  return h("div", { class: "state", role: "alert" },
    h("h2", null, message),
    hint && h("p", { class: "muted" }, hint),
    code && h("p", { class: "muted small mono" }, code),
    again && h("button", { type: "button", onClick: again }, "Try again"));
}
