// Which run wrote an entry. The store does not say; the logs of the runs of the tree do (`memory.written`).
import { api } from "../../lib/api.js";
import { asApiError } from "../../lib/error.js";

/** More runs than this are not read unasked. */
const MOST_RUNS = 60;

/** @typedef {{ runId: string, seq: number, nodeId?: string }} Writer */

/**
 * @param {string} root the run whose tree the scope is @param {Set<string>} wanted ids of entries @param {AbortSignal} signal
 * @returns {Promise<{ found: Map<string, Writer>, all: boolean }>} `all` is false where the tree is larger than what was read
 */
export async function writersOf(root, wanted, signal) {
  const { runs, nextCursor } = await api.runs.list({ rootRunId: root, limit: MOST_RUNS }, { signal });
  /** @type {Map<string, Writer>} */
  const found = new Map();
  for (const runId of [root, ...runs.map((run) => run.runId)]) {
    // What a run remembered may outlive the run.
    const { events } = await api.runs.events(runId, { signal }).catch((error) => {
      if ([404, 410].includes(asApiError(error).status)) return { events: [] };
      throw error;
    });
    for (const { type, payload, sequence, nodeId } of events) {
      if (type === "memory.written" && wanted.has(payload?.memoryId)) found.set(payload.memoryId, { runId, seq: sequence, nodeId: payload.nodeId ?? nodeId });
    }
    if (found.size === wanted.size) break;
  }
  return { found, all: !nextCursor };
}
