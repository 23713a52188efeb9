// Workflows that the tests need besides the demos: one that takes its time, one that never ends by itself, a long one.

/** @param {string} id @param {string} typeId @param {Record<string, unknown>} [config] */
const node = (id, typeId, config = {}) => ({ id, typeId, name: id, position: { x: 0, y: 0 }, config, inputs: {} });
/** @param {string} from @param {string} to @param {string} [port] */
const edge = (from, to, port) => ({ id: `${from}-${to}`, sourceNodeId: from, targetNodeId: to, ...(port ? { sourceOutput: port } : {}) });
/** @param {string} id @param {Record<string, unknown>} parts */
const workflow = (id, parts) => ({ id, name: id, version: "1.0.0", triggers: [], variables: [], metadata: {}, settings: {}, ...parts });

/** A loop whose body waits: events come in one after the other, so that a page can be watched, and a host killed, in between. */
export const ticking = (rounds = 120, ms = 20, id = "e2e-ticking") => workflow(id, {
  nodes: [node("each", "core.loop", { count: rounds, into: "round", maxIterations: rounds }), node("rest", "core.delay", { ms }), node("note", "core.setVariable", { assign: { noted: "variables.round" } }), node("end", "core.end")],
  edges: [edge("each", "rest", "body"), edge("rest", "note"), edge("note", "each"), edge("each", "end", "done")],
  variables: [{ name: "round", type: "number", defaultValue: 0 }, { name: "noted", type: "number", defaultValue: -1 }],
});

/**
 * Stages of such a loop, each behind a gate `gate-1`, `gate-2`, …: whoever watches opens them one by one, so there is always
 * something left to happen, however slow the machine is.
 */
export const gated = (stages, rounds, ms, id = "e2e-gated") => {
  const each = Array.from({ length: stages }, (_, index) => index + 1);
  return workflow(id, {
    nodes: [...each.flatMap((n) => [
      node(`gate-${n}`, "core.approvalGate", { title: `Go on with stage ${n}?`, actions: ["accept", "reject"] }),
      node(`each-${n}`, "core.loop", { count: rounds, into: "round", maxIterations: rounds }), node(`rest-${n}`, "core.delay", { ms }), node(`note-${n}`, "core.setVariable", { assign: { noted: "variables.round" } }),
    ]), node("end", "core.end")],
    edges: each.flatMap((n) => [edge(`gate-${n}`, `each-${n}`), edge(`each-${n}`, `rest-${n}`, "body"), edge(`rest-${n}`, `note-${n}`), edge(`note-${n}`, `each-${n}`), edge(`each-${n}`, n < stages ? `gate-${n + 1}` : "end", "done")]),
    variables: [{ name: "round", type: "number", defaultValue: 0 }, { name: "noted", type: "number", defaultValue: -1 }],
  });
};

/** Two questions at once, and two more after the second. */
export const asking = workflow("e2e-asking", {
  nodes: ["first", "second", "third", "fourth"].map((id) => node(id, "core.approvalGate", { title: `The ${id} question`, actions: ["accept", "reject"] })),
  edges: [edge("second", "third"), edge("third", "fourth")],
});

/** A tree that waits for a long time: something to cancel. */
export const waiting = workflow("e2e-waiting", { nodes: [node("wait", "core.delay", { ms: 3_600_000 })], edges: [] });
export const tree = workflow("e2e-tree", {
  nodes: [node("left", "core.subWorkflow", { workflowId: "e2e-waiting" }), node("right", "core.subWorkflow", { workflowId: "e2e-waiting" })],
  edges: [],
});

/** Something below waits for an answer while this one goes on: long enough for whoever watches, who then cancels it. */
export const below = workflow("e2e-below", { nodes: [node("ask", "core.approvalGate", { title: "Asked from below", actions: ["accept", "reject"] })], edges: [] });
export const above = workflow("e2e-above", {
  ...ticking(5000, 30),
  id: "e2e-above",
  nodes: [...ticking(5000, 30).nodes, node("sub", "core.subWorkflow", { workflowId: "e2e-below" })],
});

/** Six events a round. */
export const long = (rounds = 17_000) => workflow("e2e-long", {
  nodes: [node("each", "core.loop", { count: rounds, into: "round", maxIterations: rounds }), node("note", "core.setVariable", { assign: { noted: "variables.round" } }), node("end", "core.end")],
  edges: [edge("each", "note", "body"), edge("note", "each"), edge("each", "end", "done")],
  variables: [{ name: "round", type: "number", defaultValue: 0 }, { name: "noted", type: "number", defaultValue: -1 }],
});

/** Goes on by itself after a moment: with the tag `fault:panic`, on a host with faults, that is when it crashes. */
export const moment = workflow("e2e-moment", { nodes: [node("wait", "core.delay", { ms: 200 }), node("after", "core.noop")], edges: [edge("wait", "after")] });
/** The same with a run below that waits: a tree. */
export const family = workflow("e2e-family", {
  nodes: [node("below", "core.subWorkflow", { workflowId: "e2e-waiting" }), node("wait", "core.delay", { ms: 200 }), node("after", "core.noop")],
  edges: [edge("wait", "after")],
});
