//! What a supervisor's rules look at: its workers, the turns before, memory and files, each where it lies.

use baton_model::event::TranscriptEntry;
use baton_model::{Fault, MemoryEntry, WorkspaceFile};

use crate::expr::{Fields, Sequence, Val};
use crate::node_request::TurnContext;
use crate::state::{Child, RunState};
use crate::transcript::Transcript;

/// The children that were dispatched so far. They are looked at where they are: a rule that looks at one of them does not
/// take longer for each that there ever was.
pub(super) struct Children<'a> {
    pub(super) state: &'a RunState,
    pub(super) errors: bool,
}

impl<'a> Sequence<'a> for Children<'a> {
    fn len(&self) -> usize {
        self.state.dispatched.len()
    }

    fn get(&self, index: usize) -> Option<Val<'a>> {
        let child = self.state.children.get(*self.state.dispatched.get(index)?)?;
        let error = child.error.as_deref().filter(|_| self.errors);
        Some(Val::view(Worker { child, error }))
    }
}

struct Worker<'a> {
    child: &'a Child,
    error: Option<&'a Fault>,
}

impl<'a> Fields<'a> for Worker<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        Some(match name {
            "workflowId" => Val::from(self.child.plan.workflow.as_str()),
            "runId" => Val::from(self.child.plan.run.as_str()),
            "status" => Val::from(self.child.status.as_str()),
            "iteration" => whole(self.child.iteration),
            "error" => Val::view(Failed(self.error?)),
            _ => return None,
        })
    }

    fn names(&self) -> Vec<&'a str> {
        let error = self.error.map(|_| "error");
        error.into_iter().chain(["iteration", "runId", "status", "workflowId"]).collect()
    }

    fn len(&self) -> usize {
        4 + usize::from(self.error.is_some())
    }

    fn most(&self) -> usize {
        5
    }
}

/// What a worker failed of.
struct Failed<'a>(&'a Fault);

impl<'a> Fields<'a> for Failed<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        match name {
            "code" => Some(Val::from(self.0.code.as_str())),
            "message" => Some(Val::from(self.0.message.as_str())),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&'a str> {
        vec!["code", "message"]
    }

    fn len(&self) -> usize {
        2
    }

    fn most(&self) -> usize {
        2
    }
}

/// What happened in the turns before, oldest first.
pub(super) struct TranscriptView<'a>(pub(super) &'a Transcript);

impl<'a> Sequence<'a> for TranscriptView<'a> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Val<'a>> {
        self.0.get(index).map(|entry| Val::view(EntryView(entry)))
    }
}

struct EntryView<'a>(&'a TranscriptEntry);

impl<'a> Fields<'a> for EntryView<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        Some(match name {
            "iteration" => whole(self.0.iteration),
            "nodeId" => Val::from(self.0.node_id.as_str()),
            "sequence" => whole(self.0.seq),
            "text" => Val::from(self.0.text.as_str()),
            "type" => Val::from(self.0.kind.as_str()),
            _ => return None,
        })
    }

    fn names(&self) -> Vec<&'a str> {
        vec!["iteration", "nodeId", "sequence", "text", "type"]
    }

    fn len(&self) -> usize {
        5
    }

    fn most(&self) -> usize {
        5
    }
}

fn whole<'a>(number: u64) -> Val<'a> {
    Val::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The entries of a turn's frozen memory, newest first.
pub(super) struct Memory<'a>(pub(super) &'a [MemoryEntry]);

impl<'a> Sequence<'a> for Memory<'a> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Val<'a>> {
        self.0.get(index).map(|entry| Val::view(Remembered(entry)))
    }
}

struct Remembered<'a>(&'a MemoryEntry);

impl<'a> Fields<'a> for Remembered<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        Some(match name {
            "id" => Val::from(self.0.id.as_str()),
            "content" => Val::from(self.0.content.as_str()),
            "tags" => Val::sequence(Words(&self.0.tags)),
            "createdAt" => Val::made(self.0.created_at.to_string()),
            "expiresAt" => Val::made(self.0.expires_at?.to_string()),
            _ => return None,
        })
    }

    fn names(&self) -> Vec<&'a str> {
        let expires = self.0.expires_at.map(|_| "expiresAt");
        ["content", "createdAt"].into_iter().chain(expires).chain(["id", "tags"]).collect()
    }

    fn len(&self) -> usize {
        4 + usize::from(self.0.expires_at.is_some())
    }

    fn most(&self) -> usize {
        5
    }
}

struct Words<'a>(&'a [String]);

impl<'a> Sequence<'a> for Words<'a> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<Val<'a>> {
        self.0.get(index).map(|word| Val::from(word.as_str()))
    }
}

/// The files of a turn's frozen workspace, by path.
pub(super) struct Workspace<'a>(pub(super) &'a TurnContext);

impl<'a> Fields<'a> for Workspace<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        self.0.workspace.get(name).map(|file| Val::view(File(file)))
    }

    fn names(&self) -> Vec<&'a str> {
        self.0.workspace.keys().map(String::as_str).collect()
    }

    fn len(&self) -> usize {
        self.0.workspace.len()
    }

    fn most(&self) -> usize {
        self.0.workspace.len()
    }
}

struct File<'a>(&'a WorkspaceFile);

impl<'a> Fields<'a> for File<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>> {
        match name {
            "content" => Some(Val::from(self.0.content.as_str())),
            "version" => Some(Val::Int(i64::try_from(self.0.meta.version).unwrap_or(i64::MAX))),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&'a str> {
        vec!["content", "version"]
    }

    fn len(&self) -> usize {
        2
    }

    fn most(&self) -> usize {
        2
    }
}
