// What went wrong, in words for a person, with what to do next.

/** An answer of the host that is a refusal, or no answer at all (status 0). */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} message @param {Record<string, any>} [details] */
  constructor(status, code, message, details = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.details = details;
  }

  get hint() {
    return hint(this);
  }

  /** Whether asking again may help. */
  get passing() {
    const { status } = this;
    return status === 0 || status === 408 || status === 429 || (status >= 500 && status !== 501);
  }
}

/** @param {ApiError} error */
function hint({ status, details, code }) {
  if (status === 0) return "Is the host running? The console asks again by itself.";
  if (status === 401) return "Sign in with another key.";
  if (status === 403 && details.scopeRequired) return `Sign in with a key that has the scope ${details.scopeRequired}.`;
  if (status === 404) return "It may have been pruned, or it belongs to another tenant.";
  if (status === 429) return `Too many requests. Wait ${details.retryAfter ?? 1} s.`;
  if (status === 503) return `The host is busy. It is asked again in ${details.retryAfter ?? 1} s.`;
  if (status === 501 && details.requiredCapability) return `This host does not provide ${details.requiredCapability}.`;
  if (status >= 500 && details.correlationId) return `The host's log has more under ${details.correlationId}.`;
  if (details.pointer) return `Look at ${details.pointer}.`;
  return code === "validation_error" ? "Correct the request and send it again." : "";
}

/** @param {unknown} error @returns {ApiError} */
export function asApiError(error) {
  if (error instanceof ApiError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new ApiError(-1, "console_error", text || "Something went wrong in the console.");
}

/** No answer, or only half of one. */
export const unreachable = () => new ApiError(0, "unreachable", "The host does not answer.");

/** @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** A reply's envelope, or the best that can be said without one. @param {Response} response */
export async function fromResponse(response) {
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text);
    if (typeof body.message === "string") return new ApiError(response.status, body.error ?? "", body.message, body.details);
  } catch {
    // Not ours: a proxy between us and the host.
  }
  return new ApiError(response.status, "", `The host answered ${response.status} ${response.statusText}.`);
}
