//! A run's whole log. What came before a fork is its source's, so a log is a chain of segments, each read from the
//! run that wrote it and shown under the name of the run that is asked for.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use baton_engine::{Features, RunState, evolve};
use baton_model::{Digest, Event, ForkMode, Overlay, Owner, Record, RunId, RunSnapshot, RunStatus, Timestamp, code};
use baton_store::{RunRow, Store, StoredRecord};

use crate::history::checkpoints::queue::CheckpointQueue;
use crate::history::checkpoints::used::UsedCheckpoint;
use crate::history::segments::{BranchPoint, BranchPoints, LogSegment, WantedLog};
use crate::journal::storage::Storage;
use crate::quarantine::suspect_guard::SuspectGuard;
use crate::quarantine::trees::{QuarantinedTrees, may_be_loaded};
use crate::run::tree::{is_replay, root_of};
use crate::services::workflows::{PlanLoader, Plans, Whose};
use crate::steps::{StepPool, Stepping, WorkKind};
use crate::{Error, ErrorKind};

const PAGE: usize = 2000;
/// What a page of records that is folded may weigh: a log of large events must not be in memory at once.
pub(crate) const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How many records are folded under one note where a long log is folded for a run that has none of its own yet.
const NOTED: usize = 16;
/// Steps are short.
const REST_PAGE: usize = 100;

/// Where folding may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FoldFrom {
    /// At the first record: for whoever proves something of the log.
    Beginning,
    /// Wherever the same state comes out, sooner.
    Checkpoint,
}

/// A run as its durable log tells it.
pub(crate) struct Loaded {
    pub(crate) state: RunState,
    pub(crate) row: RunRow,
    /// Where its newest checkpoint is, or will be soon.
    pub(crate) checkpointed: u64,
}

/// A log, folded.
struct Folded {
    state: RunState,
    row: RunRow,
    /// The last sequence at which a step began while no child was under way, if that was seen.
    alone: Option<u64>,
    /// Where its newest checkpoint is, or will be soon.
    checkpointed: u64,
    /// Not all of the log was gone through.
    in_part: bool,
}

/// Reads the logs of runs, forks included, and folds them.
pub(crate) struct RunLog {
    pub(crate) checkpoint_queue: Arc<CheckpointQueue>,
    pub(crate) quarantined: Arc<QuarantinedTrees>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) plan_loader: Arc<PlanLoader>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) suspect_guard: Arc<SuspectGuard>,
}

impl RunLog {
    /// The same over another store, whose runs are not this host's and may have the names of runs that are.
    pub(crate) fn over(&self, store: Arc<dyn Store>, at: Timestamp) -> Self {
        let storage = Arc::new(Storage::new(Arc::clone(&store), at));
        let pool = Arc::new(self.pool.without_notes());
        let quarantined = Arc::new(QuarantinedTrees::default());
        let plans = Arc::new(Plans::new(Features::default(), None));
        Self {
            checkpoint_queue: Arc::new(CheckpointQueue::off()),
            plan_loader: Arc::new(PlanLoader { plans, store: Arc::clone(&store), pool: Arc::clone(&pool) }),
            suspect_guard: Arc::new(SuspectGuard {
                options: Arc::clone(&self.suspect_guard.options),
                quarantined: Arc::clone(&quarantined),
                store: Arc::clone(&store),
                storage: Arc::clone(&storage),
                tasks: Arc::clone(&self.suspect_guard.tasks),
            }),
            quarantined,
            pool,
            storage,
            store,
        }
    }

    /// Records with `seq >= from`, at most `limit`, as this run's own.
    pub(crate) async fn log(&self, row: &RunRow, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.log_within(row, from, limit, usize::MAX).await
    }

    /// The same, and no more than weigh `bytes` together. The first always comes, so whoever goes on behind the last
    /// record gets to the end.
    pub(crate) async fn log_within(
        &self,
        row: &RunRow,
        from: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<StoredRecord>, Error> {
        if row.origin.as_ref().is_none_or(|origin| from >= origin.seq) {
            return Ok(self.store.records_within(&row.id, from, limit, bytes).await?);
        }
        let mut found: Vec<StoredRecord> = Vec::new();
        let mut left = bytes;
        for segment in self.segments(row).await? {
            let first = from.max(segment.from);
            let room = limit - found.len();
            if first >= segment.until || room == 0 {
                continue;
            }
            let length = usize::try_from(segment.until - first).unwrap_or(usize::MAX);
            let wanted = room.min(length);
            let page = self.store.records_within(&segment.run, first, wanted, left).await?;
            let whole = page.len() == wanted;
            for stored in page {
                // The first of a later segment comes even where nothing fits any more: it may have to wait.
                match left.checked_sub(stored.weight()) {
                    Some(rest) => left = rest,
                    None if found.is_empty() => left = 0,
                    None => return Ok(found),
                }
                found.push(if segment.run == row.id {
                    stored
                } else {
                    // Its place in the chain stays what it is in its source's.
                    StoredRecord { sum: stored.sum, ..StoredRecord::encode(&row.id, &stored.decode(&segment.run)?) }
                });
            }
            if !whole {
                break;
            }
        }
        Ok(found)
    }

    /// The segments of a log, oldest first.
    pub(crate) async fn segments(&self, row: &RunRow) -> Result<Vec<LogSegment>, Error> {
        let mut all = Vec::new();
        let mut row = row.clone();
        let mut until = u64::MAX;
        loop {
            if let Some(pruned) = row.pruned.filter(|pruned| pruned.log) {
                return Err(Error::run_pruned(pruned.at));
            }
            let from = row.origin.as_ref().map_or(0, |origin| origin.seq.min(until));
            let source = row.origin.as_ref().map(|origin| origin.source.clone());
            all.push(LogSegment { run: row.id, origin: row.origin, from, until });
            until = from;
            let Some(source) = source else { break };
            row = self.store.run(&source).await?.ok_or_else(Error::run_not_found)?;
        }
        all.reverse();
        Ok(all)
    }

    /// The name that ids below the run are derived from at the beginning of its log, and where that changes: at the
    /// branches.
    pub(crate) async fn branch_points(&self, row: &RunRow) -> Result<(RunId, BranchPoints), Error> {
        let segments = self.segments(row).await?;
        self.branch_points_of(&segments).await
    }

    /// What the branches that a log passes into before this sequence laid over it, and where.
    pub(crate) async fn overlays(&self, row: &RunRow, until: u64) -> Result<Vec<(u64, Overlay)>, Error> {
        let (_, branch_points) = self.branch_points(row).await?;
        let passed = branch_points.all().filter(|branch_point| branch_point.at <= until);
        Ok(passed.map(|branch_point| (branch_point.at, branch_point.origin.overlay.clone())).collect())
    }

    pub(crate) async fn branch_points_of(&self, segments: &[LogSegment]) -> Result<(RunId, BranchPoints), Error> {
        let mut name = None;
        let mut branch_points = VecDeque::new();
        // What a fork has of its source ends where the fork begins, so younger ones bound older ones.
        let mut most = u64::MAX;
        for (place, segment) in segments.iter().enumerate().rev() {
            name = Some(&segment.run);
            match &segment.origin {
                // A replay goes by its source's name: what is named by its place has the same name again.
                Some(origin) if origin.mode == ForkMode::Replay => most = most.min(origin.length.unwrap_or(most)),
                // One from the very beginning has nothing of its source.
                Some(origin) if origin.seq == 0 => break,
                Some(origin) => {
                    let at = origin.seq + self.rest_of(&segment.run, origin.seq).await?;
                    if at <= most {
                        most = at;
                        let (run, origin) = (segment.run.clone(), origin.clone());
                        branch_points.push_front(BranchPoint { at, run, origin, segment: place });
                    }
                }
                None => {}
            }
        }
        Ok((name.cloned().ok_or_else(Error::run_not_found)?, BranchPoints::new(branch_points)))
    }

    /// How many records a branch inside a step has taken over of it. The step is the source's to its end.
    async fn rest_of(&self, run: &RunId, from: u64) -> Result<u64, Error> {
        let mut rest = 0;
        loop {
            let page = self.store.records(run, from + rest, REST_PAGE).await?;
            let more = page.iter().take_while(|record| is_rest(record)).count();
            rest += more as u64;
            if more < REST_PAGE {
                return Ok(rest);
            }
        }
    }

    /// The run as its durable log tells it.
    pub(crate) async fn fold(self: &Arc<Self>, run: &RunId) -> Result<Option<(RunState, RunRow)>, Error> {
        self.fold_before(run, u64::MAX).await
    }

    /// The same, with the records before one of them only.
    pub(crate) async fn fold_before(
        self: &Arc<Self>,
        run: &RunId,
        end: u64,
    ) -> Result<Option<(RunState, RunRow)>, Error> {
        let run = run.clone();
        self.pool
            .on_step_threads(self, |room| async move {
                room.fold_to_look(&run, end, FoldFrom::Checkpoint)
                    .await
                    .map(|folded| folded.map(|folded| (folded.state, folded.row)))
            })
            .await
    }

    /// For whoever only looks at a run: what a process died of is not folded for that.
    async fn fold_to_look(&self, run: &RunId, end: u64, from: FoldFrom) -> Result<Option<Folded>, Error> {
        let live = self.storage.current();
        if let Some(row) = self.store.run(run).await?
            && let Some(held) = self.quarantined.of(root_of(&row))
            && !may_be_loaded(&held)
        {
            return Err(Error::quarantined(&held));
        }
        let _alone = self.suspect_guard.singly(&live, run).await?;
        self.fold_here(run, end, None, from).await
    }

    /// The last step that begins at or before this sequence while no child is under way, and the children that had been
    /// by then. Whatever was remembered and written, no child that begins later has written.
    pub(crate) async fn last_alone(self: &Arc<Self>, row: &RunRow, until: u64) -> Result<(u64, HashSet<RunId>), Error> {
        // Steps are committed as a whole, so a log that ends there ends with one.
        let inside = self.log(row, until, 1).await?.first().is_some_and(is_rest);
        for from in [FoldFrom::Checkpoint, FoldFrom::Beginning] {
            let run = row.id.clone();
            let folded =
                self.pool.on_step_threads(self, |room| async move { room.fold_to_look(&run, until, from).await });
            let Some(Folded { state, alone, in_part, .. }) = folded.await? else { break };
            let point = match alone {
                _ if state.is_alone() && !inside => until,
                Some(alone) => alone,
                // It may lie before the checkpoint.
                None if in_part => continue,
                None => 0,
            };
            return Ok((point, state.children_before(point).cloned().collect()));
        }
        Ok((0, HashSet::new()))
    }

    /// The same for whoever holds back other suspects already.
    pub(crate) async fn fold_singly(self: &Arc<Self>, run: &RunId) -> Result<Option<Loaded>, Error> {
        let run = run.clone();
        let fold = |room: Arc<Self>| async move { room.fold_here(&run, u64::MAX, None, FoldFrom::Checkpoint).await };
        let folded = self.pool.on_step_threads(self, fold).await?;
        Ok(folded.map(|Folded { state, row, checkpointed, .. }| Loaded { state, row, checkpointed }))
    }

    /// The same from the first record on, for another run that needs it: should the process die of this, it is that run it died of.
    pub(crate) async fn fold_on_behalf(
        self: &Arc<Self>,
        whom: &RunRow,
        run: &RunId,
        end: u64,
    ) -> Result<Option<(RunState, RunRow)>, Error> {
        let (whom, run) = (whom.clone(), run.clone());
        let fold = |room: Arc<Self>| async move { room.fold_here(&run, end, Some(&whom), FoldFrom::Beginning).await };
        let folded = self.pool.on_step_threads(self, fold).await?;
        Ok(folded.map(|folded| (folded.state, folded.row)))
    }

    /// A log that does not fold behind a checkpoint is folded from its first record: that may have been the checkpoint's
    /// fault, and only the log can be blamed.
    async fn fold_here(
        &self,
        run: &RunId,
        end: u64,
        whom: Option<&RunRow>,
        from: FoldFrom,
    ) -> Result<Option<Folded>, Error> {
        let mut used = None;
        let folded = self.fold_from(run, end, whom, from, &mut used).await;
        let (Err(_), Some(used)) = (&folded, used) else { return folded };
        let folded = self.fold_from(run, end, whom, FoldFrom::Beginning, &mut None).await?;
        self.not_usable(&used);
        Ok(folded)
    }

    /// `used` is the checkpoint that it began at.
    async fn fold_from(
        &self,
        run: &RunId,
        end: u64,
        whom: Option<&RunRow>,
        from: FoldFrom,
        used: &mut Option<UsedCheckpoint>,
    ) -> Result<Option<Folded>, Error> {
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let mut what = Stepping::of(whom.unwrap_or(&row), WorkKind::Fold);
        let segments = self.segments(&row).await?;
        let (name, mut branch_points) = self.branch_points_of(&segments).await?;
        let mut state: Option<RunState> = None;
        let (mut alone, mut began) = (None, 0);
        if from == FoldFrom::Checkpoint {
            let wanted = WantedLog { row: &row, segments: &segments, name: &name, points: &branch_points, end };
            if let Some(beginning) = self.nearest_checkpoint(&wanted, what).await? {
                branch_points.passed(beginning.crossed);
                *used = Some(beginning.used);
                began = beginning.state.next_seq();
                state = Some(beginning.state);
            }
        }
        for (place, segment) in segments.iter().enumerate() {
            let mut next = segment.from.max(began);
            let end = end.min(segment.until);
            while next < end {
                if state.is_some() && segment.run == row.id && next >= row.next_seq {
                    break;
                }
                let wanted = PAGE.min(usize::try_from(end - next).unwrap_or(PAGE));
                let page = self.store.records_within(&segment.run, next, wanted, PAGE_BYTES).await?;
                if state.is_none()
                    && let Some(first) = page.first()
                {
                    let digest = pinned(&understood(first, &segment.run)?.event)?;
                    let plan = self.plan_loader.plan(Whose::Run(what), &digest).await?;
                    state = Some(RunState::new(name.clone(), plan));
                }
                // A page is folded like a step: what a log holds is its tenant's, and may be what the host dies of.
                let turn = self.pool.turn(what.tenant).await;
                for part in page.chunks(if whom.is_some() { NOTED } else { PAGE }) {
                    if whom.is_some() {
                        // Killed twice, a process has not died of a log that it goes through for another run, unless
                        // that was at the same place.
                        what.durable += part.len() as u64;
                    }
                    let folded = self.pool.guarded(&turn, what, || {
                        fold_page(state.take(), part, segment, place, &mut branch_points, &mut alone)
                    });
                    state = folded.unwrap_or_else(|panic| Err(does_not_fold(io::Error::other(panic))))?;
                }
                drop(turn);
                next += page.len() as u64;
                // A page may end early because of what it weighs. The last one of a run's own part is known by its row.
                if page.is_empty() || (page.len() < wanted && segment.run == row.id && next >= row.next_seq) {
                    break;
                }
            }
        }
        let crossed = state.map(|state| {
            let seq = state.next_seq();
            branch_points.cross(state, seq)
        });
        let Some(state) = crossed else { return Ok(None) };
        let at_its_end = end == u64::MAX && whom.is_none();
        let offered = if at_its_end { self.checkpoint_queue.folded(&state, &row, began) } else { None };
        Ok(Some(Folded { state, row, alone, checkpointed: offered.unwrap_or(began), in_part: began > 0 }))
    }
}

/// The plan that a log is pinned to, by its first record.
pub(crate) fn pinned(first: &Event) -> Result<Digest, Error> {
    match first {
        Event::RunStarted(started) if let Some(digest) = &started.private.workflow => Ok(digest.clone()),
        _ => Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "A log does not say which workflow it runs.")),
    }
}

/// The same of a state.
pub(crate) fn pinned_by(state: &RunState) -> Option<Digest> {
    state.started().and_then(|started| started.private.workflow.clone())
}

/// What is not the log's to say: a log may be another run's, or have come with a file.
pub(crate) fn as_row_says(view: &mut RunSnapshot, row: &RunRow) {
    if view.owner.tenant != row.tenant {
        view.owner = Owner { tenant: row.tenant.clone(), principal: None, subject: None };
    }
    if row.origin.is_some() {
        // The source's parent is not the fork's: nobody started it and nobody waits for it.
        (view.parent_run_id, view.parent_node_id) = (None, None);
    }
    if is_replay(row) && !row.status.is_terminal() {
        // It is on its way to where its source was answered, and asks nobody.
        view.status = RunStatus::Running;
        view.interrupt = None;
    }
}

/// It belongs to the step of the record before it.
pub(crate) fn is_rest(record: &StoredRecord) -> bool {
    record.part.is_some_and(|part| !part.first)
}

fn fold_page(
    mut state: Option<RunState>,
    page: &[StoredRecord],
    segment: &LogSegment,
    place: usize,
    branch_points: &mut BranchPoints,
    alone: &mut Option<u64>,
) -> Result<Option<RunState>, Error> {
    for stored in page {
        let record = understood(stored, &segment.run)?;
        if !is_rest(stored) && state.as_ref().is_some_and(RunState::is_alone) {
            *alone = Some(record.seq);
        }
        state = match state {
            // The first record begins an empty log, whatever is ahead of it.
            Some(state) if state.next_seq() == 0 => Some(fold_one(state, &record)?),
            Some(state) => Some(fold_one(branch_points.cross(state, record.seq), &record)?),
            None => None,
        };
        if matches!(record.event, Event::ReplayDiverged(_)) {
            branch_points.shift(place);
        }
    }
    Ok(state)
}

fn fold_one(state: RunState, record: &Record) -> Result<RunState, Error> {
    evolve(state, record).map_err(does_not_fold)
}

fn does_not_fold(why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The run's log does not fold.").because(why)
}

/// A record that is what was written and that this build does not understand was written by another one: it is not damaged.
fn understood(stored: &StoredRecord, run: &RunId) -> Result<Record, Error> {
    stored.decode(run).map_err(|error| if stored.sum.is_some() { does_not_fold(error) } else { error.into() })
}
