// One event, one line: sequence, time since the start, name, node, and the fact that matters most.
import { h } from "../../lib/dom.js";
import { absolute, duration } from "../../lib/format.js";
import { stateOf } from "./calls.js";
import { factOf, nameOf, toneOf } from "./words.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */

/** What is known of a call, as a sign and a word. @type {Record<import("./calls.js").CallState, [string, string]>} */
const STATES = { open: ["…", "under way"], done: ["✓", "done"], failed: ["✕", "failed"], unknown: ["?", "unknown"], retried: ["↻", "called again"] };
/** Shapes beside the colour. */
const SIGNS = { bad: "✕", wait: "■", good: "✓", off: "–", "": "" };

/** A length of time with the digits that tell neighbours apart. @param {number} ms */
export function fine(ms) {
  if (ms < 100) return `${ms.toFixed(ms < 10 ? 2 : 1)}\u202fms`;
  return ms < 1000 || ms >= 60_000 ? duration(ms) : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)}\u202fs`;
}

/** A moment of the run: `0.12 ms`, `3.20 s`, `3:04.118`, `26:03:04`. @param {number} ms @param {number} [step] how far apart moments are */
export function moment(ms, step = 1) {
  if (ms < 60_000) return fine(ms);
  const two = (/** @type {number} */ n) => String(Math.floor(n)).padStart(2, "0");
  const digits = step >= 1000 ? 0 : step >= 10 ? 2 : 3;
  const seconds = digits > 0 && ms < 3_600_000 ? ((ms / 1000) % 60).toFixed(digits).padStart(digits + 3, "0") : two((ms / 1000) % 60);
  return ms < 3_600_000 ? `${Math.floor(ms / 60_000)}:${seconds}` : `${Math.floor(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${seconds}`;
}

/** `+0.12 ms`. @param {number} ms */
export const sinceStart = (ms) => `+${moment(ms)}`;

/**
 * @param {import("./log.js").Log} log @param {number} seq @param {import("./views.js").ViewId} view @param {number} now the playhead
 * @returns {HTMLElement}
 */
export function eventRow(log, seq, view, now) {
  const event = log.at(seq);
  if (!event) return h("div", { class: "ev" });
  const { facts } = log;
  const call = facts.calls.bySeq.get(seq);
  const group = view === "compact" ? facts.pairs.groups.get(seq) : undefined;
  const endSeq = group?.endSeq ?? (view === "effects" && call ? call.endSeq : -1);
  // A pair that has not come back at the playhead shows its beginning only.
  const ended = endSeq > seq && endSeq <= now ? log.at(endSeq) ?? null : null;
  const state = call ? stateOf(call, view === "effects" || view === "compact" ? Math.max(now, seq) : seq) : null;
  const tone = state === "unknown" ? "wait" : toneOf(ended ?? event);
  const [start = 0, at = 0] = [facts.times[0], facts.times[seq]];
  const took = tookMs(log, seq, view, ended, call, now);
  const fact = ended ? joined(event, ended) : factOf(event);
  return h("div", { class: ["ev", tone], dataset: { seq: String(seq) } },
    h("span", { role: "gridcell", class: "ev-seq" }, seq),
    h("span", { role: "gridcell", class: "ev-at", title: absolute(event.timestamp) }, sinceStart(at - start)),
    h("span", { role: "gridcell", class: "ev-name clip", title: event.type, style: group ? { "padding-inline-start": `${group.depth * 0.75}rem` } : null },
      SIGNS[tone] && h("span", { class: "ev-sign", "aria-hidden": "true" }, SIGNS[tone]), group || view === "effects" ? groupName(event) : nameOf(event)),
    h("span", { role: "gridcell", class: "ev-node clip" }, event.nodeId ?? ""),
    h("span", { role: "gridcell", class: "ev-fact clip", title: fact }, fact),
    h("span", { role: "gridcell", class: "ev-more" },
      state && seq <= now && h("span", { class: ["call-state", state] }, h("span", { "aria-hidden": "true" }, STATES[state][0]), ` ${STATES[state][1]}`),
      took !== null && took >= 0.005 && h("span", { class: "ev-took" }, fine(took))));
}

/** How long what a row is about took, when it is over and took any time. @param {import("./log.js").Log} log @param {number} seq @param {string} view @param {RunEvent | null} ended @param {import("./calls.js").Call | undefined} call @param {number} now */
function tookMs(log, seq, view, ended, call, now) {
  const { times } = log.facts;
  if (ended) return (times[ended.sequence] ?? 0) - (times[seq] ?? 0);
  const event = log.at(seq);
  if (event?.type === "agent.toolReturned" && typeof event.payload.durationMs === "number") return event.payload.durationMs;
  if (!call || call.endSeq < 0 || call.endSeq > now || (view !== "effects" && call.endSeq !== seq)) return null;
  return (times[call.endSeq] ?? 0) - (times[call.seq] ?? 0);
}

/** A pair by the name of what it is. @param {RunEvent} event */
function groupName(event) {
  switch (event.type) {
    case "node.started": return "node";
    case "agent.invocation.started": return "agent";
    case "agent.toolCalled": return "tool";
    case "interrupt.requested": return "asked";
    case "core.workflowChain.event": return event.payload.phase === "dispatch.began" ? "worker" : nameOf(event);
    default: return nameOf(event);
  }
}

/** Both halves in one line. @param {RunEvent} start @param {RunEvent} end */
function joined(start, end) {
  switch (start.type) {
    case "node.started": {
      const result = factOf(end);
      const how = end.type === "node.completed" ? "" : `${end.type.slice(5)} `;
      return result || how ? `${start.payload.typeId} → ${how}${result}` : start.payload.typeId;
    }
    case "agent.toolCalled": return `${factOf(start)} → ${end.payload.error ? factOf(end) : factOf(end).slice(String(end.payload.toolName ?? "").length + 1)}`;
    case "core.workflowChain.event": return factOf(end);
    default: return `${factOf(start)} → ${factOf(end)}`;
  }
}
