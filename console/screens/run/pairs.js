// Which events are two halves of one thing, for the compact view: a start and its end, a question and its answer, the
// steps of a handoff. Each group stands where it begins and knows how it ended.

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {{ seq: number, endSeq: number, end: RunEvent | null, depth: number }} Group */

/** Details that the event beside them tells better. */
const MINOR = new Set(["agent.promptResolved", "prompt.composed", "approval.requested", "clarification.requested", "approval.received", "clarification.resolved", "interrupt.resolved", "agent.reasoning.delta", "node.dispatched", "budget.consumed", "node.suspended"]);

/** What an event opens, if it opens something. @param {RunEvent} event @returns {string | null} */
function opens({ type, nodeId, payload }) {
  switch (type) {
    case "node.started": return `node ${nodeId}`;
    case "agent.invocation.started": return `agent ${payload.invocationId}`;
    case "agent.toolCalled": return `call ${payload.callId}`;
    case "interrupt.requested": return `ask ${nodeId}`;
    case "core.workflowChain.event": return payload.phase === "dispatch.began" ? `worker ${nodeId} ${payload.workerId}` : null;
    default: return null;
  }
}

/** What it goes on with or ends: the name, and whether it is over. @param {RunEvent} event @returns {[string, boolean] | null} */
function closes({ type, nodeId, payload }) {
  switch (type) {
    case "node.completed": case "node.failed": case "node.cancelled": case "node.retried": return [`node ${nodeId}`, true];
    case "agent.invocation.completed": return [`agent ${payload.invocationId}`, true];
    case "agent.toolReturned": return [`call ${payload.callId}`, true];
    case "node.resumed": return [`ask ${nodeId}`, true];
    case "core.workflowChain.event": {
      const over = payload.phase === "output.harvested" || /^child\.(failed|cancelled)|^dispatch\.failed/.test(payload.phase);
      return payload.phase === "dispatch.began" ? null : [`worker ${nodeId} ${payload.workerId}`, over];
    }
    default: return null;
  }
}

export class Pairs {
  constructor() {
    /** The group that begins at a sequence. @type {Map<number, Group>} */
    this.groups = new Map();
    /** The rows of the compact view. @type {number[]} */
    this.heads = [];
    /** @private @type {Map<string, Group>} */
    this.open = new Map();
    /** @private */
    this.depth = 0;
  }

  /** @param {RunEvent} event */
  add(event) {
    const seq = event.sequence;
    const closing = closes(event);
    const known = closing && this.open.get(closing[0]);
    if (closing && known) {
      known.endSeq = seq;
      known.end = event;
      if (closing[1]) {
        this.open.delete(closing[0]);
        this.depth = Math.max(0, this.depth - 1);
      }
      return;
    }
    if (MINOR.has(event.type)) return;
    const name = opens(event);
    this.heads.push(seq);
    this.groups.set(seq, { seq, endSeq: -1, end: null, depth: Math.min(4, this.depth) });
    if (name) {
      const group = /** @type {Group} */ (this.groups.get(seq));
      this.open.set(name, group);
      this.depth += 1;
    }
  }
}
