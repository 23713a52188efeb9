// The pure parts of the inspector, the fork dialog and the comparison.
import assert from "node:assert/strict";
import { test } from "node:test";

import { beginningOf, forkBody, forkWords, planOf, readField } from "../components/fork/plan.js";
import { align, folded } from "../screens/compare/align.js";
import { figuresOf } from "../screens/compare/deltas.js";
import { Facts } from "../screens/run/facts.js";
import { baselines } from "../screens/run/panels/baseline.js";
import { asTree, mergeFiles } from "../screens/run/panels/files.js";
import { operationOf, runOperation } from "../screens/run/panels/operation.js";

/** A log from `[type, payload, nodeId]`. */
const logOf = (...events) => events.map(([type, payload = {}, nodeId = "n"], sequence) => ({ eventId: `r.${sequence}`, runId: "r", type, payload, nodeId, sequence, timestamp: new Date(1000 * sequence).toISOString() }));

/** What panels get, as far as these read it. */
function contextOf(events, forkedFrom) {
  const facts = new Facts();
  for (const event of events) facts.add(event);
  const log = { events, facts, at: (seq) => events[seq], newest: { value: events.length - 1, peek: () => events.length - 1 } };
  return { runId: "r", log, snapshot: { value: { forkedFrom, inputs: {} }, peek: () => ({ inputs: {} }) } };
}

test("a fork says what it keeps, and what it will not do again", () => {
  const call = (toolName) => ["agent.toolCalled", { toolName, callId: toolName }];
  const events = logOf(["run.started"], ["provider.usage"], call("mcp:mail.send"), call("openwop:memory.put"), ["interrupt.resolved"], ["node.started", { typeId: "vendor.baton.http" }], call("mcp:mail.send"), ["node.dispatched"]);
  const { kept, later } = planOf(events, 5);
  assert.deepEqual([kept.events, kept.models, kept.own, kept.answers], [5, 1, 1, 1]);
  assert.deepEqual([...kept.calls], [["mcp:mail.send", 1]]);
  assert.deepEqual([...later.calls], [["vendor.baton.http", 1], ["mcp:mail.send", 1]]);
  assert.equal(later.children, 1);
});

test("a branch begins where no child is under way", () => {
  const chain = (/** @type {number} */ sequence, /** @type {string} */ phase, /** @type {number} */ cause) => ({ sequence, eventId: `r.${sequence}`, causationId: `r.${cause}`, type: "core.workflowChain.event", nodeId: "d", payload: { phase } });
  const other = (/** @type {number} */ sequence, /** @type {string} */ type, payload = {}) => ({ sequence, eventId: `r.${sequence}`, type, nodeId: "sub", payload });
  const log = /** @type {any[]} */ ([
    other(0, "run.started"), other(1, "runOrchestrator.decided"), chain(2, "dispatch.began", 1), chain(3, "dispatch.began", 1), chain(4, "dispatch.succeeded", 2), chain(5, "dispatch.failed", 3), chain(6, "child.completed", 4), chain(7, "output.harvested", 6),
    other(8, "node.started", { typeId: "core.subWorkflow" }), other(9, "node.dispatched"), other(10, "node.completed"), other(11, "run.completed"),
  ]);
  assert.deepEqual([...Array(13).keys()].map((from) => beginningOf(log, from)), [0, 1, 2, 2, 2, 2, 2, 7, 8, 8, 8, 11, 12]);
});

test("a branch of a map begins where no item's run is under way", () => {
  const log = logOf(["run.started"], ["node.started", { typeId: "vendor.baton.map" }], ["baton.map.started"], ["baton.map.itemStarted", { index: 0 }], ["node.dispatched"], ["baton.map.itemCompleted", { index: 0 }],
    ["baton.map.itemStarted", { index: 1 }], ["baton.map.itemStarted", { index: 2 }], ["baton.map.itemFailed", { index: 1 }], ["baton.map.itemRetried", { index: 2 }], ["run.failed"]);
  assert.deepEqual([...log.keys()].map((from) => beginningOf(log, from)), [0, 1, 2, 3, 3, 3, 6, 6, 6, 6, 10]);
});

test("a fork asks only for what was chosen, over HTTP and as a command", () => {
  const nothing = { inputs: {}, variables: {}, configurable: {} };
  assert.deepEqual(forkBody({ mode: "branch", fromSeq: 3, sideEffects: "simulated", ...nothing }), { mode: "branch", fromSeq: 3 });
  assert.deepEqual(forkBody({ mode: "replay", fromSeq: 0, sideEffects: "real", ...nothing, variables: { a: 1 } }), { mode: "replay", fromSeq: 0 }, "a replay changes nothing");
  const body = forkBody({ mode: "branch", fromSeq: 3, sideEffects: "real", ...nothing, variables: { topic: "storms" }, configurable: { budget: { maxTokens: 5 } } });
  assert.deepEqual(forkWords("r", body), ["run", "fork", "r", "--at", "3", "--set", 'topic="storms"', "--configurable", '{"budget":{"maxTokens":5}}', "--side-effects", "real"]);
  assert.deepEqual([readField(" ", "number"), readField("a, b", "list"), readField("0.5", "number")], [undefined, ["a", "b"], 0.5]);
  assert.throws(() => readField("-1", "number"));
});

test("one more event on one side leaves the others aligned", () => {
  const a = logOf(["run.started"], ["node.started"], ["variable.changed", { name: "x", next: 1 }], ["node.completed", { outputs: { childRunId: "c1" } }], ["run.completed"]);
  const b = logOf(["run.started"], ["budget.reserved"], ["node.started"], ["variable.changed", { name: "x", next: 2 }], ["node.completed", { outputs: { childRunId: "c2" } }], ["run.completed"]);
  assert.deepEqual(align(a, b, 1).map((pair) => pair.kind), ["same", "added", "same", "changed", "same", "same"], "ids of other runs are no difference");
  const long = logOf(...Array.from({ length: 20 }, () => ["log.appended"]), ["run.completed"]);
  const other = [...long.slice(0, 20), { ...long[20], type: "run.failed" }];
  const rows = folded(align(long, other, 20));
  assert.deepEqual(rows.map((row) => (row.kind === "fold" ? row.pairs.length : row.kind)), [18, "same", "same", "removed", "added"]);
});

test("what two runs came to is counted from where they part", () => {
  const events = logOf(["provider.usage", { totalTokens: 10, costEstimateUsd: 1 }], ["provider.usage", { totalTokens: 5, costEstimateUsd: 0.25 }], ["agent.toolCalled", {}], ["run.completed"]);
  const figures = figuresOf(events, 1, undefined);
  assert.deepEqual([figures.models, figures.tokens, figures.usd, figures.tools, figures.ms], [1, 5, 0.25, 1, 2000]);
});

test("files of two moments are one tree", () => {
  const file = (path, version) => ({ path, version, etag: `w${version}`, updatedAt: "" });
  const files = mergeFiles([file("a.md", 1), file("d/b.md", 1), file("d/c.md", 1)], [file("a.md", 1), file("d/b.md", 2), file("e.md", 1)]);
  assert.deepEqual(files.map((one) => [one.path, one.change]), [["a.md", ""], ["d/b.md", "changed"], ["d/c.md", "removed"], ["e.md", "added"]]);
  const tree = asTree(files);
  assert.deepEqual([tree.files.length, tree.folders[0].name, tree.folders[0].changes], [2, "d", 2]);
});

test("an event finds what it is part of, whichever end it is", () => {
  const ctx = contextOf(logOf(
    ["run.started", { inputs: { q: 1 } }, undefined],
    ["node.started", { typeId: "vendor.baton.agent" }],
    ["agent.toolCalled", { callId: "k1", toolName: "t", inputs: { a: 1 } }],
    ["agent.toolCalled", { callId: "k2", toolName: "t", inputs: { a: 2 } }],
    ["agent.toolReturned", { callId: "k2", toolName: "t", outcome: "second" }],
    ["agent.toolReturned", { callId: "k1", toolName: "t", outcome: "first" }],
    ["node.suspended", { interruptId: "i" }, "gate"], ["interrupt.requested", { data: { title: "Go?" } }, "gate"], ["node.resumed", { interruptId: "i", resumeValue: { action: "accept" } }, "gate"],
    ["run.completed", { outputs: { done: true } }, undefined]));
  for (const seq of [2, 5]) {
    const { input, output } = operationOf(ctx, ctx.log.at(seq));
    assert.deepEqual([input, output], [{ a: 1 }, "first"], `from ${seq}`);
  }
  const asked = operationOf(ctx, ctx.log.at(7));
  assert.deepEqual([asked.input, asked.output], [{ title: "Go?" }, { action: "accept" }]);
  assert.deepEqual([runOperation(ctx, 9).output, runOperation(ctx, 8).output], [{ done: true }, undefined]);
});

test("what came before is the event, the turns, the fork or the beginning", () => {
  const turn = ["node.started", { typeId: "core.orchestrator.supervisor" }];
  const decided = ["runOrchestrator.decided", { decision: {}, iteration: 1 }];
  const ctx = contextOf(logOf(["run.started"], turn, decided, ["log.appended"], turn, decided, ["log.appended"]), { fromSeq: 3 });
  assert.deepEqual(baselines(ctx, 6).map(({ id, seq }) => [id, seq]), [["event", 5], ["turn", 4], ["previous", 1], ["fork", 2], ["start", 0]]);
  assert.deepEqual(baselines(ctx, 2).map(({ id }) => id), ["event", "turn", "start"], "what came later is not before");
});
