// What a node does, as a picture and a word: enough to read a graph without knowing the names of types.

/** @typedef {"flow" | "data" | "branch" | "loop" | "ask" | "agent" | "child" | "call" | "keep" | "fail"} Kind */

/** @type {[RegExp, Kind][]} the first that fits */
const KINDS = [
  [/^core\.(start|end|noop|parallel|merge)$/, "flow"],
  [/^core\.conditional$/, "branch"],
  [/^core\.loop$|\.map$/, "loop"],
  [/^core\.fail$/, "fail"],
  [/^core\.(approvalGate|clarificationGate|interrupt)$/, "ask"],
  [/^core\.(dispatch|subWorkflow)$/, "child"],
  [/^core\.orchestrator\.|\.agent$|^core\.ai\./, "agent"],
  [/\.(http|mcp|tool)(\.|$)/, "call"],
  [/\.(memory|workspace)\./, "keep"],
];

/** @param {string} typeId @returns {Kind} */
export function kindOf(typeId) {
  return KINDS.find(([pattern]) => pattern.test(typeId))?.[1] ?? "data";
}

/** What they do, in words. @type {Record<Kind, string>} */
export const WORDS = {
  flow: "holds the way together", data: "computes", branch: "chooses a way", loop: "repeats", ask: "waits for an answer",
  agent: "asks a model or decides", child: "starts child runs", call: "calls outside", keep: "keeps or reads memory and files", fail: "fails on purpose",
};

/** Drawn in a square of 16. @type {Record<Kind, string>} */
export const PICTURES = {
  flow: "M8 4.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7",
  data: "M3.500 6h9M3.500 10h9",
  branch: "M8 13.500V9L4 4.500M8 9l4-4.500M4 7.500v-3h3M12 7.500v-3H9",
  loop: "M12.500 6.500A5 5 0 1 0 13 9M13 3.500v3h-3",
  ask: "M6 6a2 2 0 1 1 2.800 1.900C8.200 8.200 8 8.600 8 9.300M8 11.800v.01M8 1.800a6.200 6.200 0 1 0 0 12.400A6.200 6.200 0 0 0 8 1.800",
  agent: "M8 2.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5M3 13.500c.4-3 2.400-4.300 5-4.300s4.600 1.300 5 4.300",
  child: "M2.500 2.500h6v6h-6zM10 7.500h3.500v6h-6V10",
  call: "M3 13 12.500 3.500M6.500 3.500h6v6",
  keep: "M3 4.500C3 3 13 3 13 4.500S3 6 3 4.500v7C3 13 13 13 13 11.500v-7M3 8c0 1.500 10 1.500 10 0",
  fail: "m4.500 4.500 7 7m0-7-7 7",
};
