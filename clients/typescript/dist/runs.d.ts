import type { Ancestry, BulkCancelled, CancelledRun, CreatedRun, CreateRun, Diff, Forked, ImportedRun, Json, Paused, PollResult, Pruned, Resumed, RunEvent, RunItem, RunSnapshot, RunState, RunStatus, Verification } from "./api.js";
import { type WaitOptions } from "./follow.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
import { Workflow } from "./workflow/builder.js";
export interface StartOptions<I extends Record<string, Json> = Record<string, Json>> extends CallOptions, Pick<CreateRun, "agentId" | "tags" | "metadata" | "configurable" | "scopeId" | "conversationId"> {
    inputs?: I;
    /** Your own key makes the call count once also when your program starts again and repeats it, for 24 hours. */
    idempotencyKey?: string;
}
export interface RunFilter extends CallOptions {
    status?: RunStatus | RunStatus[];
    workflowId?: string;
    tag?: string;
    parentRunId?: string;
    rootRunId?: string;
    createdAfter?: string;
    createdBefore?: string;
    updatedAfter?: string;
    updatedBefore?: string;
    waiting?: boolean;
    topLevel?: boolean;
    q?: string;
    pageSize?: number;
}
export interface ForkOptions extends CallOptions {
    /** What happened before this sequence stays. */
    at: number;
    inputs?: Record<string, Json>;
    variables?: Record<string, Json>;
    configurable?: Record<string, Json>;
    sideEffects?: "simulated" | "real";
    idempotencyKey?: string;
}
export declare class Runs extends Group {
    /** Starts a run of a workflow, or of one agent. However often the request must be sent, it starts one run. */
    start<I extends Record<string, Json> = Record<string, Json>>(workflow: string | Workflow<I> | undefined, { idempotencyKey, signal, timeoutMs, ...wanted }?: StartOptions<NoInfer<I>>): Promise<CreatedRun>;
    /** The run as it stands. */
    get(runId: string, call?: CallOptions): Promise<RunSnapshot>;
    /** Runs, newest first. Asks for the next page when it is needed. */
    list({ signal, timeoutMs, pageSize, ...filter }?: RunFilter): AsyncGenerator<RunItem, void, void>;
    /**
     * Waits until the run has ended, or also until it waits for somebody or is paused. After `timeoutMs` it throws TimedOut;
     * the run goes on.
     */
    wait(runId: string, options?: WaitOptions): Promise<RunSnapshot>;
    /**
     * The events of a run, from the one after the sequence `after`, until it has ended. Connections that break are opened
     * again; no event is lost and none comes twice. `updates` are changes of the run and its nodes, `debug` is every event.
     */
    events(runId: string, { after, mode, bufferMs, signal }?: {
        after?: number;
        mode?: "updates" | "debug";
        bufferMs?: number;
        signal?: AbortSignal;
    }): AsyncGenerator<RunEvent, void, void>;
    /** The whole run, now and after each change, until it has ended. */
    states(runId: string, { signal }?: {
        signal?: AbortSignal;
    }): AsyncGenerator<RunSnapshot, void, void>;
    /** One page of every event after a sequence. If there is none the host holds the request up to `hold` seconds. */
    poll(runId: string, { after, hold, limit, ...call }?: CallOptions & {
        after?: number;
        hold?: number;
        limit?: number;
    }): Promise<PollResult>;
    /** Cancels a run and its children. Cancelling one that has ended reports how it ended. */
    cancel(runId: string, { reason, ...call }?: CallOptions & {
        reason?: string;
    }): Promise<CancelledRun>;
    /** Cancels up to 100 runs. Each succeeds or fails by itself. */
    cancelMany(runIds: string[], { reason, ...call }?: CallOptions & {
        reason?: string;
    }): Promise<BulkCancelled>;
    pause(runId: string, { reason, drainPolicy, ...call }?: CallOptions & {
        reason?: string;
        drainPolicy?: "immediate" | "drain-current-node";
    }): Promise<Paused>;
    resume(runId: string, { reason, ...call }?: CallOptions & {
        reason?: string;
    }): Promise<Resumed>;
    /** A branch: what happened before the sequence `at` stays, the rest happens anew, with your changes. */
    fork(runId: string, { at, idempotencyKey, signal, timeoutMs, ...overlay }: ForkOptions): Promise<Forked>;
    /** Repeats the run exactly as recorded, as a run of its own. Calls nobody. */
    replay(runId: string, { at, idempotencyKey, ...call }?: CallOptions & {
        at?: number;
        idempotencyKey?: string;
    }): Promise<Forked>;
    /** Computes the decisions of a run again and compares. Writes nothing. */
    verify(runId: string, call?: CallOptions): Promise<Verification>;
    /** Compares two runs, event by event and as they stand. */
    diff(runId: string, against: string, { fromSeq, ...call }?: CallOptions & {
        fromSeq?: number;
    }): Promise<Diff>;
    /** The run, its memory and its files as of a record. */
    state(runId: string, { at, ...call }: CallOptions & {
        at: number;
    }): Promise<RunState>;
    /** Which run, on which host, started this one. */
    ancestry(runId: string, call?: CallOptions): Promise<Ancestry>;
    /** An ended run with everything it needs, as one file. It holds private data. */
    export(runId: string, call?: CallOptions): Promise<Uint8Array>;
    /** Takes in such a file. A second time changes nothing. */
    import(file: Uint8Array, call?: CallOptions): Promise<ImportedRun>;
    /** Adds feedback: `{ kind: "rating", rating: 4 }`, or a correction, a label or a flag. */
    annotate(runId: string, signalOfRun: Record<string, Json>, { note, nodeId, eventId, ...call }?: CallOptions & {
        note?: string;
        nodeId?: string;
        eventId?: string;
    }): Promise<Record<string, Json>>;
    /** Feedback on a run, oldest first. */
    annotations(runId: string, call?: CallOptions): AsyncGenerator<Record<string, Json>, void, void>;
    /** Deletes the memory and file history of an ended run; with `log` its events, too. */
    prune(runId: string, { log, ...call }?: CallOptions & {
        log?: boolean;
    }): Promise<Pruned>;
}
