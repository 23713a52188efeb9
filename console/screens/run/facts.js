// What follows from a log, folded as it grows: turns, bars for the timeline, calls, pairs, usage. Everything is kept with
// the sequence it holds from, so that any part of the page can be shown as of the playhead without folding again.
import { Calls } from "./calls.js";
import { Pairs } from "./pairs.js";
import { Spans } from "./spans.js";
import { Turns } from "./turns.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {{ seq: number, input: number, output: number, cost: number | null, calls: number }} Usage summed up to there */
/** @typedef {{ seq: number, dimension: string, consumed: number, limit: number }} Spent */

/** The last of a list that is sorted by `seq` and not after one. @template {{ seq: number }} T @param {T[]} list @param {number} seq @returns {T | undefined} */
export function asOf(list, seq) {
  return list[countUntil(list, seq, (one) => one.seq) - 1];
}

/** How many of a sorted list are not after a sequence. @template T @param {T[]} list @param {number} seq @param {(one: T) => number} of */
export function countUntil(list, seq, of) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(/** @type {T} */ (list[middle])) <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Milliseconds with their fraction: quick runs take less than one. @param {string} timestamp */
export function millis(timestamp) {
  const digits = timestamp.length > 24 && timestamp[19] === "." ? timestamp.slice(23, -1) : "";
  return Date.parse(timestamp) + (digits && /^\d+$/.test(digits) ? Number(digits) / 10 ** digits.length : 0);
}

export class Facts {
  constructor() {
    /** Milliseconds of each event. @type {number[]} */
    this.times = [];
    this.turns = new Turns();
    this.spans = new Spans();
    this.calls = new Calls();
    this.pairs = new Pairs();
    /** @type {Usage[]} */
    this.usage = [];
    /** What the whole tree had spent. @type {Spent[]} */
    this.spent = [];
    /** Where each node started, by its id. @type {Map<string, number[]>} */
    this.starts = new Map();
    /** The node that came round first: without a supervisor, its starts are the iterations. @type {string | null} */
    this.loopHead = null;
    /** Bounds that were reached. @type {RunEvent[]} */
    this.bounds = [];
    /** Where a replay left its source. @type {RunEvent[]} */
    this.divergences = [];
    /** The types there are. @type {Set<string>} */
    this.types = new Set();
  }

  /** @param {RunEvent} event */
  add(event) {
    // A clock that was set back must not turn the timeline round: sequences say what came first.
    const at = Math.max(millis(event.timestamp), this.times[this.times.length - 1] ?? 0);
    const seq = event.sequence;
    this.times.push(at);
    this.types.add(event.type);
    this.turns.add(event);
    this.spans.add(event, at, this.turns.number);
    this.calls.add(event);
    this.pairs.add(event);
    const payload = event.payload ?? {};
    switch (event.type) {
      case "node.started": {
        const starts = this.starts.get(event.nodeId ?? "") ?? [];
        starts.push(seq);
        this.starts.set(event.nodeId ?? "", starts);
        if (starts.length > 1 && payload.attempt === 0) this.loopHead ??= event.nodeId ?? null;
        break;
      }
      case "provider.usage": {
        const last = this.usage.at(-1);
        const price = payload.costEstimateUsd;
        const cost = typeof price === "number" ? (last?.cost ?? 0) + price : last?.cost ?? null;
        this.usage.push({ seq, input: (last?.input ?? 0) + (payload.inputTokens ?? 0), output: (last?.output ?? 0) + (payload.outputTokens ?? 0), cost, calls: (last?.calls ?? 0) + 1 });
        break;
      }
      case "budget.consumed":
      case "budget.exhausted":
        this.spent.push({ seq, dimension: payload.dimension, consumed: Number(payload.consumed), limit: Number(payload.limit) });
        break;
      case "cap.breached":
      case "workflow.loopback-limit":
        this.bounds.push(event);
        break;
      case "replay.diverged":
      case "replay.divergedAtRefusal":
        this.divergences.push(event);
        break;
      default:
    }
  }

  /** The sequences at which iterations begin: turns, or the rounds of a loop, or else every start of a node. @returns {number[]} */
  get iterations() {
    if (this.turns.list.length > 0) return this.turns.list.map((turn) => turn.seq);
    if (this.loopHead !== null) return this.starts.get(this.loopHead) ?? [];
    return [...this.starts.values()].map((starts) => starts[0] ?? 0);
  }

  /** What each bounded dimension had come to. @param {number} seq @returns {Map<string, Spent>} */
  spentAt(seq) {
    /** @type {Map<string, Spent>} */
    const latest = new Map();
    for (let at = countUntil(this.spent, seq, (one) => one.seq) - 1; at >= 0 && latest.size < 4; at -= 1) {
      const one = /** @type {Spent} */ (this.spent[at]);
      if (!latest.has(one.dimension)) latest.set(one.dimension, one);
      if (this.spent.length - at > 200) break;
    }
    return latest;
  }
}
