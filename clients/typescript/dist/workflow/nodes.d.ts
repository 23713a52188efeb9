import type { Json } from "../api.js";
import { type Value, Variable } from "./values.js";
export type OutcomePolicy = "retry" | "verify" | "ask" | "fail";
/** A variable, or the name of one. */
export type Name = string | Variable<unknown>;
type Config = Record<string, Json>;
export declare class Node {
    readonly typeId: string;
    readonly config: Config;
    constructor(typeId: string, config: Config);
}
/** A node of any type, with its configuration as the host reads it. */
export declare function node(typeId: string, config?: Config): Node;
export declare function setVariable(variable: Name, value: Value): Node;
/** Sets several variables, each to an expression. */
export declare function setVariables(values: Record<string, Value>): Node;
export declare function writeChannel(channel: string, value: Value): Node;
export declare function delay(ms: number): Node;
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
export declare function agent(agentId: string, { provider, model, temperature, maxTokens, tools, maxToolRounds, requireTools, ...more }?: AgentSettings): Node;
/** Asks a model for a value that fits a schema. The value is the output `data`. */
export declare function structuredOutput(schema: Config, { modelClass, systemPrompt, ...more }?: {
    modelClass?: string;
    systemPrompt?: string;
    [setting: string]: Json;
}): Node;
export interface HttpSettings {
    method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
    headers?: Config;
    body?: Value;
    into?: Name;
    outcomePolicy?: OutcomePolicy;
    verifyUrl?: string;
}
/** Sends one request. The reply is the output `response`. */
export declare function http(url: Value, { method, headers, body, into, outcomePolicy, verifyUrl }?: HttpSettings): Node;
export interface ToolSettings {
    into?: Name;
    outcomePolicy?: OutcomePolicy;
    timeoutMs?: number;
    waitForRunnerMs?: number;
    runnerVersion?: string;
    onToolError?: "fail" | "return";
}
/** Calls one tool of the catalogue. Without arguments it is given the step's inputs. */
export declare function tool(toolId: string, args?: Value, { into, ...more }?: ToolSettings): Node;
export interface SubWorkflowSettings {
    /** Child's variable from ours. */
    inputMapping?: Record<string, string>;
    /** Our variable from the child's. */
    outputMapping?: Record<string, string>;
    onChildFailure?: "fail-parent" | "absorb";
    propagateCancellation?: boolean;
}
/** Runs a child and waits for its end. */
export declare function subWorkflow(workflowId: string, { inputMapping, outputMapping, onChildFailure, propagateCancellation }?: SubWorkflowSettings): Node;
export declare function memoryPut(content: Value, { tags, ttlSeconds }?: {
    tags?: string[];
    ttlSeconds?: number;
}): Node;
/** Lists entries, newest first, into a variable. */
export declare function memoryList(into: Name, { tag, limit }?: {
    tag?: string;
    limit?: number;
}): Node;
export declare function workspacePut(path: string, content: Value, { contentType }?: {
    contentType?: string;
}): Node;
/** Reads a file into a variable; null if there is none. */
export declare function workspaceGet(path: string, into: Name): Node;
export type Decision = Record<string, Json>;
export interface Rule {
    when: string;
    decide: Decision;
}
/** These workflows run as children; `inputs` has an object for each of them. */
export declare function nextWorker(workflowIds: string | string[], { confidence, inputs }?: {
    confidence?: number;
    inputs?: Config[];
}): Decision;
export declare function askUser(prompt: string): Decision;
/** The run completes. */
export declare function terminate(reason?: string, { confidence }?: {
    confidence?: number;
}): Decision;
export declare function rule(when: Value, decide: Decision): Rule;
/** Without the members that are undefined. */
export declare function given(config: Config): Config;
export declare function nameOf(variable: Name | undefined): string | undefined;
export {};
