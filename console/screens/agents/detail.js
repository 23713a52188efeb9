// One agent: what its manifest says, and what is left of it here for this key.
import { askedView } from "../../components/asked-view.js";
import { copyMenu } from "../../components/copy-menu.js";
import { jsonView } from "../../components/json-view.js";
import { asked } from "../../lib/asked.js";
import { api } from "../../lib/api.js";
import { recovered } from "../../lib/connection.js";
import { h } from "../../lib/dom.js";
import { duration, number } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { recent } from "./recent.js";
import { toolTable } from "./tools.js";
import { tryBox } from "./try.js";

/** @typedef {import("../../types.js").AgentEntry} AgentEntry */
/** @typedef {import("../../types.js").EffectiveAgent} EffectiveAgent */

/** @param {string} agentId @param {import("../../types.js").ScreenContext} context */
export function detail(agentId, context) {
  const both = asked(async (signal) => {
    void recovered.value;
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
      h("h1", { class: "grow" }, agent.label || agent.persona), copyMenu(() => ({ request: { path }, json: { agent, effective }, link: address("/agents/:agentId", { agentId: agent.agentId }) }))),
    h("p", { class: "mono muted small" }, agent.agentId),
    agent.description && h("p", null, agent.description));
}

/** What is missing here, in words. @param {AgentEntry} agent @param {EffectiveAgent} effective */
function warnings(agent, effective) {
  const memory = agent.degradedMemoryDimensions ?? [];
  const degraded = effective.degraded.filter((one) => one !== "memoryDegraded" || memory.length === 0);
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
