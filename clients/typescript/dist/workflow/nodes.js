import { either, Variable } from "./values.js";
export class Node {
    typeId;
    config;
    constructor(typeId, config) {
        this.typeId = typeId;
        this.config = given(config);
    }
}
/** A node of any type, with its configuration as the host reads it. */
export function node(typeId, config = {}) {
    return new Node(typeId, config);
}
export function setVariable(variable, value) {
    return new Node("core.setVariable", { name: nameOf(variable), ...either("value", "expression", value) });
}
/** Sets several variables, each to an expression. */
export function setVariables(values) {
    return new Node("core.setVariable", { assign: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])) });
}
export function writeChannel(channel, value) {
    return new Node("core.channelWrite", { channelName: channel, ...either("value", "expression", value) });
}
export function delay(ms) {
    return new Node("core.delay", { ms });
}
/** Lets an agent work on the step's inputs. Its answer is the output `result`. */
export function agent(agentId, { provider, model, temperature, maxTokens, tools, maxToolRounds, requireTools, ...more } = {}) {
    return new Node("vendor.baton.agent", { agentId, provider, model, temperature, maxTokens, tools, maxToolRounds, requireTools, ...more });
}
/** Asks a model for a value that fits a schema. The value is the output `data`. */
export function structuredOutput(schema, { modelClass, systemPrompt, ...more } = {}) {
    return new Node("core.ai.structuredOutput", { outputSchema: schema, modelClass, systemPrompt, ...more });
}
/** Sends one request. The reply is the output `response`. */
export function http(url, { method = "GET", headers, body, into, outcomePolicy, verifyUrl } = {}) {
    const sent = body === undefined ? {} : either("body", "bodyExpression", body);
    return new Node("vendor.baton.http", { ...either("url", "urlExpression", url), method, ...sent, headers, into: nameOf(into), outcomePolicy, verifyUrl });
}
/** Calls one tool of the catalogue. Without arguments it is given the step's inputs. */
export function tool(toolId, args, { into, ...more } = {}) {
    const { outcomePolicy, timeoutMs, waitForRunnerMs, runnerVersion, onToolError } = more;
    const taken = args === undefined ? {} : either("arguments", "argumentsExpression", args);
    return new Node("vendor.baton.tool", { tool: toolId, ...taken, into: nameOf(into), outcomePolicy, timeoutMs, waitForRunnerMs, runnerVersion, onToolError });
}
/** Runs a child and waits for its end. */
export function subWorkflow(workflowId, { inputMapping, outputMapping, onChildFailure, propagateCancellation } = {}) {
    return new Node("core.subWorkflow", { workflowId, inputMapping, outputMapping, onChildFailure, propagateCancellation });
}
export function memoryPut(content, { tags, ttlSeconds } = {}) {
    return new Node("vendor.baton.memory.put", { ...either("content", "contentExpression", content), tags, ttlSeconds });
}
/** Lists entries, newest first, into a variable. */
export function memoryList(into, { tag, limit } = {}) {
    return new Node("vendor.baton.memory.list", { into: nameOf(into), tag, limit });
}
export function workspacePut(path, content, { contentType } = {}) {
    return new Node("vendor.baton.workspace.put", { path, ...either("content", "contentExpression", content), contentType });
}
/** Reads a file into a variable; null if there is none. */
export function workspaceGet(path, into) {
    return new Node("vendor.baton.workspace.get", { path, into: nameOf(into) });
}
/** These workflows run as children; `inputs` has an object for each of them. */
export function nextWorker(workflowIds, { confidence, inputs } = {}) {
    const nextWorkerIds = typeof workflowIds === "string" ? [workflowIds] : workflowIds;
    return given({ kind: "next-worker", nextWorkerIds, confidence, nextWorkerInputs: inputs });
}
export function askUser(prompt) {
    return { kind: "ask-user", prompt };
}
/** The run completes. */
export function terminate(reason, { confidence } = {}) {
    return given({ kind: "terminate", reason, confidence });
}
export function rule(when, decide) {
    return { when: String(when), decide };
}
/** Without the members that are undefined. */
export function given(config) {
    return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}
export function nameOf(variable) {
    return variable instanceof Variable ? variable.name : variable;
}
