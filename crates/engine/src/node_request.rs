//! What a node must ask the shell before it can start.
//!
//! Memory and workspace live outside the run, so a node that reads or writes them is asked for its [`Request`] first;
//! the shell answers with one [`Answer`], and only then is anything recorded: the start, what was written and the end
//! of the visit, in one step. A crash in between leaves nothing behind, and the same question is asked again.

use std::collections::BTreeMap;

use baton_model::tool::FoundTool;
use baton_model::{
    ConversationTurn, Digest, FileMeta, InvocationContext, InvocationSource, MemoryEntry, ModelChoice, NodeId, Origins,
    Owner, Scope, TurnSnapshot, Versions, WorkflowId, WorkspaceFile,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question and the visit it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRequest {
    pub node: NodeId,
    pub visit: u32,
    pub attempt: u32,
    /// Set when it is a tool call of the node's agent that asks.
    pub call: Option<String>,
    pub request: Request,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// What a supervisor's turn sees. `frozen` is set when the turn is taken again and must see the same.
    Turn {
        frozen: Option<TurnSnapshot>,
        /// Whether the contents are needed, or the versions will do.
        memory: bool,
        workspace: bool,
        /// The agent that takes the turn, where one does.
        agent: Option<Box<InvokeRequest>>,
    },
    /// What an agent works from.
    Invoke(Box<InvokeRequest>),
    /// The tool that a node calls by itself.
    Tool(ToolLookup),
    Remember(NewEntry),
    Forget {
        id: String,
        read_version: ReadVersion,
    },
    Recall {
        id: String,
        read_version: ReadVersion,
    },
    /// The entries in sight, newest first.
    Recollect {
        tag: Option<String>,
        limit: Option<usize>,
        read_version: ReadVersion,
    },
    WriteFile {
        path: String,
        content: String,
        content_type: Option<String>,
    },
    ReadFile {
        path: String,
        version: u64,
    },
    ListFiles {
        prefix: Option<String>,
        version: u64,
    },
    /// A memory check of the conformance suite; test workflows only.
    Probe(Probe),
}

impl Request {
    /// What whoever started the tree must hold for this to be done. An agent's own memory is not asked for here: it is
    /// left out of what the agent is told.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> {
        let (first, second) = match self {
            Self::Turn { memory, workspace, agent: None, .. } => {
                (memory.then_some(Scope::MemoryRead), workspace.then_some(Scope::WorkspaceRead))
            }
            // Whether it may be called is judged when it is.
            Self::Turn { .. } | Self::Invoke(_) | Self::Tool(_) => (None, None),
            Self::Remember(_) | Self::Forget { .. } => (Some(Scope::MemoryWrite), None),
            Self::Recall { .. } | Self::Recollect { .. } => (Some(Scope::MemoryRead), None),
            Self::WriteFile { .. } => (Some(Scope::WorkspaceWrite), None),
            Self::ReadFile { .. } | Self::ListFiles { .. } => (Some(Scope::WorkspaceRead), None),
            Self::Probe(_) => (Some(Scope::MemoryRead), Some(Scope::MemoryWrite)),
        };
        first.into_iter().chain(second)
    }
}

/// Which tool is wanted, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLookup {
    pub tool: String,
    /// The tools that the run may have at most, as its creator says.
    pub grant: Option<Vec<String>>,
    /// Whose the run is.
    pub owner: Option<Owner>,
}

/// Which agent is to work, on what, and with how much.
#[derive(Clone, Debug, PartialEq)]
pub struct InvokeRequest {
    pub agent_id: String,
    pub node: NodeId,
    /// The version the run is pinned to.
    pub card: Option<Digest>,
    pub model: Option<ModelChoice>,
    pub task: Value,
    /// Whose words the task and the variables are, where its models are told.
    pub origins: Option<Box<Origins>>,
    /// The conversation that the run is a turn of, and through which door it came.
    pub conversation: Option<ConversationTurn>,
    pub source: Option<InvocationSource>,
    /// Lists of tools; it gets none that is missing from one of them.
    pub grants: Vec<Vec<String>>,
    /// Names that stand for tools count, and what is missing is told. Runs that began earlier do without both.
    pub tell_missing: bool,
    /// Where prompts may come from besides the agent: the node, the run, the workflow.
    pub node_prompts: Map<String, Value>,
    pub run_prompts: Option<Value>,
    pub workflow_prompts: Option<Value>,
    /// What the gaps of a prompt may be filled with.
    pub variables: Map<String, Value>,
    /// The workflow it works in: its id and its name.
    pub workflow: (WorkflowId, String),
    /// Whose the run is.
    pub owner: Option<Owner>,
    pub read_version: ReadVersion,
    /// The scopes of whoever started the tree; `None` means all.
    pub scopes: Option<Vec<String>>,
}

impl InvokeRequest {
    /// Whether whoever started the tree may do this. Nobody gets to read through an agent what they may not read.
    pub fn may(&self, scope: Scope) -> bool {
        covers(self.scopes.as_deref(), scope)
    }
}

/// Whether these scopes have this one; `None` are all.
pub fn covers(held: Option<&[String]>, scope: Scope) -> bool {
    held.is_none_or(|held| held.iter().any(|held| held == scope.as_str()))
}

/// An entry to be written. Its id names the visit that writes it, so a second attempt is the same entry.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEntry {
    pub id: String,
    pub content: String,
    pub tags: Vec<String>,
    pub ttl_ms: Option<u64>,
}

/// How much of its memory scope a run sees: everything up to one version, and its own writes after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadVersion {
    pub version: u64,
    /// The version of this run's latest own write.
    pub own: u64,
}

impl ReadVersion {
    /// The highest version that can be in sight.
    pub fn reach(self) -> u64 {
        self.version.max(self.own)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Probe {
    WriteThenRead,
    /// Reads a scope by a handle that is not this run's.
    CrossTenant {
        memory_ref: String,
    },
    /// Writes an entry that holds a secret.
    Redaction {
        secret: String,
    },
    /// Writes one entry that has expired and one that has not.
    Ttl,
}

/// What the shell did and found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What has been written for this visit, in order. It becomes durable with the records of this step.
    pub written: Vec<Written>,
    pub found: Result<Found, baton_model::Fault>,
}

impl Answer {
    pub fn found(found: Found) -> Self {
        Self { written: Vec::new(), found: Ok(found) }
    }

    pub fn failed(fault: baton_model::Fault) -> Self {
        Self { written: Vec::new(), found: Err(fault) }
    }
}

/// One change of a versioned store, as the log shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    Entry { memory_ref: String, id: String, tags: Vec<String>, version: u64 },
    Forgotten { memory_ref: String, id: String, version: u64 },
    File { path: String, file_version: u64, version: u64 },
}

#[derive(Clone, Debug)]
pub enum Found {
    Turn(TurnContext),
    Entry(Option<MemoryEntry>),
    Entries(Vec<MemoryEntry>),
    Forgotten(bool),
    File(Option<WorkspaceFile>),
    Written(FileMeta),
    Files(Vec<FileMeta>),
    InvocationContext(Box<InvocationContext>),
    Tool(Box<FoundTool>),
    /// What a probe leaves in the run's variables.
    Variables(Map<String, Value>),
}

/// A turn's frozen inputs.
#[derive(Clone, Debug, Default)]
pub struct TurnContext {
    pub versions: Versions,
    /// Newest first; empty unless it was asked for.
    pub memory: Vec<MemoryEntry>,
    pub workspace: BTreeMap<String, WorkspaceFile>,
    /// What the agent that takes the turn works from.
    pub brief: Option<Box<InvocationContext>>,
}
