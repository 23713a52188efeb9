// What a run itself did, counted: models asked, tools called, questions put. For the tree.

/** @typedef {{ kind: "chat" | "tool" | "ask", label: string, seqs: number[] }} Doing */

const MOST = 40;

/** @param {import("./facts.js").Facts} facts @returns {Doing[]} */
export function doings(facts) {
  /** @type {Map<string, Doing>} */
  const found = new Map();
  for (const lane of facts.spans.lanes) {
    for (const span of lane.inner) {
      const kind = span.kind === "model" ? "chat" : span.kind === "tool" ? "tool" : span.kind === "wait" && span.label !== "child-waiting" ? "ask" : null;
      if (!kind) continue;
      const label = kind === "ask" ? `${span.label.replace(/^x-host-baton-/, "")} at ${lane.nodeId}` : span.label;
      const one = found.get(`${kind} ${label}`) ?? { kind, label, seqs: [] };
      one.seqs.push(kind === "chat" ? span.endSeq : span.seq);
      found.set(`${kind} ${label}`, one);
    }
  }
  return [...found.values()].slice(0, MOST).map((one) => ({ ...one, seqs: one.seqs.sort((a, b) => a - b) }));
}
