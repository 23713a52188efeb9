import type { Json } from "../api.js";
import type { Client } from "../client.js";
import { Chain } from "./chain.js";
import { type Part } from "./graph.js";
import { Variable } from "./values.js";
export interface WorkflowOptions {
    name?: string;
    /** Your own version text (`1.0.0`). */
    version?: string;
    description?: string;
    settings?: Record<string, Json>;
    metadata?: Record<string, Json>;
    configurableSchema?: Record<string, Json>;
}
/** What a variable of each type holds. */
export interface Types {
    string: string;
    number: number;
    boolean: boolean;
    object: Record<string, Json>;
    array: Json[];
}
/** The type of a variable that holds a `T`. */
export type KindOf<T> = T extends string ? "string" : T extends number ? "number" : T extends boolean ? "boolean" : T extends readonly unknown[] ? "array" : "object";
export interface VariableOptions {
    description?: string;
    sensitive?: boolean;
}
/**
 * Each chain that begins at the workflow itself starts with the run; several of them run in parallel. With a type for its
 * inputs, `new Workflow<{ amount: number }>("order")`, the compiler checks them wherever a run is started.
 */
export declare class Workflow<I extends Record<string, Json> = Record<string, Json>> extends Chain {
    #private;
    /** Only for the compiler. */
    readonly inputs: I;
    readonly id: string;
    constructor(id: string, { name, version, description, settings, metadata, configurableSchema }?: WorkflowOptions);
    /** A variable that whoever starts a run must give. */
    input<N extends keyof I & string, K extends KindOf<I[N]>>(name: N, type: K, { description, sensitive }?: VariableOptions): Variable<Types[K]>;
    /** A variable that may be given, and that steps may set. */
    variable<K extends keyof Types>(name: string, type: K, defaultValue?: Types[K], { description, sensitive }?: VariableOptions): Variable<Types[K]>;
    /** A value that changes by a rule. It is read like a variable. */
    channel(name: string, reducer?: "replace" | "append" | "feedback" | "message" | "votes" | "merge" | "counter", { default: first, maxSize, ...more }?: {
        default?: Json;
        maxSize?: number;
        [setting: string]: Json;
    }): Variable;
    /** Continues after several chains that were built apart. */
    join(id: string, chains: Chain[], rule?: "all_success" | "any_success" | "all_complete" | "none_failed" | "any_failed"): Chain;
    /** The definition that `workflows.register` takes. Throws BuildError for a step that is named and not there. */
    definition(): Record<string, Json>;
    /** The same as a file for `baton workflow validate` and for folders of workflows. */
    toJson(): string;
    /** Asks the host. Throws InvalidWorkflow with each problem at the line that built that part. */
    check(client: Client): Promise<void>;
    /** What a JSON pointer into the definition points at, and the line that built it. */
    partAt(pointer: string): Part;
}
