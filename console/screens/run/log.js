// The events of one run, by sequence. The past comes in pages, what happens now by the stream; both through one door
// that drops what is known, so an event is there once. Runs that were looked at last keep their logs for a while.
import { api } from "../../lib/api.js";
import { recovered } from "../../lib/connection.js";
import { isAbort } from "../../lib/error.js";
import { followRun } from "../../lib/feed.js";
import { batch, effect, signal, untracked } from "../../lib/signal.js";
import { Facts } from "./facts.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {"loading" | "connecting" | "live" | "waiting" | "ended" | "failed"} LogPhase */

/** A page that is parsed and folded within a frame. */
const PAGE = 1500;
const TERMINAL = new Set(["run.completed", "run.failed", "run.cancelled"]);

export class Log {
  /** @param {string} runId */
  constructor(runId) {
    this.runId = runId;
    /** Every event that is loaded; the place of each is its sequence. @type {RunEvent[]} */
    this.events = [];
    /** What follows from them; see `facts.js`. */
    this.facts = new Facts();
    /** The sequence of the newest event that is loaded, −1 before any is. */
    this.newest = signal(-1);
    /** @type {import("../../lib/signal.js").Signal<LogPhase>} `loading` while the past still comes in */
    this.phase = signal(/** @type {LogPhase} */ ("loading"));
    /** @type {unknown} why it failed */
    this.error = null;
  }

  /** @param {number} seq @returns {RunEvent | undefined} */
  at(seq) {
    return this.events[seq];
  }

  /** The last event at or before a sequence that is so. @param {number} seq @param {(event: RunEvent) => boolean} isIt @returns {RunEvent | undefined} */
  latest(seq, isIt) {
    for (let at = Math.min(seq, this.events.length - 1); at >= 0; at -= 1) {
      const event = this.events[at];
      if (event && isIt(event)) return event;
    }
    return undefined;
  }

  /** The first event at or after a sequence that is so. @param {number} seq @param {(event: RunEvent) => boolean} isIt @returns {RunEvent | undefined} */
  next(seq, isIt) {
    for (let at = Math.max(0, seq); at < this.events.length; at += 1) {
      const event = this.events[at];
      if (event && isIt(event)) return event;
    }
    return undefined;
  }

  /** Whether the run has said its last word. */
  get over() {
    const last = this.events[this.events.length - 1];
    return last !== undefined && TERMINAL.has(last.type);
  }

  /** @param {RunEvent[]} fresh in order */
  add(fresh) {
    const before = this.events.length;
    for (const event of fresh) {
      if (event.sequence !== this.events.length) continue; // Known already; a gap cannot be, logs have none.
      this.events.push(event);
      this.facts.add(event);
    }
    if (this.events.length > before) this.newest.value = this.events.length - 1;
  }

  /**
   * Loads what is missing and follows until the run ends or the signal aborts. Where that failed it goes on when the host
   * is back: a log that was cut off must not pass for the whole. @param {AbortSignal} ended
   */
  follow(ended) {
    void this.go(ended);
    const stop = effect(() => {
      if (recovered.value > 0) untracked(() => this.again(ended));
    });
    ended.addEventListener("abort", stop, { once: true });
  }

  /** Once more, where it failed. @param {AbortSignal} ended */
  again(ended) {
    if (this.phase.peek() === "failed" && !ended.aborted) void this.go(ended);
  }

  /** @private @param {AbortSignal} ended */
  async go(ended) {
    try {
      if (this.over) return void (this.phase.value = "ended");
      this.phase.value = "loading";
      await this.loadPast(ended);
      if (this.over) return void (this.phase.value = "ended");
      await followRun(this.runId, {
        after: this.newest.peek(),
        signal: ended,
        onEvents: (events) => batch(() => this.add(events)),
        onState: (state, error) => {
          if (error) this.error = error;
          this.phase.value = state;
        },
      });
    } catch (error) {
      if (isAbort(error) || ended.aborted) return;
      this.error = error;
      this.phase.value = "failed";
    }
  }

  /** @private @param {AbortSignal} ended */
  async loadPast(ended) {
    const path = `/v1/runs/${encodeURIComponent(this.runId)}/events/poll`;
    for (;;) {
      const after = this.newest.peek();
      // The shortest wait there is: at the end of a living log the stream takes over.
      const query = { limit: PAGE, timeout: 1, ...(after >= 0 ? { lastSequence: after } : {}) };
      const page = await api.get(path, query, { signal: ended });
      batch(() => this.add(page.events));
      if (page.isComplete || page.events.length < PAGE) return;
      await new Promise((resolve) => setTimeout(resolve)); // Let the page draw.
    }
  }
}

const KEPT = 6;
const MOST_KEPT = 40_000;
/** @type {Map<string, Log>} the least recently shown first */
const kept = new Map();

/** The log of a run; the one from before if it was looked at lately. @param {string} runId */
export function openLog(runId) {
  const log = kept.get(runId) ?? new Log(runId);
  kept.delete(runId);
  kept.set(runId, log);
  let size = [...kept.values()].reduce((sum, one) => sum + one.events.length, 0);
  for (const [id, one] of kept) {
    if (kept.size <= KEPT && size <= MOST_KEPT) break;
    if (id === runId) continue;
    kept.delete(id);
    size -= one.events.length;
  }
  return log;
}
