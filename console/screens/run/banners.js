// What has to be said above everything else: a quarantine, a bound that stopped the run, a replay that left its source, a
// failure, a pause, a run below that waits. Each with its next step, and only from the event on that says it; a quarantine
// is no event, and holds wherever the playhead is.
import { decisions, lackingNote } from "../../components/quarantine.js";
import { ago } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { inOrder } from "../../lib/asked.js";
import { h } from "../../lib/dom.js";
import { cost, duration, number, plural, shortId } from "../../lib/format.js";
import { causeWords } from "../../lib/quarantine.js";
import { address, link } from "../../lib/router.js";
import { computed, effect } from "../../lib/signal.js";
import { titleOf } from "./answers.js";
import { statusAt } from "./header.js";
import { stable } from "./panels/parts.js";
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
  // Each is drawn when what it says changes, not with every event: it can be pressed, and is not read out for ever.
  const { log } = ctx;
  const passed = (/** @type {RunEvent} */ event) => event.sequence <= ctx.seq.value;
  const told = (/** @type {() => RunEvent | undefined} */ find) => computed(() => (void log.newest.value, find()));
  const diverged = told(() => log.facts.divergences.find(passed));
  const bound = told(() => log.facts.bounds.findLast(passed));
  const ended = told(() => [log.at(log.newest.value)].find((last) => last?.type === "run.failed" && passed(last)));
  const waits = stable(() => waitsFor(ctx), JSON.stringify);
  return h("div", { class: "run-banners", role: "status" },
    () => ctx.held.tree.value && quarantined(ctx, ctx.held.tree.value),
    () => diverged.value && divergence(ctx, diverged.value),
    () => (bound.value ? stopped(ctx, bound.value, actions) : ended.value && failure(ctx, ended.value)),
    () => waits.value && waiting(ctx, waits.value, actions));
}

/** @param {string} tone @param {Child[]} text @param {...Child} steps */
const banner = (tone, text, ...steps) => h("div", { class: ["run-banner", tone] }, h("span", { class: "grow" }, ...text), h("span", { class: "row wrap" }, ...steps));
/** @param {RunContext} ctx @param {number} seq */
const show = (ctx, seq) => h("button", { type: "button", class: "small", onClick: () => ctx.moveTo(seq) }, `Show ${number(seq)}`);

/** @param {RunContext} ctx @param {import("../../types.js").QuarantinedTree} tree */
function quarantined(ctx, tree) {
  const { title, text } = causeWords(tree.cause);
  const other = tree.runId !== ctx.runId;
  return banner("bad",
    [h("strong", null, other ? "The tree of this run is in quarantine." : `In quarantine: ${title}.`),
      other && [" The failing run is ", link(address("/runs/:runId", { runId: tree.runId }), { class: "mono", title: tree.runId }, shortId(tree.runId)), `: ${title}.`],
      ` ${text} Nothing in its tree goes on, and the log stays as it is, until somebody releases or cancels it. Put there `,
      // It ticks; nobody wants that read out.
      h("span", { "aria-live": "off" }, ago(tree.since)), ".",
      tree.detail && h("span", { class: "small mono held-detail" }, tree.detail)],
    decisions(tree, ctx.held.decided), lackingNote());
}

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

/** @param {RunContext} ctx @param {RunEvent} event */
function failure(ctx, { sequence, payload }) {
  const where = payload.failedNodeId;
  const cause = ctx.log.latest(sequence, (event) => event.type === "node.failed" && (!where || event.nodeId === where));
  return banner("bad", [h("strong", null, "Failed"), where ? ` at ${where}` : "", `: ${faultText(payload.error)}`], cause && show(ctx, cause.sequence));
}

/** @typedef {{ paused: string } | { runId: string, worker: string }} Waits */

/** What it waits for now, if not for an answer of its own. @param {RunContext} ctx @returns {Waits | null} */
function waitsFor(ctx) {
  if (!ctx.live.value && ctx.seq.value < ctx.log.newest.value) return null;
  const item = ctx.item.value;
  if (statusAt(ctx) === "paused") {
    const event = ctx.log.latest(ctx.seq.value, ({ type }) => type === "run.paused");
    return { paused: item?.summary?.pauseReason ?? event?.payload.reason ?? "" };
  }
  const { runId } = item?.summary?.waitingOn ?? {};
  if (!runId || runId === ctx.runId) return null;
  return { runId, worker: ctx.snapshot.value?.childRuns?.find((child) => child.runId === runId)?.workflowId ?? "A run below" };
}

/** @param {RunContext} ctx @param {Waits} waits @param {ReturnType<typeof import("./actions.js").runActions>} actions */
function waiting(ctx, waits, actions) {
  if ("paused" in waits) return banner("idle", [h("strong", null, "Paused."), ` ${waits.paused}`], h("button", { type: "button", class: "small", onClick: actions.resume }, "Resume"));
  const { runId, worker } = waits;
  return banner("wait", [h("strong", null, `${worker} waits for an answer.`), " ", question(ctx, runId)],
    link(address("/runs/:runId", { runId }), { class: "button small" }, `Open ${shortId(runId)}`));
}

/** What a run below asks, as soon as it is known. @param {RunContext} ctx @param {string} runId */
function question(ctx, runId) {
  const text = h("span");
  const begin = inOrder();
  const updated = computed(() => ctx.item.value?.updatedAt);
  effect(() => {
    void updated.value;
    const counts = begin();
    api.interrupts.list({ runId }, { signal: ctx.signal }).then(({ interrupts: [first] }) => {
      const title = first ? titleOf(first) : "";
      if (counts() && title && title !== text.textContent) text.textContent = title;
    }).catch(() => {}); // It is asked over there in any case.
  });
  return text;
}
