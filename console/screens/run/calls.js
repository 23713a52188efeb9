// Calls that leave the process: the intent, then what came of it. One of which nobody knows is amber everywhere.

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {"open" | "done" | "failed" | "unknown" | "retried"} CallState */
/**
 * @typedef {object} Call
 * @property {string} callId
 * @property {string} tool
 * @property {string} nodeId
 * @property {number} seq where it was announced
 * @property {number} endSeq where it came back, −1 before
 * @property {{ seq: number, state: CallState }[]} states in order
 */

export class Calls {
  constructor() {
    /** @type {Call[]} */
    this.list = [];
    /** @type {Map<string, Call>} */
    this.byId = new Map();
    /** Which call an event belongs to. @type {Map<number, Call>} */
    this.bySeq = new Map();
  }

  /** @param {RunEvent} event */
  add(event) {
    const { type, sequence: seq, payload = {} } = event;
    if (type === "agent.toolCalled") {
      /** @type {Call} */
      const call = { callId: payload.callId, tool: payload.toolName, nodeId: event.nodeId ?? "", seq, endSeq: -1, states: [{ seq, state: "open" }] };
      this.list.push(call);
      this.byId.set(call.callId, call);
      this.bySeq.set(seq, call);
      return;
    }
    if (type !== "agent.toolReturned" && type !== "baton.effect.unknown" && type !== "baton.effect.retried") return;
    const call = this.byId.get(payload.callId) ?? this.unannounced(event);
    this.bySeq.set(seq, call);
    if (type === "agent.toolReturned") {
      call.endSeq = seq;
      call.states.push({ seq, state: payload.error || (payload.status && payload.status !== "ok") ? "failed" : "done" });
    } else call.states.push({ seq, state: type === "baton.effect.unknown" ? "unknown" : "retried" });
  }

  /** A call that was refused before it was announced. @private @param {RunEvent} event @returns {Call} */
  unannounced(event) {
    const call = { callId: event.payload.callId, tool: event.payload.toolName, nodeId: event.nodeId ?? "", seq: event.sequence, endSeq: -1, states: [] };
    this.list.push(call);
    this.byId.set(call.callId, call);
    return call;
  }
}

/** What was known of a call then. @param {Call} call @param {number} seq @returns {CallState} */
export function stateOf(call, seq) {
  return call.states.findLast((one) => one.seq <= seq)?.state ?? "open";
}
