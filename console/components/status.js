// How a status looks: a shape, a colour and a word. The shapes differ, so that the colour is not needed.
import { h, svg } from "../lib/dom.js";
import { statusWord } from "../lib/format.js";

const line = { fill: "none", stroke: "currentColor", "stroke-width": 1.8, "stroke-linecap": "round", "stroke-linejoin": "round" };
const ring = () => svg("circle", { cx: 8, cy: 8, r: 6.1, ...line });
const disc = () => svg("circle", { cx: 8, cy: 8, r: 7, fill: "currentColor" });
/** @param {string} d @param {object} [more] */
const path = (d, more) => svg("path", { d, ...line, ...more });
const cut = { stroke: "var(--surface)" };

/** @type {Record<string, () => SVGElement[]>} */
const SHAPES = {
  // A tick in a disc, a cross in a diamond, a struck ring: how a run ended.
  completed: () => [disc(), path("m5 8.2 2.1 2.1L11 6.2", cut)],
  failed: () => [svg("path", { d: "M8 .8 15.2 8 8 15.2.8 8Z", fill: "currentColor" }), path("m6 6 4 4m0-4-4 4", cut)],
  cancelled: () => [ring(), path("m4 12 8-8")],
  running: () => [svg("circle", { cx: 8, cy: 8, r: 6.1, ...line, opacity: 0.28 }), path("M8 1.9A6.1 6.1 0 0 1 14.1 8", { class: "spin" })],
  cancelling: () => [svg("circle", { cx: 8, cy: 8, r: 6.1, ...line, "stroke-dasharray": "2 3" }), path("m5.5 10.5 5-5")],
  pending: () => [svg("circle", { cx: 8, cy: 8, r: 6.1, ...line, "stroke-dasharray": "1 3" })],
  paused: () => [ring(), path("M6.4 5.7v4.6m3.2-4.6v4.6")],
  // Whoever waits for somebody outside is a filled square.
  waiting: () => [svg("rect", { x: 1.5, y: 1.5, width: 13, height: 13, rx: 3, fill: "currentColor" }), path("M8 4.6v4", cut), svg("circle", { cx: 8, cy: 11.4, r: 1.1, fill: "var(--surface)" })],
};

/** @type {Record<string, "good" | "bad" | "wait" | "live" | "idle">} */
const TONES = { completed: "good", failed: "bad", running: "live", pending: "live", retrying: "live", suspended: "wait", paused: "idle", cancelled: "idle", cancelling: "idle", skipped: "idle" };
/** Nodes have words of their own. @type {Record<string, string>} */
const SAME = { suspended: "waiting", retrying: "running", skipped: "cancelled" };

/** @param {string} status */
const kindOf = (status) => (status.startsWith("waiting") ? "waiting" : SAME[status] ?? status);

/** @param {string} status */
export function tone(status) {
  return status.startsWith("waiting") ? "wait" : TONES[status] ?? "idle";
}

/** @param {string} status of a run or a node @param {{ word?: boolean }} [options] */
export function statusMark(status, { word = true } = {}) {
  const shape = (SHAPES[kindOf(status)] ?? SHAPES.pending)?.() ?? [];
  return h("span", { class: ["status", tone(status)], title: word ? null : statusWord(status) },
    svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, ...shape),
    h("span", { class: word ? "word" : "visually-hidden" }, statusWord(status)));
}

/** A bar that says how much is used. @param {number} used @param {number} limit @param {string} text for its title */
export function meter(used, limit, text) {
  const share = limit > 0 ? used / limit : used > 0 ? 1 : 0;
  const state = share >= 1 ? "over" : share >= 0.8 ? "near" : "";
  return h("span", { class: ["meter", state], role: "img", "aria-label": text, title: text },
    h("i", { style: { width: `${Math.min(100, Math.round(share * 100))}%` } }));
}
