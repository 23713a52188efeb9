// Generated from the OpenAPI document by crates/server/tests/it/console_types.rs. Do not edit.

/** An agent that may be called: who it is and what it may do, never what it is told. */
export type AgentInventoryEntry = {
  agentId: string;
  confidenceThreshold?: number;
  /** Capabilities it wants and does not have there. */
  degraded?: string[];
  degradedMemoryDimensions?: string[];
  description?: string;
  hasHandoffSchemas: boolean;
  label: string;
  memoryDegraded?: boolean;
  memoryShape?: MemoryShape;
  modelClass: string;
  packName: string;
  packVersion: string;
  persona: string;
  toolAllowlist: string[];
};

/** An agent, as a definition pins it and a snapshot names it. */
export type AgentRef = {
  agentId: string;
  channel?: string;
  memoryRef?: string;
  modelClass?: string;
  name?: string;
  sourceManifestId?: string;
  version?: string;
};

export type Agents = {
  /** By agent id. */
  agents: AgentInventoryEntry[];
  total: number;
};

export type Ancestry = {
  /** This host, as discovery names it. */
  hostId: string;
  parent: Parent | null;
  runId: string;
};

export type Annotate = {
  note?: string;
  /** `{kind, rating?, label?, correction?}` */
  signal: any;
  target?: Target;
};

export type Annotations = {
  annotations: any[];
  /** There are more: ask again with `after` set to this. */
  nextAfter?: string;
};

export type Answer = {
  /** Which question is meant. Without it the answer counts for a node's first question only. */
  interruptId?: string;
  resumeValue: any;
};

export type Answered = {
  nodeId: string;
  runId: string;
  status: RunStatus;
};

/** What was around a run: memory and files. */
export type Around = {
  /** Newest first; only with `memory:read`. */
  memory?: MemoryEntry[];
  memoryScope: string;
  memoryVersion: number;
  /** What was left out because the key lacks its scope. */
  omitted?: string[];
  /** By path, without the contents; only with `workspace:read`. */
  workspace?: FileMeta[];
  workspaceVersion: number;
};

export type Bounds = {
  envelopesPerTurn: number;
  maxFanOut: number;
  maxLoopIterations: number;
  maxNodeExecutions: number;
  maxRunDurationMs: number;
  schemaRounds: number;
};

export type BudgetLine = {
  limit: number;
  spent: number;
};

export type BulkCancel = {
  reason?: string;
  /** 1 to 100 run ids. */
  runIds: string[];
};

export type BulkCancelled = {
  /** In the order asked for. */
  results: BulkItem[];
};

export type BulkItem = {
  error?: BulkItemError;
  ok: boolean;
  runId: string;
  status?: string;
};

export type BulkItemError = {
  code: string;
  message: string;
};

/** Ended top-level runs to prune, each with everything below it. */
export type BulkPrune = {
  /** Take the events as well. */
  log?: boolean;
  /** 1 to 200 run ids. */
  runIds: string[];
};

export type BulkPruneError = {
  code: string;
  message: string;
};

export type BulkPruned = {
  /** One for each run. */
  results: BulkPrunedRun[];
};

export type BulkPrunedRun = {
  error?: BulkPruneError;
  ok: boolean;
  /** Runs of the tree that lost something they had. */
  prunedRuns?: number;
  runId: string;
};

export type CancelledRun = {
  runId: string;
  status: RunStatus;
};

export type ChangeItem = {
  at: string;
  /** The workspace's version after it. */
  change: number;
  deleted: boolean;
  etag?: string;
  path: string;
  /** The run that did it; absent for a change from outside. */
  runId?: string;
  version?: number;
};

export type Changes = {
  /** Newest first. */
  changes: ChangeItem[];
  /** `before` of the next page, if there is one. */
  nextBefore?: number;
};

/** A message. Unknown members are refused. */
export type ChatMessage = {
  configurable?: Record<string, any>;
  /** Messages of one conversation follow each other: an agent is told what was said before. The next one is refused with 409 while the last one has no answer. */
  conversationId?: string;
  /** Says whom it is for with `@`: an agent's id, its label, or the last part of its id. */
  text: string;
};

export type ChildRun = {
  /** Set when the child is on another host: its name, if it gave one, and where the run is found. */
  hostId?: string;
  nodeId: string;
  runId: string;
  status: RunStatus;
  url?: string;
  workflowId: string;
};

export type Confidence = {
  /** Decisions of a supervisor that are less sure are held. */
  decisionFloor: number;
  /** `agent` or `host`: who says so. A run may say otherwise. */
  from: string;
  /** Answers that are less sure are held. */
  threshold: number;
};

export type Conversation = {
  conversationId: string;
  turns: number;
  updatedAt: string;
};

export type Conversations = {
  /** By name. */
  conversations: Conversation[];
  /** Where the next page begins; absent on the last. */
  nextCursor?: string;
};

/** A run to start: of a workflow, or of one agent. Unknown members are refused. */
export type CreateRun = {
  /** In the place of `workflowId`: the run is this agent, and `inputs` are its task. */
  agentId?: string;
  callbackUrl?: string;
  configurable?: Record<string, any>;
  /** The conversation that the run is the next turn of; it is the memory scope, too, so not together with `scopeId`. */
  conversationId?: string;
  evalSuiteRef?: any;
  inputs?: Record<string, any>;
  metadata?: Record<string, any>;
  mode?: string;
  residency?: any;
  scopeId?: string;
  tags?: string[];
  tenantId?: string;
  workflowId?: string;
};

export type CreatedRun = {
  eventsUrl: string;
  runId: string;
  /** Never a terminal status, even if the run has already ended. */
  status: RunStatus;
  statusUrl: string;
};

export type DeadLetterList = {
  /** Newest first. */
  deadLetters: DeadLetterView[];
  /** How many were let go because there were too many. */
  dropped: number;
  /** Give it back as `cursor` for the next page; absent on the last one. */
  nextCursor?: string;
  /** How long one is kept. */
  retentionDays: number;
};

/** An event that a subscriber did not get. It names the event and holds nothing of it. */
export type DeadLetterView = {
  attempts: number;
  deadLetteredAt: string;
  expiresAt: string;
  /** How the last attempt failed, if it is known. */
  lastStatus?: number;
  /** The event's `eventId`, which every attempt has in its body. */
  letterId: string;
  /** `retries_exhausted`, `subscription_failed`, `backlog_full` or `event_gone`. */
  reason: string;
  runId: string;
  sequence: number;
  /** The event's type; empty if it was gone by then. */
  type: string;
  webhookId: string;
};

export type Diff = {
  a: string;
  b: string;
  /** The first sequence where they differ; null if they do not. */
  divergedAtSeq: number | null;
  eventDiffs: DiffEntry[];
  /** `{status: {a, b}, variables: {name: {a, b}}, …}`; empty if they stand the same. */
  stateDiff: Record<string, any>;
  /** Only a beginning was compared. */
  truncated?: boolean;
};

export type DiffEntry = {
  aEvent?: any;
  bEvent?: any;
  /** `added` (only in b), `removed` (only in a) or `changed`. */
  op: string;
  seq: number;
};

export type EffectiveAgent = {
  agentId: string;
  bounds: Bounds;
  confidence: Confidence;
  /** What the agent wants and this host lacks. */
  degraded: string[];
  /** What runs are pinned to. */
  digest: string;
  memory: EffectiveMemory;
  model?: EffectiveModel;
  packName: string;
  packVersion: string;
  tools: EffectiveTool[];
  /** On the manifest's list, and not to be had. */
  unavailable: string[];
};

export type EffectiveMemory = any & {
  /** `tree`: that of the run and everything below it, unless the run is started with a `scopeId`. */
  scope: string;
};

export type EffectiveModel = {
  class: string;
  /** This host knows the provider. */
  configured: boolean;
  model: string;
  /** It has a price, so what it costs can be bounded. */
  priced: boolean;
  provider: string;
};

export type EffectiveTool = {
  description: string;
  /** Whether this caller does. */
  held: boolean;
  /** What is done about a call of which nobody knows whether it took place. */
  outcomePolicy: string;
  safetyTier: string;
  /** What whoever starts the run must hold. */
  scopes: string[];
  toolId: string;
  transport: string;
};

/** The body of every refusal. `error` is a code that stays; `message` is for people. */
export type Error = {
  details?: Record<string, any>;
  error: string;
  message: string;
};

/** What went wrong, in the shape that events and snapshots carry: a stable code, a sentence, and facts. */
export type Fault = {
  code: string;
  details?: Record<string, any>;
  message: string;
};

export type FileList = {
  /** By path, without the contents. */
  files: FileMeta[];
};

/** A file without its content. */
export type FileMeta = {
  contentType: string;
  etag: string;
  path: string;
  updatedAt: string;
  /** 1, 2, 3, … since the file was last created. */
  version: number;
};

export type Fork = {
  /** The first sequence to execute again; 0 when absent, which only a replay may. */
  fromSeq?: number;
  /** `replay` or `branch`. */
  mode: string;
  runOptionsOverlay?: ForkOverlay;
};

/** Where a conversation forks. Unknown members are refused. */
export type ForkConversation = {
  /** The name of the new one; the host makes one unless said. */
  conversationId?: string;
  /** The last turn that both have; the newest unless said. */
  turn?: number;
};

/** What a branch has otherwise than its source. Unknown members are refused. */
export type ForkOverlay = {
  configurable?: Record<string, any>;
  inputs?: Record<string, any>;
  /** `simulated` (the default) or `real`. */
  sideEffects?: string;
  variables?: Record<string, any>;
};

export type Forked = {
  eventsUrl: string;
  /** The first sequence that happens anew. */
  fromSeq: number;
  mode: string;
  /** The one that was asked for, where a branch begins before it: inside a step, or while a child was under way. */
  requestedFromSeq?: number;
  runId: string;
  sourceRunId: string;
  /** Always `pending`: the fork goes on by itself. */
  status: RunStatus;
  statusUrl: string;
};

/** Where a fork comes from, and what it has otherwise. */
export type ForkedFrom = {
  fromSeq: number;
  mode: string;
  /** Names of the inputs, variables and settings that differ. */
  overlaid?: string[];
  /** The point that was asked for, where a branch begins before it. */
  requestedFromSeq?: number;
  runId: string;
  /** What a branch does about calls that would change the world. */
  sideEffects?: string;
};

/** The first thing that came out otherwise. */
export type FoundDifference = {
  /** `output`, `missing`, `extra` or `type-mismatch`. */
  kind: string;
  original?: any;
  replayed?: any;
  seq: number;
};

export type Health = {
  status: string;
};

/** What an import did. */
export type ImportedRun = {
  /** The host had all of it, so nothing changed. */
  alreadyHere: boolean;
  /** What was said about the runs. */
  annotations: number;
  changes: number;
  definitions: number;
  /** Memory scopes and workspaces. */
  ledgers: number;
  /** Runs of the file that this host did not have. */
  newRuns: number;
  records: number;
  /** The run the file was made for. */
  runId: string;
  /** What the file holds. */
  runs: number;
};

export type InterruptItem = {
  data: any;
  expiresAt?: string;
  interruptId: string;
  key: string;
  kind: string;
  nodeId: string;
  requestedAt: string;
  runId: string;
  workflowId: string;
};

export type InterruptList = {
  interrupts: InterruptItem[];
};

export type Iteration = {
  bound: number;
  turn: number;
};

/** A value to be kept. */
export type KeepValue = {
  value: any;
};

export type LastFailure = {
  at: string;
  /** What was answered; absent if nothing was. */
  status?: number;
};

/** One line. Whoever writes it cuts it to a bearable length. */
export type LogLine = {
  at: string;
  level: string;
  message: string;
  target: string;
};

/** How far a map has come through its list. */
export type MapProgress = {
  completed: number;
  failed: number;
  /** How many items there are. */
  total: number;
  /** Those that have begun and not ended. */
  underWay: number;
};

/** One thing an agent or a person wanted remembered. Never changed after it is written, only forgotten. */
export type MemoryEntry = {
  content: string;
  createdAt: string;
  /** From this instant on nobody sees the entry. */
  expiresAt?: string;
  id: string;
  tags: string[];
};

export type MemoryList = {
  /** Newest first. */
  entries: MemoryEntry[];
  /** Where the next page begins; absent on the last. */
  nextCursor?: string;
};

export type MemoryScope = {
  scope: string;
  updatedAt: string;
  /** Grows with every change. */
  version: number;
};

export type MemoryScopes = {
  scopes: MemoryScope[];
};

/** What an agent wants to remember, and for how long. */
export type MemoryShape = {
  conversation?: boolean;
  longTerm?: boolean;
  scratchpad?: boolean;
};

/** All calls of models together; the model and its provider are those of the latest. */
export type ModelCost = {
  model: string;
  provider: string;
  tokens: Tokens;
  /** Where there was a price for a call. */
  usd?: number;
};

export type NewRunnerToken = {
  expiresAt?: string;
  /** For people, to tell it from others. */
  name: string;
  /** On whose behalf its runners work; that of the key if absent. Another one needs `runners:manage:any`. */
  subject?: string;
};

/** There is nothing to choose. */
export type NoChoice = any;

export type NodeState = {
  attempt: number;
  error?: Fault;
  /** How far a map has come, while it is under way (host extension). */
  progress?: MapProgress;
  status: string;
  /** 1 on the first visit; loops visit a node again. */
  visit: number;
};

export type OpenInterrupt = {
  data: any;
  expiresAt: string;
  interruptId: string;
  key: string;
  kind: string;
  nodeId: string;
  requestedAt: string;
  resumeSchema?: any;
  runId: string;
  timeoutMs?: number;
};

export type Operator = {
  /** Links to MCP servers, model providers and other hosts. */
  connections: ShownConnection[];
  /** Grows with each failed commit. */
  generation: number;
  /** The newest lines of the host's log, oldest first. */
  logs: LogLine[];
  recovery?: Recovery;
  storage: Storage;
  /** Why the host does not take writes. */
  trouble?: string;
  /** Calls since the start of which nobody knew whether they took place. */
  unknownCalls: number;
};

/** Who owns a run. Opaque ids only. */
export type Owner = {
  principal?: string;
  /** On whose behalf the run was started, if not the tenant's as a whole. */
  subject?: string;
  tenant: string;
};

export type Parent = {
  /** `core.subWorkflow` or `core.dispatch`. */
  cause: string;
  hostId: string;
  runId: string;
  /** Where the parent's host describes itself. Absent when that is this one. */
  wellKnownUrl?: string;
};

export type Pause = {
  /** `immediate` or `drain-current-node` (the default). */
  drainPolicy?: string;
  reason?: string;
};

export type Paused = {
  pausedAt: string;
  runId: string;
  status: RunStatus;
};

/** What a poll gives. */
export type PollResult = {
  events: RunEvent[];
  /** The run has ended and this page reaches its last event. */
  isComplete: boolean;
  /** The same as `isComplete`. */
  isTerminal: boolean;
  /** The newest event of this page, or the one that was asked after. */
  lastEventSeq?: number;
  runId: string;
  runStatus: RunStatus;
};

export type Problem = {
  code: string;
  column: number;
  /** Where in the text that was sent, both counted from 1. */
  line: number;
  message: string;
  /** JSON pointer into the definition; empty for the whole. */
  pointer: string;
};

export type PromptList = {
  /** By library and id. */
  items: any[];
  /** Where the next page begins; absent on the last. */
  nextCursor?: string;
};

export type Prune = {
  /** Take the events as well. */
  log?: boolean;
};

export type Pruned = {
  log: boolean;
  /** Runs of the tree that lost something they had. */
  prunedRuns: number;
  runId: string;
};

/** What a file is to hold. Unknown members are refused. */
export type PutFile = {
  content: string;
  /** `text/markdown` when absent. */
  contentType?: string;
};

/** Why a tree of runs is in quarantine. */
export type Quarantine = {
  /** `process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`. */
  cause: string;
  detail: string;
  /** The top of the tree. */
  rootRunId: string;
  /** The run that failed. */
  runId: string;
  /** The sequence that its next event would have had. */
  seq: number;
  since: string;
};

export type QuarantineList = {
  /** Give it back as `cursor` for the next page; absent on the last one. */
  nextCursor?: string;
  trees: QuarantinedTree[];
};

/** A top-level run and everything below it, which nobody steps for now. */
export type QuarantinedTree = {
  /** `process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`. */
  cause: string;
  detail: string;
  rootRunId: string;
  /** The run that failed, which may be any of the tree. */
  runId: string;
  /** The sequence that its next event would have had. */
  seq: number;
  since: string;
};

export type Reason = {
  reason?: string;
};

export type Recovery = {
  at: string;
  /** Unfinished runs. */
  found: number;
  /** Those that went on at once; the others are tried again. */
  resumed: number;
};

/** There is nothing to choose. */
export type Redeliver = any;

export type Redelivery = {
  /** How many letters are on their way again. None that was already. */
  queued: number;
};

/** The registration frame of a runner. */
export type RegisterRunner = {
  capabilities: RunnerCapabilities;
  runnerId: string;
  subject: string;
};

/** Unknown members are tolerated: published shapes of this body disagree. */
export type RegisterWebhook = {
  /** Event type names; `*` means all. */
  events: string[];
  /** Only events of runs that carry one of these tags. */
  tags?: string[];
  tenantId?: string;
  url: string;
};

/** There is nothing to choose. */
export type Release = any;

/** Something to be remembered. Unknown members are refused. */
export type Remember = {
  content: string;
  /** Until when it is to be remembered. */
  expiresAt?: string;
  tags?: string[];
  /** How long it is to be remembered; not together with `expiresAt`. */
  ttlSeconds?: number;
};

/** A template to be filled. Unknown members are refused. */
export type RenderPrompt = {
  /** How far the values are to be trusted: `untrusted` ones are put between marks. */
  contentTrust?: string;
  /** `prompt:<id>[@<version>]`, or `{templateId, libraryId?, version?, variableOverrides?}`. */
  ref: any;
  variables?: Record<string, any>;
  workspaceId?: string;
};

export type Resumed = {
  resumedAt: string;
  runId: string;
  status: RunStatus;
};

/** What is no longer kept of a run. */
export type Retention = {
  prunedAt: string;
};

/** What the host's rules would prune now. */
export type RetentionDue = {
  /** Whether there are any rules. Without them nothing is pruned unless somebody asks. */
  enabled: boolean;
  /** There are more than these. */
  more: boolean;
  /** Newest first. */
  runs: RetentionDueRun[];
  /** How long a run is kept after its end, whatever the rules say. */
  windowSeconds: number;
};

export type RetentionDueRun = {
  endedAt: string;
  /** `age`, `count` or `size`. */
  reason: string;
  /** Their records. */
  records: number;
  runId: string;
  /** Runs of the tree, with the top. */
  runs: number;
  status: string;
  workflowId: string;
};

export type RunCounts = {
  byStatus: Record<string, number>;
  total: number;
};

/** One entry of a run's log. */
export type RunEvent = {
  causationId?: string;
  eventId: string;
  nodeId?: string;
  payload: any;
  runId: string;
  sequence: number;
  timestamp: string;
  type: string;
};

/** The interrupt a suspended run waits on. */
export type RunInterrupt = {
  callbackUrl?: string;
  data: any;
  expiresAt?: string;
  interruptId: string;
  interruptToken?: string;
  key: string;
  kind: string;
  nodeId: string;
  /** Same as `data`; older clients read this name. */
  payload: any;
  requestedAt: string;
  resumeSchema?: any;
};

export type RunItem = {
  createdAt: string;
  currentNodeId?: string;
  error?: RunItemError;
  /** How many events the log has; the newest has the sequence before this. */
  events: number;
  /** Set on a fork. */
  forkedFrom?: ForkedFrom;
  parentRunId?: string;
  /** The top of the tree this run descends from. */
  rootRunId?: string;
  runId: string;
  status: RunStatus;
  /** What else there is to say; absent where there is nothing. */
  summary?: RunSummary;
  tags: string[];
  updatedAt: string;
  workflowDigest: string;
  workflowId: string;
  /** Which version of the workflow the run is pinned to; absent where that version is not registered here. */
  workflowVersion?: number;
};

export type RunItemError = {
  code: string;
};

export type RunList = {
  /** Give it back as `cursor` for the next page; absent on the last one. */
  nextCursor?: string;
  runs: RunItem[];
};

/** What a run has used up. */
export type RunMetrics = {
  /** What its own models have used. */
  openwopCost?: ModelCost;
  /** The same, and what the runs below it have used that have ended. */
  treeCost?: TreeCost;
};

/** The public view of a run: its log up to `atSeq`, folded. */
export type RunSnapshot = {
  /** Who works, or worked last: the agent of a node, not the one that decides. */
  agent?: AgentRef;
  atSeq: number;
  channels?: Record<string, any>;
  childRuns?: ChildRun[];
  completedAt?: string;
  configurable?: Record<string, any>;
  currentNodeId?: string;
  error?: Fault;
  eventLogSchemaVersion: number;
  /** Set on a fork. */
  forkedFrom?: ForkedFrom;
  inputs: Record<string, any>;
  interrupt?: RunInterrupt;
  metadata?: Record<string, any>;
  /** Set once a model has been asked. */
  metrics?: RunMetrics;
  nodeStates: Record<string, NodeState>;
  outputs?: any;
  owner: Owner;
  parentNodeId?: string;
  parentRunId?: string;
  /** Set while the run's tree is in quarantine (host extension): nobody steps it until it is released or cancelled. */
  quarantine?: Quarantine;
  /** Set once retention has taken what the run's memory and workspace looked like. */
  retention?: Retention;
  runId: string;
  /** Who decides in this run, once somebody has. */
  runOrchestrator?: AgentRef;
  startedAt?: string;
  status: RunStatus;
  tags?: string[];
  variables: Record<string, any>;
  /** The registered version of the workflow this run is pinned to. */
  workflowDigest: string;
  workflowId: string;
  /** The files the run sees, as they were when it started or, in a loop, when its latest turn did. */
  workspace?: FileMeta[];
};

export type RunState = Around & {
  /** When that record was written. */
  at: string;
  channels: Record<string, any>;
  childRuns: ChildRun[];
  interrupt?: RunInterrupt;
  nodeStates: Record<string, NodeState>;
  runId: string;
  seq: number;
  status: RunStatus;
  variables: Record<string, any>;
};

/** Where a run stands, as the wire spells it. */
export type RunStatus = "pending" | "running" | "paused" | "waiting-approval" | "waiting-input" | "waiting-external" | "waiting-clarification" | "cancelling" | "completed" | "failed" | "cancelled";

/** What a list of runs says about one of them beyond its row. What is absent does not apply, or was not kept yet when the run was written. */
export type RunSummary = {
  /** What the whole tree had spent when this run last moved, by what is bounded. */
  budget?: Record<string, BudgetLine>;
  /** Runs that this one started. */
  children?: number;
  /** All runs below a top-level run, where they were counted. */
  descendants?: number;
  /** A replay that did not go as its source went. */
  diverged?: boolean;
  /** It came with a file. What its log says of whose it is, nobody here vouches for. */
  imported?: boolean;
  /** The newest turn of the run's supervisor. */
  iteration?: Iteration;
  /** Nothing is left of one of them, or too little for what the run wanted last. */
  overBudget?: boolean;
  /** Why somebody paused it, while it is paused. */
  pauseReason?: string;
  /** How far the run's map has come, while one is under way. */
  progress?: MapProgress;
  /** What the models of this run have used, without the runs below it. */
  usage?: Usage;
  /** What the models of runs below it have used: those that have ended, each with everything below it. */
  usageBelow?: Usage;
  waitingOn?: WaitingOn;
};

export type RunSurroundings = Around & {
  runId: string;
  seq: number;
};

export type Runner = {
  /** Its stream is open on the host that answers. */
  connected: boolean;
  draining: boolean;
  inFlight: number;
  lastSeenAt: string;
  maxConcurrency: number;
  pool?: string;
  registeredAt: string;
  runnerId: string;
  subject: string;
  /** `<pool>.<tool>`; allowlists write `runner:<pool>.<tool>`. */
  tools: string[];
  version?: string;
};

export type RunnerCapabilities = {
  models?: string[];
  providers?: string[];
  tools?: string[];
};

export type RunnerList = {
  runners: Runner[];
};

export type RunnerRegistered = {
  runnerId: string;
};

/** How a runner is doing. An empty one says that it lives. */
export type RunnerReports = {
  draining?: boolean;
  reports?: StepReport[];
};

export type RunnerTokenEntry = {
  createdAt: string;
  expiresAt?: string;
  name: string;
  subject: string;
  tokenId: string;
};

export type RunnerTokenList = {
  tokens: RunnerTokenEntry[];
};

/** A token that was just made. `token` is shown this once. */
export type RunnerTokenMade = {
  expiresAt?: string;
  subject: string;
  token: string;
  tokenId: string;
};

export type RunnerToolEntry = {
  description?: string;
  inputSchema: any;
  name: string;
  outputSchema?: any;
  title?: string;
};

/** What a runner brings, in full. */
export type RunnerTools = {
  /** How many steps it does at a time; 4 if absent. */
  maxConcurrency?: number;
  pool: string;
  tools: RunnerToolEntry[];
  version?: string;
};

/** What a runner has in hand as far as the host knows. */
export type RunnerWork = {
  /** Nobody wants these any more. */
  cancel: StepName[];
  /** It gets no more steps. */
  drain: boolean;
  leases: StepLease[];
};

/** A link to an MCP server, a model provider or another host. */
export type ShownConnection = {
  /** How the process of an MCP server ended: `exit code 3`, `signal 9`. */
  exit?: string;
  /** Failures in a row. */
  failures: number;
  /** `mcp`, `provider` or `remote`. */
  kind: string;
  /** Which of its tools an MCP server does not get to offer, and why. */
  leftOut?: string;
  /** As the configuration names it. */
  name: string;
  /** When it is tried again. Providers and other hosts are tried when a run needs them. */
  nextAttempt?: string;
  reason?: string;
  /** Since when it works, or does not. */
  since: string;
  /** `idle` (nobody has needed it yet), `connecting`, `connected` or `failed`. */
  state: string;
  /** The last lines that process wrote to its standard error, without secrets. */
  stderr?: string[];
  /** How many tools an MCP server offers, or offered before it was lost. */
  tools?: number;
};

/** What no run may exceed, whatever it asks for; 0 where there is no ceiling. */
export type ShownLimits = {
  maxBudgetCostCents: number;
  maxBudgetTokens: number;
  maxChildrenPerTree: number;
  maxFanOut: number;
  maxLoopIterations: number;
  maxMemoryEntries: number;
  maxMemoryEntryBytes: number;
  maxNestingDepth: number;
  maxNodeExecutions: number;
  maxRequestBodyBytes: number;
  maxRunBytes: number;
  maxRunDurationMs: number;
  maxValueBytes: number;
  maxWorkspaceFileBytes: number;
  maxWorkspaceFiles: number;
};

export type StepLease = {
  expiresAt: string;
  runId: string;
  /** The number under which the runner has it. */
  seq?: number;
  stepId: string;
};

export type StepName = {
  runId: string;
  /** The number under which the runner has it, where that is known. */
  seq?: number;
  stepId: string;
};

export type StepReport = {
  message?: string;
  progress?: number;
  reason?: string;
  runId: string;
  seq: number;
  state: StepReportState;
  stepId: string;
  total?: number;
};

export type StepReportState = "started" | "progress" | "released" | "unknown";

/** What came of a step. */
export type StepResult = {
  output: any;
  runId: string;
  seq: number;
  stepId: string;
};

/** It is on the run's log. */
export type StepResultTaken = {
  accepted: boolean;
  /** It was there before. */
  duplicate: boolean;
};

/** The value that counts. */
export type StepValue = {
  /** It was not there before; only where one is kept. */
  created?: boolean;
  key: string;
  value: any;
};

export type Storage = {
  bytes?: number;
  /** About how much of it is what. */
  classes: StorageClass[];
  /** Since the start; less than nothing where something was given back. */
  grownBytes?: number;
  /** `unknown` where the store does not say. */
  kind: string;
};

export type StorageClass = {
  bytes: number;
  class: string;
  count: number;
};

export type System = {
  /** `release` or `debug`. */
  build: string;
  hostId: string;
  /** Another one after each start. */
  instance: string;
  licence: string;
  limits: ShownLimits;
  now: string;
  /** Open questions of the tenant. */
  openInterrupts: number;
  operator?: Operator;
  /** The host takes writes. */
  ready: boolean;
  /** Runs of the tenant. */
  runs: RunCounts;
  startedAt: string;
  version: string;
};

/** The run is the path's. */
export type Target = {
  eventId?: string;
  nodeId?: string;
};

export type Tokens = {
  input: number;
  output: number;
};

/** Scopes its caller must hold. Credentials that the host keeps for a tool are not named. */
export type ToolAuth = {
  scopes: string[];
};

/** A tool in the catalogue. The shape is closed: no other members. */
export type ToolDescriptor = {
  /** Whether a human is asked before a call. */
  approval: "never" | "conditional" | "always";
  auth?: ToolAuth;
  description: string;
  /** What a tool sends out of this process, and through whom. */
  egress?: "none" | "safe-fetch" | "host-mediated" | "host-owned";
  inputSchema: any;
  latencyHint?: "low" | "medium" | "high";
  outputSchema?: any;
  /** What a call made again would do. */
  replayPolicy: "deterministic" | "idempotent" | "non-deterministic";
  /** What a tool may do to the world. */
  safetyTier: "pure" | "read" | "write" | "exec";
  /** Where a tool comes from. */
  source: "node-pack" | "workflow" | "mcp" | "connector" | "host-extension";
  title?: string;
  /** The string that an allowlist names it by. */
  toolId: string;
};

export type TreeCost = {
  tokens: Tokens;
  /** Where there was a price for a call. */
  usd?: number;
};

export type Turn = {
  agentId?: string;
  answer?: any;
  asked: Record<string, any>;
  at: string;
  runId: string;
  /** Absent where the run never began, or is gone. */
  status?: string;
  turn: number;
};

export type Turns = {
  conversationId: string;
  nextCursor?: string;
  /** Newest first. */
  turns: Turn[];
};

export type Usage = {
  costUsd?: number;
  inputTokens: number;
  outputTokens: number;
};

export type Validation = {
  /** It is what the newest version of this id is already. */
  current?: boolean;
  digest?: string;
  problems: Problem[];
  /** It could be registered as it is. */
  valid: boolean;
  /** The rest only where it is valid. */
  workflowId?: string;
};

export type Verification = {
  /** How many of them were decided anew; the others are what the world said. */
  decided: number;
  difference?: FoundDifference;
  equal: boolean;
  /** Events that were gone through. */
  events: number;
  runId: string;
};

/** There is nothing to choose. */
export type Verify = any;

/** The oldest open question, or the child that has one. */
export type WaitingOn = {
  expiresAt?: string;
  /** The kind of the question, or `child`. */
  kind: string;
  nodeId: string;
  /** How many questions are open in this run. */
  open: number;
  question?: string;
  requestedAt?: string;
  /** The run below that waits. */
  runId?: string;
};

export type WebhookEntry = {
  consecutiveFailures: number;
  createdAt: string;
  deadLetters: number;
  /** How many dead letters were let go because there were too many. */
  deadLettersDropped: number;
  events: string[];
  lastFailure?: LastFailure;
  openUntil?: string;
  /** The first digits of the secret's digest. */
  secretFingerprint: string;
  /** `active`; `failing`: left alone until `openUntil`, and what there is for it waits; `failed`: not called until it is resumed, and what there is for it becomes dead letters. */
  state: string;
  tags: string[];
  /** Without its query, which may hold a token of the subscriber's own. */
  url: string;
  /** How many events wait to be sent. */
  waiting: number;
  webhookId: string;
};

export type WebhookList = {
  /** Give it back as `cursor` for the next page; absent on the last one. */
  nextCursor?: string;
  webhooks: WebhookEntry[];
};

export type WebhookRegistered = {
  /** Shown once; signs every delivery. */
  secret: string;
  secretFingerprint: string;
  webhookId: string;
};

export type WorkflowDefinition = {
  acceptsInheritedArtifacts?: any;
  channels?: any;
  configurableSchema?: any;
  createdAt?: any;
  defaults?: any;
  description?: string;
  edges: any[];
  groups?: any;
  id: string;
  isActive?: boolean;
  metadata: Record<string, any>;
  name: string;
  nodes: any[];
  scopeId?: string;
  settings: any;
  slug?: string;
  status?: string;
  tenantId?: string;
  triggers: any[];
  type?: string;
  updatedAt?: any;
  variables: any[];
  version: string;
};

export type WorkflowList = {
  workflows: WorkflowVersion[];
};

export type WorkflowVersion = {
  /** SHA-256 of the canonical definition. */
  digest: string;
  name: string;
  registeredAt: string;
  /** 1, 2, 3, …: grows whenever the content changes. */
  version: number;
  workflowId: string;
};

export type WorkflowVersions = {
  /** Newest first. */
  versions: WorkflowVersion[];
  workflowId: string;
};

/** One file of a workspace at one version. */
export type WorkspaceFile = FileMeta & {
  content: string;
};
