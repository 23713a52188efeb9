// What is kept, by class, and how it grows.
import { h } from "../../lib/dom.js";
import { bytes, duration, number } from "../../lib/format.js";
import { bar, card, closed } from "./facts.js";

/** @typedef {NonNullable<import("../../types.js").SystemReport["operator"]>["storage"]} Storage */
const HOUR = 3_600_000;

/** @param {{ storage: Storage, startedAt: string, now: string } | null} kept @param {import("../../types.js").SystemReport | null} first what the page saw first */
export function storageCard(kept, first) {
  if (!kept) return closed("Storage");
  const { storage, startedAt, now } = kept;
  const up = Date.parse(`${now}:00Z`) - Date.parse(startedAt);
  const most = Math.max(1, ...storage.classes.map((one) => one.bytes));
  const was = new Map(first?.operator?.storage.classes.map((one) => [one.class, one.bytes]));
  const sign = (/** @type {number} */ by) => `${by < 0 ? "−" : "+"}${bytes(Math.abs(by))}`;
  // A store may not say how large it is.
  const { bytes: size, grownBytes: grownBy } = storage;
  return card(["Storage ", h("span", { class: "muted" }, size === undefined ? storage.kind : `${bytes(size)} in ${storage.kind}`)],
    grownBy !== undefined && h("p", { class: "muted" }, grownBy === 0 ? "It has not grown since the start." : `${sign(grownBy)} since the start`,
      // A rate from a few minutes would be a guess.
      grownBy !== 0 && up >= HOUR && `, about ${sign(grownBy / (up / (24 * HOUR)))} a day over ${duration(up)}`),
    h("table", { class: "dense sys-storage" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Class"), h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Share")), h("th", { scope: "col", class: "num" }, "About"), h("th", { scope: "col", class: "num" }, "Count"), h("th", { scope: "col", class: "num", title: "Since this page was opened" }, "Growth"))),
      h("tbody", null, storage.classes.toSorted((a, b) => b.bytes - a.bytes).map((one) => {
        const grown = one.bytes - (was.get(one.class) ?? one.bytes);
        return h("tr", { class: one.count === 0 ? "quiet-row" : "" }, h("td", null, one.class), h("td", { class: "sys-bar-cell" }, bar(one.bytes / most)), h("td", { class: "num" }, bytes(one.bytes)), h("td", { class: "num" }, number(one.count)), h("td", { class: "num muted" }, grown === 0 ? "–" : sign(grown)));
      }))),
    h("p", { class: "muted small" }, "Classes are estimates of their contents; the sum is the file, with indexes and free pages. Growth is since this page was opened."));
}
