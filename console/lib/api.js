// Every call of the public API that the console makes, by name. All take `Options` last and throw `ApiError`.
/** @typedef {import("./http.js").Options} Options */
/** @typedef {import("../types.js").RunItem} RunItem */
import { json, send } from "./http.js";

const id = encodeURIComponent;
/** A path keeps its slashes. @param {string} path */
const file = (path) => path.split("/").map(id).join("/");
const HOST = "/v1/host/baton";

/** @param {string} path @param {Record<string, unknown>} query @param {Options} [options] */
const get = (path, query, options) => json("GET", path, { ...options, query });
/** @param {string} path @param {unknown} body @param {Options} [options] */
const post = (path, body, options) => json("POST", path, { ...options, body });

export const api = {
  /** For what has no name here yet. */
  get,
  post,

  runs: {
    /** @param {import("../types.js").RunFilter} filter @param {Options} [options] @returns {Promise<import("../types.js").RunList>} */
    list: (filter, options) => get("/v1/runs", { ...filter }, options),
    /** @param {string} run @param {Options} [options] @returns {Promise<import("../types.js").RunSnapshot>} */
    get: (run, options) => get(`/v1/runs/${id(run)}`, {}, options),
    /** @param {{ workflowId?: string, agentId?: string, inputs?: object, configurable?: object, tags?: string[], scopeId?: string }} body @param {Options} [options] @returns {Promise<{ runId: string, status: string }>} */
    start: (body, options) => post("/v1/runs", body, options),
    /** @param {string} run @param {string} [reason] @param {Options} [options] */
    cancel: (run, reason, options) => post(`/v1/runs/${id(run)}/cancel`, reason ? { reason } : {}, options),
    /** At most 100. @param {string[]} runIds @param {string} [reason] @returns {Promise<{ results: { runId: string, ok: boolean, status?: string, error?: { code: string, message: string } }[] }>} */
    cancelMany: (runIds, reason) => post("/v1/runs:bulk-cancel", reason ? { runIds, reason } : { runIds }),
    /** @param {string} run @param {string} [reason] */
    pause: (run, reason) => post(`/v1/runs/${id(run)}:pause`, reason ? { reason } : {}),
    /** @param {string} run */
    resume: (run) => post(`/v1/runs/${id(run)}:resume`, {}),
    /** Lets the tree of a run in quarantine go on; 409 when it is in none. @param {string} run @returns {Promise<import("../types.js").QuarantinedTree>} */
    release: (run) => post(`${HOST}/runs/${id(run)}/release`, {}),
    /** @param {string} run @param {{ mode: "replay" | "branch", fromSeq?: number, runOptionsOverlay?: object }} body @returns {Promise<{ runId: string, sourceRunId: string, fromSeq: number, requestedFromSeq?: number }>} */
    fork: (run, body) => post(`/v1/runs/${id(run)}:fork`, body),
    /** @param {string} run @param {object} [body] */
    prune: (run, body = {}) => post(`/v1/runs/${id(run)}:prune`, body),
    /** The whole log. @param {string} run @param {Options} [options] @returns {Promise<{ events: import("../types.js").RunEvent[] }>} */
    events: (run, options) => get(`/v1/runs/${id(run)}/events`, {}, options),
    /** @param {string} run @param {string} against @param {Options} [options] @returns {Promise<import("../types.js").RunDiff>} */
    diff: (run, against, options) => get(`/v1/runs/${id(run)}:diff`, { against }, options),
    /** @param {string} run @param {Options} [options] */
    ancestry: (run, options) => get(`/v1/runs/${id(run)}/ancestry`, {}, options),
    /** @param {string} run @param {string} artifact @param {Options} [options] */
    artifact: (run, artifact, options) => get(`/v1/runs/${id(run)}/artifacts/${id(artifact)}`, {}, options),
    /** As of a record, the latest when `at` is absent. @param {string} run @param {number} [at] @param {Options} [options] @returns {Promise<import("../types.js").RunState>} */
    state: (run, at, options) => get(`${HOST}/runs/${id(run)}/state`, { at }, options),
    /** Memory and files as of a record. @param {string} run @param {number} [at] @param {Options} [options] */
    surroundings: (run, at, options) => get(`${HOST}/runs/${id(run)}/surroundings`, { at }, options),
    /** A file as of a record. @param {string} run @param {string} path @param {number} [at] @param {Options} [options] @returns {Promise<import("../types.js").WorkspaceFile>} */
    file: (run, path, at, options) => get(`${HOST}/runs/${id(run)}/files/${file(path)}`, { at }, options),
    /** @param {string} run */
    verify: (run) => post(`${HOST}/runs/${id(run)}/verify`, {}),
    /** A file for another host. @param {string} run @returns {Promise<Blob>} */
    export: (run) => send("GET", `${HOST}/runs/${id(run)}/export`, { headers: { accept: "*/*" } }, (response) => response.blob()),
    /** @param {string} run @param {Options} [options] */
    debugBundle: (run, options) => get(`/v1/runs/${id(run)}/debug-bundle`, {}, options),
  },

  quarantine: {
    /** At most 200 at a time. @param {{ limit?: number, cursor?: string }} [query] @param {Options} [options] @returns {Promise<import("../types.js").QuarantineList>} */
    list: (query = {}, options) => get(`${HOST}/quarantine`, query, options),
  },

  webhooks: {
    /** At most 200 at a time. @param {{ limit?: number, cursor?: string }} [query] @param {Options} [options] @returns {Promise<import("../types.js").WebhookList>} */
    list: (query = {}, options) => get("/v1/webhooks", query, options),
    /** @param {string} webhook */
    resume: (webhook) => post(`${HOST}/webhooks/${id(webhook)}/resume`, {}),
    /** Everything that it did not take. @param {string} webhook @returns {Promise<{ queued: number }>} */
    redeliver: (webhook) => post(`${HOST}/webhooks/${id(webhook)}/dead-letters/redeliver`, {}),
  },

  interrupts: {
    /** @param {{ runId?: string, kind?: string, limit?: number }} [filter] @param {Options} [options] @returns {Promise<{ interrupts: import("../types.js").InterruptItem[], total?: number }>} */
    list: (filter = {}, options) => get("/v1/interrupts", filter, options),
    /** Answers this question and no other: whatever its node asks next has another id. @param {{ runId: string, nodeId: string, interruptId: string }} question @param {unknown} resumeValue @param {Options} [options] @returns {Promise<{ runId: string, nodeId: string, status: string }>} */
    resolve: ({ runId, nodeId, interruptId }, resumeValue, options) =>
      post(`/v1/runs/${id(runId)}/interrupts/${id(nodeId)}`, { interruptId, resumeValue }, options),
    /** What a signed link asks; needs no key. @param {string} token @param {Options} [options] @returns {Promise<import("../types.js").OpenInterrupt>} */
    byToken: (token, options) => get(`/v1/interrupts/${id(token)}`, {}, { ...options, key: null }),
    /** @param {string} token @param {{ interruptId: string }} question @param {unknown} resumeValue */
    resolveByToken: (token, { interruptId }, resumeValue) => post(`/v1/interrupts/${id(token)}`, { interruptId, resumeValue }, { key: null }),
  },

  workflows: {
    /** @param {Options} [options] @returns {Promise<{ workflows: import("../types.js").WorkflowVersion[] }>} */
    list: (options) => get("/v1/workflows", {}, options),
    /** @param {string} workflow @param {Options} [options] @returns {Promise<import("../types.js").WorkflowDefinition>} */
    get: (workflow, options) => get(`/v1/workflows/${id(workflow)}`, {}, options),
    /** Newest first. @param {string} workflow @param {Options} [options] @returns {Promise<{ workflowId: string, versions: import("../types.js").WorkflowVersion[] }>} */
    versions: (workflow, options) => get(`${HOST}/workflows/${id(workflow)}/versions`, {}, options),
    /** @param {string} workflow @param {number} version @param {Options} [options] @returns {Promise<import("../types.js").WorkflowDefinition>} */
    version: (workflow, version, options) => get(`${HOST}/workflows/${id(workflow)}/versions/${version}`, {}, options),
    /** What is wrong with a text that may not even be JSON. @param {string} text @param {Options} [options] @returns {Promise<import("../types.js").Validation>} */
    validate: (text, options) => json("POST", `${HOST}/workflows/validate`, { ...options, text }),
    /** @param {unknown} definition @returns {Promise<import("../types.js").WorkflowVersion>} */
    register: (definition) => post("/v1/workflows", definition),
  },

  agents: {
    /** @param {Options} [options] @returns {Promise<{ agents: import("../types.js").AgentEntry[], total: number }>} */
    list: (options) => get("/v1/agents", {}, options),
    /** @param {string} agent @param {Options} [options] @returns {Promise<import("../types.js").AgentEntry>} */
    get: (agent, options) => get(`/v1/agents/${id(agent)}`, {}, options),
    /** What is left of an agent here, for this key. @param {string} agent @param {Options} [options] @returns {Promise<import("../types.js").EffectiveAgent>} */
    effective: (agent, options) => get(`${HOST}/agents/${id(agent)}/effective`, {}, options),
  },

  tools: {
    /** @param {Options} [options] @returns {Promise<{ tools: import("../types.js").ToolDescriptor[] }>} */
    list: (options) => get("/v1/tools", {}, options),
    /** @param {string} tool @param {Options} [options] @returns {Promise<import("../types.js").ToolDescriptor>} */
    get: (tool, options) => get(`/v1/tools/${id(tool)}`, {}, options),
  },

  memory: {
    /** @param {Options} [options] @returns {Promise<{ scopes: { scope: string, version: number, updatedAt: string }[] }>} */
    scopes: (options) => get(`${HOST}/memory`, {}, options),
    /** @param {string} scope @param {Record<string, unknown>} [query] @param {Options} [options] @returns {Promise<{ entries: import("../types.js").MemoryEntry[], nextCursor?: string }>} */
    list: (scope, query = {}, options) => get(`${HOST}/memory/${id(scope)}`, query, options),
    /** @param {string} scope @param {object} entry */
    remember: (scope, entry) => post(`${HOST}/memory/${id(scope)}`, entry),
    /** @param {string} scope @param {string} entry */
    forget: (scope, entry) => json("DELETE", `${HOST}/memory/${id(scope)}/${id(entry)}`),
  },

  workspace: {
    /** @param {{ prefix?: string }} [query] @param {Options} [options] @returns {Promise<{ files: import("../types.js").FileMeta[] }>} */
    list: (query = {}, options) => get("/v1/host/workspace/files", query, options),
    /** @param {string} path @param {Options} [options] @returns {Promise<import("../types.js").WorkspaceFile>} */
    get: (path, options) => get(`/v1/host/workspace/files/${file(path)}`, {}, options),
    /** Versions count from when the file was last created. @param {string} path @param {number} version @param {Options} [options] @returns {Promise<import("../types.js").WorkspaceFile>} */
    version: (path, version, options) => get(`/v1/host/workspace/files/${file(path)}`, { version }, options),
    /** Newest first. @param {{ path?: string, before?: number, limit?: number }} [query] @param {Options} [options] @returns {Promise<{ changes: import("../types.js").FileChange[], nextBefore?: number }>} */
    changes: (query = {}, options) => get(`${HOST}/workspace/changes`, query, options),
  },

  host: {
    /** @param {Options} [options] */
    discovery: (options) => get("/.well-known/openwop", {}, options),
    /** @param {Options} [options] @returns {Promise<import("../types.js").SystemReport>} */
    system: (options) => get(`${HOST}/system`, {}, options),
    /** The runners of the key's subject. @param {Options} [options] @returns {Promise<{ runners: import("../types.js").Runner[] }>} */
    runners: (options) => get(`${HOST}/runners`, {}, options),
    /** @param {Options} [options] */
    extensions: (options) => get(`${HOST}/vendor-extensions`, {}, options),
    /** @param {Options} [options] */
    readiness: (options) => get("/readiness", {}, { ...options, once: true }),
    /** @param {Options} [options] @returns {Promise<string>} */
    metrics: (options) => send("GET", "/metrics", { ...options, headers: { accept: "*/*" } }, (response) => response.text()),
  },
};

/** Whether a key may be used here: null when it may, otherwise the error. @param {string} key */
export async function tryKey(key) {
  try {
    await json("GET", "/v1/runs", { query: { limit: 1 }, key, once: true });
    return null;
  } catch (error) {
    // A key that is known but may not list runs is still a key.
    if (/** @type {any} */ (error).status === 403) return null;
    return error;
  }
}
