import { follow, Log, States, wait } from "./follow.js";
import { Group } from "./group.js";
import { change, get, path } from "./http.js";
import { pages } from "./pages.js";
import { Workflow } from "./workflow/builder.js";
export class Runs extends Group {
    /** Starts a run of a workflow, or of one agent. However often the request must be sent, it starts one run. */
    start(workflow, { idempotencyKey, signal, timeoutMs, ...wanted } = {}) {
        const workflowId = workflow instanceof Workflow ? workflow.id : workflow;
        return this.connection.send(change("POST", ["v1", "runs"], { workflowId, ...wanted }, { key: idempotencyKey }), given(signal, timeoutMs));
    }
    /** The run as it stands. */
    get(runId, call) {
        return this.connection.send(get(["v1", "runs", runId]), call);
    }
    /** Runs, newest first. Asks for the next page when it is needed. */
    list({ signal, timeoutMs, pageSize = 100, ...filter } = {}) {
        return pages(this.connection, get(["v1", "runs"], { ...filter, limit: pageSize }), given(signal, timeoutMs), "runs");
    }
    /**
     * Waits until the run has ended, or also until it waits for somebody or is paused. After `timeoutMs` it throws TimedOut;
     * the run goes on.
     */
    wait(runId, options = {}) {
        return wait(this.connection, runId, options);
    }
    /**
     * The events of a run, from the one after the sequence `after`, until it has ended. Connections that break are opened
     * again; no event is lost and none comes twice. `updates` are changes of the run and its nodes, `debug` is every event.
     */
    events(runId, { after, mode = "updates", bufferMs, signal } = {}) {
        return follow(this.connection, runId, new Log(mode, after), signal, bufferMs);
    }
    /** The whole run, now and after each change, until it has ended. */
    states(runId, { signal } = {}) {
        return follow(this.connection, runId, new States(), signal);
    }
    /** One page of every event after a sequence. If there is none the host holds the request up to `hold` seconds. */
    poll(runId, { after, hold = 25, limit, ...call } = {}) {
        const asked = get(["v1", "runs", runId, "events", "poll"], { lastSequence: after, timeout: hold, limit });
        return this.connection.send({ ...asked, extraMs: hold * 1000 }, call);
    }
    /** Cancels a run and its children. Cancelling one that has ended reports how it ended. */
    cancel(runId, { reason, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "runs", runId, "cancel"], { reason }), call);
    }
    /** Cancels up to 100 runs. Each succeeds or fails by itself. */
    cancelMany(runIds, { reason, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "runs:bulk-cancel"], { runIds, reason }), call);
    }
    pause(runId, { reason, drainPolicy, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "runs", `${runId}:pause`], { reason, drainPolicy }), call);
    }
    resume(runId, { reason, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "runs", `${runId}:resume`], { reason }), call);
    }
    /** A branch: what happened before the sequence `at` stays, the rest happens anew, with your changes. */
    fork(runId, { at, idempotencyKey, signal, timeoutMs, ...overlay }) {
        const runOptionsOverlay = Object.values(overlay).some((one) => one !== undefined) ? overlay : undefined;
        const wanted = { mode: "branch", fromSeq: at, runOptionsOverlay };
        return this.connection.send(change("POST", ["v1", "runs", `${runId}:fork`], wanted, { key: idempotencyKey }), given(signal, timeoutMs));
    }
    /** Repeats the run exactly as recorded, as a run of its own. Calls nobody. */
    replay(runId, { at, idempotencyKey, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "runs", `${runId}:fork`], { mode: "replay", fromSeq: at }, { key: idempotencyKey }), call);
    }
    /** Computes the decisions of a run again and compares. Writes nothing. */
    verify(runId, call) {
        return this.connection.send({ method: "POST", path: path("v1", "host", "baton", "runs", runId, "verify"), json: {} }, call);
    }
    /** Compares two runs, event by event and as they stand. */
    diff(runId, against, { fromSeq, ...call } = {}) {
        return this.connection.send(get(["v1", "runs", `${runId}:diff`], { against, fromSeq }), call);
    }
    /** The run, its memory and its files as of a record. */
    state(runId, { at, ...call }) {
        return this.connection.send(get(["v1", "host", "baton", "runs", runId, "state"], { at }), call);
    }
    /** Which run, on which host, started this one. */
    ancestry(runId, call) {
        return this.connection.send(get(["v1", "runs", runId, "ancestry"]), call);
    }
    /** An ended run with everything it needs, as one file. It holds private data. */
    async export(runId, call) {
        return (await this.connection.exchange(get(["v1", "host", "baton", "runs", runId, "export"]), call)).body;
    }
    /** Takes in such a file. A second time changes nothing. */
    import(file, call) {
        const headers = { "content-type": "application/x-ndjson" };
        return this.connection.send({ method: "POST", path: path("v1", "host", "baton", "runs", "import"), content: file, headers }, call);
    }
    /** Adds feedback: `{ kind: "rating", rating: 4 }`, or a correction, a label or a flag. */
    annotate(runId, signalOfRun, { note, nodeId, eventId, ...call } = {}) {
        const target = nodeId === undefined && eventId === undefined ? undefined : { nodeId, eventId };
        return this.connection.send(change("POST", ["v1", "runs", runId, "annotations"], { signal: signalOfRun, note, target }), call);
    }
    /** Feedback on a run, oldest first. */
    annotations(runId, call = {}) {
        return pages(this.connection, get(["v1", "runs", runId, "annotations"]), call, "annotations", "after", "nextAfter");
    }
    /** Deletes the memory and file history of an ended run; with `log` its events, too. */
    prune(runId, { log = false, ...call } = {}) {
        return this.connection.send(change("POST", ["v1", "runs", `${runId}:prune`], { log }), call);
    }
}
function given(signal, timeoutMs) {
    return { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
}
