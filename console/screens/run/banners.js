// What has to be said above everything else: a bound that stopped the run, a replay that left its source, a failure, a
// pause, a run below that waits. Each with its next step, and only from the event on that says it.
import { api } from "../../lib/api.js";
import { h } from "../../lib/dom.js";
import { cost, duration, number, plural, shortId } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { titleOf } from "./answers.js";
import { statusAt } from "./header.js";
import { faultText } from "./words.js";

/** @typedef {import("./context.js").RunContext} RunContext */
/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {import("../../lib/dom.js").Child} Child */

/**
 * How bounds are told: what was counted, and what a fork would have to ask for.
 * @type {Record<string, { what: (n: number) => string, raise?: (limit: number) => Record<string, unknown>, hint: string }>}
 */
const BOUNDS = {
  "loop-iterations": { what: (n) => plural(n, "turn"), raise: (n) => ({ maxLoopIterations: n }), hint: "maxLoopIterations" },
  "dispatch-iterations": { what: (n) => plural(n, "dispatch", "dispatches"), hint: "iterationCap of the dispatch node" },
  "node-executions": { what: (n) => plural(n, "node execution"), raise: (n) => ({ recursionLimit: n }), hint: "recursionLimit" },
  "run-duration": { what: (n) => duration(n), raise: (n) => ({ runTimeoutMs: n }), hint: "runTimeoutMs" },
  schema: { what: (n) => plural(n, "attempt"), hint: "limits of the host" },
  envelopes: { what: (n) => plural(n, "envelope"), hint: "limits of the host" },
  clarification: { what: (n) => plural(n, "question"), hint: "limits of the host" },
  "budget-tokens": { what: (n) => plural(n, "token"), raise: (n) => ({ budget: { maxTokens: n } }), hint: "budget.maxTokens" },
  "budget-cost": { what: (n) => cost(n), raise: (n) => ({ budget: { maxCostUsd: n } }), hint: "budget.maxCostUsd" },
  "budget-tool-calls": { what: (n) => plural(n, "tool call"), raise: (n) => ({ budget: { maxToolCalls: n } }), hint: "budget.maxToolCalls" },
  "budget-retries": { what: (n) => plural(n, "retry", "retries"), raise: (n) => ({ budget: { maxRetries: n } }), hint: "budget.maxRetries" },
};

/** @param {RunContext} ctx @param {ReturnType<typeof import("./actions.js").runActions>} actions */
export function banners(ctx, actions) {
  return h("div", { class: "run-banners", role: "status" }, () => {
    const seq = ctx.seq.value;
    const { facts } = ctx.log;
    void ctx.log.newest.value;
    const bound = facts.bounds.findLast((event) => event.sequence <= seq);
    const diverged = facts.divergences.find((event) => event.sequence <= seq);
    return [
      diverged ? divergence(ctx, diverged) : null,
      bound ? stopped(ctx, bound, actions) : failure(ctx, seq),
      ...waiting(ctx, actions),
    ];
  });
}

/** @param {string} tone @param {Child[]} text @param {...Child} steps */
const banner = (tone, text, ...steps) => h("div", { class: ["run-banner", tone] }, h("span", { class: "grow" }, ...text), h("span", { class: "row wrap" }, ...steps));
/** @param {RunContext} ctx @param {number} seq */
const show = (ctx, seq) => h("button", { type: "button", class: "small", onClick: () => ctx.moveTo(seq) }, `Show ${number(seq)}`);

/** @param {RunContext} ctx @param {RunEvent} event @param {ReturnType<typeof import("./actions.js").runActions>} actions */
function stopped(ctx, event, actions) {
  const { payload } = event;
  const loop = event.type === "workflow.loopback-limit";
  const kind = loop ? "loopback" : String(payload.kind);
  const [limit, observed] = [Number(payload.limit), Number(loop ? payload.iterations : payload.observed)];
  const words = loop ? { what: (/** @type {number} */ n) => plural(n, "round"), hint: "maxLoopbackIterations of the workflow" } : BOUNDS[kind] ?? { what: (/** @type {number} */ n) => `${number(n)} (${kind})`, hint: "the bound" };
  const raise = "raise" in words && words.raise ? words.raise(Math.ceil(limit * 1.5)) : null;
  const where = event.nodeId ?? payload.nodeId;
  return banner("bad",
    [h("strong", null, `Stopped by a bound: ${words.what(limit)} at most.`), ` ${where ? `At ${where} it` : "It"} came to ${words.what(observed)}. What was done until then is kept.`],
    h("button", { type: "button", class: "small", title: `A branch from here on, with a higher ${words.hint}`, onClick: () => actions.fork({ seq: event.sequence, ...(raise ? { configurable: raise } : {}) }) }, raise ? `Continue with ${words.what(Math.ceil(limit * 1.5))} (forks)` : "Fork here"),
    h("button", { type: "button", class: "small", onClick: () => (ctx.moveTo(event.sequence), ctx.screen.setQuery({ tab: "state" })) }, "See the partial result"));
}

/** @param {RunContext} ctx @param {RunEvent} event */
function divergence(ctx, event) {
  const { sourceRunId, atSequence, divergenceKind, divergencePoint, originalEnvelopeKind, replayEnvelopeKind } = event.payload;
  const what = event.type === "replay.divergedAtRefusal" ? `the model's answer was ${originalEnvelopeKind} and is ${replayEnvelopeKind}` : `${divergenceKind}${divergencePoint ? `, ${divergencePoint}` : ""}`;
  return banner("bad",
    [h("strong", null, `This replay does not go as its source went: sequence ${number(atSequence)}.`), ` ${what}.`],
    show(ctx, event.sequence),
    link(address("/compare", {}, { a: sourceRunId, b: ctx.runId, seq: atSequence }), { class: "button small" }, `Compare with ${shortId(sourceRunId ?? "")}`));
}

/** @param {RunContext} ctx @param {number} seq */
function failure(ctx, seq) {
  const last = ctx.log.at(ctx.log.newest.peek());
  if (last?.type !== "run.failed" || last.sequence > seq) return null;
  const where = last.payload.failedNodeId;
  const cause = ctx.log.latest(seq, (event) => event.type === "node.failed" && (!where || event.nodeId === where));
  return banner("bad", [h("strong", null, "Failed"), where ? ` at ${where}` : "", `: ${faultText(last.payload.error)}`], cause && show(ctx, cause.sequence));
}

/** @type {{ of: string, text: HTMLElement | null }} asked for once, though the banners are drawn with every event */
let told = { of: "", text: null };

/** What a run below asks, as soon as it is known. @param {RunContext} ctx @param {import("../../types.js").WaitingOn} on */
function asked(ctx, on) {
  const of = `${ctx.runId} ${on.runId} ${on.nodeId} ${ctx.item.peek()?.updatedAt}`;
  if (told.of === of) return told.text;
  const text = h("span");
  told = { of, text };
  api.interrupts.list({ runId: on.runId ?? "" }, { signal: ctx.signal }).then(({ interrupts: [first] }) => {
    if (first) text.textContent = titleOf(first);
  }).catch(() => {}); // It is asked over there in any case.
  return text;
}

/** @param {RunContext} ctx @param {ReturnType<typeof import("./actions.js").runActions>} actions @returns {Child[]} */
function waiting(ctx, actions) {
  if (!ctx.live.value && ctx.seq.value < ctx.log.newest.value) return [];
  const item = ctx.item.value;
  const status = statusAt(ctx);
  if (status === "paused") {
    const paused = ctx.log.latest(ctx.seq.value, (event) => event.type === "run.paused");
    return [banner("idle", [h("strong", null, "Paused."), ` ${item?.summary?.pauseReason ?? paused?.payload.reason ?? ""}`], h("button", { type: "button", class: "small", onClick: actions.resume }, "Resume"))];
  }
  const on = item?.summary?.waitingOn;
  if (on?.runId && on.runId !== ctx.runId) {
    const worker = ctx.snapshot.value?.childRuns?.find((child) => child.runId === on.runId)?.workflowId;
    return [banner("wait", [h("strong", null, `${worker ?? "A run below"} waits for an answer.`), " ", asked(ctx, on)],
      link(address("/runs/:runId", { runId: on.runId }), { class: "button small" }, `Open ${shortId(on.runId)}`))];
  }
  return [];
}
