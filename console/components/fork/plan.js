// What a fork keeps, what it does anew, and how it is asked for. Pure: from a log, a point and a form.

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/**
 * What a stretch of a log did.
 * @typedef {object} Deeds
 * @property {number} events
 * @property {number} models calls of models
 * @property {Map<string, number>} calls of tools and HTTP nodes that reach outside, by name
 * @property {number} own calls of memory and files: a branch has its own, so they always happen
 * @property {number} answers of people and systems
 * @property {number} children
 */
/** @typedef {{ kept: Deeds, later: Deeds }} Plan */
/**
 * What the form says.
 * @typedef {object} Wishes
 * @property {"branch" | "replay"} mode
 * @property {number} fromSeq
 * @property {"simulated" | "real"} sideEffects
 * @property {Record<string, unknown>} inputs
 * @property {Record<string, unknown>} variables
 * @property {Record<string, unknown>} configurable
 */

const HTTP_NODE = "vendor.baton.http";
const OWN = /^openwop:(memory|workspace)\./;

/** @returns {Deeds} */
const none = () => ({ events: 0, models: 0, calls: new Map(), own: 0, answers: 0, children: 0 });

/** @param {Iterable<RunEvent>} events @param {number} from the first sequence that happens anew @returns {Plan} */
export function planOf(events, from) {
  const plan = { kept: none(), later: none() };
  for (const event of events) take(event.sequence < from ? plan.kept : plan.later, event);
  return plan;
}

const OVER = new Set(["completed", "failed", "cancelled"]);
const ITEM_OVER = new Set(["baton.map.itemCompleted", "baton.map.itemFailed", "baton.map.itemRetried"]);

/**
 * Where a branch begins that is asked for at `from`: not while a child is under way, for it would be done again on top of
 * what it has written. (Inside a step the host goes back to its beginning, too; the log does not show where that is.)
 * @param {Iterable<RunEvent>} events @param {number} from
 */
export function beginningOf(events, from) {
  const live = new Set();
  /** The beginning of each handoff, by what its next event names as its cause. @type {Map<string | undefined, string | undefined>} */
  const began = new Map();
  let last = 0;
  for (const { sequence, type, nodeId, payload, eventId, causationId } of events) {
    if (sequence > from) break;
    if (live.size === 0) last = sequence;
    if (sequence === from) return last;
    if (type === "node.started" && payload.typeId === "core.subWorkflow") live.add(nodeId);
    else if (["node.completed", "node.failed", "node.cancelled"].includes(type) || (type === "node.suspended" && OVER.has(payload.childStatus))) live.delete(nodeId);
    else if (type === "baton.map.itemStarted") live.add(`${nodeId}#${payload.index}`);
    else if (ITEM_OVER.has(type)) live.delete(`${nodeId}#${payload.index}`);
    else if (type === "core.workflowChain.event") {
      if (payload.phase === "dispatch.began") live.add(eventId);
      else if (payload.phase === "dispatch.succeeded") began.set(eventId, causationId);
      else live.delete(began.get(causationId) ?? causationId);
    }
  }
  return live.size === 0 ? from : last;
}

/** @param {Deeds} deeds @param {RunEvent} event */
function take(deeds, { type, payload }) {
  deeds.events += 1;
  const call = type === "agent.toolCalled" ? payload.toolName : type === "node.started" && payload.typeId === HTTP_NODE ? HTTP_NODE : null;
  if (call && OWN.test(call)) deeds.own += 1;
  else if (call) deeds.calls.set(call, (deeds.calls.get(call) ?? 0) + 1);
  else if (type === "provider.usage") deeds.models += 1;
  else if (type === "interrupt.resolved") deeds.answers += 1;
  else if (type === "node.dispatched") deeds.children += 1;
}

/** @param {Deeds} deeds */
export const callCount = (deeds) => [...deeds.calls.values()].reduce((sum, one) => sum + one, 0);

/** The body of the request: only what was chosen is in it. @param {Wishes} wishes */
export function forkBody({ mode, fromSeq, sideEffects, inputs, variables, configurable }) {
  if (mode === "replay") return { mode, fromSeq };
  /** @type {Record<string, unknown>} */
  const overlay = {};
  for (const [name, map] of Object.entries({ inputs, variables, configurable })) if (Object.keys(map).length > 0) overlay[name] = map;
  if (sideEffects === "real") overlay.sideEffects = sideEffects;
  return Object.keys(overlay).length > 0 ? { mode, fromSeq, runOptionsOverlay: overlay } : { mode, fromSeq };
}

/** The same as words of `baton`. @param {string} runId @param {any} body @returns {string[]} */
export function forkWords(runId, body) {
  const overlay = body.runOptionsOverlay ?? {};
  const words = ["run", "fork", runId, "--at", String(body.fromSeq ?? 0)];
  if (body.mode === "replay") return [...words, "--replay"];
  if (overlay.inputs) words.push("--inputs", JSON.stringify(overlay.inputs));
  for (const [name, value] of Object.entries(overlay.variables ?? {})) words.push("--set", `${name}=${JSON.stringify(value)}`);
  if (overlay.configurable) words.push("--configurable", JSON.stringify(overlay.configurable));
  if (overlay.sideEffects) words.push("--side-effects", String(overlay.sideEffects));
  return words;
}

/** A field's text as the value it stands for; an empty one stands for none. @param {string} text @param {"text" | "number" | "json" | "list"} kind @returns {unknown} undefined when empty; throws when it is none */
export function readField(text, kind) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (kind === "text") return trimmed;
  if (kind === "list") return trimmed.split(/[\s,]+/).filter(Boolean);
  if (kind === "json") return JSON.parse(trimmed);
  const value = Number(trimmed);
  if (!Number.isFinite(value) || value < 0) throw new SyntaxError("A number of at least 0.");
  return value;
}
