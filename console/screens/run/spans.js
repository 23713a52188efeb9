// Bars of the timeline: what was under way from when to when, in a lane for each node. Kept in order of their start.

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {"node" | "wait" | "model" | "tool" | "child" | "turn"} SpanKind */
/**
 * @typedef {object} Span
 * @property {SpanKind} kind
 * @property {string} label
 * @property {number} seq
 * @property {number} endSeq −1 while it goes on
 * @property {number} start
 * @property {number} end ms; Infinity while it goes on
 * @property {"" | "failed" | "unknown"} mark
 */
/** @typedef {{ nodeId: string, typeId: string, seq: number, spans: Span[], inner: Span[] }} Lane `inner`: what the node's work consisted of */

/** Waiting for people is a pause as soon as it is longer than this; a silence in which something may be worked on, only after this. */
const QUIET_WAIT = 100;
const QUIET_WORK = 30_000;

export class Spans {
  constructor() {
    /** In order of appearance. @type {Lane[]} */
    this.lanes = [];
    /** @type {Span[]} */
    this.turns = [];
    /** The longest stretches in which nothing happened, longest first. @type {{ from: number, to: number }[]} */
    this.gaps = [];
    /** @private @type {Map<string, Lane>} */
    this.byNode = new Map();
    /** @private @type {Map<string, Span>} */
    this.open = new Map();
    /** When a node was last heard of: a model is asked between that and its answer. @private @type {Map<string, { at: number, seq: number }>} */
    this.heard = new Map();
    /** @private */
    this.last = NaN;
  }

  /** @param {RunEvent} event @param {number} at @param {number} turn */
  add(event, at, turn) {
    this.gap(at);
    const { type, sequence: seq, payload = {}, nodeId } = event;
    if (turn > this.turns.length) {
      this.close("turn", seq, at);
      this.turns.push(this.begin("turn", "turn", String(turn), seq, at));
    }
    if (type.startsWith("run.") && type !== "run.started" && type !== "run.paused" && type !== "run.resumed") {
      for (const name of [...this.open.keys()]) this.close(name, seq, at);
      return;
    }
    if (!nodeId) return;
    const lane = this.lane(nodeId, payload.typeId, seq);
    const before = this.heard.get(nodeId);
    this.heard.set(nodeId, { at, seq });
    switch (type) {
      case "node.started":
        lane.spans.push(this.begin(`node ${nodeId}`, "node", nodeId, seq, at));
        break;
      case "node.completed": case "node.cancelled":
        this.close(`node ${nodeId}`, seq, at);
        break;
      case "node.failed": case "node.retried":
        this.close(`node ${nodeId}`, seq, at, "failed");
        break;
      case "node.suspended":
        lane.inner.push(this.begin(`wait ${nodeId}`, "wait", payload.kind ?? payload.reason ?? "waits", seq, at));
        break;
      case "node.resumed":
        this.close(`wait ${nodeId}`, seq, at);
        break;
      case "provider.usage":
        lane.inner.push({ kind: "model", label: payload.model ?? "model", seq: before?.seq ?? seq, endSeq: seq, start: before?.at ?? at, end: at, mark: "" });
        break;
      case "agent.toolCalled":
        lane.inner.push(this.begin(`call ${payload.callId}`, "tool", payload.toolName, seq, at));
        break;
      case "agent.toolReturned":
        this.close(`call ${payload.callId}`, seq, at, payload.error ? "failed" : "");
        break;
      case "baton.effect.unknown": {
        const call = this.open.get(`call ${payload.callId}`);
        if (call) call.mark = "unknown";
        break;
      }
      case "node.dispatched":
        lane.inner.push(this.begin(`child ${payload.childRunId}`, "child", payload.childWorkflowId, seq, at));
        break;
      case "core.workflowChain.event":
        if (/^child\./.test(payload.phase)) this.close(`child ${payload.childRunId}`, seq, at, payload.phase === "child.failed" ? "failed" : "");
        break;
      default:
    }
    if (type === "node.completed" || type === "node.failed") {
      // A sub-workflow ends with its node and says no more about it.
      for (const span of lane.inner.slice(-8)) if (span.end === Infinity && span.kind === "child") Object.assign(span, { end: at, endSeq: seq });
    }
  }

  /** @private @param {string} nodeId @param {string | undefined} typeId @param {number} seq @returns {Lane} */
  lane(nodeId, typeId, seq) {
    let lane = this.byNode.get(nodeId);
    if (!lane) {
      lane = { nodeId, typeId: typeId ?? "", seq, spans: [], inner: [] };
      this.byNode.set(nodeId, lane);
      this.lanes.push(lane);
    }
    return lane;
  }

  /** @private @param {string} name @param {SpanKind} kind @param {string} label @param {number} seq @param {number} at @returns {Span} */
  begin(name, kind, label, seq, at) {
    /** @type {Span} */
    const span = { kind, label, seq, endSeq: -1, start: at, end: Infinity, mark: "" };
    this.open.set(name, span);
    return span;
  }

  /** @private @param {string} name @param {number} seq @param {number} at @param {"" | "failed"} [mark] */
  close(name, seq, at, mark = "") {
    const span = this.open.get(name);
    if (!span) return;
    this.open.delete(name);
    Object.assign(span, { end: at, endSeq: seq, mark: mark || (span.mark === "unknown" ? "" : span.mark) });
  }

  /** Whether a node waits for somebody, and none works meanwhile. @private */
  get waits() {
    const names = [...this.open.keys()];
    return names.some((name) => name.startsWith("wait ")) && !names.some((name) => name.startsWith("call "));
  }

  /** @private @param {number} at */
  gap(at) {
    const [from, size] = [this.last, at - this.last];
    this.last = at;
    const smallest = this.gaps[this.gaps.length - 1];
    if (!(size > QUIET_WAIT) || (size < QUIET_WORK && !this.waits) || (this.gaps.length >= 12 && smallest && size <= smallest.to - smallest.from)) return;
    this.gaps.push({ from, to: at });
    this.gaps.sort((a, b) => b.to - b.from - (a.to - a.from));
    this.gaps.length = Math.min(this.gaps.length, 12);
  }
}
