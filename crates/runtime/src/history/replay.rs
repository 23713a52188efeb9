//! Proving a log: going through it again with the engine as it is now. Nothing is asked of the world, so a replay has
//! no live run, no timers, no children and no deliveries; it reads one log and writes another. Going through a log is its
//! tenant's computation like a step: a page at a time, in its turn, on the step threads.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use baton_engine::{Next, Question, Replay, RunState, apply};
use baton_model::event::DivergenceKind;
use baton_model::{
    Digest, Event, ForkMode, ModelReply, Origin, Part, Record, RunId, RunStatus, RunSummary, TenantId, Versions, code,
};
use baton_store::{RunRow, Store, StoredRecord, Write};
use dashmap::DashSet;
use serde_json::Value;

use crate::clock::Clock;
use crate::history::log::{PAGE_BYTES, RunLog, pinned};
use crate::history::public_form::{PublicForm, face};
use crate::history::segments::BranchPoints;
use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::quarantine::service::Quarantines;
use crate::quarantine::suspect_guard::SuspectGuard;
use crate::quarantine::trees::{Cause, QuarantinedTrees};
use crate::run::tree::root_of;
use crate::services::workflows::{PlanLoader, Whose};
use crate::steps::{StepPool, Stepping, WorkKind, pass};
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Options, Verified, VerifiedDifference};

/// How many records of the source are held at a time, and how many of the replay are written at once.
const PAGE: usize = 200;
/// How many steps are taken, or records read, in one turn. Each may cost as much as a step of the run did, and others of
/// the tenant wait.
const PER_TURN: usize = 50;

/// Proves that a log is decided again as it was written.
pub(crate) struct Replays {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) loading: Arc<LoadLocks>,
    pub(crate) options: Arc<Options>,
    pub(crate) quarantined: Arc<QuarantinedTrees>,
    pub(crate) replaying: Arc<DashSet<RunId>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) plan_loader: Arc<PlanLoader>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) suspect_guard: Arc<SuspectGuard>,
}

impl Replays {
    pub(crate) async fn verify(&self, row: RunRow) -> Result<Verified, Error> {
        if let Some(quarantine) = self.quarantine.quarantine_of(root_of(&row)).await? {
            return Err(Error::quarantined(&quarantine));
        }
        let mut course = ReplayCursor { proves: true, ..ReplayCursor::from(self, row.clone(), row, 0, None).await? };
        let mut decided = 0;
        // After the first difference there is nothing left to prove.
        while course.replay.difference.is_none()
            && course.unlike.as_ref().is_none_or(|found| course.replay.position() <= found.seq)
            && let Some(records) = course.further(self).await?
        {
            decided += records.iter().filter(|record| record.part.is_some_and(|part| !part.outside)).count() as u64;
        }
        let events = course.replay.position().min(course.length);
        let difference = course.replay.difference.map(|found| VerifiedDifference {
            seq: found.seq,
            kind: found.kind,
            original: found.original.as_ref().map(public),
            replayed: found.replayed.as_ref().map(public),
        });
        let difference = match (difference, course.unlike) {
            (Some(decided), Some(shown)) if shown.seq < decided.seq => Some(shown),
            (decided, shown) => decided.or(shown),
        };
        Ok(Verified { events, decided, difference })
    }
}

fn public(event: &Event) -> Value {
    serde_json::json!({"type": event.type_name(), "payload": event.payload()})
}

/// Somebody is at a replay for as long as this lives, however it ends.
struct Replaying<'a> {
    all: &'a DashSet<RunId>,
    run: RunId,
}

impl Drop for Replaying<'_> {
    fn drop(&mut self) {
        self.all.remove(&self.run);
    }
}

impl Replays {
    /// Writes a replay down, from where it was left, unless somebody is at it. Called on a step thread.
    pub(crate) async fn replay(&self, run: &RunId) -> Result<(), Error> {
        if !self.replaying.insert(run.clone()) {
            return Ok(());
        }
        let _at_it = Replaying { all: &self.replaying, run: run.clone() };
        let Some(mut row) = self.store.run(run).await? else { return Ok(()) };
        let gone = self.go_through(&mut row).await;
        if let Err(error) = &gone
            && error.kind == ErrorKind::Internal
        {
            let detail = error.source.as_ref().map_or_else(|| error.message.clone(), ToString::to_string);
            self.quarantine.broke(&self.storage.current(), &row, Cause::StepFailed, &detail);
        }
        gone
    }

    async fn go_through(&self, row: &mut RunRow) -> Result<(), Error> {
        let Some(Origin { source, seq, length, mode: ForkMode::Replay, .. }) = row.origin.clone() else {
            return Ok(());
        };
        if row.status.is_terminal() {
            return Ok(());
        }
        let source = self.store.run(&source).await?.ok_or_else(Error::run_not_found)?;
        let (root, run) = (root_of(row).clone(), row.id.clone());
        let mut singly = self.suspect_guard.singly_of(&root).await?;
        let mut course = ReplayCursor::from(self, row.clone(), source, seq, length).await?;
        course.replay = course.replay.past_cancellation();
        course.asks_from = Some(row.next_seq);
        // What is on disk already comes out the same again.
        let mut known = usize::try_from(row.next_seq - seq).unwrap_or(usize::MAX);
        loop {
            if let Some(quarantine) = self.quarantined.of(&root) {
                return Err(Error::quarantined(&quarantine));
            }
            if self.tasks.stop.is_cancelled() {
                // The next start goes on from what is on disk.
                return Ok(());
            }
            let further = course.further(self).await?;
            let ended = further.is_none();
            let mut records = further.unwrap_or_default();
            let skipped = known.min(records.len());
            known -= skipped;
            records.drain(..skipped);
            // Forked where its source had ended already, it has nothing to add but its end.
            let wrote = !records.is_empty() || (ended && !row.status.is_terminal());
            if wrote && !self.write_down(row, &course, &records).await? {
                return Ok(());
            }
            course.whom.next_seq = row.next_seq;
            if let Some(singly) = singly.take() {
                self.suspect_guard.replayed_singly(singly, &root, &run, row.next_seq, wrote).await;
            }
            if ended {
                return Ok(());
            }
            pass().await;
            singly = self.suspect_guard.singly_of(&root).await?;
        }
    }

    /// Says whether it was this replay's to write: somebody may have ended it by hand meanwhile.
    async fn write_down(&self, row: &mut RunRow, course: &ReplayCursor, records: &[Record]) -> Result<bool, Error> {
        let live = self.storage.live()?;
        let state = course.state.as_ref().ok_or_else(Error::run_not_found)?;
        // Nobody ends it by hand between this look and the write.
        let _alone = self.loading.lock(&row.id).await;
        let on_disk = self.store.run(&row.id).await?;
        if on_disk.is_none_or(|now| now.status.is_terminal() || now.next_seq != row.next_seq) {
            return Ok(false);
        }
        let expected = row.next_seq;
        let mut next = RunRow { next_seq: expected + records.len() as u64, ..row.clone() };
        // Where its source waited, a replay waits for nobody.
        let status = Some(state.status()).filter(|status| status.is_terminal());
        next.status = status.unwrap_or(RunStatus::Running);
        next.updated_at = self.clock.now();
        next.busy = !next.status.is_terminal();
        next.current_node = state.current_node().cloned();
        next.error_code = state.error().map(|error| error.code.clone());
        crate::run::summary::summarise(&mut next, state, records, None, 0);
        if let Some(told) = crate::run::summary::summary_of(&next).filter(|told| told.waiting_on.is_some()) {
            next.summary = crate::run::summary::encode(&RunSummary { waiting_on: None, ..told });
        }
        let mut batches = batches(&next.id, records, self.options.bytes_ahead);
        let mut last = batches.pop().unwrap_or_default();
        let mut place = expected;
        for mut records in batches {
            // Not at its end yet. Should it be broken off here, it goes on after these.
            let next_seq = place + records.len() as u64;
            next.seal(&mut records);
            let row = RunRow { next_seq, status: RunStatus::Running, busy: true, ..next.clone() };
            self.append_replayed(&live, &next.tenant, Write::Append { row, expected: place, records }).await?;
            place = next_seq;
        }
        next.seal(&mut last);
        self.append_replayed(&live, &next.tenant, Write::Append { row: next.clone(), expected: place, records: last })
            .await?;
        *row = next;
        Ok(true)
    }

    /// Nothing else is derived from a replay: one that is refused is nobody else's trouble.
    async fn append_replayed(&self, live: &Generation, tenant: &TenantId, append: Write) -> Result<(), Error> {
        Ok(self.storage.write(live.generation, Lane::Of(tenant), vec![append]).await?)
    }
}

/// Records as they lie on disk, in batches of about so many bytes: a page of long ones is more than a commit takes.
fn batches(run: &RunId, records: &[Record], most: usize) -> Vec<Vec<StoredRecord>> {
    let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
    for record in records {
        let stored = StoredRecord::encode(run, record);
        bytes += stored.bytes();
        batch.push(stored);
        if bytes >= most {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// A replay under way.
struct ReplayCursor {
    /// The run that all this is for.
    whom: RunRow,
    source: RunRow,
    /// Where the source's log ends for this replay.
    length: u64,
    replay: Replay,
    state: Option<RunState>,
    name: RunId,
    /// Where the source's log passes into a branch, still ahead.
    branch_points: BranchPoints,
    /// Records of the source from the replay's position on, those after them as they are stored, and where the next page
    /// begins.
    window: Vec<Record>,
    unread: VecDeque<StoredRecord>,
    fetched: u64,
    /// Whether what is served is compared with what is gone through, and the first record where it is not the same.
    proves: bool,
    unlike: Option<VerifiedDifference>,
    /// From which of its own records on the replay asks the mock in this process again: not before what is on disk.
    /// A replay that is not written down never asks.
    asks_from: Option<u64>,
    /// What was heard, by the source's sequence: nobody is asked twice about one call.
    heard: BTreeMap<u64, Option<ModelReply>>,
}

/// A page in the making.
#[derive(Default)]
struct Page {
    made: Vec<Record>,
    /// How much of the window is behind it.
    taken: usize,
    /// Whether a state is kept for every step.
    careful: bool,
    /// Where it began.
    before: Option<(Option<RunState>, Replay, BranchPoints)>,
}

/// What must be there before a page goes on.
enum Wants {
    /// Only another turn.
    Turn,
    Records,
    Plan(Digest),
    Answer(Question),
    /// It is whole.
    Nothing,
}

impl ReplayCursor {
    async fn from(room: &Replays, whom: RunRow, source: RunRow, seq: u64, length: Option<u64>) -> Result<Self, Error> {
        let state = match seq {
            0 => None,
            seq => room.log.fold_on_behalf(&whom, &source.id, seq).await?.map(|(state, _)| state),
        };
        let length = length.unwrap_or(source.next_seq);
        let (name, branch_points) = room.log.branch_points(&source).await?;
        let branch_points = branch_points.after(seq);
        let replay = Replay::new(source.id.clone(), seq);
        Ok(Self {
            whom,
            source,
            length,
            replay,
            state,
            name,
            branch_points,
            window: Vec::new(),
            unread: VecDeque::new(),
            fetched: seq,
            proves: false,
            unlike: None,
            asks_from: None,
            heard: BTreeMap::new(),
        })
    }

    /// Some more records, or none when the replay is done. What has to be waited for is waited for between turns.
    async fn further(&mut self, room: &Replays) -> Result<Option<Vec<Record>>, Error> {
        let kind = if self.proves { WorkKind::Verify } else { WorkKind::Replay };
        let whom = self.whom.clone();
        let mut what = Stepping::of(&whom, kind);
        let mut page = Page::default();
        loop {
            let turn = room.pool.turn(what.tenant).await;
            let mut wants = Wants::Turn;
            for _ in 0..PER_TURN {
                // How far it has come, on disk or not: a process that is killed twice while it goes through a long log has
                // not died of it, unless that was at the same place.
                let read = self.fetched - self.unread.len() as u64;
                what.durable = whom.next_seq + self.replay.position() + read;
                wants = room.pool.guarded(&turn, what, || self.go(&mut page)).map_err(panicked)??;
                if !matches!(wants, Wants::Turn) {
                    break;
                }
            }
            drop(turn);
            match wants {
                Wants::Turn => {}
                Wants::Records => self.fetch(room).await?,
                Wants::Plan(digest) => {
                    let plan = room.plan_loader.plan(Whose::Run(what), &digest).await?;
                    self.state = Some(RunState::new(self.name.clone(), plan));
                }
                Wants::Answer(question) => {
                    let reply = room.options.ask_test_provider(&question.request).await;
                    self.heard.insert(question.seq, reply);
                }
                Wants::Nothing => break,
            }
        }
        Ok((!page.made.is_empty()).then_some(page.made))
    }

    /// Reads one record, or takes one step.
    fn go(&mut self, page: &mut Page) -> Result<Wants, Error> {
        if let Some(stored) = self.unread.pop_front() {
            self.read(&stored)?;
            return Ok(Wants::Turn);
        }
        if page.before.is_none() {
            page.before = Some((self.state.clone(), self.replay.clone(), self.branch_points.clone()));
        }
        if page.made.len() >= PAGE {
            return Ok(self.whole(page));
        }
        if self.window.len() - page.taken < PAGE && self.fetched < self.length {
            return Ok(self.wants_records(page));
        }
        self.cross_fork();
        let whole = self.fetched >= self.length;
        let Some(state) = &mut self.state else {
            return Ok(match self.window.first() {
                Some(first) => Wants::Plan(pinned(&first.event)?),
                None => self.whole(page),
            });
        };
        let position = self.replay.position();
        let kept = page.careful.then(|| state.clone());
        if self.asks_from.is_some_and(|from| state.next_seq() >= from)
            && let Some(question) = self.replay.question(state, &self.window[page.taken..])
        {
            match self.heard.get(&question.seq) {
                Some(reply) => self.replay.heard(state, &question, reply.as_ref()),
                None => return Ok(Wants::Answer(question)),
            }
        }
        let next = self.replay.step(state, &self.window[page.taken..], whole);
        let passed = usize::try_from(self.replay.position() - position).unwrap_or(0);
        let Next::Append { drafts, at, outside } = next else {
            page.taken += passed;
            return Ok(match next {
                Next::More if !whole => self.wants_records(page),
                _ => self.whole(page),
            });
        };
        let segment = &self.window[page.taken..(page.taken + passed).min(self.window.len())];
        match apply(state, drafts, at) {
            Ok(records) => page.made.extend(placed(records, segment, outside)),
            Err(illegal) => {
                tracing::warn!(run = %self.source.id, %illegal, "a replay cannot take a record as it stands");
                match (kept, segment.first()) {
                    (Some(kept), Some(refused)) => {
                        *state = kept;
                        let next = self.replay.refused(state, refused);
                        if let Next::Append { drafts, at, outside } = next {
                            let records = apply(state, drafts, at).map_err(broken)?;
                            page.made.extend(placed(records, segment, outside));
                        }
                    }
                    // Once more from the last good state, and this time with one kept for every step.
                    _ if !page.careful
                        && let Some(before) = page.before.clone() =>
                    {
                        (self.state, self.replay, self.branch_points) = before;
                        self.window.clear();
                        self.fetched = self.replay.position();
                        page.made.clear();
                        (page.taken, page.careful) = (0, true);
                        return Ok(Wants::Turn);
                    }
                    _ => return Err(broken(illegal)),
                }
            }
        }
        page.taken += passed;
        Ok(Wants::Turn)
    }

    fn wants_records(&mut self, page: &mut Page) -> Wants {
        self.window.drain(..page.taken);
        page.taken = 0;
        Wants::Records
    }

    fn whole(&mut self, page: &Page) -> Wants {
        self.window.drain(..page.taken.min(self.window.len()));
        self.heard.clear();
        Wants::Nothing
    }

    async fn fetch(&mut self, room: &Replays) -> Result<(), Error> {
        let wanted = (2 * PAGE).min(usize::try_from(self.length - self.fetched).unwrap_or(PAGE));
        let page = room.log.log_within(&self.source, self.fetched, wanted, PAGE_BYTES).await?;
        if page.is_empty() {
            self.length = self.fetched;
        }
        self.fetched += page.len() as u64;
        self.unread.extend(page);
        Ok(())
    }

    fn read(&mut self, stored: &StoredRecord) -> Result<(), Error> {
        let record = stored.decode(&self.source.id)?;
        if self.proves && self.unlike.is_none() {
            self.unlike = unlike(&self.source.id, stored, &record);
        }
        self.window.push(record);
        Ok(())
    }

    /// Where the source itself branched off, its state was made its own; so is this one's.
    fn cross_fork(&mut self) {
        let position = self.replay.position();
        self.state = self.state.take().map(|state| self.branch_points.cross(state, position));
    }
}

/// What is served of a record, where it is not what the record says.
fn unlike(run: &RunId, stored: &StoredRecord, record: &Record) -> Option<VerifiedDifference> {
    let (said, meant, members) = match face(run, stored, record) {
        PublicForm::Own => return None,
        PublicForm::Reworded { own } => {
            let meant = serde_json::from_str(&own).unwrap_or_default();
            (Value::String(stored.body.clone()), meant, Vec::new())
        }
        PublicForm::False { said, meant, members } => (said, meant, members),
    };
    let kind =
        if members.iter().any(|name| name == "type") { DivergenceKind::TypeMismatch } else { DivergenceKind::Output };
    let shown = |event: &Value| match event {
        Value::Object(event) => {
            let told = |name: &String| matches!(name.as_str(), "type" | "payload") || members.contains(name);
            event.iter().filter(|(name, _)| told(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        text => text.clone(),
    };
    Some(VerifiedDifference { seq: stored.seq, kind, original: Some(shown(&said)), replayed: Some(shown(&meant)) })
}

/// Gives records the surroundings of what they repeat. What is as it was has the same part in its step.
fn placed(records: Vec<Record>, segment: &[Record], outside: bool) -> Vec<Record> {
    let versions = |place: usize| segment.get(place).or(segment.last()).map_or(Versions::default(), |r| r.versions);
    let repeats = records.len() == segment.len();
    let mut first = true;
    let placed = records.into_iter().enumerate().map(|(place, record)| {
        // No engine decides that: whoever goes through this log again takes it as it stands.
        let remark = matches!(record.event, Event::ReplayDiverged(_));
        let made = Some(Part { outside: outside || remark, first: first || remark });
        first = remark;
        Record { versions: versions(place), part: if repeats { segment[place].part } else { made }, ..record }
    });
    placed.collect()
}

fn panicked(said: String) -> Error {
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The replay could not go on.").because(io::Error::other(said))
}

fn broken(illegal: baton_engine::IllegalRecord) -> Error {
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The replay could not go on.").because(illegal)
}
