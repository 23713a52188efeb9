/** Everything that this package throws, except what an AbortSignal of the caller's own says. */
export class BatonError extends Error {
    /** Whether the same request may succeed a moment later. */
    retriable = false;
    constructor(message, options) {
        super(message, options);
        this.name = new.target.name;
    }
}
/** No answer: nothing listens there, the connection broke, or it stayed silent for too long. */
export class ConnectionFailed extends BatonError {
    retriable = true;
}
/** A wait reached its deadline. The run goes on. */
export class TimedOut extends BatonError {
}
/** Something answered, but not as a Baton host of a version that this package knows. */
export class NotUnderstood extends BatonError {
}
/** The host refused. Each code has a page under docs/errors. */
export class ApiError extends BatonError {
    status;
    code;
    details;
    hint;
    /** After how many ms the host wants to be asked again, if it says so. */
    retryAfterMs;
    constructor(status, code, message, details, retryAfterMs) {
        super(`${message} [${code}, HTTP ${status}]`);
        this.status = status;
        this.code = code;
        this.details = details;
        this.hint = typeof details.hint === "string" ? details.hint : undefined;
        this.retryAfterMs = retryAfterMs;
        this.retriable = typeof details.retriable === "boolean" ? details.retriable : PASSING.includes(status) || code === "idempotency_in_flight";
    }
}
/** 400, 413, 415, 422: the request itself must change. */
export class InvalidRequest extends ApiError {
}
/** 401: no key, or one that the host does not know. */
export class Unauthenticated extends ApiError {
}
/** 403: the key may not do this. */
export class Forbidden extends ApiError {
}
/** 404, 410: there is no such thing, or it is another tenant's. */
export class NotFound extends ApiError {
}
/** 409, 412: not in the present state. */
export class Conflict extends ApiError {
}
/** 429: too much at once. */
export class RateLimited extends ApiError {
}
/** 502, 503, 504: the host is busy, starting or shutting down. */
export class Unavailable extends ApiError {
}
/** 409: the question has an answer already. */
export class AlreadyAnswered extends Conflict {
    /** The node's next question, if it asks one. */
    get openInterruptId() {
        return this.details.openInterruptId;
    }
}
const PASSING = [429, 502, 503, 504];
const BY_STATUS = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    412: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: RateLimited,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
};
/** The error that a reply means. A proxy on the way may answer 502 to 504 with a page of its own. */
export function refusal(status, headers, body) {
    let said;
    try {
        said = JSON.parse(body);
    }
    catch {
        said = null;
    }
    if (typeof said?.error !== "string") {
        if (!PASSING.includes(status))
            return new NotUnderstood(`HTTP ${status} without the body of an error`);
        said = { error: "unavailable", message: `Something before the host answered with HTTP ${status}.` };
    }
    const details = typeof said.details === "object" && said.details !== null ? said.details : {};
    const Kind = said.error === "interrupt_already_resolved" ? AlreadyAnswered : (BY_STATUS[status] ?? ApiError);
    return new Kind(status, said.error, String(said.message ?? said.error), details, retryAfterMs(headers, details));
}
function retryAfterMs(headers, details) {
    if (typeof details.retryAfterMs === "number" && details.retryAfterMs >= 0)
        return details.retryAfterMs;
    const given = headers.get("retry-after")?.trim() ?? "";
    // A date instead of seconds is allowed, but Baton does not send one.
    return /^\d+$/.test(given) ? Number(given) * 1000 : undefined;
}
