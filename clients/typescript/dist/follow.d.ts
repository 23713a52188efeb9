import type { RunEvent, RunSnapshot } from "./api.js";
import { type CallOptions, type Connection } from "./http.js";
import { type Frame } from "./sse.js";
/** What is taken from the frames of one connection after the other. */
export interface View<T> {
    readonly mode: string;
    readonly after: number | undefined;
    readonly ended: boolean;
    take(frame: Frame): T[];
}
/** Events in order, each once. */
export declare class Log implements View<RunEvent> {
    readonly mode: string;
    after: number | undefined;
    ended: boolean;
    constructor(mode: string, after: number | undefined);
    take(frame: Frame): RunEvent[];
}
/** The whole run after each change. A new connection begins with the run as it stands. */
export declare class States implements View<RunSnapshot> {
    readonly mode = "values";
    readonly after: undefined;
    ended: boolean;
    take(frame: Frame): RunSnapshot[];
}
/** Gives what the view takes until the run has ended. */
export declare function follow<T>(connection: Connection, runId: string, view: View<T>, signal?: AbortSignal, bufferMs?: number): AsyncGenerator<T, void, void>;
export interface WaitOptions extends CallOptions {
    /** `stopped` (the default): also when it waits for somebody or is paused. `ended`: only when it has ended. */
    until?: "stopped" | "ended";
}
/** The run once it has stopped. Here `timeoutMs` is for the whole wait; without it there is no end. */
export declare function wait(connection: Connection, runId: string, { until, timeoutMs, signal }: WaitOptions): Promise<RunSnapshot>;
