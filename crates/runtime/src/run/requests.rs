//! Answering a node that asks before it starts, under its run's lock: what it writes, the records that tell of it and
//! everything that follows are queued as one.

use std::sync::Arc;

use baton_engine::{Answer, Command, Found, NodeRequest, Request, Returned, TurnContext, Written, covers, decide};
use baton_model::{Fault, RunId, Scope, Timestamp, ToolOutcome, memory_ref};
use baton_store::{Change, ReadView};
use parking_lot::MutexGuard;

use crate::Error;
use crate::journal::generation::Generation;
use crate::run::batch::Batch;
use crate::run::live::LiveRun;
use crate::run::on_behalf;
use crate::run::stepper::RunStepper;
use crate::services::versioned::FileWrite;
use crate::services::versioned::prepared::{Prepared, Ready, entries, entry_written, read_view_of};
use crate::services::versioned::run_stores::RunStores;
use crate::services::versioned::store::{VersionedStore, VersionedStoreHead};

impl RunStepper {
    /// Answers the node that waits, if that needs nothing from the store or what it needs has been read.
    pub(crate) fn node_request(
        &self,
        live: &Generation,
        head: &mut LiveRun,
        batch: &mut Batch,
        at: Timestamp,
    ) -> Result<Ready, Error> {
        let Some(node_request) = head.node_request() else {
            // A run that was paused meanwhile may ask again in a month, and must not be told what is true today.
            head.prepared = None;
            return Ok(Ready::Quiet);
        };
        let prepared =
            head.prepared.take().filter(|(asked, _)| same(asked, &node_request)).map(|(_, prepared)| prepared);
        let at = head.state.not_before(at);
        let mut step = Step { room: self, live, head, batch, at };
        if let Err(refused) = step.admitted(&node_request) {
            return step.refuse(&node_request, refused);
        }
        if let Some(scope) = step.missing(&node_request) {
            return step.say(&node_request, Answer::failed(without(scope)));
        }
        step.answer(&node_request, prepared)
    }
}

/// Whether two are the same question; mostly it is one and the same.
pub(crate) fn same(one: &Arc<NodeRequest>, other: &Arc<NodeRequest>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// One answer in the making.
pub(crate) struct Step<'a> {
    pub(crate) room: &'a RunStepper,
    live: &'a Generation,
    pub(crate) head: &'a mut LiveRun,
    batch: &'a mut Batch,
    pub(crate) at: Timestamp,
}

impl Step<'_> {
    /// Whether the question may be asked at all: one of an agent's tool is asked on behalf of whoever started the run.
    /// A call is judged once, however often it has to be looked at.
    #[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
    fn admitted(&mut self, node_request: &NodeRequest) -> Result<(), ToolOutcome> {
        let Some(tool) = self.head.state.tool_of(node_request).filter(|_| self.head.admitted != node_request.call)
        else {
            return Ok(());
        };
        let (principal, scopes) = on_behalf(self.head);
        self.room.tools.admit(tool, &principal, scopes.as_deref())?;
        self.head.admitted = node_request.call.clone();
        Ok(())
    }

    /// The scope that whoever started the run would need for what a node asks, and does not hold.
    fn missing(&self, node_request: &NodeRequest) -> Option<Scope> {
        // A tool's call has been judged by its own scopes.
        if node_request.call.is_some() {
            return None;
        }
        let (_, held) = on_behalf(self.head);
        node_request.request.scopes().find(|scope| !covers(held.as_deref(), *scope))
    }

    /// The call is not made, and this is what came of it.
    fn refuse(&mut self, node_request: &NodeRequest, outcome: ToolOutcome) -> Result<Ready, Error> {
        let call_id = node_request.call.clone().unwrap_or_default();
        let returned = Returned::Outcome { outcome, written: Vec::new() };
        self.fold(&Command::ToolReturned { node: node_request.node.clone(), call_id, returned })
    }

    fn answer(&mut self, node_request: &NodeRequest, prepared: Option<Prepared>) -> Result<Ready, Error> {
        let RunStores { memory, workspace } = self.head.ledgers.clone();
        match (&node_request.request, prepared) {
            (_, Some(Prepared::Found(found))) => self.say(node_request, Answer::found(found)),
            (_, Some(Prepared::Failed(fault))) => self.say(node_request, Answer::failed(fault)),
            (Request::Turn { frozen, memory: false, workspace: false, agent: None }, _) => {
                let versions = frozen.map_or_else(|| self.head.ledgers.versions(), |frozen| frozen.versions);
                self.say(node_request, Answer::found(Found::Turn(TurnContext { versions, ..TurnContext::default() })))
            }
            (Request::Remember(entry), prepared) => {
                let ledger = memory.lock();
                // Full only if it still is after the expired ones have been left out of the count.
                if !memory.is_ours()
                    || ledger.index.is_none()
                    || (prepared.is_none() && self.room.versioned.looks_full(&ledger))
                {
                    return Ok(Ready::NotYet);
                }
                match self.room.versioned.remember(&ledger, entry.clone(), Some(&self.run()), self.at) {
                    Ok(change) => {
                        let answer = Answer {
                            written: vec![entry_written(&memory, &change)],
                            found: Ok(Found::Entry(change.entry())),
                        };
                        self.write(node_request, answer, &memory, ledger, vec![change])
                    }
                    Err(error) => self.say(node_request, Answer::failed(error.fault())),
                }
            }
            (Request::Forget { .. }, Some(Prepared::Exists { there: false, .. })) => {
                self.say(node_request, Answer::found(Found::Forgotten(false)))
            }
            (Request::Forget { id, .. }, Some(Prepared::Exists { version, .. })) => {
                let ledger = memory.lock();
                if !memory.is_ours() || !ledger.untouched_since(version, id) {
                    // Somebody else may have been faster; only one of them forgets it.
                    return Ok(Ready::NotYet);
                }
                let change = ledger.forget(id, Some(&self.run()), self.at);
                let (memory_ref, id) = (memory_ref(&memory.id.scope), id.clone());
                let written = vec![Written::Forgotten { memory_ref, id, version: change.version }];
                let answer = Answer { written, found: Ok(Found::Forgotten(true)) };
                self.write(node_request, answer, &memory, ledger, vec![change])
            }
            (Request::WriteFile { path, content, content_type }, _) => {
                let ledger = workspace.lock();
                if !workspace.is_ours() || ledger.index.is_none() {
                    return Ok(Ready::NotYet);
                }
                let file = FileWrite {
                    path: path.clone(),
                    content: content.clone(),
                    content_type: content_type.clone(),
                    if_match: None,
                };
                match self.room.versioned.write_file(&ledger, file, Some(&self.run()), self.at) {
                    Ok(change) => self.file_written(node_request, &workspace, ledger, change),
                    Err(error) => self.say(node_request, Answer::failed(error.fault())),
                }
            }
            (Request::Recollect { tag, limit, read_version }, _) => {
                let lens = read_view_of(&self.run(), *read_version, tag.clone(), *limit, self.at);
                match without_store(&memory, &lens) {
                    Some(shown) => self.say(node_request, Answer::found(Found::Entries(entries(&shown)))),
                    None => Ok(Ready::NotYet),
                }
            }
            (Request::Probe(probe), prepared) => self.probe(node_request, probe, prepared, &memory),
            _ => Ok(Ready::NotYet),
        }
    }

    pub(crate) fn run(&self) -> RunId {
        self.head.row.id.clone()
    }

    fn file_written(
        &mut self,
        node_request: &NodeRequest,
        workspace: &VersionedStore,
        ledger: MutexGuard<'_, VersionedStoreHead>,
        change: Change,
    ) -> Result<Ready, Error> {
        let Some(meta) = change.file_meta() else { return Ok(Ready::NotYet) };
        let file = Written::File { path: meta.path.clone(), file_version: meta.version, version: change.version };
        let answer = Answer { written: vec![file], found: Ok(Found::Written(meta)) };
        self.write(node_request, answer, workspace, ledger, vec![change])
    }

    /// Folds an answer in.
    pub(crate) fn say(&mut self, node_request: &NodeRequest, answer: Answer) -> Result<Ready, Error> {
        self.fold(&Command::RequestAnswered { node_request: Box::new(node_request.clone()), answer })
    }

    fn fold(&mut self, command: &Command) -> Result<Ready, Error> {
        let drafts = decide(&self.head.state, command, self.at).map_err(crate::run::refused)?;
        if drafts.is_empty() {
            return Ok(Ready::NotYet);
        }
        self.room.fold_drafts(self.head, drafts, self.at, self.batch, true)?;
        Ok(Ready::Answered)
    }

    /// Folds an answer in and queues what was written with it, while the versioned store is still locked: the queue has its
    /// changes in the order of their versions.
    pub(crate) fn write(
        &mut self,
        node_request: &NodeRequest,
        answer: Answer,
        ledger: &VersionedStore,
        mut locked: MutexGuard<'_, VersionedStoreHead>,
        changes: Vec<Change>,
    ) -> Result<Ready, Error> {
        let said = self.say(node_request, answer)?;
        if matches!(said, Ready::Answered) {
            self.room.push(self.live, self.head, self.batch, &ledger.id, &changes, self.at);
            changes.into_iter().for_each(|change| ledger.queued(&mut locked, change));
        }
        Ok(said)
    }
}

fn without_store(ledger: &VersionedStore, lens: &ReadView) -> Option<Vec<Change>> {
    let head = ledger.lock();
    head.view_without_store(ledger.committed(), lens)
}

fn without(scope: Scope) -> Fault {
    let message = format!("This needs the scope {scope}, which whoever started the run does not hold.");
    Fault::new(baton_model::code::FORBIDDEN, message)
}
