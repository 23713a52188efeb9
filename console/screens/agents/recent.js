// The latest runs of an agent that was called by its id, with what they used.
import { askedView } from "../../components/asked-view.js";
import { statusMark } from "../../components/status.js";
import { ago } from "../../components/time.js";
import { onRuns } from "../../lib/activity.js";
import { api } from "../../lib/api.js";
import { asked } from "../../lib/asked.js";
import { h } from "../../lib/dom.js";
import { cost, shortId, tokens } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { onEnd } from "../../lib/signal.js";

const MOST = 8;

/** @param {string} agentId */
export function recent(agentId) {
  const workflowId = `agent:${agentId}`;
  const runs = asked((signal) => api.runs.list({ workflowId, limit: MOST }, { signal }));
  onEnd(onRuns((rows) => rows.some((one) => one.workflowId === workflowId) && runs.again()));
  return h("section", { class: "card stack" },
    h("div", { class: "row" }, h("h2", { class: "grow" }, "Its latest runs"), link(address("/runs", {}, { q: `workflow:${workflowId}` }), { class: "small" }, "All of them")),
    askedView(runs, ({ runs: all }) => all.length === 0
      ? h("p", { class: "muted" }, "It has not been called by its id yet. Runs in which it works for others are among the runs of those workflows.")
      : h("ul", { class: "agent-runs" }, all.map((run) => h("li", null, statusMark(run.status, { word: false }),
          link(address("/runs/:runId", { runId: run.runId }), { class: "mono grow", title: run.runId }, shortId(run.runId)),
          h("span", { class: "muted small" }, run.summary?.usage ? `${tokens(run.summary.usage.inputTokens + run.summary.usage.outputTokens)} tokens${run.summary.usage.costUsd === undefined ? "" : `, ${cost(run.summary.usage.costUsd)}`}` : ""),
          h("span", { class: "muted small" }, ago(run.createdAt)))))));
}
