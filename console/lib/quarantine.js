// Trees of runs that the host leaves alone, because one of their runs kept breaking its work: which they are, why in
// words, and what became of a decision about one.
import { onRuns, relist } from "./activity.js";
import { api } from "./api.js";
import { inOrder } from "./asked.js";
import { reach, recovered } from "./connection.js";
import { asApiError, isAbort } from "./error.js";
import { key } from "./session.js";
import { batch, effect, onEnd, signal } from "./signal.js";

/** @typedef {import("../types.js").QuarantinedTree} QuarantinedTree */
/** @typedef {import("../types.js").RunItem} RunItem */

/**
 * What happened, what that means, and whether a release may do it to the whole host again.
 * @type {Record<string, { title: string, text: string, risky?: string }>}
 */
const CAUSES = {
  process_died: {
    title: "The host’s process ended while it worked on this run",
    text: "It was tried again after the restart, and the process ended again.",
    risky: "If the process ends again, every run of this host waits until it is back.",
  },
  process_died_again: {
    title: "The host’s process ended while it worked on this run, again and again",
    text: "The host let it go on once more by itself, and the process ended again.",
    risky: "If the process ends again, every run of this host waits until it is back.",
  },
  step_panicked: {
    title: "A step of this run crashed inside the host",
    text: "It was tried twice. That is a defect of the host which this run met, not a failure of an agent or a tool.",
  },
  does_not_fold: {
    title: "The log of this run cannot be read back",
    text: "It is damaged, or a newer version of Baton wrote it. Until that is mended, a release will not help.",
  },
  commit_refused: {
    title: "The store refused what this run wanted to write",
    text: "It was tried twice. What the run did before that is kept.",
  },
  stuck: {
    title: "A step of this run did not come to an end",
    text: "Such a step holds one of the host’s threads, and the host may have to restart to get rid of it.",
    risky: "If a step does not end again, the host may have to restart, and every run waits until it is back.",
  },
};

/** @param {string} cause @returns {{ title: string, text: string, risky?: string }} */
export function causeWords(cause) {
  return Object.hasOwn(CAUSES, cause) ? /** @type {{ title: string, text: string, risky?: string }} */ (CAUSES[cause]) : { title: `The host could not go on with this run: ${cause}`, text: "" };
}

/** The tree that holds a run. A top that has ended is held by none, whatever an older list says. @param {QuarantinedTree[]} trees @param {{ runId: string, rootRunId?: string, status?: string }} run */
export function holderOf(trees, { runId, rootRunId, status }) {
  if (!rootRunId && ["completed", "failed", "cancelled"].includes(status ?? "")) return undefined;
  return trees.find((tree) => tree.rootRunId === (rootRunId ?? runId) || tree.runId === runId);
}

/** What the key in use turned out to lack: the host does not say beforehand what a key may do. */
export const lacking = signal("");
effect(() => {
  void key.value;
  lacking.value = "";
});

/** What is to be told of a decision that was refused; null when it is a failure like any other. @param {unknown} error @returns {string | null} */
export function refusalWords(error) {
  const { status, details } = asApiError(error);
  if (status === 403 && details.scopeRequired) {
    lacking.value = String(details.scopeRequired);
    return lackingWords(lacking.value);
  }
  // Two people, or two clicks: either way it is done.
  return status === 409 ? "Already released or cancelled: this tree is no longer in quarantine." : null;
}

/** @param {string} scope */
export const lackingWords = (scope) => `This key may neither release nor cancel. Sign in with a key that has the scope ${scope}.`;

export const PAGE = 200;
/** Being put in quarantine is no event, so no stream tells of it. */
const EVERY = 10_000;
/** Changes come in bursts; one list answers all of them. */
const REST = 150;
/** One that was released and fails again is back within seconds. */
const LOOK_AGAIN = [700, 2500];

/**
 * The trees that are held, asked again gently for as long as somebody looks.
 * @param {AbortSignal} ends
 */
export function heldTrees(ends) {
  const list = signal(/** @type {QuarantinedTree[] | null} */ (null));
  const error = signal(/** @type {unknown} */ (null));
  const more = signal(false);
  let wanted = PAGE;
  const begin = inOrder();
  const load = async () => {
    const counts = begin();
    try {
      /** @type {QuarantinedTree[]} */
      const trees = [];
      /** @type {string | undefined} */
      let cursor;
      do {
        const page = await api.quarantine.list({ limit: PAGE, ...(cursor ? { cursor } : {}) }, { signal: ends });
        trees.push(...page.trees);
        cursor = page.nextCursor;
      } while (cursor && trees.length < wanted);
      if (!counts()) return;
      batch(() => {
        error.value = null;
        more.value = cursor !== undefined;
        // Nothing is drawn anew for nothing.
        if (JSON.stringify(trees) !== JSON.stringify(list.peek())) list.value = trees;
      });
    } catch (problem) {
      if (!isAbort(problem) && counts()) error.value = problem;
    }
  };
  /** When it is looked at, besides regularly. @type {Map<number, ReturnType<typeof setTimeout>>} */
  const timers = new Map();
  const after = (/** @type {number} */ ms) => timers.has(ms) || timers.set(ms, setTimeout(() => {
    timers.delete(ms);
    void load();
  }, ms));
  const soon = () => after(REST);
  const regularly = setInterval(() => {
    const refused = error.peek() !== null && !asApiError(error.peek()).passing;
    if (!document.hidden && !refused && reach.peek() === "online") void load();
  }, EVERY);
  onEnd(() => {
    clearInterval(regularly);
    timers.forEach((timer) => clearTimeout(timer));
  });
  onEnd(onRuns((/** @type {RunItem[]} */ runs) => {
    const known = new Set(list.peek()?.map((tree) => tree.rootRunId));
    if (runs.some((run) => known.has(run.rootRunId ?? run.runId))) soon();
  }));
  effect(() => {
    void relist.value;
    void recovered.value;
    if (list.peek() === null) void load();
    else soon();
  });
  return {
    list, error, more, load,
    loadMore: () => {
      wanted = (list.peek()?.length ?? 0) + PAGE;
      return load();
    },
    /** Somebody has decided: it goes, and may come back. */
    decided: () => {
      void load();
      LOOK_AGAIN.forEach(after);
    },
  };
}
