//! Proving a log: going through it again with the engine as it is now. Nothing is asked of the world, so a replay has
//! no head, no timers, no children and no deliveries; it reads one log and writes another.

use std::collections::BTreeMap;

use baton_engine::{Next, Replay, RunState, apply};
use baton_model::event::DivergenceKind;
use baton_model::{
    Event, ForkMode, ModelReply, Origin, Part, Record, RunId, RunStatus, RunSummary, TenantId, Versions, code,
};
use baton_store::{Commit, RunRow, StoredRecord, Write};
use serde_json::Value;

use crate::faces::{Face, face};
use crate::inner::Inner;
use crate::lineage::Crossings;
use crate::{Error, Host, Kind, Verified, VerifiedDifference};

/// How many records of the source are held at a time, and how many of the replay are written at once.
const PAGE: usize = 1000;

impl Host {
    /// Goes through a run's log again without writing anything down.
    pub async fn verify(&self, tenant: &TenantId, run: &RunId) -> Result<Verified, Error> {
        let row = self.inner.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        let mut course = Going { proves: true, ..Going::from(&self.inner, row, 0, None).await? };
        let mut decided = 0;
        // After the first difference there is nothing left to prove.
        while course.replay.difference.is_none()
            && course.unlike.as_ref().is_none_or(|found| course.replay.position() <= found.seq)
            && let Some(records) = course.further(&self.inner).await?
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

impl Inner {
    /// Writes a replay down, from where it was left, unless somebody is at it.
    pub(crate) async fn replay(&self, run: &RunId) -> Result<(), Error> {
        if !self.replaying.insert(run.clone()) {
            return Ok(());
        }
        let gone = self.go_through(run).await;
        self.replaying.remove(run);
        gone
    }

    async fn go_through(&self, run: &RunId) -> Result<(), Error> {
        let Some(mut row) = self.store.run(run).await? else { return Ok(()) };
        let Some(Origin { source, seq, length, mode: ForkMode::Replay, .. }) = row.origin.clone() else {
            return Ok(());
        };
        if row.status.is_terminal() {
            return Ok(());
        }
        let source = self.store.run(&source).await?.ok_or_else(Error::run_not_found)?;
        let mut course = Going::from(self, source, seq, length).await?;
        course.asks_from = Some(row.next_seq);
        // What is on disk already comes out the same again.
        let mut known = usize::try_from(row.next_seq - seq).unwrap_or(usize::MAX);
        while let Some(mut records) = course.further(self).await? {
            let skipped = known.min(records.len());
            known -= skipped;
            records.drain(..skipped);
            if !records.is_empty() {
                self.write_down(&mut row, &course, &records).await?;
            }
            tokio::task::yield_now().await;
        }
        if !row.status.is_terminal() {
            // Forked where its source had ended already, it has nothing to add.
            self.write_down(&mut row, &course, &[]).await?;
        }
        Ok(())
    }

    async fn write_down(&self, row: &mut RunRow, course: &Going, records: &[Record]) -> Result<(), Error> {
        let world = self.world()?;
        let state = course.state.as_ref().ok_or_else(Error::run_not_found)?;
        let expected = row.next_seq;
        row.next_seq += records.len() as u64;
        // Where its source waited, a replay waits for nobody.
        let status = Some(state.status()).filter(|status| status.is_terminal());
        row.status = status.unwrap_or(RunStatus::Running);
        row.updated_at = self.clock.now();
        row.busy = !row.status.is_terminal();
        row.current_node = state.current_node().cloned();
        row.error_code = state.error().map(|error| error.code.clone());
        crate::summary::summarise(row, state, records, None, 0);
        if let Some(told) = crate::summary::summary_of(row).filter(|told| told.waiting_on.is_some()) {
            row.summary = crate::summary::encode(&RunSummary { waiting_on: None, ..told });
        }
        let records = records.iter().map(|record| StoredRecord::encode(&row.id, record)).collect();
        let writes = vec![Write::Append { row: row.clone(), expected, records }];
        self.store.submit(Commit::new(world.generation, writes)).await?;
        Ok(())
    }
}

/// A replay under way.
struct Going {
    source: RunRow,
    /// Where the source's log ends for this replay.
    length: u64,
    replay: Replay,
    state: Option<RunState>,
    name: RunId,
    /// Where the source's log passes into a branch, still ahead.
    crossings: Crossings,
    /// Records of the source from the replay's position on, and where the next page begins.
    window: Vec<Record>,
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

impl Going {
    async fn from(inner: &Inner, source: RunRow, seq: u64, length: Option<u64>) -> Result<Self, Error> {
        let state = match seq {
            0 => None,
            seq => inner.fold_before(&source.id, seq).await?.map(|(state, _)| state),
        };
        let length = length.unwrap_or(source.next_seq);
        let (name, crossings) = inner.crossings(&source).await?;
        let crossings = crossings.after(seq);
        let replay = Replay::new(source.id.clone(), seq);
        Ok(Self {
            source,
            length,
            replay,
            state,
            name,
            crossings,
            window: Vec::new(),
            fetched: seq,
            proves: false,
            unlike: None,
            asks_from: None,
            heard: BTreeMap::new(),
        })
    }

    /// Some more records, or none when the replay is done.
    async fn further(&mut self, inner: &Inner) -> Result<Option<Vec<Record>>, Error> {
        let mut made: Vec<Record> = Vec::new();
        let (mut taken, mut careful) = (0_usize, false);
        let before = (self.state.clone(), self.replay.clone(), self.crossings.clone());
        while made.len() < PAGE {
            if self.window.len() - taken < PAGE && self.fetched < self.length {
                self.window.drain(..taken);
                taken = 0;
                self.fetch(inner).await?;
            }
            self.cross_fork();
            let whole = self.fetched >= self.length;
            let state = match &mut self.state {
                Some(state) => state,
                None => {
                    let Some(first) = self.window.first() else { break };
                    let plan = inner.pinned(&first.event).await?;
                    self.state.insert(RunState::new(self.name.clone(), plan))
                }
            };
            let position = self.replay.position();
            let kept = careful.then(|| state.clone());
            if self.asks_from.is_some_and(|from| state.next_seq() >= from)
                && let Some(question) = self.replay.question(state, &self.window[taken..])
            {
                let reply = match self.heard.remove(&question.seq) {
                    Some(known) => known,
                    None => inner.ask_mock(&question.request).await,
                };
                self.replay.heard(state, &question, reply.as_ref());
                self.heard.insert(question.seq, reply);
            }
            let next = self.replay.step(state, &self.window[taken..], whole);
            let passed = usize::try_from(self.replay.position() - position).unwrap_or(0);
            let Next::Append { drafts, at, outside } = next else {
                taken += passed;
                match next {
                    Next::More if !whole => {
                        self.window.drain(..taken);
                        taken = 0;
                        self.fetch(inner).await?;
                        continue;
                    }
                    _ => break,
                }
            };
            let stretch = &self.window[taken..(taken + passed).min(self.window.len())];
            match apply(state, drafts, at) {
                Ok(records) => made.extend(placed(records, stretch, outside)),
                Err(illegal) => {
                    tracing::warn!(run = %self.source.id, %illegal, "a replay cannot take a record as it stands");
                    match (kept, stretch.first()) {
                        (Some(kept), Some(refused)) => {
                            *state = kept;
                            let next = self.replay.refused(state, refused);
                            if let Next::Append { drafts, at, outside } = next {
                                let records = apply(state, drafts, at).map_err(broken)?;
                                made.extend(placed(records, stretch, outside));
                            }
                        }
                        // Once more from the last good state, and this time with one kept for every step.
                        _ if !careful => {
                            (self.state, self.replay, self.crossings) = before.clone();
                            self.window.clear();
                            self.fetched = self.replay.position();
                            made.clear();
                            (taken, careful) = (0, true);
                            continue;
                        }
                        _ => return Err(broken(illegal)),
                    }
                }
            }
            taken += passed;
        }
        self.window.drain(..taken.min(self.window.len()));
        self.heard.clear();
        Ok((!made.is_empty()).then_some(made))
    }

    async fn fetch(&mut self, inner: &Inner) -> Result<(), Error> {
        let wanted = (2 * PAGE).min(usize::try_from(self.length - self.fetched).unwrap_or(PAGE));
        let page = inner.log(&self.source, self.fetched, wanted).await?;
        if page.is_empty() {
            self.length = self.fetched;
        }
        self.fetched += page.len() as u64;
        for stored in page {
            let record = stored.decode(&self.source.id)?;
            if self.proves && self.unlike.is_none() {
                self.unlike = unlike(&self.source.id, &stored, &record);
            }
            self.window.push(record);
        }
        Ok(())
    }

    /// Where the source itself branched off, its state was made its own; so is this one's.
    fn cross_fork(&mut self) {
        let position = self.replay.position();
        self.state = self.state.take().map(|state| self.crossings.cross(state, position));
    }
}

/// What is served of a record, where it is not what the record says.
fn unlike(run: &RunId, stored: &StoredRecord, record: &Record) -> Option<VerifiedDifference> {
    let (said, meant, members) = match face(run, stored, record) {
        Face::Own => return None,
        Face::Reworded { own } => {
            let meant = serde_json::from_str(&own).unwrap_or_default();
            (Value::String(stored.body.clone()), meant, Vec::new())
        }
        Face::False { said, meant, members } => (said, meant, members),
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
fn placed(records: Vec<Record>, stretch: &[Record], outside: bool) -> Vec<Record> {
    let versions = |place: usize| stretch.get(place).or(stretch.last()).map_or(Versions::default(), |r| r.versions);
    let repeats = records.len() == stretch.len();
    let mut first = true;
    let placed = records.into_iter().enumerate().map(|(place, record)| {
        // No engine decides that: whoever goes through this log again takes it as it stands.
        let remark = matches!(record.event, Event::ReplayDiverged(_));
        let made = Some(Part { outside: outside || remark, first: first || remark });
        first = remark;
        Record { versions: versions(place), part: if repeats { stretch[place].part } else { made }, ..record }
    });
    placed.collect()
}

fn broken(illegal: baton_engine::IllegalRecord) -> Error {
    Error::new(Kind::Internal, code::INTERNAL_ERROR, "The replay could not go on.").because(illegal)
}
