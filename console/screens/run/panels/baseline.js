// What "before" means: the event before, the turn, the turn before it, the fork, the beginning. Kept in the address
// (`against`), so that a difference can be shown to somebody else.
import { number } from "../../../lib/format.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {"event" | "turn" | "previous" | "fork" | "start"} BaselineId */
/** @typedef {{ id: BaselineId, label: string, seq: number }} Baseline `seq` is the last record that counts as before; −1 is nothing at all */

/** What there is to compare with, as of a sequence. @param {RunContext} ctx @param {number} seq @returns {Baseline[]} */
export function baselines(ctx, seq) {
  const turn = ctx.log.facts.turns.at(seq);
  const previous = turn && ctx.log.facts.turns.list[turn.number - 2];
  const fork = ctx.snapshot.value?.forkedFrom?.fromSeq;
  /** @type {(Baseline | null | undefined)[]} */
  const all = [
    { id: "event", label: "the event before", seq: seq - 1 },
    turn && { id: "turn", label: `turn ${turn.number} began (#${number(turn.seq)})`, seq: turn.seq },
    previous && { id: "previous", label: `turn ${previous.number} began (#${number(previous.seq)})`, seq: previous.seq },
    fork === undefined || fork > seq ? null : { id: "fork", label: `the fork (#${number(fork)})`, seq: fork - 1 },
    { id: "start", label: "the run began", seq: 0 },
  ];
  return all.filter((one) => one !== null && one !== undefined);
}

/** The one that was chosen, or the first of `wanted` that exists. @param {RunContext} ctx @param {number} seq @param {BaselineId[]} wanted @returns {Baseline} */
export function baseline(ctx, seq, wanted) {
  const all = baselines(ctx, seq);
  const chosen = ctx.screen.query.value.get("against");
  for (const id of [chosen, ...wanted]) {
    const found = all.find((one) => one.id === id);
    if (found) return found;
  }
  return { id: "start", label: "the run began", seq: 0 };
}
