// Starting, reading, waiting for and steering runs.
import type {
  Ancestry, BulkCancelled, CancelledRun, CreatedRun, CreateRun, Diff, Forked, ImportedRun, Json, Paused, PollResult, Pruned, Resumed,
  RunEvent, RunItem, RunSnapshot, RunState, RunStatus, Verification,
} from "./api.js";
import { follow, Log, States, wait, type WaitOptions } from "./follow.js";
import { Group } from "./group.js";
import { type CallOptions, change, get, path } from "./http.js";
import { pages } from "./pages.js";
import { Workflow } from "./workflow/builder.js";

export interface StartOptions<I extends Record<string, Json> = Record<string, Json>>
  extends CallOptions, Pick<CreateRun, "agentId" | "tags" | "metadata" | "configurable" | "scopeId" | "conversationId"> {
  inputs?: I;
  /** Your own key makes the call count once also when your program starts again and repeats it, for 24 hours. */
  idempotencyKey?: string;
}

export interface RunFilter extends CallOptions {
  status?: RunStatus | RunStatus[];
  workflowId?: string;
  tag?: string;
  parentRunId?: string;
  rootRunId?: string;
  createdAfter?: string;
  createdBefore?: string;
  updatedAfter?: string;
  updatedBefore?: string;
  waiting?: boolean;
  topLevel?: boolean;
  q?: string;
  pageSize?: number;
}

export interface ForkOptions extends CallOptions {
  /** What happened before this sequence stays. */
  at: number;
  inputs?: Record<string, Json>;
  variables?: Record<string, Json>;
  configurable?: Record<string, Json>;
  sideEffects?: "simulated" | "real";
  idempotencyKey?: string;
}

export class Runs extends Group {
  /** Starts a run of a workflow, or of one agent. However often the request must be sent, it starts one run. */
  start<I extends Record<string, Json> = Record<string, Json>>(
    workflow: string | Workflow<I> | undefined,
    { idempotencyKey, signal, timeoutMs, ...wanted }: StartOptions<NoInfer<I>> = {},
  ): Promise<CreatedRun> {
    const workflowId = workflow instanceof Workflow ? workflow.id : workflow;
    return this.connection.send(change("POST", ["v1", "runs"], { workflowId, ...wanted }, { key: idempotencyKey }), given(signal, timeoutMs));
  }

  /** The run as it stands. */
  get(runId: string, call?: CallOptions): Promise<RunSnapshot> {
    return this.connection.send(get(["v1", "runs", runId]), call);
  }

  /** Runs, newest first. Asks for the next page when it is needed. */
  list({ signal, timeoutMs, pageSize = 100, ...filter }: RunFilter = {}): AsyncGenerator<RunItem, void, void> {
    return pages(this.connection, get(["v1", "runs"], { ...filter, limit: pageSize }), given(signal, timeoutMs), "runs");
  }

  /**
   * Waits until the run has ended, or also until it waits for somebody or is paused. After `timeoutMs` it throws TimedOut;
   * the run goes on.
   */
  wait(runId: string, options: WaitOptions = {}): Promise<RunSnapshot> {
    return wait(this.connection, runId, options);
  }

  /**
   * The events of a run, from the one after the sequence `after`, until it has ended. Connections that break are opened
   * again; no event is lost and none comes twice. `updates` are changes of the run and its nodes, `debug` is every event.
   */
  events(
    runId: string,
    { after, mode = "updates", bufferMs, signal }: { after?: number; mode?: "updates" | "debug"; bufferMs?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<RunEvent, void, void> {
    return follow(this.connection, runId, new Log(mode, after), signal, bufferMs);
  }

  /** The whole run, now and after each change, until it has ended. */
  states(runId: string, { signal }: { signal?: AbortSignal } = {}): AsyncGenerator<RunSnapshot, void, void> {
    return follow(this.connection, runId, new States(), signal);
  }

  /** One page of every event after a sequence. If there is none the host holds the request up to `hold` seconds. */
  poll(runId: string, { after, hold = 25, limit, ...call }: CallOptions & { after?: number; hold?: number; limit?: number } = {}): Promise<PollResult> {
    const asked = get(["v1", "runs", runId, "events", "poll"], { lastSequence: after, timeout: hold, limit });
    return this.connection.send({ ...asked, extraMs: hold * 1000 }, call);
  }

  /** Cancels a run and its children. Cancelling one that has ended reports how it ended. */
  cancel(runId: string, { reason, ...call }: CallOptions & { reason?: string } = {}): Promise<CancelledRun> {
    return this.connection.send(change("POST", ["v1", "runs", runId, "cancel"], { reason }), call);
  }

  /** Cancels up to 100 runs. Each succeeds or fails by itself. */
  cancelMany(runIds: string[], { reason, ...call }: CallOptions & { reason?: string } = {}): Promise<BulkCancelled> {
    return this.connection.send(change("POST", ["v1", "runs:bulk-cancel"], { runIds, reason }), call);
  }

  pause(runId: string, { reason, drainPolicy, ...call }: CallOptions & { reason?: string; drainPolicy?: "immediate" | "drain-current-node" } = {}): Promise<Paused> {
    return this.connection.send(change("POST", ["v1", "runs", `${runId}:pause`], { reason, drainPolicy }), call);
  }

  resume(runId: string, { reason, ...call }: CallOptions & { reason?: string } = {}): Promise<Resumed> {
    return this.connection.send(change("POST", ["v1", "runs", `${runId}:resume`], { reason }), call);
  }

  /** A branch: what happened before the sequence `at` stays, the rest happens anew, with your changes. */
  fork(runId: string, { at, idempotencyKey, signal, timeoutMs, ...overlay }: ForkOptions): Promise<Forked> {
    const runOptionsOverlay = Object.values(overlay).some((one) => one !== undefined) ? overlay : undefined;
    const wanted = { mode: "branch", fromSeq: at, runOptionsOverlay };
    return this.connection.send(change("POST", ["v1", "runs", `${runId}:fork`], wanted, { key: idempotencyKey }), given(signal, timeoutMs));
  }

  /** Repeats the run exactly as recorded, as a run of its own. Calls nobody. */
  replay(runId: string, { at, idempotencyKey, ...call }: CallOptions & { at?: number; idempotencyKey?: string } = {}): Promise<Forked> {
    return this.connection.send(change("POST", ["v1", "runs", `${runId}:fork`], { mode: "replay", fromSeq: at }, { key: idempotencyKey }), call);
  }

  /** Computes the decisions of a run again and compares. Writes nothing. */
  verify(runId: string, call?: CallOptions): Promise<Verification> {
    return this.connection.send({ method: "POST", path: path("v1", "host", "baton", "runs", runId, "verify"), json: {} }, call);
  }

  /** Compares two runs, event by event and as they stand. */
  diff(runId: string, against: string, { fromSeq, ...call }: CallOptions & { fromSeq?: number } = {}): Promise<Diff> {
    return this.connection.send(get(["v1", "runs", `${runId}:diff`], { against, fromSeq }), call);
  }

  /** The run, its memory and its files as of a record. */
  state(runId: string, { at, ...call }: CallOptions & { at: number }): Promise<RunState> {
    return this.connection.send(get(["v1", "host", "baton", "runs", runId, "state"], { at }), call);
  }

  /** Which run, on which host, started this one. */
  ancestry(runId: string, call?: CallOptions): Promise<Ancestry> {
    return this.connection.send(get(["v1", "runs", runId, "ancestry"]), call);
  }

  /** An ended run with everything it needs, as one file. It holds private data. */
  async export(runId: string, call?: CallOptions): Promise<Uint8Array> {
    return (await this.connection.exchange(get(["v1", "host", "baton", "runs", runId, "export"]), call)).body;
  }

  /** Takes in such a file. A second time changes nothing. */
  import(file: Uint8Array, call?: CallOptions): Promise<ImportedRun> {
    const headers = { "content-type": "application/x-ndjson" };
    return this.connection.send({ method: "POST", path: path("v1", "host", "baton", "runs", "import"), content: file, headers }, call);
  }

  /** Adds feedback: `{ kind: "rating", rating: 4 }`, or a correction, a label or a flag. */
  annotate(runId: string, signalOfRun: Record<string, Json>, { note, nodeId, eventId, ...call }: CallOptions & { note?: string; nodeId?: string; eventId?: string } = {}): Promise<Record<string, Json>> {
    const target = nodeId === undefined && eventId === undefined ? undefined : { nodeId, eventId };
    return this.connection.send(change("POST", ["v1", "runs", runId, "annotations"], { signal: signalOfRun, note, target }), call);
  }

  /** Feedback on a run, oldest first. */
  annotations(runId: string, call: CallOptions = {}): AsyncGenerator<Record<string, Json>, void, void> {
    return pages(this.connection, get(["v1", "runs", runId, "annotations"]), call, "annotations", "after", "nextAfter");
  }

  /** Deletes the memory and file history of an ended run; with `log` its events, too. */
  prune(runId: string, { log = false, ...call }: CallOptions & { log?: boolean } = {}): Promise<Pruned> {
    return this.connection.send(change("POST", ["v1", "runs", `${runId}:prune`], { log }), call);
  }
}

function given(signal: AbortSignal | undefined, timeoutMs: number | undefined): CallOptions {
  return { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
}
