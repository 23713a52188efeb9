import type { Json } from "./api.js";
import { BatonError } from "./errors.js";
export declare const LONGEST_PAUSE_MS = 5000;
export interface ClientOptions {
    /** Default: BATON_URL of the environment, else a `baton dev` on this machine. */
    url?: string;
    /** Default: BATON_API_KEY of the environment. */
    token?: string;
    /** How long a call may take, retries included (30 s). */
    timeoutMs?: number;
    /** How often a request is sent again after a failure that may pass (6), with about six seconds of pauses. */
    retries?: number;
    /** How often in a row a stream is opened again without an event in between (10): about 25 seconds. */
    streamRetries?: number;
    /** After this long without a byte a stream is dead (45 s): the host sends one every 15 s. */
    silenceMs?: number;
    /** Another `fetch`, for example with a proxy. */
    fetch?: typeof fetch;
}
/** What every call takes. */
export interface CallOptions {
    signal?: AbortSignal;
    timeoutMs?: number;
}
export interface Request {
    method: string;
    path: string;
    query?: [string, string][];
    json?: Json;
    content?: Uint8Array;
    headers?: Record<string, string>;
    /** False: sent twice it has another effect than once. */
    repeatable?: boolean;
    /** How much longer than usual the host may take. */
    extraMs?: number;
}
export interface Reply {
    status: number;
    headers: Headers;
    body: Uint8Array;
}
/** The path of a route; ids cannot leave their segment. */
export declare function path(...segments: string[]): string;
/** A read. Lists in the query repeat their name, undefined is left out. */
export declare function get(segments: string[], query?: Record<string, unknown>): Request;
/** A request that changes something. Its key makes it count once, however often it is sent. */
export declare function change(method: string, segments: string[], json?: Json, options?: {
    key?: string | undefined;
    headers?: Record<string, string>;
}): Request;
/** How long to wait before the next attempt; undefined if the host asks for more time than we give it. */
export declare function pauseAfter(error: BatonError, attempt: number): number | undefined;
export declare function pause(ms: number, signal?: AbortSignal): Promise<void>;
/** An open stream of bytes. */
export interface ByteStream {
    /** The next bytes; undefined at the end. */
    read(): Promise<Uint8Array | undefined>;
    close(): void;
}
/** The way to one host with one key. */
export declare class Connection {
    #private;
    readonly url: string;
    readonly options: Required<Omit<ClientOptions, "url" | "token" | "fetch">>;
    constructor({ url, token, fetch: given, ...options }: ClientOptions);
    /** The JSON of the reply; undefined where the host answers with nothing. */
    send<T>(request: Request, call?: CallOptions & {
        retries?: number;
    }): Promise<T>;
    /** Sends until there is an answer that another attempt would not change. */
    exchange(request: Request, call?: CallOptions & {
        retries?: number;
    }): Promise<Reply>;
    /** Opens an event stream, once. */
    open(request: Request, signal: AbortSignal | undefined): Promise<ByteStream>;
}
export declare function parse(text: string): Json;
export declare function now(): number;
