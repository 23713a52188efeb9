// The turns of a supervisor, told from its log: what was decided and how sure, what was held, who worked, what came back.

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {{ kind: string, nextWorkerIds?: string[], confidence?: number, prompt?: string, reason?: string, [more: string]: any }} Decision */
/**
 * @typedef {object} Worker
 * @property {string} workerId
 * @property {number} seq
 * @property {string} [childRunId]
 * @property {string} status began, running, completed, failed, cancelled
 * @property {number} endSeq −1 while it works
 * @property {string[] | null} harvested
 * @property {number} harvestSeq
 * @property {{ code: string, message: string }} [error]
 * @property {string} [checksum]
 */
/** @typedef {{ seq: number, confidence: number, floor: number, decision: Decision, answerSeq: number, answer: any }} Held */
/**
 * @typedef {object} Turn
 * @property {number} seq where it begins
 * @property {number} number from 1
 * @property {string} nodeId
 * @property {number} decidedSeq −1 before
 * @property {Decision | null} decision
 * @property {string} agentId
 * @property {Held[]} held
 * @property {Worker[]} workers
 * @property {{ seq: number, name: string, previous: any, next: any }[]} merged
 * @property {RunEvent | null} fanOut
 * @property {RunEvent | null} join
 */

const SUPERVISOR = "core.orchestrator.supervisor";
const ENDS = new Set(["child.completed", "child.failed", "child.cancelled", "dispatch.failed"]);

export class Turns {
  constructor() {
    /** @type {Turn[]} */
    this.list = [];
  }

  /** The turn under way, 0 before the first. */
  get number() {
    return this.list.length;
  }

  /** @param {number} seq @returns {Turn | undefined} */
  at(seq) {
    let [low, high] = [0, this.list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.list[middle]?.seq ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return this.list[low - 1];
  }

  /** @param {RunEvent} event */
  add(event) {
    const { type, sequence: seq, payload = {} } = event;
    let turn = this.list.at(-1);
    if (type === "node.started" && payload.typeId === SUPERVISOR) {
      // A turn that was sent back is taken again: the same turn.
      if (turn && turn.decidedSeq < 0) return;
      this.list.push({ seq, number: this.list.length + 1, nodeId: event.nodeId ?? "", decidedSeq: -1, decision: null, agentId: "", held: [], workers: [], merged: [], fanOut: null, join: null });
      return;
    }
    if (!turn) return;
    switch (type) {
      case "runOrchestrator.decided":
        Object.assign(turn, { decidedSeq: seq, decision: payload.decision, agentId: payload.agentId });
        break;
      case "core.workflowChain.confidence-escalated":
        turn.held.push({ seq, confidence: payload.confidence, floor: payload.floor, decision: payload.originalDecision, answerSeq: -1, answer: null });
        break;
      case "node.resumed": {
        const held = turn.held.at(-1);
        if (held && held.answerSeq < 0 && event.nodeId === turn.nodeId) Object.assign(held, { answerSeq: seq, answer: payload.resumeValue ?? null });
        break;
      }
      case "core.workflowChain.event":
        this.handoff(turn, seq, payload);
        break;
      case "core.dispatch.fanOut":
        turn.fanOut = event;
        break;
      case "core.dispatch.join":
        turn.join = event;
        break;
      case "variable.changed":
        if (turn.workers.length > 0) turn.merged.push({ seq, name: payload.name, previous: payload.previous, next: payload.next });
        break;
      default:
    }
  }

  /** @private @param {Turn} turn @param {number} seq @param {any} payload */
  handoff(turn, seq, payload) {
    const { phase, workerId, childRunId } = payload;
    if (phase === "dispatch.began") {
      turn.workers.push({ workerId, seq, status: "began", endSeq: -1, harvested: null, harvestSeq: -1 });
      return;
    }
    // The same worker may be named twice in a decision; its run tells them apart once it is known.
    const worker = turn.workers.find((one) => childRunId && one.childRunId === childRunId)
      ?? turn.workers.find((one) => one.workerId === workerId && !one.childRunId && one.endSeq < 0);
    if (!worker) return;
    if (childRunId) worker.childRunId = childRunId;
    if (phase === "dispatch.succeeded") worker.status = "running";
    else if (ENDS.has(phase)) Object.assign(worker, { status: phase === "dispatch.failed" ? "failed" : phase.slice(6), endSeq: seq, error: payload.error });
    else if (phase === "output.harvested") Object.assign(worker, { harvested: payload.harvestedKeys ?? [], harvestSeq: seq, checksum: payload.attestation?.checksum });
  }
}
