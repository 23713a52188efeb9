// What the screen of a run makes of a log, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answersOf, holdsDecision, resumeValue } from "../screens/run/answers.js";
import { Axis } from "../screens/run/axis.js";
import { stateOf } from "../screens/run/calls.js";
import { asOf, Facts, millis } from "../screens/run/facts.js";
import { View } from "../screens/run/views.js";
import { factOf, toneOf } from "../screens/run/words.js";

const START = Date.parse("2026-01-01T00:00:00.000Z");

/** A log of `[type, nodeId, payload, ms after the start]`. */
function logOf(rows) {
  const facts = new Facts();
  const events = rows.map(([type, nodeId, payload, ms = 0], sequence) => ({
    eventId: `run_1.${sequence}`, runId: "run_1", sequence, type, nodeId, payload, timestamp: new Date(START + ms).toISOString(),
  }));
  events.forEach((event) => facts.add(event));
  return { facts, events, at: (seq) => events[seq] };
}

const chain = (phase, more = {}) => ["core.workflowChain.event", "hand-over", { phase, workerId: "draft", parentRunId: "run_1", ...more }, 20];
const LEAD = { nodeId: "lead", typeId: "core.orchestrator.supervisor", attempt: 0 };
const decision = { kind: "next-worker", nextWorkerIds: ["draft"], confidence: 0.4 };
const TEAM = [
  ["run.started", undefined, { workflowId: "team", inputs: {} }],
  ["node.started", "lead", LEAD, 1],
  ["core.workflowChain.confidence-escalated", "lead", { confidence: 0.4, floor: 0.5, originalDecision: decision }, 2],
  ["node.suspended", "lead", { nodeId: "lead", kind: "approval", reason: "low-confidence", observed: 0.4, threshold: 0.5 }, 2],
  ["interrupt.requested", "lead", { kind: "approval", key: "lead:1", data: { title: "Sure?" } }, 2],
  ["node.resumed", "lead", { nodeId: "lead", resumeValue: { action: "refine" } }, 60_002],
  ["node.started", "lead", { ...LEAD, attempt: 1 }, 60_003],
  ["runOrchestrator.decided", "lead", { agentId: "boss", decision, iteration: 1 }, 60_004],
  ["node.completed", "lead", { nodeId: "lead", outputs: {} }, 60_004],
  ["node.started", "hand-over", { nodeId: "hand-over", typeId: "core.dispatch", attempt: 0 }, 60_005],
  chain("dispatch.began"),
  ["node.dispatched", "hand-over", { childRunId: "run_2", childWorkflowId: "draft" }, 60_006],
  chain("dispatch.succeeded", { childRunId: "run_2" }),
  chain("child.completed", { childRunId: "run_2" }),
  ["variable.changed", "hand-over", { name: "text", previous: "", next: "Tides" }, 60_020],
  chain("output.harvested", { childRunId: "run_2", harvestedKeys: ["text"] }),
  ["node.completed", "hand-over", { nodeId: "hand-over", outputs: {} }, 60_021],
  ["node.started", "lead", LEAD, 60_022],
];

test("a turn that was held and sent back stays one turn, with its worker and what it brought", () => {
  const { facts } = logOf(TEAM);
  assert.deepEqual(facts.turns.list.map((turn) => [turn.number, turn.seq]), [[1, 1], [2, 17]]);
  const [turn] = facts.turns.list;
  assert.deepEqual([turn.decidedSeq, turn.held.length, turn.held[0].answerSeq], [7, 1, 5]);
  assert.deepEqual(turn.workers.map((one) => [one.workerId, one.childRunId, one.status, one.harvested]), [["draft", "run_2", "completed", ["text"]]]);
  assert.deepEqual(turn.merged.map((one) => one.name), ["text"]);
  assert.deepEqual(facts.iterations, [1, 17]);
  assert.equal(facts.turns.at(0), undefined);
  assert.equal(facts.turns.at(16)?.number, 1);
});

test("the compact view has one row for what begins and ends", () => {
  const log = logOf(TEAM);
  const view = new View(log, "compact", "");
  const rows = Array.from({ length: view.count }, (_, index) => view.at(index));
  assert.ok(rows.includes(1) && rows.includes(4) && rows.includes(10), String(rows));
  assert.ok(![5, 8, 12, 13, 15, 16].some((seq) => rows.includes(seq)), String(rows));
  assert.equal(log.facts.pairs.groups.get(10)?.endSeq, 15);
  assert.equal(log.facts.pairs.groups.get(4)?.endSeq, 5);
});

test("a filter keeps what fits, and finds the row of a sequence", () => {
  const log = logOf(TEAM);
  const view = new View(log, "all", "node:hand-over tides");
  while (view.extend());
  assert.deepEqual(Array.from({ length: view.count }, (_, index) => view.at(index)), [14]);
  assert.deepEqual([view.indexOf(13), view.indexOf(14), view.indexOf(99)], [-1, 0, 0]);
  const decisions = new View(log, "decisions", "");
  decisions.extend();
  assert.ok(Array.from({ length: decisions.count }, (_, index) => log.at(decisions.at(index)).type).includes("runOrchestrator.decided"));
});

test("a call is unknown until somebody says what became of it", () => {
  const { facts } = logOf([
    ["agent.toolCalled", "pay", { callId: "c", toolName: "http" }],
    ["baton.effect.unknown", "pay", { callId: "c", toolName: "http", policy: "ask" }],
    ["baton.effect.retried", "pay", { callId: "c", toolName: "http" }],
    ["agent.toolReturned", "pay", { callId: "c", toolName: "http", status: "ok" }],
  ]);
  const [call] = facts.calls.list;
  assert.deepEqual([0, 1, 2, 3].map((seq) => stateOf(call, seq)), ["open", "unknown", "retried", "done"]);
});

test("usage and budgets are those of then", () => {
  const { facts } = logOf([
    ["provider.usage", "a", { inputTokens: 10, outputTokens: 1 }],
    ["budget.consumed", "a", { dimension: "tokens", consumed: 11, limit: 100 }],
    ["provider.usage", "a", { inputTokens: 5, outputTokens: 2, costEstimateUsd: 0.5 }],
  ]);
  assert.deepEqual(asOf(facts.usage, 1), { seq: 0, input: 10, output: 1, cost: null, calls: 1 });
  assert.deepEqual(asOf(facts.usage, 9), { seq: 2, input: 15, output: 3, cost: 0.5, calls: 2 });
  assert.equal(asOf(facts.usage, -1), undefined);
  assert.equal(facts.spentAt(2).get("tokens")?.consumed, 11);
  assert.equal(facts.spentAt(0).size, 0);
});

test("the axis cuts a wait and finds the event at every place", () => {
  const { facts } = logOf(TEAM.map(([type, node, payload, ms], seq) => [type, node, payload, seq > 5 ? Math.max(60_003, ms ?? 0) + seq : ms]));
  const axis = new Axis(facts.times, facts.spans.gaps, "time", true);
  assert.equal(axis.cuts.length, 1);
  assert.ok(axis.of(5) - axis.of(4) < 0.1, "a minute of waiting is not drawn to scale");
  for (let seq = 1; seq < facts.times.length; seq += 1) assert.ok(axis.of(seq) >= axis.of(seq - 1));
  for (const seq of [0, 5, 9, 17]) assert.equal(axis.of(axis.seq(axis.of(seq))), axis.of(seq));
  assert.equal(axis.of(17), axis.room);
  assert.ok(new Axis(facts.times, [], "steps", false).of(17) < 1, "what goes on has room");
});

test("times keep their microseconds", () => {
  assert.equal(millis("2026-01-01T00:00:00.001250Z") - millis("2026-01-01T00:00:00.001Z") > 0.24, true);
  assert.equal(millis("2026-01-01T00:00:00Z"), START);
});

test("each question offers its answers in the words of the API", () => {
  const held = { kind: "approval", nodeId: "lead", data: { artifactType: "orchestrator-decision", artifactData: decision, actions: ["accept", "reject", "refine", "edit-accept"] } };
  assert.equal(holdsDecision(held), true);
  const answers = Object.fromEntries(answersOf(held).map((one) => [one.id, one]));
  assert.deepEqual(Object.keys(answers), ["accept", "edit-accept", "refine", "reject"]);
  assert.deepEqual(resumeValue(answers.refine, "shorter", ""), { action: "refine", refineFeedback: { scope: "whole", text: "shorter" } });
  assert.deepEqual(resumeValue(answers["edit-accept"], { kind: "terminate" }, "enough"), { action: "edit-accept", editedArtifactData: { kind: "terminate" }, feedback: "enough" });
  assert.deepEqual(resumeValue(answers.accept, null, " "), { action: "accept" });
  const unknown = { kind: "x-host-baton-effect-unknown", nodeId: "pay", data: { toolName: "http", actions: ["retry", "done", "fail"] } };
  assert.deepEqual(answersOf(unknown).map((one) => resumeValue(one, { id: 7 }, "")), [{ action: "retry" }, { action: "done", result: { id: 7 } }, { action: "fail" }]);
  const custom = { kind: "custom", nodeId: "pick", data: {}, resumeSchema: { type: "object", required: ["colour"], properties: { colour: { enum: ["red", "green"] } } } };
  assert.deepEqual(answersOf(custom)[0].start, { colour: "red" });
});

test("an event of another host's making is shown all the same", () => {
  assert.equal(factOf({ type: "x.y", payload: { q: 1 } }), '{"q":1}');
  assert.equal(factOf({ type: "core.dispatch.fanOut", payload: null }).includes("workers"), true);
  assert.equal(toneOf({ type: "agent.toolReturned", payload: { error: { code: "boom" } } }), "bad");
});
