// One request and what is done until it is answered. All IO of the package is here.
import type { Json } from "./api.js";
import { ApiError, BatonError, ConnectionFailed, NotUnderstood, refusal } from "./errors.js";

/** The largest reply that is read: a page of the largest events fits, and a host that never stops sending costs no more. */
const MAX_REPLY_BYTES = 512 * 1024 * 1024;
const FIRST_PAUSE_MS = 100;
export const LONGEST_PAUSE_MS = 5_000;
/** If the host wants to be left alone for longer, the caller decides. */
const LONGEST_RETRY_AFTER_MS = 60_000;
const LOCAL = "http://127.0.0.1:7717";

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
export function path(...segments: string[]): string {
  for (const segment of segments) {
    if (["", ".", ".."].includes(segment)) throw new TypeError(`"${segment}" cannot be the name of anything on the host`);
  }
  return `/${segments.map((segment) => encodeURIComponent(segment).replaceAll("%3A", ":").replaceAll("%40", "@")).join("/")}`;
}

/** A read. Lists in the query repeat their name, undefined is left out. */
export function get(segments: string[], query: Record<string, unknown> = {}): Request {
  const pairs: [string, string][] = [];
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) pairs.push([name, String(one)]);
  }
  return { method: "GET", path: path(...segments), query: pairs };
}

/** A request that changes something. Its key makes it count once, however often it is sent. */
export function change(method: string, segments: string[], json?: Json, options: { key?: string | undefined; headers?: Record<string, string> } = {}): Request {
  const key = options.key ?? freshKey();
  return { method, path: path(...segments), json, headers: { "idempotency-key": key, ...options.headers } };
}

function freshKey(): string {
  // Missing in Node 18 and on pages without TLS. A key must be unique; nobody need be unable to guess it.
  const digits = () => Math.random().toString(16).slice(2, 14).padEnd(12, "0");
  return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(16)}-${digits()}-${digits()}`;
}

/** How long to wait before the next attempt; undefined if the host asks for more time than we give it. */
export function pauseAfter(error: BatonError, attempt: number): number | undefined {
  const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
  if (asked !== undefined && asked > LONGEST_RETRY_AFTER_MS) return undefined;
  // Clients that lost their host at the same moment must not all come back at the same moment.
  const backoff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(attempt, 16)) * (0.75 + Math.random() / 4);
  return Math.max(asked ?? 0, backoff);
}

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
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
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #forward = () => this.#controller.abort(this.#outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    outer?.throwIfAborted();
    outer?.addEventListener("abort", this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  set(ms: number, message: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(new ConnectionFailed(message)), ms);
  }

  /** What a failure of `fetch` or of a body means. */
  meaning(failure: unknown): unknown {
    if (this.signal.aborted) return this.signal.reason;
    if (failure instanceof BatonError) return failure;
    const cause = failure instanceof Error ? (failure.cause instanceof Error ? failure.cause : failure) : undefined;
    return new ConnectionFailed(`the host cannot be reached: ${cause?.message || String(failure)}`, { cause: failure });
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#forward);
  }

  /** Also breaks the connection, if it is still open. */
  close(): void {
    this.end();
    this.#controller.abort();
  }
}

/** An open stream of bytes. */
export interface ByteStream {
  /** The next bytes; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** The way to one host with one key. */
export class Connection {
  readonly url: string;
  readonly options: Required<Omit<ClientOptions, "url" | "token" | "fetch">>;
  readonly #token: string | undefined;
  readonly #fetch: typeof fetch;

  constructor({ url, token, fetch: given, ...options }: ClientOptions) {
    const environment: Record<string, string | undefined> = (globalThis as Json).process?.env ?? {};
    const base = new URL(url || environment.BATON_URL || LOCAL);
    if (!["http:", "https:"].includes(base.protocol)) throw new TypeError(`${base} is no address of a host: it must be http:// or https://`);
    this.url = base.href.replace(/\/+$/, "");
    this.#token = token || environment.BATON_API_KEY || undefined;
    this.#fetch = given ?? ((...all) => fetch(...all));
    const { timeoutMs = 30_000, retries = 6, streamRetries = 10, silenceMs = 45_000 } = options;
    this.options = { timeoutMs, retries, streamRetries, silenceMs };
  }

  /** The JSON of the reply; undefined where the host answers with nothing. */
  async send<T>(request: Request, call: CallOptions & { retries?: number } = {}): Promise<T> {
    const { body } = await this.exchange(request, call);
    return (body.length === 0 ? undefined : parse(new TextDecoder().decode(body))) as T;
  }

  /** Sends until there is an answer that another attempt would not change. */
  async exchange(request: Request, call: CallOptions & { retries?: number } = {}): Promise<Reply> {
    const end = now() + (call.timeoutMs ?? this.options.timeoutMs) + (request.extraMs ?? 0);
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#once(request, Math.max(1, end - now()), call.signal);
      } catch (error) {
        if (!(error instanceof BatonError)) throw error;
        const wait = pauseAfter(error, attempt);
        // What the host refused it did not do.
        const mayRepeat = error.retriable && (request.repeatable !== false || error instanceof ApiError);
        if (!mayRepeat || wait === undefined || attempt >= (call.retries ?? this.options.retries) || now() + wait >= end) throw error;
        await pause(wait, call.signal);
      }
    }
  }

  async #once(request: Request, within: number, signal: AbortSignal | undefined): Promise<Reply> {
    const watch = new Watch(signal);
    watch.set(within, `no reply within ${Math.round(within)} ms`);
    try {
      const response = await this.#fetch(...this.#arguments(request, watch.signal));
      const body = await whole(response);
      if (!response.ok) throw refusal(response.status, response.headers, new TextDecoder().decode(body));
      return { status: response.status, headers: response.headers, body };
    } catch (failure) {
      throw watch.meaning(failure);
    } finally {
      watch.end();
    }
  }

  /** Opens an event stream, once. */
  async open(request: Request, signal: AbortSignal | undefined): Promise<ByteStream> {
    const watch = new Watch(signal);
    const { silenceMs } = this.options;
    const hear = () => watch.set(silenceMs, `the stream was silent for ${silenceMs} ms`);
    try {
      hear();
      const response = await this.#fetch(...this.#arguments(request, watch.signal));
      if (!response.ok) throw refusal(response.status, response.headers, new TextDecoder().decode(await whole(response)));
      const kind = response.headers.get("content-type") ?? "";
      if (!kind.startsWith("text/event-stream") || response.body === null) throw new NotUnderstood("the reply is no event stream");
      const reader = response.body.getReader();
      return {
        async read() {
          hear();
          try {
            return (await reader.read()).value;
          } catch (failure) {
            throw watch.meaning(failure);
          }
        },
        close: () => watch.close(),
      };
    } catch (failure) {
      const meaning = watch.meaning(failure);
      watch.close();
      throw meaning;
    }
  }

  #arguments(request: Request, signal: AbortSignal): [string, RequestInit] {
    const query = new URLSearchParams(request.query ?? []).toString();
    const headers: Record<string, string> = { accept: "application/json", ...request.headers };
    if (this.#token !== undefined) headers.authorization = `Bearer ${this.#token}`;
    const init: RequestInit = { method: request.method, headers, signal, redirect: "manual" };
    if (request.json !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(request.json);
    } else if (request.content !== undefined) {
      init.body = request.content as Json;
    }
    return [this.url + request.path + (query === "" ? "" : `?${query}`), init];
  }
}

export function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new NotUnderstood(`the reply is no JSON: ${(error as Error).message}`);
  }
}

export function now(): number {
  return performance.now();
}

async function whole(response: Response): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part !== undefined && !part.done; part = await reader?.read()) {
    size += part.value.length;
    if (size > MAX_REPLY_BYTES) throw new NotUnderstood(`the reply is longer than the ${MAX_REPLY_BYTES} bytes that are read`);
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
