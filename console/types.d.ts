// What the console knows beyond `api.d.ts`, which is generated from the OpenAPI document: values that it decides by,
// shapes that the document leaves open, and the console's own contracts.

import type * as Api from "./api.js";

export type {
  AgentRef, ChildRun, EffectiveAgent, Fault, FileMeta, ForkedFrom, MemoryEntry, NodeState, OpenInterrupt, Problem,
  QuarantinedTree, QuarantineList, RunEvent, RunItem, RunList, RunSnapshot, RunState, RunStatus, RunSummary, ToolDescriptor,
  Validation, WaitingOn, WorkflowDefinition, WorkflowVersion, WorkspaceFile,
} from "./api.js";

/** `T`, with some of its members known better. A member that `T` has not got, or has otherwise, is a mistake. */
type Narrowed<T, N extends Partial<T> & Record<Exclude<keyof N, keyof T>, never>> = Omit<T, keyof N> & N;

export type FileChange = Api.ChangeItem;
export type InterruptView = Api.RunInterrupt;
export type AgentEntry = Api.AgentInventoryEntry;
/** Some questions say what an answer must be like. */
export type InterruptItem = Api.InterruptItem & { resumeSchema?: any };

export type Webhook = Narrowed<Api.WebhookEntry, { state: "active" | "failing" | "failed" }>;
export type Runner = Api.Runner;
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
