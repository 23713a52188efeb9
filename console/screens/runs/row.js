// One row of the list of runs, and its header.
import { copyIcon, moreIcon } from "../../components/icons.js";
import { copyItems } from "../../components/copy-menu.js";
import { menuButton } from "../../components/menu.js";
import { meter, statusMark } from "../../components/status.js";
import { ago, elapsed } from "../../components/time.js";
import { api } from "../../lib/api.js";
import { copy } from "../../lib/copy.js";
import { h } from "../../lib/dom.js";
import { cost, number, plural, shortId, tokens } from "../../lib/format.js";
import { turnWords } from "../../lib/limits.js";
import { address, link } from "../../lib/router.js";

/** @typedef {import("../../types.js").RunItem} RunItem */

const ENDED = new Set(["completed", "failed", "cancelled"]);
export const hasEnded = (/** @type {RunItem} */ run) => ENDED.has(run.status);

/** The address of a run. @param {string} runId */
export const runAddress = (runId) => address("/runs/:runId", { runId });

/** @param {() => void} toggleAll @param {(element: HTMLInputElement) => void} ref */
export function header(toggleAll, ref) {
  const all = h("input", { type: "checkbox", "aria-label": "Select all rows that are loaded", onChange: toggleAll });
  ref(all);
  const names = [["status", "Status"], ["id", "Run"], ["workflow", "Workflow"], ["waiting", "Waiting on"], ["tree num", "Tree"], ["turn num", "Turn"], ["started num", "Started"], ["took num", "Duration"], ["tokens num", "Tokens"], ["cost num", "Cost"], ["budget", "Budget"]];
  return h("div", { class: "run-row run-head", role: "row", "aria-rowindex": "1" },
    h("span", { role: "columnheader", class: "c-check" }, all),
    names.map(([name = "", label]) => h("span", { role: "columnheader", class: name.split(" ").map((part) => (part === "num" ? part : `c-${part}`)) }, label)),
    h("span", { role: "columnheader", class: "c-menu" }, h("span", { class: "visually-hidden" }, "Actions")));
}

/**
 * @param {RunItem} run
 * @param {{ selected: boolean, stale: boolean, held: boolean, now: () => RunItem, onSelect: (event: Event) => void, onCancel: (run: RunItem) => void }} options
 */
export function row(run, { selected, stale, held, now, onSelect, onCancel }) {
  const { usage, children = 0, descendants = 0 } = run.summary ?? {};
  const below = Math.max(children, descendants);
  const cell = (/** @type {string} */ name, /** @type {import("../../lib/dom.js").Child[]} */ ...content) => h("span", { role: "gridcell", class: name }, ...content);
  return h("div", { class: ["run-row", stale && "stale"], "aria-selected": String(selected), title: stale ? "No longer fits the filter" : null },
    cell("c-check", h("input", { type: "checkbox", tabindex: "-1", checked: selected, "aria-label": `Select ${run.runId}`, onClick: onSelect })),
    cell("c-status", statusMark(run.status)),
    cell("c-id", link(runAddress(run.runId), { class: "mono", tabindex: "-1", title: run.runId }, shortId(run.runId)),
      h("button", { type: "button", class: "icon small copy-id", tabindex: "-1", title: "Copy the id", "aria-label": `Copy ${run.runId}`, onClick: () => copy(run.runId, "Run id") }, copyIcon())),
    cell("c-workflow clip", link(runAddress(run.runId), { tabindex: "-1", title: run.workflowId }, run.workflowId), run.workflowVersion && h("span", { class: "muted" }, `@${run.workflowVersion}`),
      run.forkedFrom && h("span", { class: "tag", title: `Forked from ${run.forkedFrom.runId} at ${run.forkedFrom.fromSeq}` }, run.forkedFrom.mode === "replay" ? "replay" : "fork"),
      run.tags.map((tag) => h("span", { class: "tag" }, tag))),
    cell("c-waiting clip", held ? h("span", { class: "failed", title: "The host leaves its tree alone until somebody decides" }, "in quarantine") : waitingOn(run)),
    cell("c-tree num", below > 0 ? h("span", { title: `${plural(below, "run")} below` }, number(below)) : ""),
    cell("c-turn num", turn(run)),
    cell("c-started num muted", ago(run.createdAt)),
    cell("c-took num", elapsed(run.createdAt, hasEnded(run) ? run.updatedAt : null)),
    cell("c-tokens num", usage ? h("span", { title: `${number(usage.inputTokens)} in, ${number(usage.outputTokens)} out` }, tokens(usage.inputTokens + usage.outputTokens)) : ""),
    cell("c-cost num", usage?.costUsd === undefined ? "" : cost(usage.costUsd)),
    cell("c-budget", budget(run)),
    cell("c-menu", menuButton(moreIcon(), () => [
      ...copyItems({ request: { path: `/v1/runs/${run.runId}` }, baton: ["run", "show", run.runId], json: () => api.runs.get(run.runId), link: runAddress(run.runId) }),
      hasEnded(now()) ? null : { label: "Cancel…", run: () => onCancel(now()), danger: true },
    ], { class: "icon small", title: `Actions for ${run.runId}` })));
}

/** The turn under way. The row counts those that are decided; a decision that is held names its own. @param {RunItem} run */
function turn({ summary }) {
  const { iteration, waitingOn: on } = summary ?? {};
  const now = Math.max(iteration?.turn ?? 0, Number(/^Turn (\d+): the supervisor/.exec(on?.question ?? "")?.[1] ?? 0));
  if (now === 0) return "";
  const { own, title } = turnWords(now, iteration?.bound);
  return h("span", { title }, `${number(now)}${own}`);
}

/** Who or what a run waits for, or why it stopped. @param {RunItem} run */
function waitingOn(run) {
  const { waitingOn: on, pauseReason, overBudget, diverged } = run.summary ?? {};
  if (run.error) return h("span", { class: "mono small failed" }, run.error.code);
  if (diverged) return h("span", { class: "failed" }, "diverged from its source");
  if (overBudget && !hasEnded(run)) return h("span", { class: "failed" }, "over budget");
  if (pauseReason) return h("span", { class: "muted", title: pauseReason }, pauseReason);
  if (!on) return run.status.startsWith("waiting") && run.currentNodeId ? h("span", { class: "muted" }, run.currentNodeId) : "";
  const text = on.question ?? (on.runId ? `a run below waits, at ${on.nodeId}` : `${on.kind} at ${on.nodeId}`);
  return h("span", { title: `${on.kind} at ${on.nodeId}${on.open > 1 ? `, ${on.open} open` : ""}` }, text, on.open > 1 && h("span", { class: "muted" }, ` +${on.open - 1}`));
}

/** The dimension that is nearest to its limit. @param {RunItem} run */
function budget(run) {
  const lines = Object.entries(run.summary?.budget ?? {});
  const nearest = lines.sort(([, a], [, b]) => b.spent / b.limit - a.spent / a.limit)[0];
  if (!nearest) return "";
  const [name, { spent, limit }] = nearest;
  const write = name.toLowerCase().includes("cost") ? cost : (/** @type {number} */ n) => number(n);
  return meter(spent, limit, `${name}: ${write(spent)} of ${write(limit)}, the whole tree`);
}
