"""Generated from the OpenAPI document by clients/generate.py. Do not edit."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

Json = Any
"""Any JSON value."""


class AgentInventoryEntry(TypedDict):
    """An agent that may be called: who it is and what it may do, never what it is told."""
    agentId: str
    confidenceThreshold: NotRequired[float]
    degraded: NotRequired[List[str]]
    """Capabilities it wants and does not have there."""
    degradedMemoryDimensions: NotRequired[List[str]]
    description: NotRequired[str]
    hasHandoffSchemas: bool
    label: str
    memoryDegraded: NotRequired[bool]
    memoryShape: NotRequired[MemoryShape]
    modelClass: str
    packName: str
    packVersion: str
    persona: str
    toolAllowlist: List[str]


class AgentRef(TypedDict):
    """An agent, as a definition pins it and a snapshot names it."""
    agentId: str
    channel: NotRequired[str]
    memoryRef: NotRequired[str]
    modelClass: NotRequired[str]
    name: NotRequired[str]
    sourceManifestId: NotRequired[str]
    version: NotRequired[str]


class Agents(TypedDict):
    agents: List[AgentInventoryEntry]
    """By agent id."""
    total: int


class Ancestry(TypedDict):
    hostId: str
    """This host, as discovery names it."""
    parent: Optional[Parent]
    runId: str


class Annotate(TypedDict):
    note: NotRequired[str]
    signal: Dict[str, Any]
    """`{kind, rating?, label?, correction?}`"""
    target: NotRequired[Target]


class Annotations(TypedDict):
    annotations: List[Dict[str, Any]]
    nextAfter: NotRequired[str]
    """There are more: ask again with `after` set to this."""


class Answer(TypedDict):
    interruptId: NotRequired[str]
    """Which question is meant. Without it the answer counts for a node's first question only."""
    resumeValue: Dict[str, Any]


class Answered(TypedDict):
    nodeId: str
    runId: str
    status: RunStatus


class Around(TypedDict):
    """What was around a run: memory and files."""
    memory: NotRequired[List[MemoryEntry]]
    """Newest first; only with `memory:read`."""
    memoryScope: str
    memoryVersion: int
    omitted: NotRequired[List[str]]
    """What was left out because the key lacks its scope."""
    workspace: NotRequired[List[FileMeta]]
    """By path, without the contents; only with `workspace:read`."""
    workspaceVersion: int


class Bounds(TypedDict):
    envelopesPerTurn: int
    maxFanOut: int
    maxLoopIterations: int
    maxNodeExecutions: int
    maxRunDurationMs: int
    schemaRounds: int


class BudgetLine(TypedDict):
    limit: float
    spent: float


class BulkCancel(TypedDict):
    reason: NotRequired[str]
    runIds: List[str]
    """1 to 100 run ids."""


class BulkCancelled(TypedDict):
    results: List[BulkItem]
    """In the order asked for."""


class BulkItem(TypedDict):
    error: NotRequired[BulkItemError]
    ok: bool
    runId: str
    status: NotRequired[str]


class BulkItemError(TypedDict):
    code: str
    message: str


class BulkPrune(TypedDict):
    """Ended top-level runs to prune, each with everything below it."""
    log: NotRequired[bool]
    """Take the events as well."""
    runIds: List[str]
    """1 to 200 run ids."""


class BulkPruneError(TypedDict):
    code: str
    message: str


class BulkPruned(TypedDict):
    results: List[BulkPrunedRun]
    """One for each run."""


class BulkPrunedRun(TypedDict):
    error: NotRequired[BulkPruneError]
    ok: bool
    prunedRuns: NotRequired[int]
    """Runs of the tree that lost something they had."""
    runId: str


class CancelledRun(TypedDict):
    runId: str
    status: RunStatus


class ChangeItem(TypedDict):
    at: str
    change: int
    """The workspace's version after it."""
    deleted: bool
    etag: NotRequired[str]
    path: str
    runId: NotRequired[str]
    """The run that did it; absent for a change from outside."""
    version: NotRequired[int]


class Changes(TypedDict):
    changes: List[ChangeItem]
    """Newest first."""
    nextBefore: NotRequired[int]
    """`before` of the next page, if there is one."""


class ChatMessage(TypedDict):
    """A message. Unknown members are refused."""
    configurable: NotRequired[Dict[str, Any]]
    conversationId: NotRequired[str]
    """Messages of one conversation follow each other: an agent is told what was said before. The next one
    is refused with 409 while the last one has no answer.
    """
    text: str
    """Says whom it is for with `@`: an agent's id, its label, or the last part of its id."""


class ChildRun(TypedDict):
    hostId: NotRequired[str]
    """Set when the child is on another host: its name, if it gave one, and where the run is found."""
    nodeId: str
    runId: str
    status: RunStatus
    url: NotRequired[str]
    workflowId: str

Confidence = TypedDict(
    "Confidence",
    {
        "decisionFloor": "float",
        "from": "str",
        "threshold": "float",
    },
)


class Conversation(TypedDict):
    conversationId: str
    turns: int
    updatedAt: str


class Conversations(TypedDict):
    conversations: List[Conversation]
    """By name."""
    nextCursor: NotRequired[str]
    """Where the next page begins; absent on the last."""


class CreateRun(TypedDict):
    """A run to start: of a workflow, or of one agent. Unknown members are refused."""
    agentId: NotRequired[str]
    """In the place of `workflowId`: the run is this agent, and `inputs` are its task."""
    callbackUrl: NotRequired[str]
    configurable: NotRequired[Dict[str, Any]]
    conversationId: NotRequired[str]
    """The conversation that the run is the next turn of; it is the memory scope, too, so not together with
    `scopeId`.
    """
    evalSuiteRef: NotRequired[Dict[str, Any]]
    inputs: NotRequired[Dict[str, Any]]
    metadata: NotRequired[Dict[str, Any]]
    mode: NotRequired[str]
    residency: NotRequired[Dict[str, Any]]
    scopeId: NotRequired[str]
    tags: NotRequired[List[str]]
    tenantId: NotRequired[str]
    workflowId: NotRequired[str]


class CreatedRun(TypedDict):
    eventsUrl: str
    runId: str
    status: RunStatus
    """Never a terminal status, even if the run has already ended."""
    statusUrl: str


class DeadLetterList(TypedDict):
    deadLetters: List[DeadLetterView]
    """Newest first."""
    dropped: int
    """How many were let go because there were too many."""
    nextCursor: NotRequired[str]
    """Give it back as `cursor` for the next page; absent on the last one."""
    retentionDays: int
    """How long one is kept."""


class DeadLetterView(TypedDict):
    """An event that a subscriber did not get. It names the event and holds nothing of it."""
    attempts: int
    deadLetteredAt: str
    expiresAt: str
    lastStatus: NotRequired[int]
    """How the last attempt failed, if it is known."""
    letterId: str
    """The event's `eventId`, which every attempt has in its body."""
    reason: str
    """`retries_exhausted`, `subscription_failed`, `backlog_full` or `event_gone`."""
    runId: str
    sequence: int
    type: str
    """The event's type; empty if it was gone by then."""
    webhookId: str


class Diff(TypedDict):
    a: str
    b: str
    divergedAtSeq: Optional[int]
    """The first sequence where they differ; null if they do not."""
    eventDiffs: List[DiffEntry]
    stateDiff: Dict[str, Any]
    """`{status: {a, b}, variables: {name: {a, b}}, …}`; empty if they stand the same."""
    truncated: NotRequired[bool]
    """Only a beginning was compared."""


class DiffEntry(TypedDict):
    aEvent: NotRequired[Dict[str, Any]]
    bEvent: NotRequired[Dict[str, Any]]
    op: str
    """`added` (only in b), `removed` (only in a) or `changed`."""
    seq: int


class EffectiveAgent(TypedDict):
    agentId: str
    bounds: Bounds
    confidence: Confidence
    degraded: List[str]
    """What the agent wants and this host lacks."""
    digest: str
    """What runs are pinned to."""
    memory: EffectiveMemory
    model: NotRequired[EffectiveModel]
    packName: str
    packVersion: str
    tools: List[EffectiveTool]
    unavailable: List[str]
    """On the manifest's list, and not to be had."""


class EffectiveMemory(TypedDict):
    scope: str
    """`tree`: that of the run and everything below it, unless the run is started with a `scopeId`."""

EffectiveModel = TypedDict(
    "EffectiveModel",
    {
        "class": "str",
        "configured": "bool",
        "model": "str",
        "priced": "bool",
        "provider": "str",
    },
)


class EffectiveTool(TypedDict):
    description: str
    held: bool
    """Whether this caller does."""
    outcomePolicy: str
    """What is done about a call of which nobody knows whether it took place."""
    safetyTier: str
    scopes: List[str]
    """What whoever starts the run must hold."""
    toolId: str
    transport: str


class Error(TypedDict):
    """The body of every refusal. `error` is a code that stays; `message` is for people."""
    details: NotRequired[Dict[str, Any]]
    error: str
    message: str


class Fault(TypedDict):
    """What went wrong, in the shape that events and snapshots carry: a stable code, a sentence, and facts."""
    code: str
    details: NotRequired[Dict[str, Any]]
    message: str


class FileList(TypedDict):
    files: List[FileMeta]
    """By path, without the contents."""


class FileMeta(TypedDict):
    """A file without its content."""
    contentType: str
    etag: str
    path: str
    updatedAt: str
    version: int
    """1, 2, 3, … since the file was last created."""


class Fork(TypedDict):
    fromSeq: NotRequired[int]
    """The first sequence to execute again; 0 when absent, which only a replay may."""
    mode: str
    """`replay` or `branch`."""
    runOptionsOverlay: NotRequired[ForkOverlay]


class ForkConversation(TypedDict):
    """Where a conversation forks. Unknown members are refused."""
    conversationId: NotRequired[str]
    """The name of the new one; the host makes one unless said."""
    turn: NotRequired[int]
    """The last turn that both have; the newest unless said."""


class ForkOverlay(TypedDict):
    """What a branch has otherwise than its source. Unknown members are refused."""
    configurable: NotRequired[Dict[str, Any]]
    inputs: NotRequired[Dict[str, Any]]
    sideEffects: NotRequired[str]
    """`simulated` (the default) or `real`."""
    variables: NotRequired[Dict[str, Any]]


class Forked(TypedDict):
    eventsUrl: str
    fromSeq: int
    """The first sequence that happens anew."""
    mode: str
    requestedFromSeq: NotRequired[int]
    """The one that was asked for, where a branch begins before it: inside a step, or while a child was
    under way.
    """
    runId: str
    sourceRunId: str
    status: RunStatus
    """Always `pending`: the fork goes on by itself."""
    statusUrl: str


class ForkedFrom(TypedDict):
    """Where a fork comes from, and what it has otherwise."""
    fromSeq: int
    mode: str
    overlaid: NotRequired[List[str]]
    """Names of the inputs, variables and settings that differ."""
    requestedFromSeq: NotRequired[int]
    """The point that was asked for, where a branch begins before it."""
    runId: str
    sideEffects: NotRequired[str]
    """What a branch does about calls that would change the world."""


class FoundDifference(TypedDict):
    """The first thing that came out otherwise."""
    kind: str
    """`output`, `missing`, `extra` or `type-mismatch`."""
    original: NotRequired[Dict[str, Any]]
    replayed: NotRequired[Dict[str, Any]]
    seq: int


class Health(TypedDict):
    status: str


class ImportedRun(TypedDict):
    """What an import did."""
    alreadyHere: bool
    """The host had all of it, so nothing changed."""
    annotations: int
    """What was said about the runs."""
    changes: int
    definitions: int
    ledgers: int
    """Memory scopes and workspaces."""
    newRuns: int
    """Runs of the file that this host did not have."""
    records: int
    runId: str
    """The run the file was made for."""
    runs: int
    """What the file holds."""


class InterruptItem(TypedDict):
    data: Dict[str, Any]
    expiresAt: NotRequired[str]
    interruptId: str
    key: str
    kind: str
    nodeId: str
    requestedAt: str
    runId: str
    workflowId: str


class InterruptList(TypedDict):
    interrupts: List[InterruptItem]


class Iteration(TypedDict):
    bound: int
    turn: int


class KeepValue(TypedDict):
    """A value to be kept."""
    value: Any


class LastFailure(TypedDict):
    at: str
    status: NotRequired[int]
    """What was answered; absent if nothing was."""


class LogLine(TypedDict):
    """One line. Whoever writes it cuts it to a bearable length."""
    at: str
    level: str
    message: str
    target: str


class MapProgress(TypedDict):
    """How far a map has come through its list."""
    completed: int
    failed: int
    total: int
    """How many items there are."""
    underWay: int
    """Those that have begun and not ended."""


class MemoryEntry(TypedDict):
    """One thing an agent or a person wanted remembered. Never changed after it is written, only forgotten."""
    content: str
    createdAt: str
    expiresAt: NotRequired[str]
    """From this instant on nobody sees the entry."""
    id: str
    tags: List[str]


class MemoryList(TypedDict):
    entries: List[MemoryEntry]
    """Newest first."""
    nextCursor: NotRequired[str]
    """Where the next page begins; absent on the last."""


class MemoryScope(TypedDict):
    scope: str
    updatedAt: str
    version: int
    """Grows with every change."""


class MemoryScopes(TypedDict):
    scopes: List[MemoryScope]


class MemoryShape(TypedDict):
    """What an agent wants to remember, and for how long."""
    conversation: NotRequired[bool]
    longTerm: NotRequired[bool]
    scratchpad: NotRequired[bool]


class ModelCost(TypedDict):
    """All calls of models together; the model and its provider are those of the latest."""
    model: str
    provider: str
    tokens: Tokens
    usd: NotRequired[float]
    """Where there was a price for a call."""


class NewRunnerToken(TypedDict):
    expiresAt: NotRequired[str]
    name: str
    """For people, to tell it from others."""
    subject: NotRequired[str]
    """On whose behalf its runners work; that of the key if absent. Another one needs `runners:manage:any`."""


class NoChoice(TypedDict):
    """There is nothing to choose."""


class NodeState(TypedDict):
    attempt: int
    error: NotRequired[Fault]
    progress: NotRequired[MapProgress]
    """How far a map has come, while it is under way (host extension)."""
    status: str
    visit: int
    """1 on the first visit; loops visit a node again."""


class OpenInterrupt(TypedDict):
    data: Dict[str, Any]
    expiresAt: str
    interruptId: str
    key: str
    kind: str
    nodeId: str
    requestedAt: str
    resumeSchema: NotRequired[Dict[str, Any]]
    runId: str
    timeoutMs: NotRequired[int]


class Operator(TypedDict):
    connections: List[ShownConnection]
    """Links to MCP servers, model providers and other hosts."""
    generation: int
    """Grows with each failed commit."""
    logs: List[LogLine]
    """The newest lines of the host's log, oldest first."""
    recovery: NotRequired[Recovery]
    storage: Storage
    trouble: NotRequired[str]
    """Why the host does not take writes."""
    unknownCalls: int
    """Calls since the start of which nobody knew whether they took place."""


class Owner(TypedDict):
    """Who owns a run. Opaque ids only."""
    principal: NotRequired[str]
    subject: NotRequired[str]
    """On whose behalf the run was started, if not the tenant's as a whole."""
    tenant: str


class Parent(TypedDict):
    cause: str
    """`core.subWorkflow` or `core.dispatch`."""
    hostId: str
    runId: str
    wellKnownUrl: NotRequired[str]
    """Where the parent's host describes itself. Absent when that is this one."""


class Pause(TypedDict):
    drainPolicy: NotRequired[str]
    """`immediate` or `drain-current-node` (the default)."""
    reason: NotRequired[str]


class Paused(TypedDict):
    pausedAt: str
    runId: str
    status: RunStatus


class PollResult(TypedDict):
    """What a poll gives."""
    events: List[RunEvent]
    isComplete: bool
    """The run has ended and this page reaches its last event."""
    isTerminal: bool
    """The same as `isComplete`."""
    lastEventSeq: NotRequired[int]
    """The newest event of this page, or the one that was asked after."""
    runId: str
    runStatus: RunStatus


class Problem(TypedDict):
    code: str
    column: int
    line: int
    """Where in the text that was sent, both counted from 1."""
    message: str
    pointer: str
    """JSON pointer into the definition; empty for the whole."""


class PromptList(TypedDict):
    items: List[Dict[str, Any]]
    """By library and id."""
    nextCursor: NotRequired[str]
    """Where the next page begins; absent on the last."""


class Prune(TypedDict):
    log: NotRequired[bool]
    """Take the events as well."""


class Pruned(TypedDict):
    log: bool
    prunedRuns: int
    """Runs of the tree that lost something they had."""
    runId: str


class PutFile(TypedDict):
    """What a file is to hold. Unknown members are refused."""
    content: str
    contentType: NotRequired[str]
    """`text/markdown` when absent."""


class Quarantine(TypedDict):
    """Why a tree of runs is in quarantine."""
    cause: str
    """`process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`."""
    detail: str
    rootRunId: str
    """The top of the tree."""
    runId: str
    """The run that failed."""
    seq: int
    """The sequence that its next event would have had."""
    since: str


class QuarantineList(TypedDict):
    nextCursor: NotRequired[str]
    """Give it back as `cursor` for the next page; absent on the last one."""
    trees: List[QuarantinedTree]


class QuarantinedTree(TypedDict):
    """A top-level run and everything below it, which nobody steps for now."""
    cause: str
    """`process_died`, `process_died_again`, `step_panicked`, `does_not_fold`, `commit_refused` or `stuck`."""
    detail: str
    rootRunId: str
    runId: str
    """The run that failed, which may be any of the tree."""
    seq: int
    """The sequence that its next event would have had."""
    since: str


class Reason(TypedDict):
    reason: NotRequired[str]


class Recovery(TypedDict):
    at: str
    found: int
    """Unfinished runs."""
    resumed: int
    """Those that went on at once; the others are tried again."""


class Redeliver(TypedDict):
    """There is nothing to choose."""


class Redelivery(TypedDict):
    queued: int
    """How many letters are on their way again. None that was already."""


class RegisterRunner(TypedDict):
    """The registration frame of a runner."""
    capabilities: RunnerCapabilities
    runnerId: str
    subject: str


class RegisterWebhook(TypedDict):
    """Unknown members are tolerated: published shapes of this body disagree."""
    events: List[str]
    """Event type names; `*` means all."""
    tags: NotRequired[List[str]]
    """Only events of runs that carry one of these tags."""
    tenantId: NotRequired[str]
    url: str


class Release(TypedDict):
    """There is nothing to choose."""


class Remember(TypedDict):
    """Something to be remembered. Unknown members are refused."""
    content: str
    expiresAt: NotRequired[str]
    """Until when it is to be remembered."""
    tags: NotRequired[List[str]]
    ttlSeconds: NotRequired[float]
    """How long it is to be remembered; not together with `expiresAt`."""


class RenderPrompt(TypedDict):
    """A template to be filled. Unknown members are refused."""
    contentTrust: NotRequired[str]
    """How far the values are to be trusted: `untrusted` ones are put between marks."""
    ref: Dict[str, Any]
    """`prompt:<id>[@<version>]`, or `{templateId, libraryId?, version?, variableOverrides?}`."""
    variables: NotRequired[Dict[str, Any]]
    workspaceId: NotRequired[str]


class Resumed(TypedDict):
    resumedAt: str
    runId: str
    status: RunStatus


class Retention(TypedDict):
    """What is no longer kept of a run."""
    prunedAt: str


class RetentionDue(TypedDict):
    """What the host's rules would prune now."""
    enabled: bool
    """Whether there are any rules. Without them nothing is pruned unless somebody asks."""
    more: bool
    """There are more than these."""
    runs: List[RetentionDueRun]
    """Newest first."""
    windowSeconds: int
    """How long a run is kept after its end, whatever the rules say."""


class RetentionDueRun(TypedDict):
    endedAt: str
    reason: str
    """`age`, `count` or `size`."""
    records: int
    """Their records."""
    runId: str
    runs: int
    """Runs of the tree, with the top."""
    status: str
    workflowId: str


class RunCounts(TypedDict):
    byStatus: Dict[str, int]
    total: int


class RunEvent(TypedDict):
    """One entry of a run's log."""
    causationId: NotRequired[str]
    eventId: str
    nodeId: NotRequired[str]
    payload: Any
    runId: str
    sequence: int
    timestamp: str
    type: str


class RunInterrupt(TypedDict):
    """The interrupt a suspended run waits on."""
    callbackUrl: NotRequired[str]
    data: Any
    expiresAt: NotRequired[str]
    interruptId: str
    interruptToken: NotRequired[str]
    key: str
    kind: str
    nodeId: str
    payload: Any
    """Same as `data`; older clients read this name."""
    requestedAt: str
    resumeSchema: NotRequired[Any]


class RunItem(TypedDict):
    createdAt: str
    currentNodeId: NotRequired[str]
    error: NotRequired[RunItemError]
    events: int
    """How many events the log has; the newest has the sequence before this."""
    forkedFrom: NotRequired[ForkedFrom]
    """Set on a fork."""
    parentRunId: NotRequired[str]
    rootRunId: NotRequired[str]
    """The top of the tree this run descends from."""
    runId: str
    status: RunStatus
    summary: NotRequired[RunSummary]
    """What else there is to say; absent where there is nothing."""
    tags: List[str]
    updatedAt: str
    workflowDigest: str
    workflowId: str
    workflowVersion: NotRequired[int]
    """Which version of the workflow the run is pinned to; absent where that version is not registered
    here.
    """


class RunItemError(TypedDict):
    code: str


class RunList(TypedDict):
    nextCursor: NotRequired[str]
    """Give it back as `cursor` for the next page; absent on the last one."""
    runs: List[RunItem]


class RunMetrics(TypedDict):
    """What a run has used up."""
    openwopCost: NotRequired[ModelCost]
    """What its own models have used."""
    treeCost: NotRequired[TreeCost]
    """The same, and what the runs below it have used that have ended."""


class RunSnapshot(TypedDict):
    """The public view of a run: its log up to `atSeq`, folded."""
    agent: NotRequired[AgentRef]
    """Who works, or worked last: the agent of a node, not the one that decides."""
    atSeq: int
    channels: NotRequired[Dict[str, Any]]
    childRuns: NotRequired[List[ChildRun]]
    completedAt: NotRequired[str]
    configurable: NotRequired[Dict[str, Any]]
    currentNodeId: NotRequired[str]
    error: NotRequired[Fault]
    eventLogSchemaVersion: int
    forkedFrom: NotRequired[ForkedFrom]
    """Set on a fork."""
    inputs: Dict[str, Any]
    interrupt: NotRequired[RunInterrupt]
    metadata: NotRequired[Dict[str, Any]]
    metrics: NotRequired[RunMetrics]
    """Set once a model has been asked."""
    nodeStates: Dict[str, NodeState]
    outputs: NotRequired[Any]
    owner: Owner
    parentNodeId: NotRequired[str]
    parentRunId: NotRequired[str]
    quarantine: NotRequired[Quarantine]
    """Set while the run's tree is in quarantine (host extension): nobody steps it until it is released or
    cancelled.
    """
    retention: NotRequired[Retention]
    """Set once retention has taken what the run's memory and workspace looked like."""
    runId: str
    runOrchestrator: NotRequired[AgentRef]
    """Who decides in this run, once somebody has."""
    startedAt: NotRequired[str]
    status: RunStatus
    tags: NotRequired[List[str]]
    variables: Dict[str, Any]
    workflowDigest: str
    """The registered version of the workflow this run is pinned to."""
    workflowId: str
    workspace: NotRequired[List[FileMeta]]
    """The files the run sees, as they were when it started or, in a loop, when its latest turn did."""


class RunState(Around):
    at: str
    """When that record was written."""
    channels: Dict[str, Any]
    childRuns: List[ChildRun]
    interrupt: NotRequired[RunInterrupt]
    nodeStates: Dict[str, NodeState]
    runId: str
    seq: int
    status: RunStatus
    variables: Dict[str, Any]

RunStatus = Literal["pending", "running", "paused", "waiting-approval", "waiting-input", "waiting-external", "waiting-clarification", "cancelling", "completed", "failed", "cancelled"]
"""Where a run stands, as the wire spells it."""


class RunSummary(TypedDict):
    """What a list of runs says about one of them beyond its row. What is absent does not apply, or was not
    kept yet when the run was written.
    """
    budget: NotRequired[Dict[str, BudgetLine]]
    """What the whole tree had spent when this run last moved, by what is bounded."""
    children: NotRequired[int]
    """Runs that this one started."""
    descendants: NotRequired[int]
    """All runs below a top-level run, where they were counted."""
    diverged: NotRequired[bool]
    """A replay that did not go as its source went."""
    imported: NotRequired[bool]
    """It came with a file. What its log says of whose it is, nobody here vouches for."""
    iteration: NotRequired[Iteration]
    """The newest turn of the run's supervisor."""
    overBudget: NotRequired[bool]
    """Nothing is left of one of them, or too little for what the run wanted last."""
    pauseReason: NotRequired[str]
    """Why somebody paused it, while it is paused."""
    progress: NotRequired[MapProgress]
    """How far the run's map has come, while one is under way."""
    usage: NotRequired[Usage]
    """What the models of this run have used, without the runs below it."""
    usageBelow: NotRequired[Usage]
    """What the models of runs below it have used: those that have ended, each with everything below it."""
    waitingOn: NotRequired[WaitingOn]


class RunSurroundings(Around):
    runId: str
    seq: int


class Runner(TypedDict):
    connected: bool
    """Its stream is open on the host that answers."""
    draining: bool
    inFlight: int
    lastSeenAt: str
    maxConcurrency: int
    pool: NotRequired[str]
    registeredAt: str
    runnerId: str
    subject: str
    tools: List[str]
    """`<pool>.<tool>`; allowlists write `runner:<pool>.<tool>`."""
    version: NotRequired[str]


class RunnerCapabilities(TypedDict):
    models: NotRequired[List[str]]
    providers: NotRequired[List[str]]
    tools: NotRequired[List[str]]


class RunnerList(TypedDict):
    runners: List[Runner]


class RunnerRegistered(TypedDict):
    runnerId: str


class RunnerReports(TypedDict):
    """How a runner is doing. An empty one says that it lives."""
    draining: NotRequired[bool]
    reports: NotRequired[List[StepReport]]


class RunnerTokenEntry(TypedDict):
    createdAt: str
    expiresAt: NotRequired[str]
    name: str
    subject: str
    tokenId: str


class RunnerTokenList(TypedDict):
    tokens: List[RunnerTokenEntry]


class RunnerTokenMade(TypedDict):
    """A token that was just made. `token` is shown this once."""
    expiresAt: NotRequired[str]
    subject: str
    token: str
    tokenId: str


class RunnerToolEntry(TypedDict):
    description: NotRequired[str]
    inputSchema: Any
    name: str
    outputSchema: NotRequired[Any]
    title: NotRequired[str]


class RunnerTools(TypedDict):
    """What a runner brings, in full."""
    maxConcurrency: NotRequired[int]
    """How many steps it does at a time; 4 if absent."""
    pool: str
    tools: List[RunnerToolEntry]
    version: NotRequired[str]


class RunnerWork(TypedDict):
    """What a runner has in hand as far as the host knows."""
    cancel: List[StepName]
    """Nobody wants these any more."""
    drain: bool
    """It gets no more steps."""
    leases: List[StepLease]


class ShownConnection(TypedDict):
    """A link to an MCP server, a model provider or another host."""
    exit: NotRequired[str]
    """How the process of an MCP server ended: `exit code 3`, `signal 9`."""
    failures: int
    """Failures in a row."""
    kind: str
    """`mcp`, `provider` or `remote`."""
    leftOut: NotRequired[str]
    """Which of its tools an MCP server does not get to offer, and why."""
    name: str
    """As the configuration names it."""
    nextAttempt: NotRequired[str]
    """When it is tried again. Providers and other hosts are tried when a run needs them."""
    reason: NotRequired[str]
    since: str
    """Since when it works, or does not."""
    state: str
    """`idle` (nobody has needed it yet), `connecting`, `connected` or `failed`."""
    stderr: NotRequired[List[str]]
    """The last lines that process wrote to its standard error, without secrets."""
    tools: NotRequired[int]
    """How many tools an MCP server offers, or offered before it was lost."""


class ShownLimits(TypedDict):
    """What no run may exceed, whatever it asks for; 0 where there is no ceiling."""
    maxBudgetCostCents: int
    maxBudgetTokens: int
    maxChildrenPerTree: int
    maxFanOut: int
    maxLoopIterations: int
    maxMemoryEntries: int
    maxMemoryEntryBytes: int
    maxNestingDepth: int
    maxNodeExecutions: int
    maxRequestBodyBytes: int
    maxRunBytes: int
    maxRunDurationMs: int
    maxValueBytes: int
    maxWorkspaceFileBytes: int
    maxWorkspaceFiles: int


class StepLease(TypedDict):
    expiresAt: str
    runId: str
    seq: NotRequired[int]
    """The number under which the runner has it."""
    stepId: str


class StepName(TypedDict):
    runId: str
    seq: NotRequired[int]
    """The number under which the runner has it, where that is known."""
    stepId: str


class StepReport(TypedDict):
    message: NotRequired[str]
    progress: NotRequired[float]
    reason: NotRequired[str]
    runId: str
    seq: int
    state: StepReportState
    stepId: str
    total: NotRequired[float]

StepReportState = Literal["started", "progress", "released", "unknown"]


class StepResult(TypedDict):
    """What came of a step."""
    output: Dict[str, Any]
    runId: str
    seq: int
    stepId: str


class StepResultTaken(TypedDict):
    """It is on the run's log."""
    accepted: bool
    duplicate: bool
    """It was there before."""


class StepValue(TypedDict):
    """The value that counts."""
    created: NotRequired[bool]
    """It was not there before; only where one is kept."""
    key: str
    value: Any


class Storage(TypedDict):
    bytes: NotRequired[int]
    classes: List[StorageClass]
    """About how much of it is what."""
    grownBytes: NotRequired[int]
    """Since the start; less than nothing where something was given back."""
    kind: str
    """`unknown` where the store does not say."""

StorageClass = TypedDict(
    "StorageClass",
    {
        "bytes": "int",
        "class": "str",
        "count": "int",
    },
)


class System(TypedDict):
    build: str
    """`release` or `debug`."""
    hostId: str
    instance: str
    """Another one after each start."""
    licence: str
    limits: ShownLimits
    now: str
    openInterrupts: int
    """Open questions of the tenant."""
    operator: NotRequired[Operator]
    ready: bool
    """The host takes writes."""
    runs: RunCounts
    """Runs of the tenant."""
    startedAt: str
    version: str


class Target(TypedDict):
    """The run is the path's."""
    eventId: NotRequired[str]
    nodeId: NotRequired[str]


class Tokens(TypedDict):
    input: int
    output: int


class ToolAuth(TypedDict):
    """Scopes its caller must hold. Credentials that the host keeps for a tool are not named."""
    scopes: List[str]


class ToolDescriptor(TypedDict):
    """A tool in the catalogue. The shape is closed: no other members."""
    approval: Literal["never", "conditional", "always"]
    """Whether a human is asked before a call."""
    auth: NotRequired[ToolAuth]
    description: str
    egress: NotRequired[Literal["none", "safe-fetch", "host-mediated", "host-owned"]]
    """What a tool sends out of this process, and through whom."""
    inputSchema: Any
    latencyHint: NotRequired[Literal["low", "medium", "high"]]
    outputSchema: NotRequired[Any]
    replayPolicy: Literal["deterministic", "idempotent", "non-deterministic"]
    """What a call made again would do."""
    safetyTier: Literal["pure", "read", "write", "exec"]
    """What a tool may do to the world."""
    source: Literal["node-pack", "workflow", "mcp", "connector", "host-extension"]
    """Where a tool comes from."""
    title: NotRequired[str]
    toolId: str
    """The string that an allowlist names it by."""


class TreeCost(TypedDict):
    tokens: Tokens
    usd: NotRequired[float]
    """Where there was a price for a call."""


class Turn(TypedDict):
    agentId: NotRequired[str]
    answer: NotRequired[Dict[str, Any]]
    asked: Dict[str, Any]
    at: str
    runId: str
    status: NotRequired[str]
    """Absent where the run never began, or is gone."""
    turn: int


class Turns(TypedDict):
    conversationId: str
    nextCursor: NotRequired[str]
    turns: List[Turn]
    """Newest first."""


class Usage(TypedDict):
    costUsd: NotRequired[float]
    inputTokens: int
    outputTokens: int


class Validation(TypedDict):
    current: NotRequired[bool]
    """It is what the newest version of this id is already."""
    digest: NotRequired[str]
    problems: List[Problem]
    valid: bool
    """It could be registered as it is."""
    workflowId: NotRequired[str]
    """The rest only where it is valid."""


class Verification(TypedDict):
    decided: int
    """How many of them were decided anew; the others are what the world said."""
    difference: NotRequired[FoundDifference]
    equal: bool
    events: int
    """Events that were gone through."""
    runId: str


class Verify(TypedDict):
    """There is nothing to choose."""


class WaitingOn(TypedDict):
    """The oldest open question, or the child that has one."""
    expiresAt: NotRequired[str]
    kind: str
    """The kind of the question, or `child`."""
    nodeId: str
    open: int
    """How many questions are open in this run."""
    question: NotRequired[str]
    requestedAt: NotRequired[str]
    runId: NotRequired[str]
    """The run below that waits."""


class WebhookEntry(TypedDict):
    consecutiveFailures: int
    createdAt: str
    deadLetters: int
    deadLettersDropped: int
    """How many dead letters were let go because there were too many."""
    events: List[str]
    lastFailure: NotRequired[LastFailure]
    openUntil: NotRequired[str]
    secretFingerprint: str
    """The first digits of the secret's digest."""
    state: str
    """`active`; `failing`: left alone until `openUntil`, and what there is for it waits; `failed`: not
    called until it is resumed, and what there is for it becomes dead letters.
    """
    tags: List[str]
    url: str
    """Without its query, which may hold a token of the subscriber's own."""
    waiting: int
    """How many events wait to be sent."""
    webhookId: str


class WebhookList(TypedDict):
    nextCursor: NotRequired[str]
    """Give it back as `cursor` for the next page; absent on the last one."""
    webhooks: List[WebhookEntry]


class WebhookRegistered(TypedDict):
    secret: str
    """Shown once; signs every delivery."""
    secretFingerprint: str
    webhookId: str


class WorkflowDefinition(TypedDict):
    acceptsInheritedArtifacts: NotRequired[Any]
    channels: NotRequired[Dict[str, Any]]
    configurableSchema: NotRequired[Any]
    createdAt: NotRequired[Any]
    defaults: NotRequired[Any]
    description: NotRequired[str]
    edges: List[Dict[str, Any]]
    groups: NotRequired[Any]
    id: str
    isActive: NotRequired[bool]
    metadata: Dict[str, Any]
    name: str
    nodes: List[Dict[str, Any]]
    scopeId: NotRequired[str]
    settings: Dict[str, Any]
    slug: NotRequired[str]
    status: NotRequired[str]
    tenantId: NotRequired[str]
    triggers: List[Dict[str, Any]]
    type: NotRequired[str]
    updatedAt: NotRequired[Any]
    variables: List[Dict[str, Any]]
    version: str


class WorkflowList(TypedDict):
    workflows: List[WorkflowVersion]


class WorkflowVersion(TypedDict):
    digest: str
    """SHA-256 of the canonical definition."""
    name: str
    registeredAt: str
    version: int
    """1, 2, 3, …: grows whenever the content changes."""
    workflowId: str


class WorkflowVersions(TypedDict):
    versions: List[WorkflowVersion]
    """Newest first."""
    workflowId: str


class WorkspaceFile(FileMeta):
    """One file of a workspace at one version."""
    content: str
