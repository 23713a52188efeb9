// Whether the host leaves the run's tree alone. The run itself says so; one whose log does not read back cannot, so the
// list of all such trees is asked too, and being put there is no event that a stream would tell.
import { heldTrees, holderOf } from "../../lib/quarantine.js";
import { effect, untracked } from "../../lib/signal.js";
import { stable } from "./panels/parts.js";

/** @template T @typedef {import("../../lib/signal.js").Signal<T>} Signal */
/** @typedef {import("../../types.js").QuarantinedTree} QuarantinedTree */
/**
 * @typedef {object} Held
 * @property {Signal<QuarantinedTree | null>} tree the tree and why it is held; null when it is not
 * @property {() => void} decided somebody has released or cancelled it, or tried to
 */

/**
 * @param {{ runId: string, snapshot: Signal<import("../../types.js").RunSnapshot | null>, unread: Signal<boolean>, item: Signal<import("../../types.js").RunItem | null>, refresh: () => void }} run
 * @param {AbortSignal} ended
 * @returns {Held}
 */
export function heldWith({ runId, snapshot, unread, item, refresh }, ended) {
  const { list, decided } = heldTrees(ended);
  const listed = stable(() => holderOf(list.value ?? [], item.value ?? { runId }) ?? null, JSON.stringify);
  const tree = stable(() => (snapshot.value && !unread.value ? snapshot.value.quarantine ?? null : listed.value), JSON.stringify);
  effect(() => {
    // What the list says differently is asked of the run, which has the last word.
    const said = JSON.stringify(listed.value);
    if (list.value !== null && snapshot.peek() && said !== JSON.stringify(tree.peek())) untracked(refresh);
  });
  return {
    tree,
    decided: () => {
      refresh();
      decided();
    },
  };
}
