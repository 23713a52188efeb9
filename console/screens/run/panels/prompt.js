// An agent at work, as far as the log tells: where its prompt came from, what it said, which tools it had and used. The
// texts themselves stay with the host unless its operator wants them on the log.
import { askedView } from "../../../components/asked-view.js";
import { copyMenu } from "../../../components/copy-menu.js";
import { jsonView } from "../../../components/json-view.js";
import { api } from "../../../lib/api.js";
import { asked } from "../../../lib/asked.js";
import { h } from "../../../lib/dom.js";
import { number, plural } from "../../../lib/format.js";
import { address, link } from "../../../lib/router.js";
import { computed } from "../../../lib/signal.js";
import { faultText } from "../words.js";
import { invocationEvents } from "./operation.js";
import { data, facts, note, section, seqLink, stable, titled } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("../../../types.js").RunEvent} RunEvent */

/** The invocation at the playhead, or the latest before it. @param {RunContext} ctx */
function current(ctx) {
  void ctx.log.newest.value;
  const event = ctx.selection.value;
  const here = event?.nodeId ? invocationEvents(ctx, event) : null;
  if (here) return here;
  const latest = ctx.log.latest(ctx.seq.value, (one) => one.type === "agent.invocation.started");
  return latest ? invocationEvents(ctx, latest) : null;
}

/** @type {import("../context.js").Panel} */
export default {
  id: "prompt",
  title: "Prompt",
  appliesTo: (ctx) => {
    void ctx.log.newest.value;
    return ctx.log.facts.types.has("agent.invocation.started") || ctx.log.facts.types.has("prompt.composed");
  },
  mount(root, ctx) {
    const invocation = stable(() => current(ctx), (events) => `${events?.[0]?.sequence} ${events?.length}`);
    const agentId = computed(() => invocation.value?.[0]?.payload.agentId ?? null);
    const offered = asked((signal) => (agentId.value === null ? null : toolsOf(agentId.value, signal)));
    root.append(h("div", null, () => {
      const events = invocation.value;
      if (!events) return note("No agent has begun as of here.");
      const begun = /** @type {RunEvent} */ (events[0]);
      return [head(ctx, begun, events), source(ctx, events), tools(begun, events, offered), conversation(ctx, events)];
    }));
  },
};

/** @param {RunContext} ctx @param {RunEvent} begun @param {RunEvent[]} events */
function head(ctx, begun, events) {
  const p = begun.payload;
  const end = events.find((one) => one.type === "agent.invocation.completed");
  return titled(link(address("/agents/:agentId", { agentId: p.agentId }), null, p.agentId), copyMenu(() => ({ json: events })),
    facts([
      ["Began", seqLink(ctx, begun.sequence)],
      ["Version", p.resolvedAgentVersion],
      ["Model", p.resolvedModel ? h("span", null, h("code", null, `${p.resolvedProvider}/${p.resolvedModel}`), p.modelClass ? h("span", { class: "muted" }, ` for class ${p.modelClass}`) : null) : null],
      ["Called by", { "workflow-node": "a node", "run-api": "its id", "chat-mention": "a message" }[/** @type {string} */ (p.source)] ?? p.source],
      ["Memory", p.memoryBound ? "it reads the newest entries of the run's memory" : "none"],
      ["Ended", end ? h("span", null, end.payload.outcome, end.payload.schemaValidated ? h("span", { class: "muted" }, ", the answer fits its schema") : null, " ", seqLink(ctx, end.sequence)) : "not yet"],
    ]));
}

/** @param {RunContext} ctx @param {RunEvent[]} events */
function source(ctx, events) {
  const resolved = events.filter((one) => one.type === "agent.promptResolved");
  const composed = events.filter((one) => one.type === "prompt.composed");
  return section("Where it came from",
    resolved.map((one) => h("table", { class: "dense layers" },
      h("caption", null, `${one.payload.kind}: `, one.payload.resolved ? h("code", null, one.payload.resolved) : "no layer has one"),
      h("tbody", null, (one.payload.chain ?? []).map((/** @type {any} */ layer) => h("tr", { class: layer.applied ? "applied" : "" },
        h("td", null, layer.applied ? h("span", { class: "good-text", title: "applied" }, "✓", h("span", { class: "visually-hidden" }, " applied")) : ""),
        h("td", { class: "wrap-any" }, h("span", { class: "mono" }, layer.layer), h("div", { class: "muted small" }, layer.source ?? layer.reason ?? ""))))))),
    composed.map((one) => h("div", { class: "stack" },
      facts([["Put together", h("span", null, one.payload.kind, " ", seqLink(ctx, one.sequence))], ["Hash", h("code", { class: "wrap-any" }, one.payload.hash)], one.payload.contentTrust ? ["Trust", one.payload.contentTrust] : null]),
      [["System", one.payload.systemPrompt], ["User", one.payload.userPrompt], ["Text", one.payload.composed]].map(([name, text]) => text && h("div", null, h("span", { class: "muted small" }, name), h("pre", { class: "box" }, text))))),
    composed.length > 0 && !composed.some((one) => one.payload.composed ?? one.payload.systemPrompt) && note("Only the hash is on the log: the text stays with the host. Two prompts with the same hash are the same."));
}

/** What the agent may call now: after all grants, or as its manifest lists it where the host cannot tell. @param {string} agentId @param {AbortSignal} signal @returns {Promise<string[]>} */
async function toolsOf(agentId, signal) {
  try {
    const answer = await api.get(`/v1/host/baton/agents/${encodeURIComponent(agentId)}/effective`, {}, { signal });
    return answer.tools.map((/** @type {any} */ tool) => tool.toolId);
  } catch (error) {
    if (/** @type {any} */ (error).status !== 404) throw error;
    return (await api.agents.get(agentId, { signal })).toolAllowlist ?? [];
  }
}

/** Offered against called. @param {RunEvent} begun @param {RunEvent[]} events @param {import("../../../lib/asked.js").Asked<string[]>} offered */
function tools(begun, events, offered) {
  /** @type {Map<string, { times: number, failed: number }>} */
  const called = new Map();
  for (const one of events) {
    const name = one.payload?.toolName;
    if (one.type === "agent.toolCalled") called.set(name, { failed: 0, ...called.get(name), times: (called.get(name)?.times ?? 0) + 1 });
    if (one.type === "agent.toolReturned" && one.payload.error) called.set(name, { times: called.get(name)?.times ?? 0, failed: (called.get(name)?.failed ?? 0) + 1 });
  }
  const count = begun.payload.toolSurfaceCount;
  return section("Tools", note(count === undefined ? "The log does not say how many tools it was offered." : `${plural(count, "tool")} offered then, ${plural(called.size, "tool")} called.`),
    askedView(offered, (ids) => {
      const all = [...new Set([...called.keys(), ...ids])];
      if (all.length === 0) return note("None.");
      return [h("table", { class: "dense" }, h("thead", null, h("tr", null, h("th", null, "Tool"), h("th", null, "Offered now"), h("th", { class: "num" }, "Called"))),
        h("tbody", null, all.map((id) => h("tr", { class: called.has(id) ? "" : "quiet-row" }, h("td", { class: "mono wrap-any" }, id), h("td", null, ids.includes(id) ? "yes" : "no"),
          h("td", { class: "num" }, called.has(id) ? [number(called.get(id)?.times ?? 0), (called.get(id)?.failed ?? 0) > 0 && h("span", { class: "bad-text" }, `, ${called.get(id)?.failed} failed`)] : "–"))))),
        count !== undefined && count !== ids.length && note(`It was offered ${number(count)} then; the list is the agent's as it is now.`)];
    }));
}

/** @param {RunContext} ctx @param {RunEvent[]} events */
function conversation(ctx, events) {
  const said = events.filter((one) => /^(provider\.usage|agent\.(reasoned|toolCalled|toolReturned|decided)|envelope\.)/.test(one.type) && !(one.type === "agent.reasoned" && !one.payload.reasoning));
  if (said.length === 0) return section("What was said", note("The model has not answered as of here."));
  return section("What was said", h("ol", { class: "talk" }, said.map((one) => h("li", { class: () => [talker(one), one.sequence > ctx.seq.value && "later", one.sequence === ctx.seq.value && "here"] },
    h("div", { class: "talk-who" }, h("span", null, speaker(one)), seqLink(ctx, one.sequence)), ...words(one)))),
    note("What the model was sent is private; what it answered is told as far as the log has it."));
}

/** @param {RunEvent} event */
const talker = ({ type }) => (type === "agent.toolReturned" ? "from-tool" : type.startsWith("envelope.") ? "from-host" : "from-model");
/** @param {RunEvent} event */
function speaker({ type, payload }) {
  if (type === "provider.usage") return `${payload.model} answered, ${number(payload.inputTokens)} in, ${number(payload.outputTokens)} out`;
  if (type === "agent.reasoned") return "thought";
  if (type === "agent.toolCalled") return `wants ${payload.toolName}`;
  if (type === "agent.toolReturned") return `${payload.toolName} returned`;
  if (type === "agent.decided") return `decided${typeof payload.confidence === "number" ? `, confidence ${payload.confidence}` : ""}`;
  return type;
}
/** @param {RunEvent} event @returns {import("../../../lib/dom.js").Child[]} */
function words({ type, payload }) {
  if (type === "provider.usage") return [];
  if (type === "agent.reasoned") return [h("p", { class: "wrap-any" }, payload.reasoning)];
  if (type === "agent.toolCalled") return [data(payload.inputs, jsonView)];
  if (type === "agent.toolReturned") return [payload.error ? h("p", { class: "bad-text" }, faultText(payload.error)) : data(payload.outcome, jsonView)];
  if (type === "agent.decided") return [data(payload.decision, jsonView)];
  return [data(payload, jsonView)];
}
