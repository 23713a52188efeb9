// The line that says which run this is and how it stands, as of the playhead.
import { copyItems } from "../../components/copy-menu.js";
import { menuButton } from "../../components/menu.js";
import { meter, statusMark } from "../../components/status.js";
import { elapsed } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { copy } from "../../lib/copy.js";
import { h } from "../../lib/dom.js";
import { cost, number, shortId, tokens } from "../../lib/format.js";
import { turnWords } from "../../lib/limits.js";
import { address, link } from "../../lib/router.js";
import { computed } from "../../lib/signal.js";
import { fine } from "./event-row.js";
import { asOf } from "./facts.js";
import { stable } from "./panels/parts.js";

/** @typedef {import("./context.js").RunContext} RunContext */

const ENDED = new Set(["completed", "failed", "cancelled"]);

/** @param {RunContext} ctx @returns {string} how the run stood at the playhead */
export function statusAt(ctx) {
  const now = ctx.item.value?.status ?? ctx.snapshot.value?.status ?? "pending";
  if (ctx.live.value || (ctx.seq.value >= ctx.log.newest.value && ctx.log.over)) return now;
  // While the state of then is being asked for: the one of the place before, or the most likely.
  return ctx.state.value.value?.status ?? "running";
}

/** @param {RunContext} ctx @param {ReturnType<typeof import("./actions.js").runActions>} actions */
export function runHeader(ctx, actions) {
  const { item } = ctx;
  // Drawn anew when it is something else: a row comes with every event, also between press and click.
  const workflow = computed(() => item.value?.workflowId ?? ctx.snapshot.value?.workflowId ?? "");
  const version = computed(() => item.value?.workflowVersion);
  const from = stable(() => item.value?.forkedFrom ?? ctx.snapshot.value?.forkedFrom, JSON.stringify);
  const over = computed(() => ENDED.has(item.value?.status ?? ""));
  const paused = computed(() => item.value?.status === "paused");
  const unknown = () => item.value === null;
  // Nobody steps it, so there is nothing to pause or to resume.
  const held = computed(() => ctx.held.tree.value !== null);
  const why = () => (held.value ? "In quarantine: release it first" : null);
  return h("header", { class: "run-header" },
    h("h1", { class: "visually-hidden" }, () => `Run ${ctx.runId}, ${workflow.value}`),
    h("span", { class: "rh-status" }, () => statusMark(statusAt(ctx))),
    h("button", { type: "button", class: "quiet small mono rh-id", title: `${ctx.runId}: copy the id`, onClick: () => copy(ctx.runId, "Run id") }, shortId(ctx.runId)),
    h("span", { class: "rh-workflow clip" }, () => workflow.value !== "" && [
      link(address("/workflows/:workflowId", { workflowId: workflow.value }), { title: workflow.value }, workflow.value),
      version.value ? h("span", { class: "muted" }, `@${version.value}`) : null,
    ]),
    () => from.value && forked(from.value),
    h("dl", { class: "rh-facts" },
      fact(ctx, "Turn", () => turn(ctx)),
      fact(ctx, "Cost", () => money(ctx)),
      fact(ctx, "Tokens", () => used(ctx)),
      fact(ctx, "Time", () => time(ctx))),
    h("span", { class: "rh-actions" },
      () => !over.value && h("button", { type: "button", class: "small danger", title: "Cancel the run (x)", disabled: unknown, onClick: actions.cancel }, "Cancel"),
      () => !over.value && (paused.value
        ? h("button", { type: "button", class: "small", disabled: () => held.value, title: why, onClick: actions.resume }, "Resume")
        : h("button", { type: "button", class: "small", disabled: () => unknown() || held.value, title: why, onClick: actions.pause }, "Pause")),
      h("button", { type: "button", class: "small", title: "Fork here (f)", onClick: actions.fork }, "Fork"),
      menuButton("⋯", () => [
        { label: "Compare with…", note: "c", run: actions.compare },
        ...copyItems({ request: { path: `/v1/runs/${ctx.runId}` }, baton: ["run", "show", ctx.runId], json: () => api.runs.get(ctx.runId) }),
        over.peek() ? { label: "Verify", note: "decide again and compare", run: actions.verify } : null,
        over.peek() ? { label: "Export", run: actions.export } : null,
      ], { class: "icon small", title: "More" })));
}

/** A pair that is only there when it has something to say. @param {RunContext} ctx @param {string} name @param {() => import("../../lib/dom.js").Leaf} value */
function fact(ctx, name, value) {
  return () => {
    void ctx.reached.value;
    const shown = value();
    return shown === null || shown === "" ? null : h("div", null, h("dt", { class: "visually-hidden" }, name), h("dd", null, shown));
  };
}

/** @param {RunContext} ctx */
function turn(ctx) {
  const at = ctx.log.facts.turns.at(ctx.seq.value);
  const now = ctx.item.value?.summary?.iteration;
  if (!at && !now) return null;
  const turn = at?.number ?? now?.turn ?? 0;
  const { own, title } = turnWords(turn, now?.bound);
  return h("span", { title }, `turn ${number(turn)}${own}`);
}

/** @param {RunContext} ctx */
function money(ctx) {
  const { facts } = ctx.log;
  const used = asOf(facts.usage, ctx.seq.value);
  const budget = ctx.item.value?.summary?.budget ?? {};
  const then = facts.spentAt(ctx.seq.value);
  const bounded = Object.entries(budget).map(([name, { spent, limit }]) => ({ name, limit: then.get(name)?.limit ?? limit, spent: ctx.live.value ? spent : then.get(name)?.consumed ?? 0 }));
  const nearest = bounded.sort((a, b) => b.spent / b.limit - a.spent / a.limit)[0];
  const price = used?.cost;
  if (!nearest) return price === null || price === undefined ? null : h("span", { title: "This run's own models" }, cost(price));
  const write = nearest.name === "cost" ? cost : (/** @type {number} */ n) => number(n);
  const words = nearest.name === "cost" ? "" : ` ${nearest.name === "toolCalls" ? "calls" : nearest.name}`;
  const text = `${nearest.name}: ${write(nearest.spent)} of ${write(nearest.limit)}, the whole tree`;
  return h("span", { class: "row", title: text }, price && nearest.name !== "cost" ? `${cost(price)} · ` : "", `${write(nearest.spent)} / ${write(nearest.limit)}${words}`, meter(nearest.spent, nearest.limit, text));
}

/** @param {RunContext} ctx */
function used(ctx) {
  const then = asOf(ctx.log.facts.usage, ctx.seq.value);
  if (!then) return null;
  return h("span", { title: `${number(then.input)} in, ${number(then.output)} out, ${number(then.calls)} answers of models` }, `${tokens(then.input + then.output)} tok`);
}

/** @param {RunContext} ctx */
function time(ctx) {
  const { facts } = ctx.log;
  const [start, at] = [facts.times[0], facts.times[ctx.seq.value]];
  const first = ctx.log.at(0);
  if (start === undefined || !first) return null;
  if (ctx.live.value && !ctx.log.over && !ENDED.has(ctx.item.value?.status ?? "")) return elapsed(first.timestamp);
  return at === undefined ? null : fine(at - start);
}

/** @param {NonNullable<import("../../types.js").RunItem["forkedFrom"]>} from */
function forked(from) {
  return link(address("/runs/:runId", { runId: from.runId }, { seq: from.fromSeq }), { class: "tag", title: `${from.mode} of ${from.runId} at ${from.fromSeq}${from.requestedFromSeq === undefined ? "" : ` (asked for ${from.requestedFromSeq})`}${from.sideEffects ? `, side effects ${from.sideEffects}` : ""}` },
    `${from.mode} of ${shortId(from.runId)} at ${number(from.fromSeq)}`);
}
