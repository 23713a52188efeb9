// Two runs side by side: where they part, what they know, what they gave, what they cost.
import { askedView } from "../components/asked-view.js";
import { copyMenu } from "../components/copy-menu.js";
import { jsonDiff, textDiff } from "../components/diff-view.js";
import { jsonView } from "../components/json-view.js";
import { statusMark } from "../components/status.js";
import { ago, elapsed } from "../components/time.js";
import { api } from "../lib/api.js";
import { asked, rested } from "../lib/asked.js";
import { h } from "../lib/dom.js";
import { number, shortId } from "../lib/format.js";
import { addCommands } from "../lib/keys.js";
import { address, link } from "../lib/router.js";
import { computed, effect, onEnd, untracked } from "../lib/signal.js";
import { deltaTable, figuresOf } from "./compare/deltas.js";
import { eventsView } from "./compare/events.js";
import { picker } from "./compare/picker.js";
import { openLog } from "./run/log.js";

/** @typedef {import("../types.js").RunSnapshot} RunSnapshot */
/** @typedef {import("../types.js").ScreenContext} ScreenContext */

const GROWN = 1000;

/** @type {import("../types.js").Screen} */
export default {
  title: "Compare",
  mount(root, _params, context) {
    const body = h("div", { class: "page compare" });
    root.append(body);
    effect(() => {
      const [a, b] = [context.query.value.get("a"), context.query.value.get("b")];
      untracked(() => {
        body.replaceChildren(h("div", { class: "page-head" }, h("h1", null, "Compare")));
        if (!a) body.append(picker(null, (runId) => context.setQuery({ a: runId }, { push: true })));
        else if (!b) body.append(picker(a, (runId) => context.setQuery({ b: runId }, { push: true })));
        else compare(body, a, b, context);
      });
    });
  },
};

/** @param {HTMLElement} body @param {string} a @param {string} b @param {ScreenContext} context */
function compare(body, a, b, context) {
  context.setTitle(`Compare ${shortId(a)} and ${shortId(b)}`);
  const logs = [openLog(a), openLog(b)];
  const left = new AbortController();
  onEnd(() => left.abort());
  for (const log of logs) log.follow(left.signal);
  /** @type {Promise<never>} */
  const loading = new Promise(() => {});
  // Of the logs only what matters here: a stream that opens must not close what somebody has opened.
  const stage = computed(() => (logs.some((log) => log.phase.value === "failed") ? "failed" : logs.some((log) => log.newest.value < 0 || log.phase.value === "loading") ? "loading" : "there"));
  const size = () => logs.reduce((sum, log) => sum + log.newest.value, 0);
  let compared = -1;
  const answer = asked((wanted) => {
    if (stage.value === "failed") return Promise.reject(logs.find((log) => log.phase.peek() === "failed")?.error);
    if (stage.value === "loading") return loading;
    return rested(wanted, async () => {
      compared = size();
      const [diff, runA, runB] = await Promise.all([api.runs.diff(a, b, { signal: wanted }), api.runs.get(a, { signal: wanted }), api.runs.get(b, { signal: wanted })]);
      return { diff, runA, runB, eventsA: logs[0]?.events ?? [], eventsB: logs[1]?.events ?? [] };
    });
  });
  // A run that goes on may part later than it has so far: asked again as the logs grow, one question at a time.
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  effect(() => {
    if (size() === compared || stage.value !== "there" || answer.busy.value || timer) return;
    timer = setTimeout(() => ((timer = undefined), answer.again()), GROWN);
  });
  onEnd(() => clearTimeout(timer));
  const head = body.firstElementChild;
  head?.append(
    h("button", { type: "button", class: "small", onClick: () => context.setQuery({ a: b, b: a }) }, "Swap"),
    h("button", { type: "button", class: "small", onClick: () => context.setQuery({ b: null }, { push: true }) }, "Another run…"),
    h("span", { class: "push" }, copyMenu(() => ({ request: { path: `/v1/runs/${a}:diff?against=${b}` }, baton: ["run", "diff", a, b], json: () => answer.value.peek()?.diff }))));
  addCommands([{ keys: "n", label: "Next difference", group: "Compare", run: () => nextDifference(body, 1) }, { keys: "p", label: "Previous difference", group: "Compare", run: () => nextDifference(body, -1) }]);
  body.append(askedView(answer, ({ diff, runA, runB, eventsA, eventsB }) => {
    const fork = forkPoint(runA, runB);
    const from = fork ?? 0;
    const begun = (/** @type {RunSnapshot} */ run, /** @type {RunSnapshot} */ other) => (run.forkedFrom?.runId === other.runId ? run.startedAt : undefined);
    return h("div", { class: "stack" },
      h("div", { class: "cmp-heads" }, runCard("A", runA), runCard("B", runB)),
      verdict(diff, runA, runB),
      h("div", { class: "cmp-two" },
        h("section", { class: "card" }, h("h2", null, fork === null ? "What they came to" : `What they came to from #${number(fork)} on`),
          deltaTable(figuresOf(eventsA, from, begun(runA, runB) ?? eventsA[Math.max(0, from - 1)]?.timestamp), figuresOf(eventsB, from, begun(runB, runA) ?? eventsB[Math.max(0, from - 1)]?.timestamp), a, b)),
        h("div", { class: "stack" },
          (runA.outputs !== undefined || runB.outputs !== undefined) && h("section", { class: "card" }, h("h2", null, "Output"), diff.stateDiff.outputs ? values(diff.stateDiff.outputs) : h("p", { class: "muted" }, "The same.")),
          h("section", { class: "card" }, h("h2", null, "State"), stateView(diff, Math.min(eventsA.length, eventsB.length) - 1)))),
      h("section", { class: "card" }, h("h2", null, "Events"), h("div", { class: "cmp-legend muted small" }, h("span", null, "A"), h("span", null, "B")), eventsView(eventsA, eventsB, diff.divergedAtSeq)));
  }));
}

/** Where one was forked from the other. @param {RunSnapshot} a @param {RunSnapshot} b @returns {number | null} */
function forkPoint(a, b) {
  if (b.forkedFrom?.runId === a.runId) return b.forkedFrom.fromSeq;
  if (a.forkedFrom?.runId === b.runId) return a.forkedFrom.fromSeq;
  // Forks of the same run share what is before both points.
  if (a.forkedFrom && a.forkedFrom.runId === b.forkedFrom?.runId) return Math.min(a.forkedFrom.fromSeq, b.forkedFrom.fromSeq);
  return null;
}

/** @param {string} name @param {RunSnapshot} run */
function runCard(name, run) {
  const fork = run.forkedFrom;
  return h("article", { class: "card cmp-run" },
    h("div", { class: "row wrap" }, h("strong", { class: "cmp-letter" }, name), link(address("/runs/:runId", { runId: run.runId }), { class: "mono", title: run.runId }, shortId(run.runId)), statusMark(run.status)),
    h("div", { class: "muted small row wrap" }, h("span", null, run.workflowId), run.startedAt && h("span", null, "started ", ago(run.startedAt)), run.startedAt && h("span", null, "took ", elapsed(run.startedAt, run.completedAt ?? null))),
    fork && h("div", { class: "small" }, `${fork.mode} of `, link(address("/runs/:runId", { runId: fork.runId }, { seq: fork.fromSeq }), { class: "mono" }, shortId(fork.runId)), ` at #${number(fork.fromSeq)}`,
      h("span", { class: "muted" }, fork.sideEffects ? `, side effects ${fork.sideEffects}` : "", fork.overlaid?.length ? `, changed: ${fork.overlaid.join(", ")}` : "")),
    run.error && h("div", { class: "small bad-text" }, `${run.error.code}: ${run.error.message}`));
}

/** @param {import("../types.js").RunDiff} diff @param {RunSnapshot} a @param {RunSnapshot} b */
function verdict(diff, a, b) {
  const ended = (/** @type {RunSnapshot} */ run) => ["completed", "failed", "cancelled"].includes(run.status);
  const at = diff.divergedAtSeq;
  return h("div", { class: ["cmp-verdict", at === null ? "same" : "parts"], role: "status" },
    h("strong", null, at === null ? "They did the same." : `They part at #${number(at)}.`),
    h("span", { class: "muted" }, diff.truncated ? (ended(a) && ended(b) ? "Only the first differences are compared." : "One has not ended: only what both have recorded is compared.") : a.workflowDigest === b.workflowDigest ? "Both ran the same version of the workflow." : "They ran different versions of a workflow."),
    at !== null && h("button", { type: "button", class: "small", onClick: () => {
      const row = document.getElementById("parting");
      row?.scrollIntoView({ block: "center" });
      row?.querySelector("summary")?.focus();
    } }, "Show it"));
}

/** @param {import("../types.js").RunDiff} diff @param {number} common the last sequence that both have */
function stateView({ stateDiff, truncated }, common) {
  const { outputs: _outputs, variables = {}, channels = {}, ...rest } = stateDiff;
  const all = [...Object.entries(rest), ...Object.entries(variables).map(([name, both]) => [`variables.${name}`, both]), ...Object.entries(channels).map(([name, both]) => [`channels.${name}`, both])];
  const when = truncated && h("p", { class: "muted small" }, `As of #${number(common)}, the last event that both have.`);
  if (all.length === 0) return [when, h("p", { class: "muted" }, "They stand the same.")];
  return [when, h("dl", { class: "cmp-state" }, all.map(([name, both]) => [h("dt", { class: "mono" }, name), h("dd", null, values(both))]))];
}

/** By place where both have something inside, whole otherwise. @param {{ a: unknown, b: unknown }} both */
function values({ a, b }) {
  const inside = (/** @type {unknown} */ value) => typeof value === "object" && value !== null;
  if (inside(a) && inside(b)) return jsonDiff(a, b);
  if (typeof a === "string" && typeof b === "string" && `${a}${b}`.includes("\n")) return textDiff(a, b);
  const whole = (/** @type {string} */ name, /** @type {unknown} */ value, /** @type {string} */ kind) => h("div", { class: kind }, h("span", { class: "muted small" }, name),
    value === null || value === undefined ? h("span", { class: "muted" }, "none") : inside(value) ? jsonView(value, 2) : h("span", { class: "wrap-any" }, value === "" ? "“”" : String(value)));
  return h("div", { class: "cmp-values" }, whole("A", a, "removed"), whole("B", b, "added"));
}

/** @param {HTMLElement} body @param {1 | -1} by */
function nextDifference(body, by) {
  const rows = /** @type {HTMLElement[]} */ ([...body.querySelectorAll(".cmp-row:not(.same) > summary")]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const to = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))];
  to?.scrollIntoView({ block: "nearest" });
  to?.focus();
}
