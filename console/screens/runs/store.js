// The rows of the list: pages by cursor as they are needed, changes in place, and a count of what is new above.
// Rows never move by themselves; what is new comes in when it is asked for.
import { api } from "../../lib/api.js";
import { newerRow } from "../../lib/asked.js";
import { isAbort } from "../../lib/error.js";
import { signal } from "../../lib/signal.js";
import { fits } from "./filter.js";

/** @typedef {import("../../types.js").RunItem} RunItem */
const PAGE = 100;

export class RunStore {
  /** @param {import("../../types.js").RunFilter} filter */
  constructor(filter) {
    this.filter = filter;
    /** @type {RunItem[]} */
    this.rows = [];
    /** @private @type {Map<string, number>} */
    this.places = new Map();
    /** @private @type {string | undefined} */
    this.cursor = undefined;
    /** @private */
    this.asking = false;
    /** Grows with every reload: what was asked for before no longer fits. @private */
    this.round = 0;
    /** Whether something may have been missed since the last answer. */
    this.stale = true;
    /** Rows from here on were drawn before they were known. */
    this.changedFrom = 0;
    /** Grows with every change of the rows. */
    this.version = signal(0);
    /** Runs that would be here if the list were asked for now. @private @type {Set<string>} */
    this.unseen = new Set();
    /** What changed while a list is under way: newer than what it will say. @private @type {Map<string, RunItem>} */
    this.arrived = new Map();
    this.fresh = signal(0);
    /** @type {import("../../lib/signal.js").Signal<"loading" | "ready" | "failed">} */
    this.state = signal(/** @type {"loading" | "ready" | "failed"} */ ("loading"));
    /** @type {unknown} */
    this.error = null;
  }

  /** Whether there are older ones. */
  get more() {
    return this.cursor !== undefined;
  }

  /** Asks for the newest, and keeps as many rows as were there. @param {AbortSignal} abort */
  async reload(abort) {
    this.unseen.clear();
    this.fresh.value = 0;
    this.arrived.clear();
    this.stale = true;
    this.round += 1;
    const wanted = Math.max(this.rows.length, 1);
    /** @type {RunItem[]} */
    const rows = [];
    /** @type {string | undefined} */
    let cursor;
    await this.ask(async (late) => {
      do {
        const page = await api.runs.list({ ...this.filter, limit: PAGE, ...(cursor ? { cursor } : {}) }, { signal: abort });
        rows.push(...page.runs);
        cursor = page.nextCursor;
      } while (cursor && rows.length < Math.min(wanted, 500));
      if (late()) return;
      // Older rows that were there already stay; they hear of changes like all others.
      const end = this.places.get(rows.at(-1)?.runId ?? "");
      const known = new Set(rows.map((run) => run.runId));
      const older = cursor && end !== undefined ? this.rows.slice(end + 1).filter((run) => !known.has(run.runId)) : [];
      this.rows = [...rows.map((run) => newerRow(this.arrived.get(run.runId), run)), ...older];
      known.forEach((runId) => this.unseen.delete(runId));
      this.fresh.value = this.unseen.size;
      if (older.length === 0) this.cursor = cursor;
      this.changedFrom = 0;
      this.stale = false;
    });
  }

  /** Asks for older ones. @param {AbortSignal} abort */
  async loadMore(abort) {
    if (!this.cursor || this.asking) return;
    await this.ask(async (late) => {
      this.changedFrom = this.rows.length;
      let found = 0;
      // A page of what is rare may be empty and not be the last.
      do {
        const page = await api.runs.list({ ...this.filter, limit: PAGE, cursor: this.cursor ?? "" }, { signal: abort });
        if (late()) return;
        this.rows.push(...page.runs.filter((run) => !this.places.has(run.runId)));
        found += page.runs.length;
        this.cursor = page.nextCursor;
      } while (this.cursor && found === 0);
    });
  }

  /** @private @param {(late: () => boolean) => Promise<void>} work */
  async ask(work) {
    const { round } = this;
    const late = () => round !== this.round;
    this.asking = true;
    try {
      await work(late);
      if (late()) return;
      this.error = null;
      this.index();
      this.state.value = "ready";
    } catch (error) {
      if (isAbort(error) || late()) return;
      this.error = error;
      // Rows that are there stay there: they are old, and the page says that the host does not answer.
      if (this.rows.length === 0) this.state.value = "failed";
      this.changedFrom = this.rows.length;
      this.version.value += 1;
    } finally {
      if (!late()) this.asking = false;
    }
  }

  /** @private */
  index() {
    if (this.changedFrom === 0) this.places.clear();
    for (let place = this.changedFrom; place < this.rows.length; place += 1) {
      this.places.set(/** @type {RunItem} */ (this.rows[place]).runId, place);
    }
    this.version.value += 1;
  }

  /** Takes in rows that changed. @param {RunItem[]} changed @returns {number[]} the places that look different */
  take(changed) {
    const touched = [];
    for (const run of changed) {
      if (this.stale) this.arrived.set(run.runId, run);
      const place = this.places.get(run.runId);
      if (place !== undefined) {
        this.rows[place] = newerRow(this.rows[place], run);
        touched.push(place);
      } else if (fits(run, this.filter) && !this.isFurtherDown(run)) this.unseen.add(run.runId);
      else this.unseen.delete(run.runId);
    }
    this.fresh.value = this.unseen.size;
    return touched;
  }

  /** Older than all rows that are loaded: it is not new, it is not reached yet. @private @param {RunItem} run */
  isFurtherDown(run) {
    return this.more && run.createdAt < (this.rows.at(-1)?.createdAt ?? "");
  }

  /** Whether a row still is what was asked for. @param {RunItem} run */
  stillFits(run) {
    return fits(run, this.filter);
  }
}
