// One node of a definition: what it is told, where its inputs come from, which ways lead in and out.
import { jsonView } from "../../components/json-view.js";
import { h } from "../../lib/dom.js";
import { address, link } from "../../lib/router.js";
import { facts, section } from "../run/panels/parts.js";
import { conditionText } from "./graph.js";
import { kindOf, WORDS } from "./kinds.js";
import { backEdges } from "./layout.js";

/** @param {import("../../types.js").WorkflowDefinition} definition @param {string | null} id @param {(id: string) => void} choose */
export function nodePanel({ nodes, edges }, id, choose) {
  const node = nodes.find((one) => one.id === id);
  if (!node) {
    return h("div", { class: "stack" }, h("p", { class: "muted" }, "Choose a node to see its settings. Arrows move between nodes; dashed lines lead back."),
      h("p", { class: "muted small" }, "The graph is for reading. Workflows are written as files, and checked and registered from there."));
  }
  const back = backEdges(nodes, edges);
  const [into, out] = [edges.filter((edge) => edge.targetNodeId === id), edges.filter((edge) => edge.sourceNodeId === id)];
  const worker = typeof node.config?.workflowId === "string" ? node.config.workflowId : null;
  const agent = node.agent?.agentId ?? node.config?.agentId;
  return [
    h("h2", { class: "wrap-any" }, node.name ?? node.id),
    facts([
      ["Id", h("code", null, node.id)],
      ["Type", [h("code", null, node.typeId), h("span", { class: "muted" }, ` ${WORDS[kindOf(node.typeId)]}`)]],
      node.disabled && ["State", "disabled: it is skipped"],
      agent && ["Agent", link(address("/agents/:agentId", { agentId: agent }), { class: "mono" }, agent)],
      worker && ["Workflow", link(address("/workflows/:workflowId", { workflowId: worker }), { class: "mono" }, worker)],
      node.outputRole && ["Output", node.outputRole],
    ]),
    into.length > 0 && section("From", ways(into, "sourceNodeId", back, choose)),
    out.length > 0 && section("To", ways(out, "targetNodeId", back, choose)),
    some(node.config) && section("Settings", h("div", { class: "box" }, jsonView(node.config, 3))),
    some(node.inputs) && section("Inputs", h("div", { class: "box" }, jsonView(node.inputs, 2))),
    some(node.settings) && section("Retries and timeout", h("div", { class: "box" }, jsonView(node.settings, 2))),
  ];
}

/** @param {unknown} value */
const some = (value) => value !== null && typeof value === "object" && Object.keys(value).length > 0;

/** @param {any[]} edges @param {"sourceNodeId" | "targetNodeId"} end @param {Set<any>} back @param {(id: string) => void} choose */
function ways(edges, end, back, choose) {
  return h("ul", { class: "ways" }, edges.map((edge) => h("li", null,
    h("button", { type: "button", class: "small mono", onClick: () => choose(edge[end]) }, edge[end]),
    edge.sourceOutput && h("span", { class: "tag" }, `port ${edge.sourceOutput}`),
    edge.condition && h("span", { class: "small wrap-any" }, "if ", h("code", null, conditionText(edge.condition))),
    edge.triggerRule && edge.triggerRule !== "all_success" && h("span", { class: "tag" }, edge.triggerRule),
    back.has(edge) && h("span", { class: "muted small" }, "leads back"))));
}
