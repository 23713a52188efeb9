// Shapes of the public API, as far as the console reads them, and of the console's own contracts.
// Members that a host may leave out are optional; what the console does not read is not described.

export type RunStatus =
  | "pending" | "running" | "paused" | "waiting-approval" | "waiting-input" | "waiting-external"
  | "waiting-clarification" | "cancelling" | "completed" | "failed" | "cancelled";

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

export interface RunList { runs: RunItem[]; nextCursor?: string }

export interface RunItem {
  runId: string;
  workflowId: string;
  status: RunStatus;
  createdAt: string;
  updatedAt: string;
  currentNodeId?: string;
  parentRunId?: string;
  rootRunId?: string;
  tags: string[];
  error?: { code: string };
  workflowVersion?: number;
  workflowDigest?: string;
  /** How many events the log has. */
  events?: number;
  forkedFrom?: ForkedFrom;
  summary?: RunSummary;
}

/** What lists say of a run beyond its row; what is absent does not apply. */
export interface RunSummary {
  iteration?: { turn: number; bound: number };
  waitingOn?: WaitingOn;
  /** Without the runs below. */
  usage?: { inputTokens: number; outputTokens: number; costUsd?: number };
  /** What the whole tree has spent, by what is bounded: `tokens`, `cost`, … */
  budget?: Record<string, { spent: number; limit: number }>;
  overBudget?: boolean;
  pauseReason?: string;
  diverged?: boolean;
  children?: number;
  descendants?: number;
}

export interface ForkedFrom { runId: string; fromSeq: number; requestedFromSeq?: number; mode: string; sideEffects?: string; overlaid?: string[] }

export interface WaitingOn {
  kind: string;
  nodeId: string;
  question?: string;
  open: number;
  requestedAt?: string;
  expiresAt?: string;
  runId?: string;
}

export interface Fault { code: string; message: string; details?: Record<string, unknown> }

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
export interface WorkspaceFile extends FileMeta { content: string }

export interface MemoryEntry { id: string; content: string; tags: string[]; createdAt: string; expiresAt?: string }

export interface RunSnapshot {
  runId: string;
  workflowId: string;
  status: RunStatus;
  currentNodeId?: string;
  startedAt?: string;
  completedAt?: string;
  atSeq: number;
  inputs: Record<string, unknown>;
  variables: Record<string, unknown>;
  channels?: Record<string, unknown>;
  nodeStates: Record<string, NodeState>;
  outputs?: unknown;
  error?: Fault;
  interrupt?: InterruptView;
  /** While the run's tree is in quarantine. */
  quarantine?: QuarantinedTree;
  childRuns?: ChildRun[];
  agent?: AgentRef;
  runOrchestrator?: AgentRef;
  metrics?: { treeCost?: { tokens: { input: number; output: number }; usd?: number }; openwopCost?: { tokens: { input: number; output: number }; model: string; provider: string; usd?: number } };
  workspace?: FileMeta[];
  parentRunId?: string;
  parentNodeId?: string;
  owner: { tenant: string; principal?: string };
  tags?: string[];
  metadata?: Record<string, unknown>;
  configurable?: Record<string, unknown>;
  workflowDigest: string;
  retention?: { prunedAt: string };
  forkedFrom?: ForkedFrom;
}

/** A run as of one of its records. */
export interface RunState {
  runId: string;
  seq: number;
  at: string;
  status: RunStatus;
  variables: Record<string, unknown>;
  channels: Record<string, unknown>;
  nodeStates: Record<string, NodeState>;
  interrupt?: InterruptView;
  childRuns: ChildRun[];
  [around: string]: any;
}

/** A top-level run and everything below it, which nobody steps until it is released or cancelled. */
export interface QuarantinedTree {
  rootRunId: string;
  /** The run that failed, which may be any of the tree. */
  runId: string;
  /** The sequence that its next event would have had. */
  seq: number;
  /** `process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`; a later host may know more. */
  cause: string;
  detail: string;
  since: string;
}
export interface QuarantineList { trees: QuarantinedTree[]; nextCursor?: string }

export interface RunEvent {
  eventId: string;
  runId: string;
  type: string;
  payload: any;
  timestamp: string;
  sequence: number;
  nodeId?: string;
  causationId?: string;
}

export interface RunDiff {
  a: string;
  b: string;
  divergedAtSeq: number | null;
  eventDiffs: { seq: number; op: "added" | "removed" | "changed"; aEvent?: RunEvent; bEvent?: RunEvent }[];
  stateDiff: Record<string, any>;
  truncated?: boolean;
}

export interface InterruptItem {
  runId: string;
  workflowId: string;
  nodeId: string;
  interruptId: string;
  key: string;
  kind: string;
  data: any;
  requestedAt: string;
  expiresAt?: string;
  resumeSchema?: any;
}

export interface OpenInterrupt {
  runId: string;
  nodeId: string;
  interruptId: string;
  kind: string;
  key: string;
  data: any;
  resumeSchema?: any;
  timeoutMs?: number;
  requestedAt: string;
  expiresAt: string;
}

export interface WorkflowVersion { workflowId: string; version: number; digest: string; name: string; registeredAt: string }
export interface WorkflowDefinition {
  id: string;
  name: string;
  description?: string;
  version: string;
  configurableSchema?: any;
  nodes: any[];
  edges: any[];
  triggers: any[];
  variables: any[];
  metadata: Record<string, unknown>;
  settings: Record<string, unknown>;
}

export interface Problem { pointer: string; message: string; code: string; line: number; column: number }
export interface Validation { valid: boolean; problems: Problem[]; workflowId?: string; digest?: string; current?: boolean }

export interface FileChange { path: string; change: number; at: string; runId?: string; version?: number; etag?: string; deleted: boolean }

export interface SystemReport {
  version: string;
  build: string;
  licence: string;
  hostId: string;
  instance: string;
  startedAt: string;
  now: string;
  ready: boolean;
  runs: { total: number; byStatus: Record<string, number> };
  openInterrupts: number;
  limits: Record<string, number>;
  /** Only for keys with `host:operate`. */
  operator?: {
    storage: { kind: string; bytes: number; grownBytes: number; classes: { class: string; bytes: number; count: number }[] };
    generation: number;
    trouble?: string;
    recovery?: { at: string; found: number; resumed: number };
    unknownCalls: number;
    connections: Connection[];
    logs: { at: string; level: string; target: string; message: string }[];
  };
}

/** A link to an MCP server, a model provider or another host. */
export interface Connection {
  kind: "mcp" | "provider" | "remote";
  name: string;
  state: "idle" | "connecting" | "connected" | "failed";
  since: string;
  tools?: number;
  leftOut?: string;
  failures: number;
  nextAttempt?: string;
  reason?: string;
  exit?: string;
  stderr?: string[];
}

export interface AgentEntry {
  agentId: string;
  persona: string;
  label: string;
  description?: string;
  modelClass: string;
  packName: string;
  packVersion: string;
  toolAllowlist: string[];
  hasHandoffSchemas: boolean;
  memoryShape?: Record<string, unknown>;
  confidenceThreshold?: number;
  degraded?: string[];
  degradedMemoryDimensions?: string[];
}

/** What is left of an agent on this host, for the key that asks. */
export interface EffectiveAgent {
  agentId: string;
  packName: string;
  packVersion: string;
  digest: string;
  degraded: string[];
  tools: { toolId: string; description?: string; transport?: string; safetyTier: string; outcomePolicy: string; scopes: string[]; held: boolean }[];
  unavailable: string[];
  model?: { class: string; provider: string; model: string; configured: boolean; priced: boolean };
  memory: { scratchpad: boolean; conversation: boolean; longTerm: boolean; scope: string };
  bounds: { maxLoopIterations: number; maxNodeExecutions: number; maxRunDurationMs: number; maxFanOut: number; envelopesPerTurn: number; schemaRounds: number };
  confidence: { threshold: number; from: string; decisionFloor: number };
}

export interface ToolDescriptor {
  toolId: string;
  title?: string;
  description?: string;
  source: string;
  safetyTier: "pure" | "read" | "write" | "exec";
  inputSchema?: any;
  outputSchema?: any;
  [more: string]: unknown;
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
