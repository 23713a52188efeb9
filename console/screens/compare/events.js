// The events of both, side by side. A row opens to what differs in it; stretches that are the same are folded.
import { jsonDiff } from "../../components/diff-view.js";
import { jsonView } from "../../components/json-view.js";
import { h } from "../../lib/dom.js";
import { number, plural } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { factOf, nameOf, toneOf } from "../run/words.js";
import { align, folded, saysTheSame, told } from "./align.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
const PART = 200;
const WORDS = { same: "the same", changed: "differs", removed: "only in A", added: "only in B" };

/** @param {RunEvent[]} a @param {RunEvent[]} b @param {number | null} parted the first sequence that differs */
export function eventsView(a, b, parted) {
  const same = Math.min(parted ?? Math.min(a.length, b.length), a.length, b.length);
  const rows = folded(align(a, b, same));
  const list = h("ol", { class: "cmp-rows", "aria-label": "Events of both runs" });
  let first = true;
  const draw = (/** @type {import("./align.js").Row} */ row) => {
    if (row.kind === "fold") return fold(row);
    const here = first && row.kind !== "same";
    if (here) first = false;
    return pair(row, here);
  };
  const more = (/** @type {number} */ from) => {
    list.append(...rows.slice(from, from + PART).map(draw));
    const left = rows.length - from - PART;
    if (left <= 0) return;
    const item = h("li", null, h("button", { type: "button", class: "small", onClick: () => (item.remove(), more(from + PART)) }, `Show ${number(Math.min(PART, left))} more of ${number(left)}`));
    list.append(item);
  };
  more(0);
  return list;
}

/** @param {import("./align.js").Fold} row @returns {HTMLElement} */
function fold({ pairs }) {
  const [from, to] = [pairs[0]?.a?.sequence ?? 0, pairs.at(-1)?.a?.sequence ?? 0];
  const item = h("li", null, h("button", { type: "button", class: "cmp-fold quiet small", onClick: () => item.replaceWith(...pairs.slice(0, PART).map((one) => pair(one, false)), ...(pairs.length > PART ? [fold({ kind: "fold", pairs: pairs.slice(PART) })] : [])) },
    `${plural(pairs.length, "event")} the same, #${number(from)} to #${number(to)}`));
  return item;
}

/** @param {import("./align.js").Pair} row @param {boolean} first where they part */
function pair(row, first) {
  const { kind, a, b } = row;
  const details = h("details", { class: ["cmp-row", kind, first && "parts"], id: first ? "parting" : null },
    h("summary", null,
      h("span", { class: "cmp-sign", title: WORDS[kind] }, { same: "", changed: "≠", removed: "−", added: "+" }[kind], h("span", { class: "visually-hidden" }, WORDS[kind])),
      side(a, "A"), side(b, "B")));
  // Drawn when it is first opened: most rows never are.
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(inside(row));
  });
  return h("li", null, details);
}

/** @param {RunEvent | null} event @param {string} name */
function side(event, name) {
  if (!event) return h("span", { class: "cmp-side none" }, h("span", { class: "visually-hidden" }, `nothing in ${name}`));
  return h("span", { class: ["cmp-side", toneOf(event)] }, h("span", { class: "at" }, number(event.sequence)), h("span", { class: "cmp-name" }, nameOf(event)), h("span", { class: "cmp-fact clip" }, event.nodeId && h("span", { class: "muted" }, `${event.nodeId} `), factOf(event)));
}

/** @param {import("./align.js").Pair} row */
function inside({ kind, a, b }) {
  const go = (/** @type {RunEvent | null} */ event, /** @type {string} */ name) => event && link(address("/runs/:runId", { runId: event.runId }, { seq: event.sequence }), null, `#${number(event.sequence)} in ${name}`);
  return h("div", { class: "cmp-inside" },
    h("div", { class: "row wrap small" }, go(a, "A"), go(b, "B")),
    a && b ? (kind === "same" ? jsonView(a.payload, 2) : saysTheSame(a, b) ? jsonDiff(a.payload, b.payload) : jsonDiff(told(a.payload), told(b.payload))) : jsonView((a ?? b)?.payload, 2));
}
