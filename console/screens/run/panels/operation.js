// What an event is part of (a call, a question, an invocation, a node, the run), what went in and what came out. Only
// what the log says: what a model or a node was given stays with the host.
import { bracket, backwards, onwards } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */
/** @typedef {import("../../../types.js").RunEvent} RunEvent */
/**
 * @typedef {object} Operation
 * @property {string} title
 * @property {RunEvent[]} events all of it, in order
 * @property {unknown} [input]
 * @property {unknown} [output]
 * @property {string} [inputNote] why there is nothing
 * @property {string} [outputNote]
 * @property {string} [childRunId] the child that was asked, whose own run has both
 */

/** @param {RunContext} ctx @param {RunEvent} event @returns {Operation | null} null when it is about the run as a whole */
export function operationOf(ctx, event) {
  const { type, payload } = event;
  if (payload?.callId) return call(ctx, event);
  if (payload?.childRunId) return child(ctx, event);
  if (type.startsWith("interrupt.") || type.startsWith("approval.") || type.startsWith("clarification.") || type === "node.suspended" || (type === "node.resumed" && payload?.interruptId)) return question(ctx, event);
  if (type === "variable.changed") return { title: `Variable ${payload.name}`, events: [event], input: payload.previous, output: payload.next, inputNote: "It had no value." };
  if (type === "channel.written") return { title: `Channel ${payload.channel}`, events: [event], output: payload.value, inputNote: "Writes are reduced into the channel; State shows what it then held." };
  if (type === "runOrchestrator.decided") return { title: `Turn ${payload.iteration}`, events: [event], output: payload.decision, inputNote: "What the supervisor saw is what State, Memory and Workspace show as of here." };
  if (isAgents(event)) return invocation(ctx, event);
  if (event.nodeId) return node(ctx, event);
  return null;
}

/** A call of a tool, from intent to outcome. @param {RunContext} ctx @param {RunEvent} event @returns {Operation} */
export function call(ctx, event) {
  const id = event.payload.callId;
  const events = bracket(ctx, event.sequence, (one) => one.payload?.callId === id || one.payload?.data?.callId === id,
    (one) => one.type === "agent.toolCalled", (one) => one.type === "agent.toolReturned");
  const asked = events.find((one) => one.type === "agent.toolCalled");
  const back = events.findLast((one) => one.type === "agent.toolReturned");
  return {
    title: `Call of ${event.payload.toolName ?? asked?.payload.toolName ?? "a tool"}`, events,
    input: asked?.payload.inputs, inputNote: "The call is announced without its arguments.",
    output: back?.payload.outcome ?? back?.payload.error,
    outputNote: back ? "It returned nothing." : "No answer is recorded.",
  };
}

/** @param {RunContext} ctx @param {RunEvent} event @returns {Operation} */
function child(ctx, event) {
  const id = event.payload.childRunId;
  const events = bracket(ctx, event.sequence, (one) => one.payload?.childRunId === id, (one) => one.type === "node.dispatched", (one) => one.payload?.phase === "output.harvested");
  const name = events.find((one) => one.payload.childWorkflowId)?.payload.childWorkflowId ?? event.payload.workerId ?? "a workflow";
  return { title: `Child run of ${name}`, events, childRunId: id };
}

/** @param {RunContext} ctx @param {RunEvent} event @returns {Operation} */
function question(ctx, event) {
  const of = (/** @type {RunEvent} */ one) => one.type.startsWith("interrupt.") || one.type === "node.suspended" || one.type === "node.resumed";
  let id = event.payload?.interruptId;
  // Some events name the node only; the question is the latest one there.
  for (const one of id ? [] : backwards(ctx, event.sequence)) {
    if (one.nodeId !== event.nodeId || !of(one)) continue;
    id = one.payload.interruptId;
    if (id) break;
  }
  // Requests carry the question's key, not always its id: the node and the order tell.
  const events = bracket(ctx, event.sequence, (one) => one.nodeId === event.nodeId && (of(one) || one.type.startsWith("approval.") || one.type.startsWith("clarification.")),
    (one) => one.type === "node.suspended", (one) => one.type === "interrupt.resolved");
  const asked = events.find((one) => one.type === "interrupt.requested");
  const answer = events.find((one) => one.type === "interrupt.resolved") ?? events.find((one) => one.type === "node.resumed");
  return {
    title: `Question at ${event.nodeId ?? "the run"}${id ? ` (${id})` : ""}`, events,
    input: asked?.payload.data, inputNote: "It waits for a child that waits.",
    output: answer?.payload.resumeValue, outputNote: answer ? "It went on without an answer." : "Nobody has answered.",
  };
}

/** @param {RunEvent} event */
const isAgents = (event) => /^(agent\.|provider\.|prompt\.|envelope\.|model\.)/.test(event.type);

/** An agent at work: the bracket around everything it did, or null. @param {RunContext} ctx @param {RunEvent} event */
export function invocationEvents(ctx, event) {
  const events = bracket(ctx, event.sequence, (one) => one.nodeId === event.nodeId, (one) => one.type === "agent.invocation.started", (one) => one.type === "agent.invocation.completed");
  const begun = events.findIndex((one) => one.type === "agent.invocation.started");
  return begun < 0 ? null : events.slice(begun);
}

/** @param {RunContext} ctx @param {RunEvent} event @returns {Operation} */
function invocation(ctx, event) {
  const events = invocationEvents(ctx, event);
  if (!events) return node(ctx, event);
  const decided = events.findLast((one) => one.type === "agent.decided");
  return {
    title: `Agent ${events[0]?.payload.agentId}`, events,
    inputNote: "What an agent is told stays with the host. Prompt has where it came from.",
    output: decided?.payload.decision, outputNote: "It has not decided.",
  };
}

/** @param {RunContext} ctx @param {RunEvent} event @returns {Operation} */
function node(ctx, event) {
  const events = bracket(ctx, event.sequence, (one) => one.nodeId === event.nodeId, (one) => one.type === "node.started",
    (one) => ["node.completed", "node.failed", "node.skipped", "node.cancelled"].includes(one.type));
  const start = events.find((one) => one.type === "node.started");
  const end = events.findLast((one) => one.type === "node.completed" || one.type === "node.failed");
  return {
    title: `Node ${event.nodeId}${start ? ` (${start.payload.typeId})` : ""}`, events,
    inputNote: "The log does not repeat what a node reads; State shows the variables it read.",
    output: end?.payload.outputs ?? end?.payload.error,
    outputNote: end ? "It has no outputs." : "It has not ended.",
  };
}

/** What the run was given, and what it gave by a sequence. @param {RunContext} ctx @param {number} seq @returns {Operation} */
export function runOperation(ctx, seq) {
  const first = ctx.log.at(0);
  const ends = ["run.completed", "run.failed", "run.cancelled"];
  const last = [...onwards(ctx, Math.max(0, seq - 1), seq)].find((one) => ends.includes(one.type));
  const snapshot = ctx.snapshot.peek();
  return {
    title: "The run", events: first ? [first] : [],
    input: first?.payload.inputs ?? snapshot?.inputs,
    output: last ? (last.payload.outputs ?? last.payload.error ?? snapshot?.outputs) : undefined,
    outputNote: last ? "It ended without outputs; State has its variables." : "It has not ended as of here.",
  };
}
