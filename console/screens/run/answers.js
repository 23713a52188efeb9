// What may be answered to a question, by its kind, and how it is said to the API. Pure: the form is in
// `components/question/answer-form.js`.

/** @typedef {import("../../types.js").InterruptItem} InterruptItem */
/**
 * One way to answer.
 * @typedef {object} Answer
 * @property {string} id
 * @property {string} label
 * @property {"primary" | "danger" | ""} look
 * @property {string} then what happens next, in words
 * @property {"json" | "text" | "delta" | "answers" | null} wants what has to be typed
 * @property {unknown} [start] what the field begins with
 */

const UNKNOWN = "x-host-baton-effect-unknown";

/** Whether a human is to ratify a supervisor's decision. @param {InterruptItem} question */
export function holdsDecision({ kind, data }) {
  if (kind === "clarification") return data?.contextType === "orchestrator-decision";
  if (kind === "low-confidence") return ["next-worker", "ask-user", "terminate"].includes(data?.decision?.kind);
  return data?.artifactType === "orchestrator-decision";
}

/** What the question is about, if it shows it. @param {InterruptItem} question */
export function subjectOf({ kind, data }) {
  // A clarification has room for questions only: what is held is what counts for whoever has nothing to add.
  const held = kind === "clarification" && data?.contextType === "orchestrator-decision" ? data.questions?.[0]?.schema?.default : undefined;
  return data?.artifactData ?? data?.decision ?? data?.originalDecision ?? held;
}

/** What is shown in a way of its own, or is there for machines. */
const SHOWN = new Set(["title", "description", "question", "questions", "actions", "artifactData", "artifactId", "artifactType", "requiredApprovals", "approversList", "rejectionPolicy", "decision", "originalDecision", "contextType", "toolName", "callId", "inputs", "prompt", "profile", "customKind"]);

/** Whatever else it comes with. @param {InterruptItem} question @returns {[string, unknown][]} */
export function restOf({ data }) {
  return data && typeof data === "object" ? Object.entries(data).filter(([name]) => !SHOWN.has(name)) : [];
}

/** Whether it shows what is to be judged, or asks something that needs nothing shown. @param {InterruptItem} question */
export function hasContent(question) {
  return question.kind !== "approval" || subjectOf(question) !== undefined || restOf(question).length > 0;
}

/** @param {InterruptItem} question */
export function titleOf({ kind, nodeId, data }) {
  if (kind === UNKNOWN) return `Nobody knows whether ${data?.toolName ?? "a call"} took place.`;
  const [first, ...more] = Array.isArray(data?.questions) ? data.questions : [];
  const asked = first?.question ? `${first.question}${more.length > 0 ? ` (and ${more.length} more)` : ""}` : undefined;
  return data?.title ?? data?.question ?? asked ?? (kind === "custom" && data?.customKind ? `${data.customKind} at ${nodeId}` : kind === "clarification" ? "A question for you" : kind === "external-event" ? `Waits for ${data?.eventType ?? "an event"}` : `${kind} at ${nodeId}`);
}

/** @param {InterruptItem} question @returns {Answer[]} */
export function answersOf(question) {
  const { kind, data } = question;
  if (kind === UNKNOWN) {
    return [
      { id: "retry", label: "Retry with the same key", look: "", then: "The call is made once more. A callee that knows the key does not do it twice.", wants: null },
      { id: "done", label: "Mark done…", look: "", then: "The call counts as made, with the result that you give.", wants: "json", start: null },
      { id: "fail", label: "Mark failed", look: "danger", then: "The call counts as failed; whoever made it is told so.", wants: null },
    ];
  }
  const held = holdsDecision(question);
  if (kind === "clarification" && !held) {
    return [{ id: "answers", label: "Answer", look: "primary", then: "The run goes on with your answers.", wants: "answers" }];
  }
  const offered = data?.actions ?? (kind === "low-confidence" ? (held ? ["accept", "reject", "refine", "edit-accept"] : ["accept", "reject", "edit-accept"]) : held ? ["accept", "reject", "refine", "edit-accept"] : null);
  if (!Array.isArray(offered)) return [{ id: "value", label: "Answer…", look: "primary", then: "The run goes on with this value.", wants: "json", start: sample(question.resumeSchema) }];
  const budget = data?.contextType === "budget" || /^budget:/.test(data?.artifactId ?? "");
  /** @type {Record<string, Answer>} */
  const all = {
    accept: { id: "accept", label: budget ? "Extend…" : "Accept", look: "primary", then: budget ? "The ceilings are raised and what was held back is done." : held ? "The decision is made as it is, in this turn." : "The run goes on.", wants: budget ? "delta" : null },
    "edit-accept": { id: "edit-accept", label: "Edit…", look: "", then: held ? "This decision is made in its place. It is not judged again." : "The run goes on with what you write instead.", wants: "json", start: subjectOf(question) ?? {} },
    refine: { id: "refine", label: "Refine…", look: "", then: held ? "The supervisor takes the same turn again and sees what you write." : "It is sent back with what you write.", wants: "text" },
    ask: { id: "ask", label: "Ask back…", look: "", then: "Your question is recorded; this one stays open.", wants: "text" },
    reject: { id: "reject", label: "Reject", look: "danger", then: held || kind === "low-confidence" ? "The run fails with approval_rejected." : budget ? "The run ends with budget_exhausted." : "The run leaves through reject, or fails if nothing leads on from there.", wants: null },
  };
  const order = ["accept", "edit-accept", "refine", "ask", "reject"];
  return order.flatMap((id) => (offered.includes(id) && all[id] ? [/** @type {Answer} */ (all[id])] : []));
}

/** What is sent. @param {Answer} answer @param {unknown} typed @param {string} note @returns {unknown} */
export function resumeValue(answer, typed, note) {
  const feedback = note.trim() ? { feedback: note.trim() } : {};
  switch (answer.id) {
    case "answers": return { answers: typed };
    case "value": return typed;
    case "done": return { action: "done", result: typed };
    case "retry": case "fail": return { action: answer.id };
    case "edit-accept": return { action: "edit-accept", editedArtifactData: typed, ...feedback };
    case "refine": return { action: "refine", refineFeedback: { scope: "whole", text: typed } };
    case "ask": return { action: "ask", feedback: typed };
    case "accept": return { action: "accept", ...(typed && Object.keys(/** @type {object} */ (typed)).length > 0 ? { budgetDelta: typed } : {}), ...feedback };
    default: return { action: answer.id, ...feedback };
  }
}

/** A value that has the shape of a schema, to begin with. @param {any} schema @returns {unknown} */
function sample(schema) {
  if (!schema || typeof schema !== "object") return {};
  if (schema.default !== undefined) return schema.default;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (schema.type === "object" || schema.properties) {
    const names = Array.isArray(schema.required) ? schema.required : Object.keys(schema.properties ?? {});
    return Object.fromEntries(names.map((/** @type {string} */ name) => [name, sample(schema.properties?.[name])]));
  }
  return { string: "", number: 0, integer: 0, boolean: false, array: [], null: null }[/** @type {string} */ (schema.type)] ?? null;
}
