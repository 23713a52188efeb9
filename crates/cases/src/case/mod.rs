//! A case as it is written.

mod answer;
mod bound;
mod expect;
mod read;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;

use baton_model::{Position, Timestamp};
use baton_provider::{Price, ScriptRule};
use serde_json::{Map, Value};

pub use answer::AnswerDef;
pub(crate) use answer::Asked;
pub use bound::Bound;
pub(crate) use expect::named;
pub use expect::{ChildDef, EventDef, Expect, ToolCallDef, UsageDef};
pub(crate) use read::read_case;
pub use tools::{StubAnswer, StubCall, ToolDef};

/// One case, read and checked as far as that goes without running it.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub file: PathBuf,
    /// The folder of the file: paths in the case begin there.
    pub folder: PathBuf,
    pub position: Position,
    pub subject: Subject,
    pub inputs: Map<String, Value>,
    pub configurable: Map<String, Value>,
    pub model: Vec<ModelRule>,
    /// Answers of real models, recorded once.
    pub recording: Option<PathBuf>,
    pub tools: BTreeMap<String, ToolDef>,
    pub answers: Vec<AnswerDef>,
    pub prices: BTreeMap<String, Price>,
    pub starts_at: Option<Timestamp>,
    /// Real time; how long it may compute.
    pub timeout_seconds: Option<u64>,
    pub expect: Expect,
}

/// What a case starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// By its id.
    Workflow(String),
    WorkflowFile(PathBuf),
    Agent(String),
}

/// What the model says, and how often.
#[derive(Clone, Debug)]
pub struct ModelRule {
    pub rule: ScriptRule,
    /// None: whenever it is about a request, and not at all is fine too.
    pub times: Option<u32>,
    pub position: Position,
}
