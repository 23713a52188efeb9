// The runs of one tree: the first run and everything below it. Kept between screens, so that going from a run to its
// child leaves the tree as it is.
import { onRuns, relist } from "../../lib/activity.js";
import { api } from "../../lib/api.js";
import { newerRow } from "../../lib/asked.js";
import { recovered } from "../../lib/connection.js";
import { isAbort } from "../../lib/error.js";
import { effect, onEnd, signal, untracked } from "../../lib/signal.js";

/** @typedef {import("../../types.js").RunItem} RunItem */

const PAGE = 200;
const MOST = 1000;

class Family {
  /** @param {string} root */
  constructor(root) {
    this.root = root;
    /** @type {Map<string, RunItem>} */
    this.runs = new Map();
    /** Whether there are more than are shown. */
    this.more = false;
    /** Which runs are closed in the tree. @type {Set<string>} */
    this.closed = new Set();
    /** @private @type {Map<string, RunItem[]> | undefined} */
    this.children = undefined;
  }

  /** Below a run, oldest first. @param {string} runId @returns {RunItem[]} */
  below(runId) {
    return (this.children ??= this.group()).get(runId) ?? [];
  }

  /** @private */
  group() {
    /** @type {Map<string, RunItem[]>} */
    const children = new Map();
    for (const run of this.runs.values()) {
      if (!run.parentRunId || !this.runs.has(run.parentRunId)) continue;
      const list = children.get(run.parentRunId) ?? [];
      list.push(run);
      children.set(run.parentRunId, list);
    }
    for (const list of children.values()) list.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    return children;
  }

  /** @param {RunItem} run */
  put(run) {
    this.runs.set(run.runId, newerRow(this.runs.get(run.runId), run));
    this.children = undefined;
  }
}

/** @type {Family | null} the one that was shown last */
let last = null;

/**
 * The family of the run that is shown, as it changes.
 * @param {import("./context.js").RunContext} ctx
 * @returns {{ family: import("../../lib/signal.js").Signal<{ of: Family | null }>, reload: () => void }}
 */
export function followFamily(ctx) {
  const known = last?.runs.has(ctx.runId) ? last : null;
  const family = signal({ of: known });
  const tell = (/** @type {Family} */ of) => {
    last = of;
    family.value = { of };
  };
  /** The one that is being loaded; it hears of changes too. @type {Family | null} */
  let coming = null;
  /** @param {RunItem} self */
  const load = async (self) => {
    const root = self.rootRunId ?? self.parentRunId ?? self.runId;
    const next = new Family(root);
    coming = next;
    if (last?.root === root) next.closed = last.closed;
    try {
      const options = { signal: ctx.signal };
      const [top, first] = await Promise.all([
        root === self.runId ? [self] : api.runs.list({ idPrefix: root, limit: 1 }, options).then((answer) => answer.runs),
        api.runs.list({ rootRunId: root, limit: PAGE }, options),
      ]);
      [...top, ...first.runs, self].forEach((run) => next.put(run));
      let cursor = first.nextCursor;
      while (cursor && next.runs.size < MOST) {
        const page = await api.runs.list({ rootRunId: root, limit: PAGE, cursor }, options);
        page.runs.forEach((run) => next.put(run));
        cursor = page.nextCursor;
      }
      next.more = Boolean(cursor);
      if (!ctx.signal.aborted && coming === next) tell(next);
    } catch (error) {
      // Without its family a run can still be shown; the tree then has one entry.
      if (!isAbort(error) && coming === next && family.peek().of === null) tell(Object.assign(next, { runs: new Map([[self.runId, self]]) }));
    }
  };
  const reload = () => {
    const self = ctx.item.peek();
    if (self) void load(self);
  };
  let loaded = false;
  effect(() => {
    const self = ctx.item.value;
    if (!self) return;
    untracked(() => {
      if (!loaded) {
        loaded = true;
        void load(self);
      } else take([self]);
    });
  });
  effect(() => {
    if (relist.value + recovered.value > 0) untracked(() => loaded && reload());
  });
  /** @param {RunItem[]} changed */
  const take = (changed) => {
    const now = family.peek().of;
    for (const of of new Set([now, coming])) {
      if (!of) continue;
      const ours = changed.filter((run) => of.runs.has(run.runId) || run.runId === of.root || run.rootRunId === of.root || (run.parentRunId && of.runs.has(run.parentRunId)));
      ours.forEach((run) => of.put(run));
      if (of === now && ours.length > 0) tell(now);
    }
  };
  onEnd(onRuns((changed) => {
    take(changed);
    const self = changed.find((run) => run.runId === ctx.runId);
    if (self) ctx.item.value = newerRow(ctx.item.peek(), self);
  }));
  return { family, reload };
}
