// How many turns a supervisor may take where nobody said so: the host's own bound. It stops a run that would never end and
// says nothing about any one of them, so it is not shown as if a run had asked for it.
import { api } from "./api.js";
import { number } from "./format.js";
import { signal } from "./signal.js";

/** Null until somebody needs it and it is known. */
export const hostTurns = signal(/** @type {number | null} */ (null));
let asked = false;

/** A turn with the bound of its run, if it has one, and what there is to say about it. @param {number} turn @param {number} [bound] */
export function turnWords(turn, bound) {
  if (bound !== undefined && !asked) {
    asked = true;
    api.host.discovery().then(({ limits }) => (hostTurns.value = limits?.maxLoopIterations ?? 0)).catch(() => (asked = false));
  }
  const most = hostTurns.value;
  if (bound === undefined || most === null) return { own: "", title: `Turn ${number(turn)}` };
  if (bound === most) return { own: "", title: `Turn ${number(turn)}. The run has no bound of its own; the host stops it after ${number(bound)}.` };
  return { own: `/${number(bound)}`, title: `Turn ${number(turn)} of at most ${number(bound)}` };
}
