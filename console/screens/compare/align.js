// Two logs side by side. What the host says is the same is taken as such; from where they part on, events are matched by
// what they are about, so that one more event on one side does not make everything after it look different. Pure.
import { diffText } from "../../lib/diff.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {{ kind: "same" | "changed" | "removed" | "added", a: RunEvent | null, b: RunEvent | null }} Pair `removed`: only in a */
/** @typedef {{ kind: "fold", pairs: Pair[] }} Fold */
/** @typedef {Pair | Fold} Row */

/** Names and clock readings differ between any two runs and say nothing. */
const SAYS_NOTHING = new Set(["eventId", "runId", "causationId", "correlationId", "timestamp", "observedAt", "occurredAt", "emittedAt", "writtenAt", "createdAt", "updatedAt", "_ts", "transport", "durationMs", "childRunId", "parentRunId", "memoryId", "invocationId"]);

/** What an event is about, whatever it says of it. @param {RunEvent} event */
function about({ type, nodeId, payload }) {
  const p = payload ?? {};
  return [type, nodeId ?? "", p.phase ?? "", p.workerId ?? "", p.toolName ?? "", p.name ?? "", p.channel ?? "", p.path ?? ""].join(" ").replaceAll("\n", " ");
}

/** What an event says, without what says nothing. @param {any} value @returns {any} */
export function told(value) {
  if (Array.isArray(value)) return value.map(told);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.keys(value).filter((name) => !SAYS_NOTHING.has(name)).sort().map((name) => [name, told(value[name])]));
}

/** @param {RunEvent} a @param {RunEvent} b */
export const saysTheSame = (a, b) => JSON.stringify(told(a.payload)) === JSON.stringify(told(b.payload));

/**
 * @param {RunEvent[]} a @param {RunEvent[]} b @param {number} same how many events at the beginning are known to be the same
 * @returns {Pair[]}
 */
export function align(a, b, same) {
  /** @type {Pair[]} */
  const pairs = [];
  for (let i = 0; i < same; i += 1) pairs.push({ kind: "same", a: a[i] ?? null, b: b[i] ?? null });
  const [restA, restB] = [a.slice(same), b.slice(same)];
  for (const line of diffText(restA.map(about).join("\n"), restB.map(about).join("\n"))) {
    const [left, right] = [line.before ? restA[line.before - 1] ?? null : null, line.after ? restB[line.after - 1] ?? null : null];
    // Where the host says that they part, they do, even if only names differ there.
    const parts = left?.sequence === same && right?.sequence === same;
    if (left && right) pairs.push({ kind: !parts && saysTheSame(left, right) ? "same" : "changed", a: left, b: right });
    else pairs.push({ kind: left ? "removed" : "added", a: left, b: right });
  }
  return pairs;
}

/** Folds stretches that are the same, but for a few around what differs. @param {Pair[]} pairs @param {number} [around] @returns {Row[]} */
export function folded(pairs, around = 2) {
  /** @type {Row[]} */
  const rows = [];
  for (let i = 0; i < pairs.length; i += 1) {
    let end = i;
    while (end < pairs.length && pairs[end]?.kind === "same") end += 1;
    const [from, to] = [i === 0 ? 0 : i + around, end === pairs.length ? end : end - around];
    if (to - from > 2) {
      rows.push(...pairs.slice(i, from), { kind: "fold", pairs: pairs.slice(from, to) }, ...pairs.slice(to, end));
      i = end - 1;
    } else rows.push(/** @type {Pair} */ (pairs[i]));
  }
  return rows;
}
