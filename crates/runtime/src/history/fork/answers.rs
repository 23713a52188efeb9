//! What people have answered before the point where a branch begins. A branch for real acts on those answers once more,
//! perhaps with other data than they were given for, so making one is answering anew.
//!
//! Counted is what the branch rests on: its own log up to the point, the runs that its log started, and above it
//! whatever came before its source was started. A question that is still to be asked does not count.

use std::collections::{BTreeSet, VecDeque};

use baton_model::event::{ChainEvent, NodeDispatched, RestsOn};
use baton_model::{Event, RunId};
use baton_store::{RunRow, StoredRecord};

use crate::Error;
use crate::history::fork::service::Forks;
use crate::run::summary::is_imported;
use crate::steps::WorkKind;

/// Records that are read at a time.
const PAGE: usize = 500;
/// How many runs are looked through before the answer is that nobody knows. A tree has at most some thousand runs, and a
/// request must not read for minutes.
const MOST_RUNS: usize = 1_000;
/// The same for records: about a second of reading.
const MOST_RECORDS: usize = 200_000;

/// A segment of a log that a branch rests on.
struct StoredReply {
    row: RunRow,
    /// Up to this sequence,
    until: u64,
    /// and no further than where this run was started.
    child: Option<RunId>,
    /// Data were changed here. A question that was asked before and is open stays open in the branch, and shows what it
    /// showed.
    changed_at: Option<u64>,
}

/// Everything that is still to be looked through.
struct Search {
    open: VecDeque<StoredReply>,
    seen: BTreeSet<RunId>,
    records: usize,
}

impl Forks {
    /// Why a branch of `source` that keeps its log up to `until` rests on somebody's answer, if it does. `changed_at` says
    /// where it, or a branch that it comes from, began to go on with other data: a question which was asked before that
    /// and is still open no longer shows what is answered.
    pub(super) async fn rests_on(
        &self,
        source: &RunRow,
        until: u64,
        changed_at: Option<u64>,
    ) -> Result<Option<RestsOn>, Error> {
        let mut search = Search { open: VecDeque::new(), seen: BTreeSet::new(), records: 0 };
        if let Some(reason) = self.above(source, &mut search).await? {
            return Ok(Some(reason));
        }
        search.add(StoredReply { row: source.clone(), until, child: None, changed_at });
        while let Some(kept) = search.open.pop_front() {
            if search.seen.len() > MOST_RUNS {
                return Ok(Some(RestsOn::Unknown));
            }
            if let Some(reason) = self.look_through(kept, &mut search).await? {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    /// The runs that a run comes from: sources of forks, and parents up to where they started it.
    async fn above(&self, run: &RunRow, search: &mut Search) -> Result<Option<RestsOn>, Error> {
        let mut next = VecDeque::from([run.clone()]);
        let mut seen = BTreeSet::new();
        while let Some(row) = next.pop_front() {
            if !seen.insert(row.id.clone()) {
                continue;
            }
            if seen.len() > MOST_RUNS {
                return Ok(Some(RestsOn::Unknown));
            }
            if is_imported(&row) {
                // A file says of itself what was answered, and anybody can write a file.
                return Ok(Some(RestsOn::Imported { run_id: row.id }));
            }
            if row.origin.is_none() && self.was_handed_over(&row).await? {
                // What was answered before that, only the other host knows.
                return Ok(Some(RestsOn::OtherHost { run_id: row.id }));
            }
            if let Some(parent) = &row.parent {
                let Some(parent) = self.store.run(parent).await? else { return Ok(Some(RestsOn::Unknown)) };
                search.add(StoredReply {
                    row: parent.clone(),
                    until: parent.next_seq,
                    child: Some(row.id.clone()),
                    changed_at: None,
                });
                next.push_back(parent);
            }
            if let Some(origin) = &row.origin {
                let Some(source) = self.store.run(&origin.source).await? else { return Ok(Some(RestsOn::Unknown)) };
                next.push_back(source);
            }
        }
        Ok(None)
    }

    async fn was_handed_over(&self, row: &RunRow) -> Result<bool, Error> {
        let first = self.store.records(&row.id, 0, 1).await?.pop();
        Ok(match first {
            Some(first) => first.decode(&row.id)?.event.foreign_cause().is_some(),
            None => false,
        })
    }

    async fn look_through(&self, kept: StoredReply, search: &mut Search) -> Result<Option<RestsOn>, Error> {
        let StoredReply { row, until, child, changed_at } = kept;
        if row.pruned.is_some_and(|pruned| pruned.log) {
            return Ok(Some(RestsOn::Unknown));
        }
        let (mut next, mut question) = (0, None);
        while next < until {
            let wanted = PAGE.min(usize::try_from(until - next).unwrap_or(PAGE));
            let page = self.log.log(&row, next, wanted).await?;
            search.records += page.len();
            if search.records > MOST_RECORDS {
                return Ok(Some(RestsOn::Unknown));
            }
            // What is in a log is its tenant's to pay for: a page is looked at in its turn.
            let weigh_all = || page.iter().map(|stored| weigh(&row, stored, changed_at)).collect::<Result<Vec<_>, _>>();
            for weight in self.pool.compute_here(WorkKind::Answers, &row.tenant, weigh_all).await?? {
                match weight {
                    Weight::Nothing => {}
                    // It may be answered further on, which says more.
                    Weight::Reason(open @ RestsOn::OpenQuestion { .. }) => {
                        question.get_or_insert(open);
                    }
                    Weight::Reason(reason) => return Ok(Some(reason)),
                    Weight::Started(run) if child.as_ref() == Some(&run) => return Ok(None),
                    Weight::Started(run) => {
                        // One that was never made has answered nothing.
                        if let Some(row) = self.store.run(&run).await?.filter(|found| found.tenant == row.tenant) {
                            search.add(StoredReply { until: row.next_seq, row, child: None, changed_at: None });
                        }
                    }
                }
            }
            next += page.len() as u64;
            if page.len() < wanted {
                break;
            }
        }
        Ok(question)
    }
}

impl Search {
    /// The source itself may be there twice: as what is forked, and as what another fork comes from.
    fn add(&mut self, kept: StoredReply) {
        if self.seen.insert(kept.row.id.clone()) {
            self.open.push_back(kept);
        }
    }
}

/// What one record means for a branch that keeps it.
enum Weight {
    Nothing,
    Reason(RestsOn),
    /// It started this run.
    Started(RunId),
}

fn weigh(row: &RunRow, stored: &StoredRecord, changed_at: Option<u64>) -> Result<Weight, Error> {
    let counts = match stored.kind.as_ref() {
        "interrupt.resolved" | "approval.received" => true,
        "node.dispatched" | "core.workflowChain.event" | "baton.fork.approved" => true,
        "interrupt.requested" => changed_at.is_some_and(|at| stored.seq < at),
        _ => false,
    };
    if !counts {
        return Ok(Weight::Nothing);
    }
    let run_id = row.id.clone();
    Ok(match stored.decode(&row.id)?.event {
        Event::InterruptResolved(event) => {
            Weight::Reason(RestsOn::Answer { run_id, node_id: event.node_id, interrupt_id: Some(event.interrupt_id) })
        }
        // A vote counts before the question is settled.
        Event::ApprovalReceived(event) => {
            Weight::Reason(RestsOn::Answer { run_id, node_id: event.node_id, interrupt_id: None })
        }
        Event::InterruptRequested(event) => Weight::Reason(RestsOn::OpenQuestion {
            run_id,
            node_id: event.private.node_id,
            interrupt_id: event.private.interrupt_id,
        }),
        Event::NodeDispatched(NodeDispatched { child_run_id, private, .. }) => match private.remote {
            Some(_) => Weight::Reason(RestsOn::OtherHost { run_id: child_run_id }),
            None => Weight::Started(child_run_id),
        },
        Event::ChainEvent(ChainEvent { worker_id, child_run_id: Some(child), .. }) if worker_id.is_remote() => {
            Weight::Reason(RestsOn::OtherHost { run_id: child })
        }
        Event::ChainEvent(ChainEvent { private, child_run_id, .. }) => {
            let started = child_run_id.or_else(|| private.child.map(|plan| plan.run));
            started.map_or(Weight::Nothing, Weight::Started)
        }
        Event::ForkApproved(event) => Weight::Reason(event.rests_on),
        _ => Weight::Nothing,
    })
}
