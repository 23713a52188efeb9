// One request: with the key, with an abort, with the envelope read. Reads are tried again while that may help.
import { heard, lost } from "./connection.js";
import { ApiError, fromResponse, isAbort, unreachable } from "./error.js";
import { key, signOut } from "./session.js";

/**
 * @typedef {object} Options
 * @property {Record<string, unknown>} [query] lists repeat their name; null and undefined are left out
 * @property {unknown} [body] sent as JSON
 * @property {string} [text] sent as it is, as JSON that may not be any
 * @property {AbortSignal} [signal]
 * @property {Record<string, string>} [headers]
 * @property {string | null} [key] another key than the session's; null sends none
 * @property {boolean} [once] do not try again
 */

const TRIES = 3;
const LONGEST_WAIT = 5000;

/** A path with its query. @param {string} path @param {Record<string, unknown>} [query] */
export function url(path, query = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") search.append(name, String(one));
    }
  }
  const text = String(search);
  return text ? `${path}?${text}` : path;
}

/**
 * The response to a request that was not refused, or what `read` makes of it: an answer that breaks off is none.
 * @param {string} method @param {string} path @param {Options} [options]
 * @param {(response: Response) => any} [read] @returns {Promise<any>}
 */
export async function send(method, path, options = {}, read = (response) => response) {
  const given = options.key === undefined ? key.peek() : options.key;
  const headers = new Headers(options.headers);
  if (given) headers.set("authorization", `Bearer ${given}`);
  if (!headers.has("accept")) headers.set("accept", "application/json");
  if (options.body !== undefined || options.text !== undefined) headers.set("content-type", "application/json");
  // A mutation that is sent again after a lost answer must not happen twice.
  if (method === "POST" && !headers.has("idempotency-key")) headers.set("idempotency-key", crypto.randomUUID());
  const body = options.text ?? (options.body === undefined ? null : JSON.stringify(options.body));
  const tries = method === "GET" && !options.once ? TRIES : 1;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce(url(path, options.query), { method, headers, body, signal: options.signal ?? null }, read);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 401 && given && options.key === undefined) signOut(error.message);
      if (!error.passing || attempt >= tries) throw error;
      const seconds = Number(error.details.retryAfter) || 0.3 * 2 ** attempt;
      await pause(Math.min(seconds * 1000, LONGEST_WAIT), options.signal);
    }
  }
}

/** @param {string} path @param {RequestInit} init @param {(response: Response) => any} read */
async function attemptOnce(path, init, read) {
  try {
    const response = await fetch(path, { ...init, cache: "no-store", credentials: "omit" });
    if (!response.ok) throw await fromResponse(response);
    const answer = await read(response);
    heard();
    return answer;
  } catch (error) {
    if (error instanceof ApiError) heard();
    else if (!isAbort(error)) lost();
    throw error instanceof ApiError || isAbort(error) ? error : unreachable();
  }
}

/** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
export async function json(method, path, options) {
  return send(method, path, options, async (response) => {
    const text = await response.text();
    try {
      return text === "" ? null : JSON.parse(text);
    } catch {
      // All of it came, so it is not the line: a proxy between us and the host, perhaps.
      throw new ApiError(response.status, "not_json", "The answer is not JSON.");
    }
  });
}

/** Waits, unless it is aborted. @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    if (signal?.aborted) return abort();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
