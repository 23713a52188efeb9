import type { Json } from "./api.js";
/** Everything that this package throws, except what an AbortSignal of the caller's own says. */
export declare class BatonError extends Error {
    /** Whether the same request may succeed a moment later. */
    retriable: boolean;
    constructor(message: string, options?: ErrorOptions);
}
/** No answer: nothing listens there, the connection broke, or it stayed silent for too long. */
export declare class ConnectionFailed extends BatonError {
    retriable: boolean;
}
/** A wait reached its deadline. The run goes on. */
export declare class TimedOut extends BatonError {
}
/** Something answered, but not as a Baton host of a version that this package knows. */
export declare class NotUnderstood extends BatonError {
}
/** The host refused. Each code has a page under docs/errors. */
export declare class ApiError extends BatonError {
    readonly status: number;
    readonly code: string;
    readonly details: Record<string, Json>;
    readonly hint: string | undefined;
    /** After how many ms the host wants to be asked again, if it says so. */
    readonly retryAfterMs: number | undefined;
    constructor(status: number, code: string, message: string, details: Record<string, Json>, retryAfterMs?: number);
}
/** 400, 413, 415, 422: the request itself must change. */
export declare class InvalidRequest extends ApiError {
}
/** 401: no key, or one that the host does not know. */
export declare class Unauthenticated extends ApiError {
}
/** 403: the key may not do this. */
export declare class Forbidden extends ApiError {
}
/** 404, 410: there is no such thing, or it is another tenant's. */
export declare class NotFound extends ApiError {
}
/** 409, 412: not in the present state. */
export declare class Conflict extends ApiError {
}
/** 429: too much at once. */
export declare class RateLimited extends ApiError {
}
/** 502, 503, 504: the host is busy, starting or shutting down. */
export declare class Unavailable extends ApiError {
}
/** 409: the question has an answer already. */
export declare class AlreadyAnswered extends Conflict {
    /** The node's next question, if it asks one. */
    get openInterruptId(): string | undefined;
}
/** The error that a reply means. A proxy on the way may answer 502 to 504 with a page of its own. */
export declare function refusal(status: number, headers: Headers, body: string): BatonError;
