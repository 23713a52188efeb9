// The rows of the list: pages by cursor as they are needed, changes in place, and a count of what is new above.
// Rows never move by themselves; what is new comes in when it is asked for.
import { api } from "../../lib/api.js";
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
    /** Rows from here on were drawn before they were known. */
    this.changedFrom = 0;
    /** Grows with every change of the rows. */
    this.version = signal(0);
    /** Runs that would be here if the list were asked for now. @private @type {Set<string>} */
    this.unseen = new Set();
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
    const wanted = Math.max(this.rows.length, 1);
    /** @type {RunItem[]} */
    const rows = [];
    /** @type {string | undefined} */
    let cursor;
    await this.ask(async () => {
      do {
        const page = await api.runs.list({ ...this.filter, limit: PAGE, ...(cursor ? { cursor } : {}) }, { signal: abort });
        rows.push(...page.runs);
        cursor = page.nextCursor;
      } while (cursor && rows.length < Math.min(wanted, 500));
      // Older rows that were there already stay; they hear of changes like all others.
      const end = this.places.get(rows.at(-1)?.runId ?? "");
      const known = new Set(rows.map((run) => run.runId));
      const older = cursor && end !== undefined ? this.rows.slice(end + 1).filter((run) => !known.has(run.runId)) : [];
      this.rows = [...rows, ...older];
      if (older.length === 0) this.cursor = cursor;
      this.changedFrom = 0;
    });
  }

  /** Asks for older ones. @param {AbortSignal} abort */
  async loadMore(abort) {
    if (!this.cursor || this.asking) return;
    await this.ask(async () => {
      const page = await api.runs.list({ ...this.filter, limit: PAGE, cursor: this.cursor ?? "" }, { signal: abort });
      this.changedFrom = this.rows.length;
      this.rows.push(...page.runs.filter((run) => !this.places.has(run.runId)));
      this.cursor = page.nextCursor;
    });
  }

  /** @private @param {() => Promise<void>} work */
  async ask(work) {
    this.asking = true;
    try {
      await work();
      this.error = null;
      this.index();
      this.state.value = "ready";
    } catch (error) {
      if (isAbort(error)) return;
      this.error = error;
      // Rows that are there stay there: they are old, and the page says that the host does not answer.
      if (this.rows.length === 0) this.state.value = "failed";
      this.changedFrom = this.rows.length;
      this.version.value += 1;
    } finally {
      this.asking = false;
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
      const place = this.places.get(run.runId);
      if (place !== undefined) {
        this.rows[place] = run;
        touched.push(place);
      } else if (fits(run, this.filter)) this.unseen.add(run.runId);
      else this.unseen.delete(run.runId);
    }
    this.fresh.value = this.unseen.size;
    return touched;
  }

  /** Whether a row still is what was asked for. @param {RunItem} run */
  stillFits(run) {
    return fits(run, this.filter);
  }
}
