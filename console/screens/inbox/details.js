// What a card says beyond the question itself: who asked, in which state, what follows, who has voted. Each part that
// cannot be had (a scope is missing, the run is gone) is simply not said.
import { api } from "../../lib/api.js";
import { holdsDecision } from "../run/answers.js";

/** @typedef {import("../../types.js").InterruptItem} InterruptItem */
/**
 * @typedef {object} Details
 * @property {import("../../types.js").RunSnapshot | null} run
 * @property {import("../../types.js").InterruptView | null} view the question as its run shows it, with its schema and link
 * @property {import("../../types.js").WorkflowDefinition | null} definition the version that this run follows
 * @property {{ who: string, action: string, at: string }[]} votes
 * @property {{ who: string, text: string, at: string }[]} asked what was asked back
 * @property {number | null} floor of the supervisor's confidence, where a decision is held
 */

/** @template T @param {Promise<T>} work @returns {Promise<T | null>} */
const orNull = (work) => work.catch(() => null);

/** @param {InterruptItem} question @param {AbortSignal} signal @returns {Promise<Details>} */
export async function detailsOf(question, signal) {
  const run = await orNull(api.runs.get(question.runId, { signal }));
  const view = run?.interrupt?.interruptId === question.interruptId ? run.interrupt : null;
  const actions = question.data?.actions ?? [];
  const logged = (question.data?.requiredApprovals ?? 0) > 1 || actions.includes("ask") || holdsDecision(question);
  const [definition, log] = await Promise.all([
    run ? orNull(definitionOf(question.workflowId, run.workflowDigest, signal)) : null,
    logged ? orNull(api.runs.events(question.runId, { signal })) : null,
  ]);
  return { run, view, definition, ...heard(log?.events ?? [], question) };
}

/** @param {string} workflow @param {string} digest @param {AbortSignal} signal */
async function definitionOf(workflow, digest, signal) {
  const { versions } = await api.workflows.versions(workflow, { signal });
  const version = versions.find((one) => one.digest === digest);
  return version ? api.workflows.version(workflow, version.version, { signal }) : null;
}

/** @param {import("../../types.js").RunEvent[]} events @param {InterruptItem} question */
export function heard(events, question) {
  const from = events.findLastIndex((one) => one.type === "interrupt.requested" && one.payload.key === question.key);
  /** @type {Map<string, { who: string, action: string, at: string }>} */
  const votes = new Map();
  const asked = [];
  const held = events.slice(0, Math.max(0, from)).findLast((one) => one.nodeId === question.nodeId && one.type === "core.workflowChain.confidence-escalated");
  for (const { type, payload, timestamp } of from < 0 ? [] : events.slice(from)) {
    if (payload?.nodeId !== question.nodeId) continue;
    const who = payload.decidedBy ?? payload.askedBy ?? "";
    // A second vote of the same person replaces the first.
    if (type === "approval.received") votes.set(who, { who, action: payload.action, at: timestamp });
    if (type === "baton.approval.asked") asked.push({ who, text: String(payload.question ?? ""), at: timestamp });
  }
  return { votes: [...votes.values()], asked, floor: held?.payload.floor ?? null };
}

/**
 * Where an answer leads in the workflow, in words; null where that is not known.
 * @param {import("../../types.js").WorkflowDefinition | null} definition @param {string} node @param {string} answer
 */
export function leadsTo(definition, node, answer) {
  const gate = definition?.nodes.find((one) => one.id === node);
  if (!definition || !gate || !/approvalGate|interrupt|clarificationGate/i.test(gate.typeId ?? "")) return null;
  const edges = definition.edges.filter((one) => one.sourceNodeId === node);
  const through = edges.filter((one) => one.sourceOutput === answer);
  // An edge without a port is the way of consent, and of a refine that has no way of its own.
  const plain = edges.filter((one) => !one.sourceOutput);
  const taken = through.length > 0 ? through : ["reject", "ask"].includes(answer) ? [] : plain;
  if (answer === "ask") return null;
  if (taken.length > 0) return `Then: ${taken.map((one) => step(definition, one.targetNodeId)).join(", ")}.`;
  return answer === "reject" ? "Nothing leads on from reject: the node fails." : edges.length === 0 ? "Nothing comes after it: the run ends." : null;
}

/** @param {import("../../types.js").WorkflowDefinition} definition @param {string} id */
function step(definition, id) {
  const node = definition.nodes.find((one) => one.id === id);
  return node?.name && node.name !== id ? `${node.name} (${id}, ${node.typeId})` : `${id} (${node?.typeId ?? "?"})`;
}
