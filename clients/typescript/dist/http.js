import { ApiError, BatonError, ConnectionFailed, NotUnderstood, refusal } from "./errors.js";
/** The largest reply that is read: a page of the largest events fits, and a host that never stops sending costs no more. */
const MAX_REPLY_BYTES = 512 * 1024 * 1024;
const FIRST_PAUSE_MS = 100;
export const LONGEST_PAUSE_MS = 5_000;
/** If the host wants to be left alone for longer, the caller decides. */
const LONGEST_RETRY_AFTER_MS = 60_000;
const LOCAL = "http://127.0.0.1:7717";
/** The path of a route; ids cannot leave their segment. */
export function path(...segments) {
    for (const segment of segments) {
        if (["", ".", ".."].includes(segment))
            throw new TypeError(`"${segment}" cannot be the name of anything on the host`);
    }
    return `/${segments.map((segment) => encodeURIComponent(segment).replaceAll("%3A", ":").replaceAll("%40", "@")).join("/")}`;
}
/** A read. Lists in the query repeat their name, undefined is left out. */
export function get(segments, query = {}) {
    const pairs = [];
    for (const [name, value] of Object.entries(query)) {
        for (const one of Array.isArray(value) ? value : [value])
            if (one !== undefined)
                pairs.push([name, String(one)]);
    }
    return { method: "GET", path: path(...segments), query: pairs };
}
/** A request that changes something. Its key makes it count once, however often it is sent. */
export function change(method, segments, json, options = {}) {
    const key = options.key ?? freshKey();
    return { method, path: path(...segments), json, headers: { "idempotency-key": key, ...options.headers } };
}
function freshKey() {
    // Missing in Node 18 and on pages without TLS. A key must be unique; nobody need be unable to guess it.
    const digits = () => Math.random().toString(16).slice(2, 14).padEnd(12, "0");
    return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(16)}-${digits()}-${digits()}`;
}
/** How long to wait before the next attempt; undefined if the host asks for more time than we give it. */
export function pauseAfter(error, attempt) {
    const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
    if (asked !== undefined && asked > LONGEST_RETRY_AFTER_MS)
        return undefined;
    // Clients that lost their host at the same moment must not all come back at the same moment.
    const backoff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 16)) * (0.75 + Math.random() / 4);
    return Math.max(asked ?? 0, backoff);
}
export function pause(ms, signal) {
    return new Promise((done, fail) => {
        signal?.throwIfAborted();
        const stop = () => {
            clearTimeout(timer);
            fail(signal?.reason);
        };
        const timer = setTimeout(() => {
            signal?.removeEventListener("abort", stop);
            done();
        }, ms);
        signal?.addEventListener("abort", stop, { once: true });
    });
}
/** An abort that comes from the caller or from a clock that can be set again. */
class Watch {
    #controller = new AbortController();
    #outer;
    #forward = () => this.#controller.abort(this.#outer?.reason);
    #timer;
    constructor(outer) {
        this.#outer = outer;
        outer?.throwIfAborted();
        outer?.addEventListener("abort", this.#forward, { once: true });
    }
    get signal() {
        return this.#controller.signal;
    }
    set(ms, message) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#controller.abort(new ConnectionFailed(message)), ms);
    }
    /** What a failure of `fetch` or of a body means. */
    meaning(failure) {
        if (this.signal.aborted)
            return this.signal.reason;
        if (failure instanceof BatonError)
            return failure;
        const cause = failure instanceof Error ? (failure.cause instanceof Error ? failure.cause : failure) : undefined;
        return new ConnectionFailed(`the host cannot be reached: ${cause?.message || String(failure)}`, { cause: failure });
    }
    end() {
        clearTimeout(this.#timer);
        this.#outer?.removeEventListener("abort", this.#forward);
    }
    /** Also breaks the connection, if it is still open. */
    close() {
        this.end();
        this.#controller.abort();
    }
}
/** The way to one host with one key. */
export class Connection {
    url;
    options;
    #token;
    #fetch;
    constructor({ url, token, fetch: given, ...options }) {
        const environment = globalThis.process?.env ?? {};
        const base = new URL(url || environment.BATON_URL || LOCAL);
        if (!["http:", "https:"].includes(base.protocol))
            throw new TypeError(`${base} is no address of a host: it must be http:// or https://`);
        this.url = base.href.replace(/\/+$/, "");
        this.#token = token || environment.BATON_API_KEY || undefined;
        this.#fetch = given ?? ((...all) => fetch(...all));
        const { timeoutMs = 30_000, retries = 6, streamRetries = 10, silenceMs = 45_000 } = options;
        this.options = { timeoutMs, retries, streamRetries, silenceMs };
    }
    /** The JSON of the reply; undefined where the host answers with nothing. */
    async send(request, call = {}) {
        const { body } = await this.exchange(request, call);
        return (body.length === 0 ? undefined : parse(new TextDecoder().decode(body)));
    }
    /** Sends until there is an answer that another attempt would not change. */
    async exchange(request, call = {}) {
        const end = now() + (call.timeoutMs ?? this.options.timeoutMs) + (request.extraMs ?? 0);
        for (let attempt = 0;; attempt += 1) {
            try {
                return await this.#once(request, Math.max(1, end - now()), call.signal);
            }
            catch (error) {
                if (!(error instanceof BatonError))
                    throw error;
                const wait = pauseAfter(error, attempt);
                // What the host refused it did not do.
                const mayRepeat = error.retriable && (request.repeatable !== false || error instanceof ApiError);
                if (!mayRepeat || wait === undefined || attempt >= (call.retries ?? this.options.retries) || now() + wait >= end)
                    throw error;
                await pause(wait, call.signal);
            }
        }
    }
    async #once(request, within, signal) {
        const watch = new Watch(signal);
        watch.set(within, `no reply within ${Math.round(within)} ms`);
        try {
            const response = await this.#fetch(...this.#arguments(request, watch.signal));
            const body = await whole(response);
            if (!response.ok)
                throw refusal(response.status, response.headers, new TextDecoder().decode(body));
            return { status: response.status, headers: response.headers, body };
        }
        catch (failure) {
            throw watch.meaning(failure);
        }
        finally {
            watch.end();
        }
    }
    /** Opens an event stream, once. */
    async open(request, signal) {
        const watch = new Watch(signal);
        const { silenceMs } = this.options;
        const hear = () => watch.set(silenceMs, `the stream was silent for ${silenceMs} ms`);
        try {
            hear();
            const response = await this.#fetch(...this.#arguments(request, watch.signal));
            if (!response.ok)
                throw refusal(response.status, response.headers, new TextDecoder().decode(await whole(response)));
            const kind = response.headers.get("content-type") ?? "";
            if (!kind.startsWith("text/event-stream") || response.body === null)
                throw new NotUnderstood("the reply is no event stream");
            const reader = response.body.getReader();
            return {
                async read() {
                    hear();
                    try {
                        return (await reader.read()).value;
                    }
                    catch (failure) {
                        throw watch.meaning(failure);
                    }
                },
                close: () => watch.close(),
            };
        }
        catch (failure) {
            const meaning = watch.meaning(failure);
            watch.close();
            throw meaning;
        }
    }
    #arguments(request, signal) {
        const query = new URLSearchParams(request.query ?? []).toString();
        const headers = { accept: "application/json", ...request.headers };
        if (this.#token !== undefined)
            headers.authorization = `Bearer ${this.#token}`;
        const init = { method: request.method, headers, signal, redirect: "manual" };
        if (request.json !== undefined) {
            headers["content-type"] = "application/json";
            init.body = JSON.stringify(request.json);
        }
        else if (request.content !== undefined) {
            init.body = request.content;
        }
        return [this.url + request.path + (query === "" ? "" : `?${query}`), init];
    }
}
export function parse(text) {
    try {
        return JSON.parse(text);
    }
    catch (error) {
        throw new NotUnderstood(`the reply is no JSON: ${error.message}`);
    }
}
export function now() {
    return performance.now();
}
async function whole(response) {
    const parts = [];
    let size = 0;
    const reader = response.body?.getReader();
    for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
        size += part.value.length;
        if (size > MAX_REPLY_BYTES)
            throw new NotUnderstood(`the reply is longer than the ${MAX_REPLY_BYTES} bytes that are read`);
        parts.push(part.value);
    }
    const all = new Uint8Array(size);
    let place = 0;
    for (const part of parts) {
        all.set(part, place);
        place += part.length;
    }
    return all;
}
