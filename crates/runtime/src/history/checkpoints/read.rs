//! Where folding begins: at the newest checkpoint that can be used.

use std::collections::HashMap;
use std::sync::Arc;

use baton_engine::{Checkpoint as StateCheckpoint, RunState};
use baton_model::Digest;
use baton_store::Checkpoint;

use super::body::{digest_of, inflate, unpack};
use super::key::key;
use super::used::{Beginning, UsedCheckpoint};
use crate::Error;
use crate::history::log::RunLog;
use crate::history::segments::{BranchPoint, WantedLog};
use crate::services::workflows::Whose;
use crate::steps::Stepping;

/// How often one is looked for: a log may have passed through many forks, and any checkpoint may be unusable.
const MOST_LOOKS: usize = 16;

impl RunLog {
    /// The newest usable checkpoint. One of a source will do for a fork as far as their logs are the same.
    pub(crate) async fn nearest_checkpoint(
        &self,
        wanted: &WantedLog<'_>,
        what: Stepping<'_>,
    ) -> Result<Option<Beginning>, Error> {
        let WantedLog { row, segments, name, points, end } = *wanted;
        if !self.checkpoint_queue.is_on() {
            return Ok(None);
        }
        let points: Vec<&BranchPoint> = points.all().collect();
        let replay = segments.iter().find(|segment| segment.is_replay());
        // In a replay, branch points may lie elsewhere than in its source. It has no checkpoints of its own.
        let same = replay.map_or(u64::MAX, |replay| replay.from);
        let mut looks = MOST_LOOKS;
        for segment in segments.iter().rev() {
            let durable = if segment.run == row.id { row.next_seq } else { u64::MAX };
            let until = end.min(segment.until).min(same).min(durable);
            for crossed in (0..=points.len()).rev() {
                let after = crossed.checked_sub(1).map_or(0, |last| points[last].at);
                let from = after.max(segment.from.saturating_add(1));
                let mut until = points.get(crossed).map_or(until, |next| until.min(next.at));
                while from <= until {
                    if looks == 0 {
                        return Ok(None);
                    }
                    looks -= 1;
                    let key = key(&row.digest, name, points[..crossed].iter().copied());
                    let Some(found) = self.store.checkpoint(&segment.run, &key, from, until).await? else { break };
                    let used = UsedCheckpoint { found, tenant: row.tenant.clone() };
                    if let Some(state) = self.restored(&used.found, &row.digest, what).await? {
                        return Ok(Some(Beginning { state, crossed, used }));
                    }
                    self.not_usable(&used);
                    let Some(older) = used.found.seq.checked_sub(1) else { break };
                    until = older;
                }
            }
        }
        Ok(None)
    }

    /// It is deleted, and the log is what counts.
    pub(crate) fn not_usable(&self, used: &UsedCheckpoint) {
        let UsedCheckpoint { found, tenant } = used;
        tracing::warn!(run = %found.run, seq = found.seq, "a checkpoint is not usable; it is left out and deleted");
        metrics::counter!("baton_checkpoints_total", "outcome" => "unusable").increment(1);
        self.checkpoint_queue.delete(found, tenant);
    }

    /// `None` if it is damaged, or not of this log.
    async fn restored(&self, found: &Checkpoint, plan: &Digest, what: Stepping<'_>) -> Result<Option<RunState>, Error> {
        let Some(before) = found.seq.checked_sub(1) else { return Ok(None) };
        let last = self.store.records(&found.run, before, 1).await?;
        let Some(last) = last.first().filter(|last| last.seq == before) else { return Ok(None) };
        let chunks = match found.chunks.as_slice() {
            [] => Vec::new(),
            names => self.store.checkpoint_chunks(&found.run, names).await?,
        };
        let plan = self.plan_loader.plan(Whose::Run(what), plan).await?;
        let turn = self.pool.turn(what.tenant).await;
        let read = self.pool.guarded(&turn, what, || {
            if Digest::of_bytes(&found.body) != found.digest {
                return None;
            }
            let (after, state) = unpack(&found.body)?;
            if after != digest_of(last) {
                return None;
            }
            let chunks: HashMap<&str, &[u8]> =
                chunks.iter().map(|chunk| (chunk.name.as_str(), chunk.bytes.as_slice())).collect();
            let chunk = |name: &Digest| inflate(chunks.get(name.as_str())?);
            let state = StateCheckpoint::restore(&state, Arc::clone(&plan), chunk);
            state.ok().filter(|state| state.next_seq() == found.seq)
        });
        // Whatever went wrong was said; the log is there.
        Ok(read.ok().flatten())
    }
}
