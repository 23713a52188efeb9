// Following a log as it grows. The last sequence seen is the truth: after any break the feed asks for what comes after
// it, and drops what it has seen, so an event is neither lost nor told twice.
import { ApiError, isAbort } from "./error.js";
import { pause, send } from "./http.js";
import { FrameReader } from "./sse.js";

/** The host says something at least every 15 s; after this long the line is dead, whatever TCP thinks. */
const SILENCE = 35_000;
const FIRST_WAIT = 300;
const LONGEST_WAIT = 8000;
const TERMINAL = new Set(["run.completed", "run.failed", "run.cancelled"]);

/** @typedef {"connecting" | "live" | "waiting" | "ended" | "failed"} FeedState */

/**
 * @typedef {object} Following
 * @property {(events: import("../types.js").RunEvent[]) => void} onEvents in order, each sequence once
 * @property {(state: FeedState, error?: ApiError) => void} [onState]
 * @property {number} [after] the last sequence already known
 * @property {string} [mode] `debug` (everything, the default), `updates` or `messages`
 * @property {number} [bufferMs] gathers events on the host; 100 keeps busy runs smooth
 * @property {AbortSignal} signal ends it
 */

/** Follows a run until it ends. Resolves then, or when it is aborted. @param {string} run @param {Following} options */
export async function followRun(run, options) {
  let last = options.after ?? -1;
  let ended = false;
  await follow({
    path: `/v1/runs/${encodeURIComponent(run)}/events`,
    query: { streamMode: options.mode ?? "debug", bufferMs: options.bufferMs ?? 100 },
    signal: options.signal,
    resumeAfter: () => (last >= 0 ? String(last) : null),
    isOver: () => ended,
    onState: options.onState,
    onFrames: (frames) => {
      /** @type {import("../types.js").RunEvent[]} */
      const fresh = [];
      for (const frame of frames) {
        const data = JSON.parse(frame.data);
        for (const event of frame.event === "batch" ? data : [data]) {
          if (typeof event.sequence !== "number" || event.sequence <= last) continue;
          last = event.sequence;
          ended ||= TERMINAL.has(event.type);
          fresh.push(event);
        }
      }
      if (fresh.length === 0) return;
      try {
        options.onEvents(fresh);
      } catch (error) {
        reportError(error); // A bug of the screen must not look like a broken line.
      }
    },
  });
}

/**
 * @typedef {object} Stream
 * @property {string} path
 * @property {Record<string, unknown>} [query]
 * @property {AbortSignal} signal
 * @property {() => string | null} [resumeAfter] what to send as Last-Event-ID
 * @property {() => boolean} [isOver] whether the host had nothing more to say when it closed
 * @property {(state: FeedState, error?: ApiError) => void} [onState]
 * @property {(frames: import("./sse.js").Frame[]) => void} onFrames
 */

/** Any stream of the host, opened again whenever it breaks. @param {Stream} stream */
export async function follow(stream) {
  let wait = FIRST_WAIT;
  while (!stream.signal.aborted) {
    stream.onState?.("connecting");
    try {
      const spoke = await readOnce(stream);
      if (stream.isOver?.()) return stream.onState?.("ended");
      if (spoke) wait = FIRST_WAIT;
    } catch (error) {
      if (stream.signal.aborted) return;
      if (error instanceof ApiError && !error.passing) return stream.onState?.("failed", error);
    }
    stream.onState?.("waiting");
    try {
      // Not all at the same moment: a host that comes back has many readers.
      await pause(wait * (0.75 + Math.random() / 2), stream.signal);
    } catch {
      return;
    }
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

/** One connection, to its end. @param {Stream} stream @returns {Promise<boolean>} whether anything was said */
async function readOnce(stream) {
  const line = new AbortController();
  const hangUp = () => line.abort();
  stream.signal.addEventListener("abort", hangUp, { once: true });
  let watchdog = setTimeout(hangUp, SILENCE);
  let spoke = false;
  try {
    const after = stream.resumeAfter?.() ?? null;
    const response = await send("GET", stream.path, {
      query: stream.query ?? {},
      headers: { accept: "text/event-stream", ...(after === null ? {} : { "last-event-id": after }) },
      signal: line.signal,
      once: true,
    });
    stream.onState?.("live");
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    const frames = new FrameReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return spoke;
      clearTimeout(watchdog);
      watchdog = setTimeout(hangUp, SILENCE);
      spoke = true;
      const complete = frames.push(decoder.decode(value, { stream: true }));
      if (complete.length > 0) stream.onFrames(complete);
    }
  } catch (error) {
    if (isAbort(error) || error instanceof ApiError) throw error;
    return spoke; // The line broke; what came before it counts.
  } finally {
    clearTimeout(watchdog);
    stream.signal.removeEventListener("abort", hangUp);
  }
}
