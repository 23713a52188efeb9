// What can be decided about a tree in quarantine, the same in the list and on the page of a run.
import { api } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { asApiError } from "../lib/error.js";
import { shortId } from "../lib/format.js";
import { causeWords, lacking, lackingWords, refusalWords } from "../lib/quarantine.js";
import { address } from "../lib/router.js";
import { signal } from "../lib/signal.js";
import { toast, toastError } from "../lib/toast.js";
import { copyMenu } from "./copy-menu.js";
import { confirmThen } from "./dialog.js";

/** @typedef {import("../types.js").QuarantinedTree} QuarantinedTree */

/** Does it and says what became of it. @param {string} what @param {() => Promise<unknown>} act @param {string} told @param {() => void} done */
async function decide(what, act, told, done) {
  try {
    await act();
    toast(told);
  } catch (error) {
    const words = refusalWords(error);
    if (words === null) toastError(error, what);
    else toast(words, { kind: asApiError(error).status === 403 ? "error" : "note" });
  }
  // Refused or not: it may no longer be as it is shown.
  done();
}

/** Lets a tree go on. Asks first where everybody would feel it if it failed again. @param {QuarantinedTree} tree @param {() => void} done @returns {Promise<unknown>} */
export async function releaseTree(tree, done) {
  const act = () => decide("Releasing", () => api.runs.release(tree.rootRunId), "Released: it goes on from where it was. If it fails again, it is put back.", done);
  const { title, risky } = causeWords(tree.cause);
  if (!risky) return act();
  return confirmThen({
    title: `Release the tree of ${shortId(tree.rootRunId)}?`,
    text: h("div", { class: "stack" }, h("p", null, `${title}. ${risky}`), h("p", null, "If it fails again, it is put back in quarantine.")),
    confirm: "Release",
    act,
  });
}

/** Asks, then ends the whole tree. @param {QuarantinedTree} tree @param {() => void} done */
export function cancelTree(tree, done) {
  confirmThen({
    title: `Cancel the tree of ${shortId(tree.rootRunId)}?`,
    text: "Every run of this tree that has not ended is cancelled, and none can be taken up again. Calls that already left are not undone.",
    confirm: "Cancel the tree",
    danger: true,
    act: () => decide("Cancelling", () => api.runs.cancel(tree.rootRunId, "Cancelled in the console"), "The tree is being cancelled", done),
  });
}

/** The buttons. @param {QuarantinedTree} tree @param {() => void} done */
export function decisions(tree, done) {
  const busy = signal(false);
  const off = () => busy.value || lacking.value !== "";
  const why = () => (lacking.value ? lackingWords(lacking.value) : null);
  const release = async () => {
    busy.value = true;
    await releaseTree(tree, done);
    busy.value = false;
  };
  return h("span", { class: "row wrap" },
    h("button", { type: "button", class: "small", disabled: off, title: why, onClick: release }, "Release"),
    h("button", { type: "button", class: "small danger", disabled: off, title: why, onClick: () => cancelTree(tree, done) }, "Cancel…"),
    copyMenu(() => ({
      request: { method: "POST", path: `/v1/host/baton/runs/${tree.rootRunId}/release`, body: {} },
      baton: ["run", "release", tree.rootRunId],
      batonNote: "release",
      json: tree,
      link: address("/runs/:runId", { runId: tree.rootRunId }),
    })));
}

/** Why the buttons cannot be pressed, where that is known. */
export const lackingNote = () => () => lacking.value !== "" && h("p", { class: "small held-lacks" }, lackingWords(lacking.value));
