// An answer that follows what it was asked for: asked again when that changes and when the host was away, the old answer
// stays until the new one is there, and nobody waits for what is no longer wanted.
import { recovered } from "./connection.js";
import { asApiError, isAbort } from "./error.js";
import { pause } from "./http.js";
import { effect, onEnd, signal } from "./signal.js";

/** @template T @typedef {import("./signal.js").Signal<T>} Signal */
/**
 * @template T
 * @typedef {object} Asked
 * @property {Signal<T | null>} value the latest answer; null before the first, and after a refusal
 * @property {Signal<unknown>} error why there is none
 * @property {Signal<boolean>} busy
 * @property {() => void} again
 */

/** A question that changes while it is dragged along is asked where it rests. */
const REST = 90;

/**
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | null} ask reads signals; null when there is nothing to ask
 * @returns {Asked<T>}
 */
export function asked(ask) {
  const value = signal(/** @type {T | null} */ (null));
  const error = signal(/** @type {unknown} */ (null));
  const busy = signal(false);
  const turn = signal(0);
  let breaks = recovered.peek();
  effect(() => {
    void turn.value;
    const back = recovered.value !== breaks;
    breaks = recovered.value;
    const left = new AbortController();
    onEnd(() => left.abort());
    const answer = ask(left.signal);
    if (answer === null) {
      value.value = null;
      error.value = null;
      busy.value = false;
      return;
    }
    busy.value = true;
    answer
      .then((got) => {
        if (left.signal.aborted) return;
        busy.value = false;
        error.value = null;
        // After a break most things are as they were: nothing is drawn anew, and nothing typed is lost.
        if (!back || JSON.stringify(got) !== JSON.stringify(value.peek())) value.value = got;
      })
      .catch((problem) => {
        if (left.signal.aborted || isAbort(problem)) return;
        busy.value = false;
        if (back && asApiError(problem).passing && value.peek() !== null) return; // Gone again; the shell says so.
        value.value = null;
        error.value = problem;
      });
  });
  return { value, error, busy, again: () => (turn.value += 1) };
}

/** Waits until a question rests, then asks. @template T @param {AbortSignal} signal @param {() => Promise<T>} ask @returns {Promise<T>} */
export async function rested(signal, ask) {
  await pause(REST, signal);
  return ask();
}

// Answers do not come in the order in which they were asked for. What is shown must not be replaced by something older.

/**
 * Numbers questions. Each gets a function that says, once its answer is there, whether it still counts: not if a later
 * question was answered first.
 * @returns {() => () => boolean}
 */
export function inOrder() {
  let [asked, counted] = [0, 0];
  return () => {
    const mine = (asked += 1);
    return () => mine >= counted && Boolean((counted = mine));
  };
}

/**
 * Of two rows of one run the one that knows more of its log, the second where both know the same.
 * @param {import("../types.js").RunItem | null | undefined} had @param {import("../types.js").RunItem} got
 */
export const newerRow = (had, got) => (had && had.runId === got.runId && (had.events ?? 0) > (got.events ?? 0) ? had : got);
