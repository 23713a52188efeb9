// What was asked for, in its place: grey lines at first, then the answer, or why there is none.
import { h } from "../lib/dom.js";
import { failed } from "./states.js";

/**
 * @template T
 * @param {import("../lib/asked.js").Asked<T>} asked
 * @param {(value: T) => import("../lib/dom.js").Child} draw
 */
export function askedView(asked, draw) {
  return h("div", { class: "asked", "aria-busy": () => (asked.busy.value ? "true" : null) }, () => {
    const [value, error] = [asked.value.value, asked.error.value];
    if (error !== null) return failed(error, asked.again);
    if (value !== null) return [draw(value)];
    return [() => asked.busy.value && lines()];
  });
}

/** Lower than `loading()`: a panel is not a page. */
export function lines() {
  return h("div", { class: "stack", role: "status", "aria-label": "Loading" },
    ["46%", "72%", "58%"].map((width) => h("span", { class: "skeleton", style: { width } })));
}
