//! Writes checkpoints, one after the other and behind everything else: a commit of records never waits for one.

use std::collections::HashSet;
use std::sync::Arc;

use baton_engine::Checkpoint as StateCheckpoint;
use baton_model::{Digest, RunId};
use baton_store::{Checkpoint, CheckpointChunk, CheckpointMark, CheckpointWrite, CommitError, Store, Write};

use super::body::{deflate, digest_of, pack};
use super::key::{key, made_by};
use super::queue::{BYTES_PER_RECORD, CheckpointQueue, Job, LEAVING_PART, Offered};
use super::thin::thinned;
use crate::Error;
use crate::history::log::{RunLog, pinned_by};
use crate::history::segments::LogSegment;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::steps::{StepPool, WorkKind};
use crate::tasks::Tasks;

/// What one checkpoint may add to the store. A larger state is folded again.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// Writes the states that were offered.
pub(crate) struct CheckpointWriter {
    pub(crate) checkpoint_queue: Arc<CheckpointQueue>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

/// What is to be written of a state.
struct Packed {
    chunks: Vec<String>,
    new: Vec<CheckpointChunk>,
    body: Vec<u8>,
}

impl CheckpointWriter {
    pub(crate) async fn keep_writing(self: Arc<Self>) {
        loop {
            tokio::select! {
                biased;
                () = self.checkpoint_queue.work.notified() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            while let Some(job) = self.checkpoint_queue.next() {
                let written = tokio::select! {
                    biased;
                    written = self.see_to(job) => written,
                    () = self.tasks.stop.cancelled() => return,
                };
                let outcome = match written {
                    Ok(true) => "written",
                    Ok(false) => continue,
                    Err(error) => {
                        // Nobody needs it. What is wrong with the store others say.
                        tracing::debug!(%error, "a checkpoint was not written");
                        "failed"
                    }
                };
                metrics::counter!("baton_checkpoints_total", "outcome" => outcome).increment(1);
            }
        }
    }

    async fn see_to(self: &Arc<Self>, job: Job) -> Result<bool, Error> {
        match job {
            Job::Write(offered) => self.write(*offered).await,
            Job::Delete { run, tenant, key, seq, said, body } => {
                // Another one may have taken its place meanwhile.
                let found = self.store.checkpoint(&run, &key, seq, seq).await?;
                if found.is_none_or(|found| found.digest != said || Digest::of_bytes(&found.body) != body) {
                    return Ok(false);
                }
                let gone = CheckpointWrite::Drop { run, seqs: vec![seq], chunks: Vec::new() };
                let generation = self.storage.live()?.generation;
                self.storage.write(generation, Lane::Of(&tenant), vec![Write::Checkpoint(gone)]).await?;
                Ok(false)
            }
        }
    }

    async fn write(self: &Arc<Self>, offered: Offered) -> Result<bool, Error> {
        let Offered { state, row, queued } = offered;
        let (live, seq) = (self.storage.live()?, state.next_seq());
        if let Some((handle, generation)) = queued {
            if live.generation != generation {
                return Ok(false);
            }
            // Only what is on disk is written down.
            handle.durable(&live.ending, seq).await?;
        }
        if !live.outbox.has_room(&row.tenant) {
            return Ok(false);
        }
        let segments = self.log.segments(&row).await?;
        let (name, points) = self.log.branch_points_of(&segments).await?;
        let own = segments.last().is_some_and(|own| seq > own.from);
        let (Some(plan), true) = (pinned_by(&state), own && !segments.iter().any(LogSegment::is_replay)) else {
            return Ok(false);
        };
        let key = key(&plan, &name, points.all().filter(|point| point.at <= seq));
        let marks = self.store.checkpoint_marks(&row.id).await?;
        if marks.iter().any(|mark| mark.seq == seq && mark.key == key) {
            return Ok(false);
        }
        let last = self.store.records(&row.id, seq - 1, 1).await?;
        let Some(last) = last.first().filter(|last| last.seq == seq - 1).map(digest_of) else { return Ok(false) };
        let known: HashSet<String> = marks.iter().flat_map(|mark| mark.chunks.iter().cloned()).collect();
        let run = row.id.clone();
        let packed = self.pool.compute(self, WorkKind::Checkpoint, &row.tenant, move |_| {
            let written = StateCheckpoint::of(&state);
            let chunks: Vec<String> = written.chunks.iter().map(|chunk| chunk.name.to_string()).collect();
            let missing = written.chunks.iter().filter(|chunk| !known.contains(chunk.name.as_str()));
            let new = missing.map(|chunk| {
                let bytes = deflate(Vec::new(), &chunk.bytes())?;
                Some(CheckpointChunk { run: run.clone(), name: chunk.name.to_string(), bytes })
            });
            Some(Packed { chunks, new: new.collect::<Option<Vec<_>>>()?, body: pack(&last, &written.body)? })
        });
        let Some(Packed { chunks, new, body }) = packed.await? else { return Ok(false) };
        let digest = Digest::of_bytes(&body);
        let checkpoint = Checkpoint { run: row.id.clone(), seq, key, chunks, digest, body };
        let gone = gone(&row.id, &marks, &checkpoint);
        let put = CheckpointWrite::Put { checkpoint, chunks: new };
        let since = marks.iter().map(|mark| mark.seq).filter(|before| *before < seq).max().unwrap_or(0);
        if put.bytes() > MOST_BYTES.min(worth(seq - since)) {
            return Ok(false);
        }
        let writes = [gone, Some(put)].into_iter().flatten().map(Write::Checkpoint).collect();
        match self.storage.write(live.generation, Lane::Of(&row.tenant), writes).await {
            Ok(()) => Ok(true),
            Err(CommitError::Stale) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// How many bytes a checkpoint may take that comes after so many records since the one before it. However large a state is,
/// and whatever it consists of, all that is written for checkpoints of a run is so much for each of its records.
fn worth(records: u64) -> usize {
    // What is always in a state, however short its run is.
    const LEAST: usize = 64 * 1024;
    let bytes = records.saturating_mul(LEAVING_PART * BYTES_PER_RECORD);
    usize::try_from(bytes).unwrap_or(usize::MAX).max(LEAST)
}

/// What makes room for a new one: what other builds have left, what is ahead of the log, and what is too much.
fn gone(run: &RunId, marks: &[CheckpointMark], new: &Checkpoint) -> Option<CheckpointWrite> {
    let made_by = made_by();
    let (ours, others): (Vec<_>, Vec<_>) =
        marks.iter().filter(|mark| mark.seq != new.seq).partition(|mark| mark.key.starts_with(&made_by));
    let mut all: Vec<(u64, u64)> = ours.iter().map(|mark| (mark.seq, mark.bytes)).collect();
    all.push((new.seq, new.body.len() as u64));
    all.sort_unstable();
    let seqs: Vec<u64> = thinned(all).into_iter().chain(others.iter().map(|mark| mark.seq)).collect();
    let stays = |mark: &&CheckpointMark| mark.seq != new.seq && !seqs.contains(&mark.seq);
    let needed: HashSet<&String> =
        marks.iter().filter(stays).flat_map(|mark| &mark.chunks).chain(&new.chunks).collect();
    let mut chunks: Vec<String> =
        marks.iter().flat_map(|mark| &mark.chunks).filter(|name| !needed.contains(name)).cloned().collect();
    chunks.sort_unstable();
    chunks.dedup();
    (!seqs.is_empty() || !chunks.is_empty()).then(|| CheckpointWrite::Drop { run: run.clone(), seqs, chunks })
}
