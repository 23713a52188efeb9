// An answer that follows what it was asked for: asked again when that changes, the old answer stays until the new one is
// there, and nobody waits for what is no longer wanted.
import { isAbort } from "./error.js";
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
  effect(() => {
    void turn.value;
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
        value.value = got;
      })
      .catch((problem) => {
        if (left.signal.aborted || isAbort(problem)) return;
        busy.value = false;
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
