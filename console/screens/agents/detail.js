// One agent: what its manifest says, and what is left of it here for this key.
import { askedView } from "../../components/asked-view.js";
import { copyMenu } from "../../components/copy-menu.js";
import { jsonView } from "../../components/json-view.js";
import { statusMark } from "../../components/status.js";
import { ago } from "../../components/time.js";
import { onRuns } from "../../lib/activity.js";
import { api } from "../../lib/api.js";
import { asked } from "../../lib/asked.js";
import { h } from "../../lib/dom.js";
import { cost, duration, number, plural, shortId, tokens } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { onEnd } from "../../lib/signal.js";
import { tryBox } from "./try.js";

/** @typedef {import("../../types.js").AgentEntry} AgentEntry */
/** @typedef {import("../../types.js").EffectiveAgent} EffectiveAgent */

/** @param {string} agentId @param {import("../../types.js").ScreenContext} context */
export function detail(agentId, context) {
  const both = asked(async (signal) => {
    const [agent, effective] = await Promise.all([api.agents.get(agentId, { signal }), api.agents.effective(agentId, { signal })]);
    return { agent, effective };
  });
  return askedView(both, ({ agent, effective }) => {
    context.setTitle(agent.label || agent.persona);
    return h("div", { class: "agent" },
      head(agent, effective),
      warnings(agent, effective),
      h("div", { class: "agent-cols" },
        h("div", { class: "stack" }, tryBox(agent, effective, context), recent(agentId), toolTable(agent, effective)),
        h("div", { class: "stack" }, facts(agent, effective))),
      h("details", { class: "card" }, h("summary", null, "Manifest, as the inventory has it"), jsonView(agent, 3),
        h("p", { class: "muted small" }, "Prompts and schemas are never part of it: they are read by the host and stay there.")));
  });
}

/** @param {AgentEntry} agent @param {EffectiveAgent} effective */
function head(agent, effective) {
  const path = `/v1/host/baton/agents/${encodeURIComponent(agent.agentId)}/effective`;
  return h("header", { class: "stack agent-head" },
    h("div", { class: "row" },
      link(address("/agents"), { class: "button small quiet q-back" }, "← All agents"),
      h("h1", { class: "grow" }, agent.label || agent.persona), copyMenu(() => ({ request: { path }, baton: ["agent", "show", agent.agentId], json: { agent, effective }, link: address("/agents/:agentId", { agentId: agent.agentId }) }))),
    h("p", { class: "mono muted small" }, agent.agentId),
    agent.description && h("p", null, agent.description));
}

/** What is missing here, in words. @param {AgentEntry} agent @param {EffectiveAgent} effective */
function warnings(agent, effective) {
  const memory = agent.degradedMemoryDimensions ?? [];
  // Tools that are missing have a line of their own.
  const degraded = effective.degraded.filter((one) => !effective.unavailable.includes(one) && (one !== "memoryDegraded" || memory.length === 0));
  const said = [
    degraded.length > 0 && `Degraded: this host does not have ${degraded.join(", ")}. The agent works without it.`,
    memory.length > 0 && `Memory is degraded: ${memory.join(", ")} is not kept here.`,
    effective.unavailable.length > 0 && `Not offered here: ${effective.unavailable.join(", ")}. They are on its list, but the host has no such tool or it is not granted.`,
    !effective.model && `No model is set for the class ${agent.modelClass}. Name one under [models] in the host's configuration; until then it cannot be called.`,
    effective.model && !effective.model.configured && `The provider ${effective.model.provider} is not configured, so calls will fail.`,
  ].filter((one) => typeof one === "string");
  return said.length > 0 && h("ul", { class: "agent-warn", role: "status" }, said.map((one) => h("li", null, one)));
}

/** @param {AgentEntry} agent @param {EffectiveAgent} effective */
function facts(agent, { model, memory, bounds, confidence, digest }) {
  const kept = [memory.scratchpad && "scratchpad", memory.conversation && "conversation", memory.longTerm && "long-term"].filter((one) => typeof one === "string");
  return [
    group("Model", [
      ["Class", agent.modelClass],
      ["Route", model ? h("span", { class: "mono" }, `${model.provider}/${model.model}`) : "none"],
      ["Price", model ? (model.priced ? "known: costs are counted" : "not known: only tokens are counted") : "–"],
    ]),
    group("Memory", [
      ["Keeps", kept.length > 0 ? kept.join(", ") : "nothing"],
      ["Scope", kept.length > 0 ? [`${memory.scope === "tree" ? "the run tree's own" : memory.scope}, unless a `, h("code", null, "scopeId"), " is given"] : "–"],
    ]),
    group("Bounds", [
      ["Confidence", `below ${confidence.threshold} a human decides (${confidence.from === "agent" ? "its manifest" : "the host"})`],
      ["Decision floor", String(confidence.decisionFloor)],
      ["Turns of a loop", number(bounds.maxLoopIterations)],
      ["Node executions", number(bounds.maxNodeExecutions)],
      ["Run duration", duration(bounds.maxRunDurationMs)],
      ["Fan-out", number(bounds.maxFanOut)],
      ["Envelopes a turn", number(bounds.envelopesPerTurn)],
      ["Schema rounds", number(bounds.schemaRounds)],
    ]),
    group("Pack", [
      ["Name", h("span", { class: "mono" }, agent.packName)],
      ["Version", agent.packVersion],
      ["Digest", h("span", { class: "mono", title: digest }, digest.slice(0, 12))],
      ["Handoff schemas", agent.hasHandoffSchemas ? "yes: task and answer are checked" : "no"],
    ]),
  ];
}

/** @param {string} title @param {[string, import("../../lib/dom.js").Child][]} rows */
function group(title, rows) {
  return h("section", { class: "card agent-facts" }, h("h2", null, title), h("dl", null, rows.map(([name, value]) => [h("dt", null, name), h("dd", null, value)])));
}

// The latest runs of an agent that was called by its id, with what they used.
const MOST = 8;

/** @param {string} agentId */
function recent(agentId) {
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

// What the agent may call: its manifest's list, without what the host does not have or this key may not use.
const POLICIES = /** @type {Record<string, string>} */ ({ retry: "called again", verify: "looked up", ask: "a human is asked", fail: "counts as failed" });

/** @param {import("../../types.js").AgentEntry} agent @param {import("../../types.js").EffectiveAgent} effective */
function toolTable(agent, { tools, unavailable }) {
  const usable = tools.filter((one) => one.held).length;
  return h("section", { class: "card stack agent-tools" },
    h("div", { class: "row wrap" }, h("h2", { class: "grow" }, "Effective tools"), h("span", { class: "muted small" }, `${plural(agent.toolAllowlist.length, "tool")} on its list, ${usable} usable with this key`)),
    tools.length === 0 && unavailable.length === 0 ? h("p", { class: "muted" }, "None: its manifest allows no tools.") : h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": "Effective tools" }, h("table", null,
      h("thead", null, h("tr", null, ["Tool", "Safety", "In doubt", "Scopes"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", null,
        tools.map((tool) => h("tr", { class: tool.held ? "" : "not-held" },
          h("td", null, h("span", { class: "mono" }, tool.toolId), h("div", { class: "muted small" }, tool.description, tool.transport && tool.transport !== "native" && ` Over ${tool.transport}.`)),
          h("td", null, h("span", { class: ["tag", ["write", "exec"].includes(tool.safetyTier) && "amber"] }, tool.safetyTier)),
          h("td", { class: "small" }, POLICIES[tool.outcomePolicy] ?? tool.outcomePolicy),
          h("td", { class: "small" }, tool.scopes.length > 0 ? h("span", { class: "mono" }, tool.scopes.join(", ")) : h("span", { class: "muted" }, "none"), !tool.held && h("div", { class: "wrong" }, "this key has not")))),
        unavailable.map((tool) => h("tr", { class: "not-held" }, h("td", { class: "mono" }, tool), h("td", { colspan: "3", class: "muted small" }, "on its list, not offered here")))))));
}
