// The open questions, kept as they are: listed again when the host says that something changed.
import { onRuns, openInterrupts, relist } from "../../lib/activity.js";
import { api } from "../../lib/api.js";
import { inOrder } from "../../lib/asked.js";
import { recovered } from "../../lib/connection.js";
import { isAbort } from "../../lib/error.js";
import { effect, onEnd, signal } from "../../lib/signal.js";

/** @typedef {import("../../types.js").InterruptItem} InterruptItem */

export const MOST = 200;
/** Changes come in bursts; one list answers all of them. */
const REST = 120;

/** What tells one question from all others, also in the address. @param {{ runId: string, interruptId: string }} one */
export const keyOf = ({ runId, interruptId }) => `${runId}/${interruptId}`;

/** @param {AbortSignal} ends */
export function openQuestions(ends) {
  const list = signal(/** @type {InterruptItem[] | null} */ (null));
  const error = signal(/** @type {unknown} */ (null));
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const begin = inOrder();
  const load = async () => {
    const counts = begin();
    try {
      const { interrupts } = await api.interrupts.list({ limit: MOST }, { signal: ends });
      if (!counts()) return;
      error.value = null;
      if (JSON.stringify(interrupts) !== JSON.stringify(list.peek())) list.value = interrupts;
    } catch (problem) {
      if (!isAbort(problem) && counts()) error.value = problem;
    }
  };
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void load();
    }, REST);
  };
  /** Answered here: a list that was asked for before must not bring it back. @param {string} key */
  const answered = (key) => {
    begin()();
    list.update((all) => all?.filter((one) => keyOf(one) !== key) ?? null);
  };
  onEnd(() => clearTimeout(timer));
  onEnd(onRuns((runs) => {
    const known = new Set(list.peek()?.map((one) => one.runId));
    if (runs.some((run) => run.status.startsWith("waiting") || known.has(run.runId))) soon();
  }));
  effect(() => {
    void relist.value;
    void recovered.value;
    void openInterrupts.value;
    if (list.peek() === null) void load();
    else soon();
  });
  return { list, error, load, answered };
}
