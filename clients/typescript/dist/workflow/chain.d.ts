import type { Json } from "../api.js";
import { Graph, type Place } from "./graph.js";
import { type Decision, type Name, Node, type Rule } from "./nodes.js";
import { type Inputs, type Value } from "./values.js";
/** Adds the steps of one way and gives its end. */
export type Arm = (way: Chain) => Chain;
export interface StepOptions {
    inputs?: Inputs;
    name?: string;
    timeoutMs?: number;
    retries?: number;
    retryDelayMs?: number;
    /** Its outputs are the run's, if no way has an end. */
    primary?: boolean;
    /** The way that a failure takes instead of failing the run. */
    onFailure?: Arm;
}
export interface ApproveOptions {
    title?: string;
    description?: string;
    artifact?: Value;
    actions?: ("accept" | "reject" | "refine" | "edit-accept" | "ask")[];
    requiredApprovals?: number;
    rejectionPolicy?: "single-veto" | "majority";
    approvers?: string[];
    timeoutMs?: number;
    /** Without it a rejection fails the run. */
    onReject?: Arm;
    onRefine?: Arm;
    name?: string;
}
export interface LoopOptions {
    items?: Value;
    count?: number;
    while?: Value;
    into?: Name;
    maxIterations?: number;
    name?: string;
}
export interface MapOptions {
    items?: Value;
    tool?: string;
    arguments?: Value;
    agent?: string;
    task?: Value;
    workflow?: string;
    workflowInputs?: Value;
    /** The workflow's variable that is its result. */
    output?: string;
    itemName?: string;
    maxConcurrency?: number;
    onItemError?: "fail" | "collect";
    itemTimeoutMs?: number;
    into?: Name;
    /** Other settings of the guide. */
    [setting: string]: Json | Value;
}
export interface SuperviseOptions {
    rules?: Rule[];
    otherwise?: Decision;
    agentId?: string;
    workers?: {
        id: string;
        for: string;
    }[];
    inputs?: Inputs;
    /** The id of the node that carries decisions out (`hand-over`). */
    dispatch?: string;
    inputMapping?: Record<string, string>;
    outputMapping?: Record<string, string>;
    iterationCap?: number;
    fanOut?: "sequential" | "parallel" | "reject";
    maxConcurrency?: number;
    join?: Record<string, Json>;
    onChildFailure?: "collect" | "absorb" | "fail-fast";
    outputAttestation?: Record<string, Json>;
    settings?: Record<string, Json>;
}
export declare class Chain {
    #private;
    protected readonly graph: Graph;
    /** Where the next step is attached. */
    protected readonly ends: Place[];
    constructor(graph: Graph, ends: Place[], begins?: boolean);
    get isEnded(): boolean;
    /** A step of any type. */
    step(id: string, does: Node | string, { inputs, name, timeoutMs, retries, retryDelayMs, primary, onFailure }?: StepOptions): Chain;
    /** Waits for approval. */
    approve(id: string, options?: ApproveOptions): Chain;
    /** Waits for the answers to questions, by id. They are `output(id, "answers")`. */
    ask(id: string, questions: Record<string, string>, { timeoutMs, name }?: {
        timeoutMs?: number;
        name?: string;
    }): Chain;
    /** Waits for an event of another system with these values. It is `output(id, "event")`. */
    waitForEvent(id: string, eventType: string, correlation: Record<string, Json>, { timeoutMs, name }?: {
        timeoutMs?: number;
        name?: string;
    }): Chain;
    /** Takes one of two ways. What follows comes after whichever was taken. */
    branch(id: string, when: Value, { then, otherwise, name }: {
        then: Arm;
        otherwise?: Arm;
        name?: string;
    }): Chain;
    /** Takes all ways at once. What follows comes after all of them. */
    parallel(id: string, ...ways: Arm[]): Chain;
    /** Repeats its body: for each of `items`, `count` times, or `while` something is true. */
    loop(id: string, options: LoopOptions, body: Arm): Chain;
    /**
     * Calls a tool, an agent or a workflow for each item of a list, several at a time. Expressions of `arguments`, `task` and
     * `workflowInputs` know the item as `item`, and as `itemName`; without them each item is given as it is. The output
     * `results` has the results in order.
     */
    map(id: string, options: MapOptions, more?: {
        inputs?: Inputs;
        name?: string;
    }): Chain;
    /**
     * A supervisor, by rules or by an agent, and the node that carries out its decisions. Nothing follows it: a decision to
     * terminate completes the run.
     */
    supervise(id: string, options: SuperviseOptions): Chain;
    /** Fails the run. Nothing follows. */
    fail(id: string, code: string, message: string): Chain;
    /** Ends this way. The outputs are the run's. Nothing follows. */
    end(id?: string, outputs?: Inputs): Chain;
    /** Where chains of one workflow end. */
    protected static endsOf(graph: Graph, chains: Chain[], rule: string | undefined): Place[];
}
