import { BatonError, ConnectionFailed, NotUnderstood, TimedOut } from "./errors.js";
import { get, LONGEST_PAUSE_MS, now, parse, pause, pauseAfter } from "./http.js";
import { FrameParser } from "./sse.js";
const TERMINAL_EVENTS = ["run.completed", "run.failed", "run.cancelled"];
const TERMINAL = ["completed", "failed", "cancelled"];
/** How long a wait goes on without an answer. */
const RESTART_MS = 60_000;
/** Shorter than what proxies commonly cut. */
const POLL_SECONDS = 25;
/** Events in order, each once. */
export class Log {
    mode;
    after;
    ended = false;
    constructor(mode, after) {
        this.mode = mode;
        this.after = after;
    }
    take(frame) {
        // Said beside the log (an annotation), or by something on the way.
        if (frame.id === null)
            return [];
        const data = parse(frame.data);
        const fresh = [];
        for (const event of (Array.isArray(data) ? data : [data])) {
            if (!Number.isInteger(event?.sequence))
                throw new NotUnderstood("an event has no sequence");
            if (this.after !== undefined && event.sequence <= this.after)
                continue;
            this.after = event.sequence;
            this.ended ||= TERMINAL_EVENTS.includes(event.type);
            fresh.push(event);
        }
        return fresh;
    }
}
/** The whole run after each change. A new connection begins with the run as it stands. */
export class States {
    mode = "values";
    after = undefined;
    ended = false;
    take(frame) {
        if (frame.event === "state.snapshot.omitted") {
            // Too large for a stream; it is read by itself.
            const notice = parse(frame.data);
            this.ended = TERMINAL.includes(notice.status);
            return [];
        }
        if (frame.event !== "state.snapshot")
            return [];
        const snapshot = parse(frame.data);
        this.ended = TERMINAL.includes(snapshot.status);
        return [snapshot];
    }
}
/** Gives what the view takes until the run has ended. */
export async function* follow(connection, runId, view, signal, bufferMs) {
    let failures = 0;
    let least = 0;
    for (;;) {
        const parser = new FrameParser();
        let stream;
        let wait;
        try {
            stream = await connection.open(request(runId, view, bufferMs), signal);
            while (!view.ended) {
                const bytes = await stream.read();
                if (bytes === undefined)
                    break;
                for (const frame of parser.push(bytes)) {
                    for (const item of view.take(frame)) {
                        failures = 0;
                        yield item;
                    }
                }
            }
            if (view.ended || (await nothingLeft(connection, runId, view, signal)))
                return;
            throw new ConnectionFailed("the stream ended before the run");
        }
        catch (error) {
            if (!(error instanceof BatonError))
                throw error;
            wait = pauseAfter(error, failures);
            if (!error.retriable || wait === undefined || failures >= connection.options.streamRetries)
                throw error;
            failures += 1;
        }
        finally {
            stream?.close();
        }
        if (parser.retryMs !== undefined)
            least = Math.min(parser.retryMs, LONGEST_PAUSE_MS);
        await pause(Math.max(wait, least), signal);
    }
}
/** The run once it has stopped. Here `timeoutMs` is for the whole wait; without it there is no end. */
export async function wait(connection, runId, { until = "stopped", timeoutMs = Number.POSITIVE_INFINITY, signal }) {
    const end = now() + timeoutMs;
    let seen;
    let status = "";
    for (;;) {
        const left = end - now();
        if (status !== "" && left <= 0)
            throw new TimedOut(`${runId} still runs after ${timeoutMs} ms`);
        const read = status === "" || stopped(status, until);
        const hold = read ? 0 : Math.max(1, Math.floor(Math.min(POLL_SECONDS, left / 1000)));
        // As patient as a stream: the host may be restarting.
        const allowed = Math.max(1000, Math.min(RESTART_MS, left - hold * 1000));
        const patient = { timeoutMs: allowed, retries: connection.options.streamRetries, ...(signal && { signal }) };
        if (read) {
            const snapshot = await connection.send(get(["v1", "runs", runId]), patient);
            if (stopped(snapshot.status, until))
                return snapshot;
            status = snapshot.status;
            seen = snapshot.atSeq;
        }
        else {
            const poll = get(["v1", "runs", runId, "events", "poll"], { lastSequence: seen, timeout: hold });
            const page = await connection.send({ ...poll, extraMs: hold * 1000 }, patient);
            status = page.runStatus;
            seen = page.lastEventSeq ?? seen;
        }
    }
}
function stopped(status, until) {
    return TERMINAL.includes(status) || (until === "stopped" && (status.startsWith("waiting-") || status === "paused"));
}
function request(runId, view, bufferMs) {
    const headers = { accept: "text/event-stream" };
    if (view.after !== undefined)
        headers["last-event-id"] = String(view.after);
    return { ...get(["v1", "runs", runId, "events"], { streamMode: view.mode, bufferMs }), headers };
}
/** Whether the run has ended and its last event was seen, as when somebody resumes after it. */
async function nothingLeft(connection, runId, view, signal) {
    const snapshot = await connection.send(get(["v1", "runs", runId]), signal === undefined ? {} : { signal });
    return TERMINAL.includes(snapshot.status) && view.after !== undefined && snapshot.atSeq !== undefined && view.after >= snapshot.atSeq;
}
