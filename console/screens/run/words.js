// An event in words: a short name, the fact that matters most, and whether it is good, bad or waits. The same words as
// `baton run watch`.
import { cost, duration, excerpt, number, plural, shortId } from "../../lib/format.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */

/** Names that are longer than what they say. @type {Record<string, string>} */
const SHORT = {
  "runOrchestrator.decided": "decided",
  "core.workflowChain.confidence-escalated": "confidence-escalated",
  "core.dispatch.fanOut": "dispatch.fanOut",
  "core.dispatch.join": "dispatch.join",
  "agent.invocation.started": "agent.started",
  "agent.invocation.completed": "agent.completed",
  "envelope.retry.attempted": "envelope.retry",
  "envelope.retry.exhausted": "envelope.exhausted",
  "envelope.recovery.applied": "envelope.recovery",
  "envelope.nlToFormat.engaged": "envelope.nlToFormat",
  "budget.threshold.crossed": "budget.threshold",
  "workflow.loopback-limit": "loopback-limit",
};

/** @param {RunEvent} event */
export function nameOf(event) {
  if (event.type === "core.workflowChain.event") return String(event.payload?.phase ?? "handoff");
  return SHORT[event.type] ?? event.type;
}

const BAD = new Set(["run.failed", "node.failed", "cap.breached", "workflow.loopback-limit", "budget.exhausted", "envelope.refusal", "envelope.retry.exhausted", "replay.diverged", "replay.divergedAtRefusal", "model.capability.insufficient"]);
const WAITS = new Set(["interrupt.requested", "run.paused", "core.workflowChain.confidence-escalated", "baton.effect.unknown", "node.suspended", "approval.requested", "clarification.requested", "budget.threshold.crossed"]);

/** @param {RunEvent} event @returns {"" | "bad" | "wait" | "good" | "off"} */
export function toneOf(event) {
  const { type, payload } = event;
  if (BAD.has(type)) return "bad";
  if (WAITS.has(type)) return "wait";
  if (type === "run.completed") return "good";
  if (type === "run.cancelled" || type === "node.cancelled" || type === "node.skipped") return "off";
  if (type === "agent.toolReturned" && payload?.error) return "bad";
  if (type === "core.workflowChain.event" && /failed$/.test(payload?.phase)) return "bad";
  if (type === "agent.invocation.completed" && (payload?.outcome === "failed" || payload?.outcome === "refused")) return "bad";
  if (type === "log.appended" && payload?.level === "error") return "bad";
  return "";
}

/** A number between 0 and 1 as people state it. @param {number | undefined} value */
export function share(value) {
  if (typeof value !== "number") return "–";
  const [plain, short] = [String(value), value.toFixed(2)];
  return plain.length > short.length ? plain : short;
}

/** A supervisor's decision in one line. @param {any} decision */
export function decisionText(decision) {
  const { kind = "?", nextWorkerIds = [], prompt, reason, confidence } = decision ?? {};
  const line = kind === "next-worker" ? `${kind} ${nextWorkerIds.join(", ")}` : kind === "ask-user" ? `${kind} “${excerpt(prompt ?? "", 80)}”` : reason ? `${kind}: ${excerpt(reason, 80)}` : kind;
  return typeof confidence === "number" ? `${line}, confidence ${share(confidence)}` : line;
}

/** @param {any} value whether a supervisor says this */
export function isDecision(value) {
  return ["next-worker", "ask-user", "terminate"].includes(value?.kind);
}

/** @param {any} error */
export function faultText(error) {
  return error ? `${error.code ?? "error"}${error.message ? `: ${error.message}` : ""}` : "";
}

/** @param {string | undefined} text */
const quoted = (text) => `“${excerpt(text ?? "", 160)}”`;
/** @param {any} p */
const held = (p, observed = "confidence", floor = "floor") => `held: confidence ${share(p[observed])} is below ${share(p[floor])}`;

/** What became of the last event of a node or a run. @param {any} outputs */
function outcome(outputs) {
  if (outputs?.decision && outputs.iteration) return `turn ${outputs.iteration} is decided`;
  if (outputs?.terminated === true) return "the loop ends";
  if (Array.isArray(outputs?.children)) return outputs.children.map((/** @type {any} */ child) => `${child.workflowId} ${child.childStatus}`).join(", ");
  return outputs && Object.keys(outputs).length > 0 ? excerpt(outputs, 200) : "";
}

/** @type {Record<string, (p: any, event: RunEvent) => string>} */
const FACTS = {
  "run.started": (p) => `${p.workflowId}${p.inputs && Object.keys(p.inputs).length > 0 ? ` ${excerpt(p.inputs, 120)}` : ""}`,
  "run.completed": (p) => p.reason ?? outcome(p.outputs),
  "run.failed": (p) => faultText(p.error),
  "run.cancelled": (p) => p.reason ?? "",
  "run.paused": (p) => p.reason ?? "",
  "node.started": (p) => `${p.typeId}${p.attempt > 0 ? `, attempt ${p.attempt + 1}` : ""}`,
  "node.completed": (p) => outcome(p.outputs),
  "node.failed": (p) => faultText(p.error),
  "node.retried": (p) => `attempt ${p.attempt + 1} in ${duration(p.delayMs)}: ${faultText(p.lastError)}`,
  "node.suspended": (p) => p.reason === "low-confidence" ? `${held(p, "observed", "threshold")} (${p.kind})` : p.reason === "child-waiting" ? `run ${shortId(p.childRunId ?? "")} is ${p.childStatus}` : p.kind ?? p.reason ?? "",
  "node.resumed": (p) => p.resumeValue !== undefined ? excerpt(p.resumeValue, 160) : p.childRunId ? `run ${shortId(p.childRunId)} goes on` : "",
  "node.skipped": (p) => p.reason ?? "",
  "node.cancelled": (p) => p.reason ?? "",
  "node.dispatched": (p) => `${p.childWorkflowId} as ${shortId(p.childRunId)}`,
  "interrupt.requested": (p) => p.data?.title ?? p.data?.question ?? (p.data?.toolName ? `${p.kind}: ${p.data.toolName}` : p.kind),
  "interrupt.resolved": (p) => `${p.outcome}${p.resolvedBy ? ` by ${p.resolvedBy}` : ""}${p.reason ? `: ${p.reason}` : ""}`,
  "approval.requested": (p) => p.title ?? "",
  "approval.received": (p) => `${p.action}${p.decidedBy ? ` by ${p.decidedBy}` : ""}${p.feedback ? `: ${p.feedback}` : ""}`,
  "baton.fork.approved": (p) => `by ${p.approvedBy}, as ${p.restsOn?.kind === "answer" ? "people answered before" : p.restsOn?.kind ?? "unknown"}`,
  "baton.approval.asked": (p) => `${p.askedBy} asks: ${p.question ?? ""}`,
  "clarification.requested": (p) => (p.questions ?? []).map((/** @type {any} */ one) => one.question ?? one.id).join(" · "),
  "clarification.resolved": (p) => excerpt(p.answers, 160),
  "variable.changed": (p) => `${p.name} = ${excerpt(p.next, 200)}`,
  "channel.written": (p) => `${p.channel} ← ${excerpt(p.value, 200)}`,
  "output.chunk": (p) => excerpt(p.chunk, 200),
  "runOrchestrator.decided": (p) => `turn ${p.iteration}: ${decisionText(p.decision)}`,
  "core.workflowChain.confidence-escalated": (p) => `${held(p)} (${decisionText(p.originalDecision)})`,
  "core.workflowChain.event": (p) => handoff(p),
  "core.dispatch.fanOut": (p) => `${plural(p.childCount, "worker")} in parallel${p.maxConcurrency ? `, at most ${p.maxConcurrency} at once` : ""}${p.joinMode ? `, join ${p.joinMode}` : ""}`,
  "core.dispatch.join": (p) => `${p.joinOutcome}: ${p.completedCount} completed, ${p.failedCount} failed, ${p.cancelledCount ?? 0} cancelled`,
  "agent.invocation.started": (p) => `${p.agentId}${p.resolvedAgentVersion ? ` ${p.resolvedAgentVersion}` : ""}${p.resolvedModel ? ` asks ${p.resolvedProvider}/${p.resolvedModel}` : ""}${p.toolSurfaceCount ? `, ${plural(p.toolSurfaceCount, "tool")}` : ""}${p.memoryBound ? ", memory" : ""}`,
  "agent.invocation.completed": (p) => `${p.outcome}${typeof p.confidence === "number" ? `, confidence ${share(p.confidence)}` : ""}`,
  "agent.promptResolved": (p) => p.resolved ? `${p.kind}: ${p.resolved}` : `${p.kind}: no layer has one`,
  "prompt.composed": (p) => `${p.kind}, ${String(p.hash ?? "").slice(0, 19)}`,
  "provider.usage": (p) => `${p.provider}/${p.model}: ${number(p.inputTokens ?? 0)} in, ${number(p.outputTokens ?? 0)} out${typeof p.costEstimateUsd === "number" ? `, ${cost(p.costEstimateUsd)}` : ""}${p.cacheHit ? ", cached" : ""}`,
  "agent.reasoned": (p) => p.reasoning ? quoted(p.reasoning) : "(gave no reasons)",
  "agent.reasoning.delta": (p) => quoted(p.delta),
  "agent.toolCalled": (p) => `${p.toolName} ${p.inputs === undefined ? "" : excerpt(p.inputs, 200)}`,
  "agent.toolReturned": (p) => `${p.toolName} ${p.error ? faultText(p.error) : p.outcome === undefined ? p.status ?? "" : excerpt(p.outcome, 200)}`,
  "agent.decided": (p) => isDecision(p.decision) ? decisionText(p.decision) : `${excerpt(p.decision, 200)}`,
  "agent.handoff": (p) => `${p.fromAgentId} to ${p.toAgentId}${p.reason ? `: ${p.reason}` : ""}`,
  "baton.effect.unknown": (p) => `${p.toolName}: nobody knows whether it happened; policy ${p.policy}`,
  "baton.tools.missing": (p) => `${p.agentId} works without ${(p.tools ?? []).join(", ")}: nothing here answers to that`,
  "baton.runner.waiting": (p) => `${p.toolName} waits for a runner, at most ${number(Math.ceil(p.waitForRunnerMs / 1000))} s`,
  "baton.tool.progress": (p) => `${p.toolName}: ${number(p.progress)}${p.total === undefined ? "" : ` of ${number(p.total)}`}${p.message ? `, ${p.message}` : ""}`,
  "baton.step.memo": (p) => `${p.toolName} keeps ${p.key}, ${number(p.bytes)} bytes`,
  "baton.effect.retried": (p) => `${p.toolName}: ${p.verify ? "looked up" : "called again with the same key"}`,
  "baton.model.retried": (p) => `${p.provider}/${p.model} is asked again: ${p.error?.message ?? ""}`,
  "cap.breached": (p) => `${p.kind}: ${number(Number(p.observed))} is more than ${number(Number(p.limit))}`,
  "workflow.loopback-limit": (p) => `${number(p.iterations)} rounds, at most ${number(p.limit)}`,
  "budget.reserved": (p) => excerpt(p.effectiveBudget, 160),
  "budget.consumed": (p) => spent(p),
  "budget.threshold.crossed": (p) => `${spent(p)} (${p.percent} %)`,
  "budget.exhausted": (p) => `${spent(p)}: nothing is left`,
  "envelope.refusal": (p) => `${p.provider}/${p.model} would not answer${p.safetyCategory ? ` (${p.safetyCategory})` : ""}`,
  "envelope.retry.attempted": (p) => `attempt ${p.attempt} after ${p.reason}${p.previousError ? `: ${p.previousError}` : ""}`,
  "envelope.retry.exhausted": (p) => `gave up after ${p.totalAttempts} attempts: ${p.finalReason}`,
  "envelope.truncated": (p) => `${p.provider}/${p.model} ran out of room`,
  "envelope.nlToFormat.engaged": () => "the answer was prose; asked once to put it into its shape",
  "memory.written": (p) => `${p.memoryId}${p.tags?.length ? ` #${p.tags.join(" #")}` : ""}`,
  "workspace.updated": (p) => `${p.path ?? ""}${p.version ? `, version ${p.version}` : ""}`,
  "replay.diverged": (p) => `${p.divergenceKind} at sequence ${p.atSequence}${p.divergencePoint ? ` (${p.divergencePoint})` : ""} of ${shortId(p.sourceRunId ?? "")}`,
  "replay.divergedAtRefusal": (p) => `${p.originalEnvelopeKind} became ${p.replayEnvelopeKind} at sequence ${p.atSequence}`,
  "log.appended": (p) => `${p.level}: ${p.message}`,
};

/** @param {any} p */
function spent(p) {
  const write = p.dimension === "cost" ? cost : (/** @type {number} */ n) => number(n);
  return `${p.dimension}: ${write(Number(p.consumed))} of ${write(Number(p.limit))}`;
}

/** @param {any} p */
function handoff(p) {
  switch (p.phase) {
    case "dispatch.began": return `${p.workerId}: being handed its part`;
    case "dispatch.succeeded": return `${p.workerId}: works as ${shortId(p.childRunId ?? "")}`;
    case "dispatch.failed": return `${p.workerId}: not started, ${faultText(p.error)}`;
    case "child.completed": return `${p.workerId}: completed`;
    case "child.failed": return `${p.workerId}: failed, ${faultText(p.error)}`;
    case "child.cancelled": return `${p.workerId}: cancelled`;
    case "output.harvested": return `${p.workerId}: harvested ${p.harvestedKeys?.length ? p.harvestedKeys.join(", ") : "nothing"}${p.attestation?.checksum ? ` (sha256 ${p.attestation.checksum.slice(0, 12)})` : ""}`;
    default: return `${p.workerId}: ${p.phase}`;
  }
}

/** The part of an event that a person looks for. @param {RunEvent} event @returns {string} */
export function factOf(event) {
  const payload = event.payload ?? {};
  try {
    const fact = FACTS[event.type];
    if (fact) return fact(payload, event);
  } catch {
    // A payload of another host's making: shown as it is.
  }
  return Object.keys(payload).length > 0 ? excerpt(payload, 200) : "";
}
