// The parts of the workflow screen that need no page: where nodes stand, and what a run takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenInputs, inputSchemas, reusable } from "../screens/workflows/inputs.js";
import { kindOf } from "../screens/workflows/kinds.js";
import { backEdges, layout, SIZE } from "../screens/workflows/layout.js";

const graph = (...edges) => {
  const ids = [...new Set(edges.flat())];
  return [ids.map((id) => ({ id, typeId: "core.noop" })), edges.map(([a, b]) => ({ id: `${a}-${b}`, sourceNodeId: a, targetNodeId: b }))];
};
const at = (drawn, id) => drawn.nodes.find((one) => one.node.id === id);

test("a diamond has three layers, its sides stand apart and its ends in the middle", () => {
  const drawn = layout(...graph(["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"]));
  assert.deepEqual(["a", "b", "c", "d"].map((id) => at(drawn, id).layer), [0, 1, 1, 2]);
  assert.ok(Math.abs(at(drawn, "b").x - at(drawn, "c").x) >= SIZE.width);
  assert.equal(at(drawn, "a").x, (at(drawn, "b").x + at(drawn, "c").x) / 2);
  assert.equal(at(drawn, "a").x, at(drawn, "d").x);
});

test("a loop has one edge back, and it passes beside the nodes", () => {
  const [nodes, edges] = graph(["each", "shout"], ["shout", "each"], ["each", "end"]);
  assert.deepEqual([...backEdges(nodes, edges)].map((edge) => edge.id), ["shout-each"]);
  const drawn = layout(nodes, edges);
  const back = drawn.edges.filter((one) => one.back);
  assert.equal(back.length, 1);
  const rightmost = Math.max(...drawn.nodes.map((one) => one.x + SIZE.width));
  assert.ok(Math.max(...back[0].points.map((point) => point.x)) > rightmost, "the way back passes beside the nodes");
  assert.ok(back[0].points.every((point) => point.x < drawn.width && point.y > 0 && point.y < drawn.height));
  // `end` stands beside `shout`: the way back must not pass behind either.
  const across = back[0].points.slice(1).map((point, i) => [back[0].points[i], point]).filter(([a, b]) => a.y === b.y && Math.abs(a.x - b.x) > SIZE.width);
  for (const [{ y }] of across) assert.ok(!drawn.nodes.some((one) => one.layer === 1 && y > one.y && y < one.y + SIZE.height));
});

test("a workflow that is only a circle, an edge to itself and one to nowhere are drawn", () => {
  const [nodes, edges] = graph(["lead", "hand"], ["hand", "lead"], ["hand", "hand"]);
  const drawn = layout(nodes, [...edges, { id: "x", sourceNodeId: "lead", targetNodeId: "nobody" }]);
  assert.deepEqual(drawn.edges.map((one) => [one.edge.id, one.back]), [["lead-hand", false], ["hand-hand", true], ["hand-lead", true]]);
});

test("no node lies over another, and long edges keep a place in each layer", () => {
  const edges = [];
  for (let i = 0; i < 60; i += 1) edges.push([`n${i}`, `n${(i * 7 + 3) % 61}`], [`n${i}`, `n${i + 1}`]);
  const drawn = layout(...graph(...edges));
  for (const a of drawn.nodes) {
    assert.ok(a.x >= 0 && a.x + SIZE.width <= drawn.width && a.y + SIZE.height <= drawn.height);
    for (const b of drawn.nodes) if (a !== b && a.layer === b.layer) assert.ok(Math.abs(a.x - b.x) >= SIZE.width - 0.001);
  }
  for (const { edge, back, points } of drawn.edges) {
    if (!back) assert.equal(points.length, at(drawn, edge.targetNodeId).layer - at(drawn, edge.sourceNodeId).layer + 1);
  }
});

test("ten thousand nodes in a row do not break the stack", () => {
  const nodes = Array.from({ length: 10_000 }, (_, i) => ({ id: `n${i}`, typeId: "core.noop" }));
  const edges = nodes.slice(1).map((node, i) => ({ id: node.id, sourceNodeId: `n${i}`, targetNodeId: node.id }));
  assert.equal(layout(nodes, edges).nodes.at(-1).layer, 9999);
});

test("inputs: what is asked for first, defaults not sent, masked values not reused", () => {
  const variables = [{ name: "topic", type: "string", description: "What about", defaultValue: "tides" }, { name: "amount", type: "number", required: true }, { name: "notes", type: "array", defaultValue: [] }];
  const { main, rest, restCount } = inputSchemas(variables);
  assert.deepEqual([Object.keys(main.properties), main.required, Object.keys(rest.properties), restCount], [["topic", "amount"], ["amount"], ["notes"], 1]);
  assert.deepEqual(chosenInputs({ topic: "tides", amount: 2, notes: [], more: 1 }, variables), { amount: 2, more: 1 });
  assert.deepEqual(reusable({ user: "ada", password: "[REDACTED]" }), { user: "ada" });
});

test("kinds", () => {
  assert.deepEqual(["core.start", "core.orchestrator.supervisor", "vendor.baton.agent", "vendor.baton.http", "vendor.baton.memory.put", "core.setVariable", "core.dispatch", "vendor.baton.tool", "vendor.baton.map"].map(kindOf),
    ["flow", "agent", "agent", "call", "keep", "data", "child", "call", "loop"]);
});
