// What can be done to the run, for buttons, keys and the palette alike.
import { confirmThen, openDialog } from "../../components/dialog.js";
import { cancelTree, releaseTree } from "../../components/quarantine.js";
import { api } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { number, plural, shortId } from "../../lib/format.js";
import { address, navigate } from "../../lib/router.js";
import { toast, toastError } from "../../lib/toast.js";
import { cancelRuns, exportRuns } from "../runs/actions.js";
import { stepEvent, stepIteration } from "./steps.js";

/** @param {import("./context.js").RunContext} ctx */
export function runActions(ctx) {
  const short = shortId(ctx.runId);
  /** @param {string} what @param {() => Promise<unknown>} act */
  const doing = async (what, act) => {
    try {
      await act();
    } catch (error) {
      toastError(error, what);
    }
    // Refused or not: the run may no longer be as it is shown.
    ctx.refresh();
  };
  return {
    cancel: () => {
      const [run, held] = [ctx.item.peek(), ctx.held.tree.peek()];
      // Nobody steps a part of it, so all of it ends.
      if (held) cancelTree(held, ctx.held.decided);
      else if (run) cancelRuns([run], ctx.refresh);
    },
    release: () => {
      const held = ctx.held.tree.peek();
      if (held) void releaseTree(held, ctx.held.decided);
    },
    export: () => {
      const run = ctx.item.peek();
      if (run) void exportRuns([run]);
    },
    pause: () => confirmThen({
      title: `Pause run ${short}?`,
      text: "What is under way is finished first; nothing new begins until the run is resumed.",
      confirm: "Pause",
      act: async () => {
        await api.runs.pause(ctx.runId, "Paused in the console");
        ctx.refresh();
      },
    }),
    resume: () => doing("Resuming", () => api.runs.resume(ctx.runId)),
    /** @param {{ seq?: number, configurable?: Record<string, unknown> }} [options] */
    fork: async (options = {}) => {
      const seq = typeof options.seq === "number" ? options.seq : ctx.seq.peek();
      try {
        const { openForkDialog } = await import("../../components/fork-dialog.js");
        openForkDialog({ ...options, runId: ctx.runId, seq: Math.max(0, seq) });
      } catch (error) {
        toastError(error, "Opening the fork dialog");
      }
    },
    compare: () => compareWith(ctx),
    verify: () => doing("Verifying", async () => {
      const answer = await api.runs.verify(ctx.runId);
      const same = answer.equal ?? answer.outcome === "equal";
      toast(same ? `Equal: ${plural(answer.events ?? 0, "event")} gone through, ${number(answer.decided ?? 0)} decided anew` : `It differs${answer.divergence?.atSequence === undefined ? "" : ` at sequence ${answer.divergence.atSequence}`}`, { kind: same ? "note" : "error" });
    }),
  };
}

/** Asks with which run; its source is the first guess. @param {import("./context.js").RunContext} ctx */
function compareWith(ctx) {
  const source = ctx.item.peek()?.forkedFrom?.runId ?? "";
  const go = (/** @type {string} */ other) => navigate(address("/compare", {}, { a: other, b: ctx.runId }));
  const field = h("input", { type: "text", class: "mono", value: source, placeholder: "run_…", spellcheck: "false", autocomplete: "off", "aria-label": "The other run" });
  const others = h("div", { class: "stack" });
  const dialog = openDialog("Compare with", (close) => [
    h("form", { class: "stack", onSubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!field.value.trim()) return;
      close();
      go(field.value.trim());
    } },
    field, others,
    h("div", { class: "actions" }, h("button", { type: "button", onClick: close }, "Close"), h("button", { type: "submit", class: "primary" }, "Compare"))),
  ]);
  const workflowId = ctx.item.peek()?.workflowId;
  if (!workflowId) return;
  api.runs.list({ workflowId, limit: 8 }, { signal: ctx.signal }).then(({ runs }) => {
    others.replaceChildren(h("p", { class: "muted" }, `Other runs of ${workflowId}`), ...runs.filter((run) => run.runId !== ctx.runId).map((run) =>
      h("button", { type: "button", class: "quiet pick", onClick: () => (dialog.close(), go(run.runId)) }, h("span", { class: "mono" }, shortId(run.runId)), h("span", { class: "muted" }, run.status, run.forkedFrom?.runId === ctx.runId ? ` · forked here at ${run.forkedFrom.fromSeq}` : ""))));
  }).catch(() => {}); // The field is enough.
}

/**
 * @param {import("./context.js").RunContext} ctx @param {ReturnType<typeof runActions>} actions
 * @param {(by: 1 | -1) => void} sibling
 * @returns {import("../../lib/keys.js").Command[]}
 */
export function runCommands(ctx, actions, sibling) {
  const group = "Run";
  const over = () => ["completed", "failed", "cancelled"].includes(ctx.item.peek()?.status ?? "");
  // What depends on how the run stands waits until that is known.
  const running = () => ctx.item.peek() !== null && !over();
  return [
    { keys: "ArrowLeft", label: "Previous event", group, run: () => stepEvent(ctx, -1) },
    { keys: "ArrowRight", label: "Next event", group, run: () => stepEvent(ctx, 1) },
    { keys: "Shift+ArrowLeft", label: "Previous iteration", group, run: () => stepIteration(ctx, -1) },
    { keys: "Shift+ArrowRight", label: "Next iteration", group, run: () => stepIteration(ctx, 1) },
    { keys: "l", label: "Follow the newest event", group, run: () => ctx.moveTo(null) },
    { keys: "f", label: "Fork here", group, run: () => actions.fork() },
    { keys: "c", label: "Compare with…", group, run: actions.compare },
    { keys: "x", label: "Cancel the run", group, when: () => running() || ctx.held.tree.peek() !== null, run: actions.cancel },
    { keys: "[", label: "Previous sibling run", group, run: () => sibling(-1) },
    { keys: "]", label: "Next sibling run", group, run: () => sibling(1) },
    { keys: "e", label: "Raw JSON of the event", group, run: () => ctx.screen.setQuery({ tab: "raw" }) },
    { label: "Pause the run", group, when: () => running() && ctx.item.peek()?.status !== "paused", run: actions.pause },
    { label: "Resume the run", group, when: () => ctx.item.peek()?.status === "paused", run: actions.resume },
    { label: "Release from quarantine", group, when: () => ctx.held.tree.peek() !== null, run: actions.release },
    { label: "Verify the run", group, when: over, run: actions.verify },
    { label: "Export the run", group, when: over, run: actions.export },
  ];
}
