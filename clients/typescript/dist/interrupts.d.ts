import type { Answered, InterruptItem, Json, OpenInterrupt, RunSnapshot } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions } from "./http.js";
/** An item of `interrupts.list`, or a run that waits. */
export type Question = InterruptItem | RunSnapshot;
export declare class Interrupts extends Group {
    #private;
    /** Open questions: 50 of them, or `limit` (up to 200). */
    list({ runId, kind, limit, ...call }?: CallOptions & {
        runId?: string;
        kind?: string;
        limit?: number;
    }): Promise<InterruptItem[]>;
    /**
     * Answers a question of a node. A second answer throws AlreadyAnswered. Name the question with `interruptId` if the
     * node may ask more than one.
     */
    answer(runId: string, nodeId: string, resumeValue: Record<string, Json>, { interruptId, idempotencyKey, ...call }?: CallOptions & {
        interruptId?: string;
        idempotencyKey?: string;
    }): Promise<Answered>;
    /** Accepts what an approval asks for. `voter` is who decided, if it is not the key itself. */
    approve(question: Question, { feedback, voter, ...call }?: CallOptions & {
        feedback?: string;
        voter?: string;
    }): Promise<Answered>;
    reject(question: Question, { feedback, voter, ...call }?: CallOptions & {
        feedback?: string;
        voter?: string;
    }): Promise<Answered>;
    /** Answers a clarification: a value for the id of each of its questions. */
    reply(question: Question, answers: Record<string, Json>, call?: CallOptions): Promise<Answered>;
    /** The question behind a signed link. Needs no key. */
    inspectLink(token: string, call?: CallOptions): Promise<OpenInterrupt>;
    answerLink(token: string, resumeValue: Record<string, Json>, call?: CallOptions): Promise<Answered>;
}
