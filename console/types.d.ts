// What the console knows beyond `api.d.ts`, which is generated from the OpenAPI document: values that it decides by,
// shapes that the document leaves open, and the console's own contracts.

import type * as Api from "./api.js";

export type {
  EffectiveAgent, MemoryEntry, OpenInterrupt, Problem, QuarantinedTree, QuarantineList, RunEvent, RunSummary,
  ToolDescriptor, Validation, WorkflowVersion, WorkspaceFile,
} from "./api.js";

/** `T`, with some of its members known better. A member that `T` has not got, or has otherwise, is a mistake. */
type Narrowed<T, N extends Partial<T> & Record<Exclude<keyof N, keyof T>, never>> = Omit<T, keyof N> & N;

export type RunStatus = Api.RunSnapshot["status"];
export type Fault = NonNullable<Api.RunSnapshot["error"]>;
export type WaitingOn = NonNullable<Api.RunSummary["waitingOn"]>;
export type FileChange = Api.ChangeItem;
export type AgentEntry = Api.AgentInventoryEntry;
/** Some questions say what an answer must be like. */
export type InterruptItem = Api.InterruptItem & { resumeSchema?: any };
export type WorkflowDefinition = Api.WorkflowDefinition & { description?: string; configurableSchema?: any };

export type RunItem = Narrowed<Api.RunItem, { status: RunStatus; forkedFrom?: ForkedFrom }>;
export type RunList = Narrowed<Api.RunList, { runs: RunItem[] }>;

export type Webhook = Narrowed<Api.WebhookEntry, { state: "active" | "failing" | "failed" }>;
export type WebhookList = Narrowed<Api.WebhookList, { webhooks: Webhook[] }>;

type EventDiff = Narrowed<Api.DiffEntry, { op: "added" | "removed" | "changed"; aEvent?: Api.RunEvent; bEvent?: Api.RunEvent }>;
export type RunDiff = Narrowed<Api.Diff, { eventDiffs: EventDiff[] }>;

/** A link to an MCP server, a model provider or another host. */
export type Connection = Narrowed<Api.ShownConnection, {
  kind: "mcp" | "provider" | "remote";
  state: "idle" | "connecting" | "connected" | "failed";
}>;
export type SystemReport = Narrowed<Api.System, {
  limits: Api.ShownLimits & Record<string, number>;
  operator?: Narrowed<Api.Operator, { connections: Connection[] }>;
}>;

/** A run as of one of its records. */
export type RunState = Narrowed<Api.RunState, {
  status: RunStatus;
  nodeStates: Record<string, NodeState>;
  interrupt?: InterruptView;
  childRuns: ChildRun[];
}>;

export type RunSnapshot = Narrowed<Api.RunSnapshot, {
  atSeq: number;
  inputs: Record<string, unknown>;
  variables: Record<string, unknown>;
  channels?: Record<string, unknown>;
  nodeStates: Record<string, NodeState>;
  interrupt?: InterruptView;
  childRuns?: ChildRun[];
  workspace?: FileMeta[];
  owner: { tenant: string; principal?: string };
  metadata?: Record<string, unknown>;
  configurable?: Record<string, unknown>;
  retention?: { prunedAt: string };
  forkedFrom?: ForkedFrom;
}> & {
  workflowDigest: string;
  outputs?: unknown;
  /** While the run's tree is in quarantine. */
  quarantine?: Api.QuarantinedTree;
  agent?: AgentRef;
  runOrchestrator?: AgentRef;
};

export interface ForkedFrom { runId: string; fromSeq: number; requestedFromSeq?: number; mode: string; sideEffects?: string; overlaid?: string[] }

export interface NodeState { status: string; visit: number; attempt: number; error?: Fault }

export interface InterruptView {
  kind: string;
  nodeId: string;
  interruptId: string;
  key: string;
  data: any;
  resumeSchema?: any;
  requestedAt: string;
  expiresAt?: string;
  interruptToken?: string;
  callbackUrl?: string;
}

export interface ChildRun {
  runId: string;
  workflowId: string;
  nodeId: string;
  status: RunStatus;
  hostId?: string;
  url?: string;
}

export interface AgentRef { agentId: string; name?: string; modelClass?: string; memoryRef?: string; version?: string }

export interface FileMeta { path: string; version: number; updatedAt: string; contentType?: string; etag?: string; size?: number }

export interface RunFilter {
  status?: string[];
  workflowId?: string;
  tag?: string;
  parentRunId?: string;
  rootRunId?: string;
  idPrefix?: string;
  createdAfter?: string;
  createdBefore?: string;
  updatedAfter?: string;
  updatedBefore?: string;
  waiting?: boolean;
  diverged?: boolean;
  overBudget?: boolean;
  minCostUsd?: number;
  topLevel?: boolean;
  /** The beginning of the run's id, or of its workflow's. */
  q?: string;
  limit?: number;
  cursor?: string;
}

/** What a file in `screens/` exports as its default. */
export interface Screen {
  title: string | ((params: Record<string, string>) => string);
  /** Fills `root`. What it returns is called before the screen goes; effects and commands made here end by themselves. */
  mount(root: HTMLElement, params: Record<string, string>, context: ScreenContext): void | (() => void);
}

export interface ScreenContext {
  /** Aborted when the screen goes: give it to every request and feed. */
  signal: AbortSignal;
  /** The query of the address; read in effects. */
  query: import("./lib/signal.js").Signal<URLSearchParams>;
  setQuery(patch: Record<string, string | number | null | undefined>, options?: { push?: boolean }): void;
  /** Runs work that comes later, after an await, so that its effects still end with the screen. */
  later<T>(work: () => T): T | undefined;
  /** Commands until the screen goes. */
  commands(added: import("./lib/keys.js").Command[]): void;
  setTitle(text: string): void;
}
