// The language of the runs' filter: what may be written, what it asks of the API, and whether a row fits.
import { instant, parseQuery, problems, span, valueOf, valuesOf } from "../../lib/query.js";

const WAITING = ["waiting-approval", "waiting-input", "waiting-external", "waiting-clarification"];
const ACTIVE = ["pending", "running", "paused", "cancelling", ...WAITING];
const ENDED = ["completed", "failed", "cancelled"];
const GROUPS = /** @type {Record<string, string[]>} */ ({ waiting: WAITING, active: ACTIVE, ended: ENDED });

/** What a fresh visitor sees: trees, not every worker in them. */
export const DEFAULT = "is:top-level";

/** @type {import("../../lib/query.js").Field[]} */
export const FIELDS = [
  { name: "status", hint: "one or several, separated by commas", values: ["waiting", "active", "ended", ...ACTIVE, ...ENDED] },
  { name: "is", hint: "top-level, over-budget, diverged", values: ["top-level", "over-budget", "diverged"] },
  { name: "workflow", hint: "the id of a workflow" },
  { name: "tag", hint: "a tag of the run" },
  { name: "since", hint: "started within 24h, or after 2026-01-31", valid: (value) => instant(value) !== null },
  { name: "until", hint: "started before 24h ago, or before 2026-01-31", valid: (value) => instant(value) !== null },
  { name: "idle", hint: "nothing happened for 15m", signs: [">"], valid: (value) => span(value) !== null },
  { name: "cost", hint: "own model calls cost more than this many dollars", signs: [">", ">="], valid: (value) => Number.isFinite(Number(value)) && Number(value) >= 0 },
  { name: "parent", hint: "children of this run" },
  { name: "root", hint: "everything below this top-level run" },
];

export const VIEWS = [
  { id: "runs", label: "Runs", text: DEFAULT },
  { id: "needs-you", label: "Needs you", text: "status:waiting" },
  { id: "running", label: "Running", text: "status:running,pending" },
  { id: "failed", label: "Failed", text: "status:failed" },
  { id: "stuck", label: "Stuck", text: "status:running,pending idle>15m" },
  { id: "over-budget", label: "Over budget", text: "is:over-budget" },
  { id: "diverged", label: "Diverged", text: "is:diverged" },
  { id: "all", label: "All", text: "" },
];

/** @param {string} text @returns {{ filter: import("../../types.js").RunFilter, wrong: string[] }} */
export function readFilter(text) {
  const query = parseQuery(text);
  const wrong = problems(query, FIELDS);
  const is = valuesOf(query, "is");
  const status = valuesOf(query, "status").flatMap((one) => GROUPS[one] ?? [one]);
  const [since, until, idle, cost] = ["since", "until", "idle", "cost"].map((name) => valueOf(query, name));
  /** @type {import("../../types.js").RunFilter} */
  const filter = {
    ...(status.length > 0 ? { status: [...new Set(status)] } : {}),
    ...given("workflowId", valueOf(query, "workflow")),
    ...given("tag", valueOf(query, "tag")),
    ...given("parentRunId", valueOf(query, "parent")),
    ...given("rootRunId", valueOf(query, "root")),
    ...given("createdAfter", since && instant(since)),
    ...given("createdBefore", until && instant(until)),
    ...given("updatedBefore", idle && instant(idle)),
    ...given("minCostUsd", cost && Number(cost)),
    ...given("topLevel", is.includes("top-level") || undefined),
    ...given("overBudget", is.includes("over-budget") || undefined),
    ...given("diverged", is.includes("diverged") || undefined),
    ...given("q", query.words.join(" ")),
  };
  return { filter, wrong };
}

/** @param {string} name @param {unknown} value */
function given(name, value) {
  return value === undefined || value === null || value === "" ? {} : { [name]: value };
}

/** What `baton run list` has no option for. @type {Record<string, string>} */
const ONLY_HERE = { topLevel: "is:top-level", minCostUsd: "cost", parentRunId: "parent", rootRunId: "root" };

/** The same list in a terminal, and what it cannot leave out there. @param {string} text */
export function listCommand(text) {
  const { filter } = readFilter(text);
  const idle = span(valueOf(parseQuery(text), "idle") ?? "");
  /** @type {[string, unknown][]} */
  const options = [
    ...(filter.status ?? []).map((one) => /** @type {[string, unknown]} */ (["--status", one])),
    ["--workflow", filter.workflowId], ["--tag", filter.tag], ["--since", filter.createdAfter], ["--until", filter.createdBefore],
    ["--quiet-for", idle === null ? undefined : idle % 60_000 === 0 ? `${idle / 60_000}m` : `${Math.round(idle / 1000)}s`],
    ["--diverged", filter.diverged], ["--over-budget", filter.overBudget], ["--prefix", filter.q], ["--limit", 100],
  ];
  const without = Object.entries(ONLY_HERE).flatMap(([name, word]) => (name in filter ? [word] : []));
  return {
    baton: ["run", "list", ...options.flatMap(([name, value]) => (value === undefined ? [] : value === true ? [name] : [name, String(value)]))],
    ...(without.length > 0 ? { batonNote: `without ${without.join(", ")}` } : {}),
  };
}

/** Whether a row that changed is among those asked for. @param {import("../../types.js").RunItem} run @param {import("../../types.js").RunFilter} filter */
export function fits(run, filter) {
  const at = (/** @type {string | undefined} */ text) => (text ? Date.parse(text) : Number.NaN);
  return (
    (!filter.status || filter.status.includes(run.status)) &&
    (!filter.workflowId || run.workflowId === filter.workflowId) &&
    (!filter.tag || run.tags.includes(filter.tag)) &&
    (!filter.parentRunId || run.parentRunId === filter.parentRunId) &&
    (!filter.rootRunId || run.rootRunId === filter.rootRunId) &&
    !(at(run.createdAt) < at(filter.createdAfter)) &&
    !(at(run.createdAt) > at(filter.createdBefore)) &&
    !(at(run.updatedAt) > at(filter.updatedBefore)) &&
    (filter.minCostUsd === undefined || (run.summary?.usage?.costUsd ?? 0) >= filter.minCostUsd) &&
    (!filter.topLevel || !run.parentRunId) &&
    (!filter.overBudget || run.summary?.overBudget === true) &&
    (!filter.diverged || run.summary?.diverged === true) &&
    (!filter.q || run.runId.startsWith(filter.q) || run.workflowId.startsWith(filter.q))
  );
}
