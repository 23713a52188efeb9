// How sure somebody was, against how sure they had to be: a bar with a mark at the floor.
import { h } from "../../lib/dom.js";
import { share } from "./words.js";

/** @param {number} confidence @param {number | null} floor */
export function confidenceMeter(confidence, floor) {
  const low = floor !== null && confidence < floor;
  const text = floor === null ? `Confidence ${share(confidence)}` : `Confidence ${share(confidence)}, ${low ? "below" : "not below"} the floor of ${share(floor)}`;
  return h("div", { class: ["confidence", low && "low"] },
    h("span", { class: "cf-bar", role: "img", "aria-label": text },
      h("i", { style: { width: `${Math.round(confidence * 100)}%` } }),
      floor !== null && h("b", { style: { left: `${Math.round(floor * 100)}%` } })),
    h("span", { class: "small" }, h("strong", null, share(confidence)), floor !== null && h("span", { class: "muted" }, low ? ` is below ${share(floor)}: held` : ` (at least ${share(floor)})`)));
}
