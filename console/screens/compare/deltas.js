// What two runs came to, side by side: time, tokens, money, calls. Counted from their logs.
import { h } from "../../lib/dom.js";
import { cost, duration, number, shortId, tokens } from "../../lib/format.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {{ ms: number, events: number, turns: number, models: number, tokens: number, usd: number | null, tools: number, failed: number, children: number, answers: number }} Figures */

/**
 * From a sequence on, so that a fork is not credited with what it shares.
 * @param {RunEvent[]} events @param {number} from @param {string | undefined} begun when it began to go its own way @returns {Figures}
 */
export function figuresOf(events, from, begun) {
  /** @type {Figures} */
  const sum = { ms: 0, events: 0, turns: 0, models: 0, tokens: 0, usd: null, tools: 0, failed: 0, children: 0, answers: 0 };
  for (let i = from; i < events.length; i += 1) {
    const { type, payload } = /** @type {RunEvent} */ (events[i]);
    sum.events += 1;
    if (type === "runOrchestrator.decided") sum.turns += 1;
    else if (type === "agent.toolCalled") sum.tools += 1;
    else if (type === "agent.toolReturned" && payload.error) sum.failed += 1;
    else if (type === "node.dispatched") sum.children += 1;
    else if (type === "interrupt.resolved") sum.answers += 1;
    else if (type === "provider.usage") {
      sum.models += 1;
      sum.tokens += payload.totalTokens ?? (payload.inputTokens ?? 0) + (payload.outputTokens ?? 0);
      if (typeof payload.costEstimateUsd === "number") sum.usd = (sum.usd ?? 0) + payload.costEstimateUsd;
    }
  }
  const last = events.at(-1);
  const first = begun ?? events[from]?.timestamp;
  if (last && first && events.length > from) sum.ms = Math.max(0, Date.parse(last.timestamp) - Date.parse(first));
  return sum;
}

/** @type {[keyof Figures, string, (value: any) => string][]} */
const ROWS = [
  ["ms", "Duration", duration], ["events", "Events", number], ["turns", "Turns", number], ["models", "Model calls", number], ["tokens", "Tokens", tokens],
  ["usd", "Cost", cost], ["tools", "Tool calls", number], ["failed", "Failed calls", number], ["children", "Child runs", number], ["answers", "Answers", number],
];

/** @param {Figures} a @param {Figures} b @param {string} aId @param {string} bId */
export function deltaTable(a, b, aId, bId) {
  const rows = ROWS.filter(([name]) => a[name] || b[name]);
  return h("table", { class: "dense deltas" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, h("span", { class: "visually-hidden" }, "Figure")), h("th", { scope: "col", class: "num", title: aId }, "A ", h("span", { class: "mono roomy" }, shortId(aId))), h("th", { scope: "col", class: "num", title: bId }, "B ", h("span", { class: "mono roomy" }, shortId(bId))), h("th", { scope: "col", class: "num" }, "B − A"))),
    h("tbody", null, rows.map(([name, label, write]) => h("tr", null, h("th", { scope: "row" }, label), h("td", { class: "num" }, write(a[name])), h("td", { class: "num" }, write(b[name])), h("td", { class: "num" }, delta(a[name], b[name], write))))));
}

/** @param {number | null} a @param {number | null} b @param {(value: any) => string} write */
function delta(a, b, write) {
  if (a === null || b === null) return "–";
  const by = b - a;
  if (by === 0) return h("span", { class: "muted" }, "=");
  const share = a > 0 ? ` (${by > 0 ? "+" : "−"}${number(Math.abs(Math.round((by / a) * 100)))} %)` : "";
  return h("span", null, `${by > 0 ? "+" : "−"}${write(Math.abs(by))}`, h("span", { class: "muted roomy" }, share));
}
