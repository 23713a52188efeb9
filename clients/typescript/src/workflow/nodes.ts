// What a step does: one function for each common type of node. `node` is for all others.
import type { Json } from "../api.js";
import { either, type Value, Variable } from "./values.js";

export type OutcomePolicy = "retry" | "verify" | "ask" | "fail";
/** A variable, or the name of one. */
export type Name = string | Variable<unknown>;
type Config = Record<string, Json>;

export class Node {
  readonly typeId: string;
  readonly config: Config;

  constructor(typeId: string, config: Config) {
    this.typeId = typeId;
    this.config = given(config);
  }
}

/** A node of any type, with its configuration as the host reads it. */
export function node(typeId: string, config: Config = {}): Node {
  return new Node(typeId, config);
}

export function setVariable(variable: Name, value: Value): Node {
  return new Node("core.setVariable", { name: nameOf(variable), ...either("value", "expression", value) });
}

/** Sets several variables, each to an expression. */
export function setVariables(values: Record<string, Value>): Node {
  return new Node("core.setVariable", { assign: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)])) });
}

export function writeChannel(channel: string, value: Value): Node {
  return new Node("core.channelWrite", { channelName: channel, ...either("value", "expression", value) });
}

export function delay(ms: number): Node {
  return new Node("core.delay", { ms });
}

export interface AgentSettings {
  provider?: string;
  model?: string;
  temperature?: number;
  maxTokens?: number;
  tools?: string[];
  maxToolRounds?: number;
  requireTools?: boolean;
  /** Other settings of the guide. */
  [setting: string]: Json;
}

/** Lets an agent work on the step's inputs. Its answer is the output `result`. */
export function agent(agentId: string, { provider, model, temperature, maxTokens, tools, maxToolRounds, requireTools, ...more }: AgentSettings = {}): Node {
  return new Node("vendor.baton.agent", { agentId, provider, model, temperature, maxTokens, tools, maxToolRounds, requireTools, ...more });
}

/** Asks a model for a value that fits a schema. The value is the output `data`. */
export function structuredOutput(schema: Config, { modelClass, systemPrompt, ...more }: { modelClass?: string; systemPrompt?: string; [setting: string]: Json } = {}): Node {
  return new Node("core.ai.structuredOutput", { outputSchema: schema, modelClass, systemPrompt, ...more });
}

export interface HttpSettings {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  headers?: Config;
  body?: Value;
  into?: Name;
  outcomePolicy?: OutcomePolicy;
  verifyUrl?: string;
}

/** Sends one request. The reply is the output `response`. */
export function http(url: Value, { method = "GET", headers, body, into, outcomePolicy, verifyUrl }: HttpSettings = {}): Node {
  const sent = body === undefined ? {} : either("body", "bodyExpression", body);
  return new Node("vendor.baton.http", { ...either("url", "urlExpression", url), method, ...sent, headers, into: nameOf(into), outcomePolicy, verifyUrl });
}

export interface ToolSettings {
  into?: Name;
  outcomePolicy?: OutcomePolicy;
  timeoutMs?: number;
  waitForRunnerMs?: number;
  runnerVersion?: string;
  onToolError?: "fail" | "return";
}

/** Calls one tool of the catalogue. Without arguments it is given the step's inputs. */
export function tool(toolId: string, args?: Value, { into, ...more }: ToolSettings = {}): Node {
  const { outcomePolicy, timeoutMs, waitForRunnerMs, runnerVersion, onToolError } = more;
  const taken = args === undefined ? {} : either("arguments", "argumentsExpression", args);
  return new Node("vendor.baton.tool", { tool: toolId, ...taken, into: nameOf(into), outcomePolicy, timeoutMs, waitForRunnerMs, runnerVersion, onToolError });
}

export interface SubWorkflowSettings {
  /** Child's variable from ours. */
  inputMapping?: Record<string, string>;
  /** Our variable from the child's. */
  outputMapping?: Record<string, string>;
  onChildFailure?: "fail-parent" | "absorb";
  propagateCancellation?: boolean;
}

/** Runs a child and waits for its end. */
export function subWorkflow(workflowId: string, { inputMapping, outputMapping, onChildFailure, propagateCancellation }: SubWorkflowSettings = {}): Node {
  return new Node("core.subWorkflow", { workflowId, inputMapping, outputMapping, onChildFailure, propagateCancellation });
}

export function memoryPut(content: Value, { tags, ttlSeconds }: { tags?: string[]; ttlSeconds?: number } = {}): Node {
  return new Node("vendor.baton.memory.put", { ...either("content", "contentExpression", content), tags, ttlSeconds });
}

/** Lists entries, newest first, into a variable. */
export function memoryList(into: Name, { tag, limit }: { tag?: string; limit?: number } = {}): Node {
  return new Node("vendor.baton.memory.list", { into: nameOf(into), tag, limit });
}

export function workspacePut(path: string, content: Value, { contentType }: { contentType?: string } = {}): Node {
  return new Node("vendor.baton.workspace.put", { path, ...either("content", "contentExpression", content), contentType });
}

/** Reads a file into a variable; null if there is none. */
export function workspaceGet(path: string, into: Name): Node {
  return new Node("vendor.baton.workspace.get", { path, into: nameOf(into) });
}

// What a supervisor decides.

export type Decision = Record<string, Json>;
export interface Rule {
  when: string;
  decide: Decision;
}

/** These workflows run as children; `inputs` has an object for each of them. */
export function nextWorker(workflowIds: string | string[], { confidence, inputs }: { confidence?: number; inputs?: Config[] } = {}): Decision {
  const nextWorkerIds = typeof workflowIds === "string" ? [workflowIds] : workflowIds;
  return given({ kind: "next-worker", nextWorkerIds, confidence, nextWorkerInputs: inputs });
}

export function askUser(prompt: string): Decision {
  return { kind: "ask-user", prompt };
}

/** The run completes. */
export function terminate(reason?: string, { confidence }: { confidence?: number } = {}): Decision {
  return given({ kind: "terminate", reason, confidence });
}

export function rule(when: Value, decide: Decision): Rule {
  return { when: String(when), decide };
}

/** Without the members that are undefined. */
export function given(config: Config): Config {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
}

export function nameOf(variable: Name | undefined): string | undefined {
  return variable instanceof Variable ? variable.name : variable;
}
