import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldOf, nameOf, schemaLike, variantOf, wrongWith } from "../lib/schema.js";
import { decisionSchema } from "../components/question/decision.js";
import { answersOf, subjectOf, titleOf } from "../screens/run/answers.js";

globalThis.sessionStorage ??= /** @type {any} */ ({ getItem: () => null, setItem() {}, removeItem() {} });
globalThis.addEventListener ??= () => {};
const { heard, leadsTo } = await import("../screens/inbox/details.js");

test("a schema has the field that fits it", () => {
  const fields = [{ type: "object", properties: {} }, { enum: [1, 2] }, { type: ["string", "null"] }, { type: "integer" }, { const: 1 }, { oneOf: [{}] }, { type: "object" }, {}, null];
  assert.deepEqual(fields.map(fieldOf), ["object", "choice", "string", "number", "const", "variants", "json", "json", "json"]);
});

test("what a form cannot take is said in words", () => {
  assert.equal(wrongWith({ type: "integer" }, 1.5), "has to be a whole number");
  assert.equal(wrongWith({ minimum: 0, maximum: 1 }, 2), "is more than 1");
  assert.equal(wrongWith({ minLength: 2 }, "ä"), "needs at least 2 characters");
  assert.equal(wrongWith({ minItems: 1 }, []), "needs at least 1 of them");
  assert.equal(wrongWith({ minimum: 0 }, 0), "");
});

test("a value without a schema is edited by one that it fits", () => {
  assert.deepEqual(schemaLike({ a: "x", b: [1] }), { type: "object", required: ["a", "b"], properties: { a: { type: "string" }, b: { type: "array", items: { type: "number" } } } });
});

test("a held decision opens in its own shape", () => {
  const { oneOf } = decisionSchema;
  const of = (/** @type {object} */ decision) => nameOf(oneOf[variantOf(oneOf, decision)], 0);
  assert.equal(of({ kind: "next-worker", nextWorkerIds: ["a"] }), "Hand over to workers");
  assert.equal(of({ kind: "ask-user", prompt: "?" }), "Ask a human");
  assert.equal(of({ kind: "terminate" }), "Finish");
});

test("where an answer leads is read off the edges", () => {
  const edges = [{ sourceNodeId: "g", targetNodeId: "s", sourceOutput: "accept" }, { sourceNodeId: "p", targetNodeId: "s" }];
  const nodes = [{ id: "g", typeId: "core.approvalGate" }, { id: "p", typeId: "core.approvalGate" }, { id: "s", typeId: "core.noop", name: "Send" }, { id: "lead", typeId: "core.orchestrator.supervisor" }];
  const definition = /** @type {any} */ ({ nodes, edges });
  assert.equal(leadsTo(definition, "g", "accept"), "Then: Send (s, core.noop).");
  assert.equal(leadsTo(definition, "g", "reject"), "Nothing leads on from reject: the node fails.");
  assert.equal(leadsTo(definition, "p", "edit-accept"), "Then: Send (s, core.noop).");
  assert.equal(leadsTo(definition, "g", "ask"), null);
  assert.equal(leadsTo(definition, "lead", "accept"), null);
  assert.equal(leadsTo(null, "g", "accept"), null);
});

test("only the votes on this question count, the last of each person", () => {
  const vote = (/** @type {string} */ who, /** @type {string} */ action) => ({ type: "approval.received", payload: { nodeId: "g", decidedBy: who, action }, timestamp: "t" });
  const asks = (/** @type {string} */ key) => ({ type: "interrupt.requested", payload: { key }, timestamp: "t" });
  const events = /** @type {any} */ ([asks("g:1"), vote("ada", "reject"), asks("g:2"), vote("ada", "reject"), vote("bob", "accept"), vote("ada", "accept"),
    { type: "baton.approval.asked", payload: { nodeId: "g", askedBy: "eve", question: "Why?" }, timestamp: "t" }]);
  const { votes, asked } = heard(events, /** @type {any} */ ({ key: "g:2", nodeId: "g" }));
  assert.deepEqual(votes.map(({ who, action }) => [who, action]), [["ada", "accept"], ["bob", "accept"]]);
  assert.deepEqual(asked, [{ who: "eve", text: "Why?", at: "t" }]);
});

test("how sure a supervisor had to be is what held this decision, not an earlier one", () => {
  const held = (/** @type {number} */ floor) => ({ type: "core.workflowChain.confidence-escalated", nodeId: "lead", payload: { floor } });
  const asks = (/** @type {string} */ key) => ({ type: "interrupt.requested", payload: { key } });
  const events = /** @type {any} */ ([held(0.2), asks("lead:1"), held(0.5), asks("lead:2")]);
  assert.deepEqual(["lead:1", "lead:2", "lead:3"].map((key) => heard(events, /** @type {any} */ ({ key, nodeId: "lead" })).floor), [0.2, 0.5, null]);
});

test("a clarification is called by its first question", () => {
  const question = /** @type {any} */ ({ kind: "clarification", nodeId: "n", data: { questions: [{ id: "a", question: "Who?" }, { id: "b", question: "When?" }] } });
  assert.equal(titleOf(question), "Who? (and 1 more)");
  assert.deepEqual(answersOf(question).map((one) => one.id), ["answers"]);
});

test("a held decision is shown, and edited, whatever kind of question holds it", () => {
  const decision = { kind: "terminate", confidence: 0.3 };
  const held = /** @type {any} */ ({ kind: "clarification", nodeId: "lead", data: { contextType: "orchestrator-decision", questions: [{ id: "decision", question: "It wants: terminate.", schema: { default: decision } }] } });
  assert.deepEqual(subjectOf(held), decision);
  assert.deepEqual(answersOf(held).find(({ id }) => id === "edit-accept")?.start, decision);
  // A question whose answer happens to have a default holds nothing.
  const asked = /** @type {any} */ ({ kind: "clarification", nodeId: "ask", data: { questions: [{ id: "a", question: "?", schema: { default: 1 } }] } });
  assert.equal(subjectOf(asked), undefined);
});

test("an answer says which question it is for", async () => {
  /** @type {any[]} */
  const sent = [];
  globalThis.fetch = /** @type {any} */ (async (/** @type {any} */ url, /** @type {any} */ options) => {
    sent.push([String(url), JSON.parse(options.body)]);
    return new Response(JSON.stringify({ status: "running" }), { status: 200, headers: { "content-type": "application/json" } });
  });
  const { api } = await import("../lib/api.js");
  const question = { runId: "run_1", nodeId: "lead", interruptId: "int:lead:2" };
  await api.interrupts.resolve(question, { action: "accept" });
  await api.interrupts.resolveByToken("t.o", question, { action: "reject" });
  assert.deepEqual(sent.map(([, body]) => body), [
    { interruptId: "int:lead:2", resumeValue: { action: "accept" } },
    { interruptId: "int:lead:2", resumeValue: { action: "reject" } },
  ]);
});
