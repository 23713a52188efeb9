//! Judging trees that a process may have died of, and letting them go on once more where they may have been innocent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_model::RunId;
use baton_store::Suspect;
use futures_util::future::BoxFuture;

use crate::Error;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::Cause;
use crate::steps::deaths;

impl Quarantines {
    /// Those that were being stepped when the process died: twice is enough.
    pub(crate) async fn judge_suspects(self: &Arc<Self>) -> Result<(), Error> {
        let Some(notes) = self.options.step_notes.clone() else { return Ok(()) };
        for held in self.quarantined.held_for(Cause::ProcessDied) {
            // It was left alone and the process died all the same: somebody kills it, or something else does.
            if notes.died_without(&held) && notes.pardon(&held) {
                tracing::warn!(root = %held, "the process died without this tree too, so it may go on once more");
                self.end_quarantine_of(&held).await?;
            }
        }
        for (root, all) in notes.suspects() {
            let row = self.store.run(&root).await?.filter(|row| !row.status.is_terminal());
            let Some(mut row) = row else {
                notes.forget(&root);
                continue;
            };
            let mut guilty = Vec::new();
            for noted in all {
                let now = self.store.run(&noted.run).await?;
                let ended = now.as_ref().is_some_and(|row| row.status.is_terminal());
                let durable = now.as_ref().map_or(0, |row| row.next_seq);
                if ended || durable > noted.durable {
                    notes.progressed(&root, &noted.run, durable.max(noted.durable + 1));
                    continue;
                }
                // The one that was being made is known by its tree alone.
                row = now.unwrap_or(row);
                guilty.push(noted);
            }
            let Some(last) = guilty.last() else { continue };
            if deaths(&guilty) >= DEATHS && self.quarantined.of(&root).is_none() {
                let detail = format!("the process died {} times while it stepped {}", deaths(&guilty), last.run);
                let again = notes.is_pardoned(&root);
                let cause = if again { Cause::ProcessDiedAgain } else { Cause::ProcessDied };
                self.quarantine(&row, cause, &detail);
            }
            self.quarantined.suspects.note(root);
        }
        Ok(())
    }

    /// Trees that were taken over from hosts that died, and were to be stepped. One that a host died of while it stepped it
    /// singly is left alone; the others are stepped singly until they have made progress.
    pub(crate) async fn judge_taken(self: &Arc<Self>) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        let mut suspects = shared.suspects().await?;
        let mut new = BTreeSet::new();
        for Suspect { root, .. } in &suspects {
            // What is left alone already did not die with anybody.
            if !self.quarantined.suspects.marked.contains(root) && self.quarantine_of(root).await?.is_none() {
                new.insert(root.clone());
            }
        }
        if !new.is_empty() {
            self.pardon_taken(new, shared.lease()).await?;
            // Whoever was let go on has a cleaner record now.
            suspects = shared.suspects().await?;
        }
        for suspect in suspects {
            // Two deaths in all, and the tree was being stepped at the last of them.
            if suspect.deaths == 0 || suspect.takeovers < DEATHS as u64 {
                self.quarantined.suspects.mark(suspect.root);
            } else if self.quarantine_of(&suspect.root).await?.is_none()
                && let Some(row) = self.store.run(&suspect.root).await?
            {
                let hosts = suspect.takeovers;
                // Once released, one death is left of its record; see [`baton_store::Suspect`].
                let cause = if suspect.deaths > 1 { Cause::ProcessDiedAgain } else { Cause::ProcessDied };
                self.quarantine(&row, cause, &format!("{hosts} hosts died while they drove this run"));
            }
        }
        Ok(())
    }

    /// A host has just died with these trees. Those that were left alone by then are not what it died of, and may go on,
    /// once.
    fn pardon_taken(self: &Arc<Self>, died_with: BTreeSet<RunId>, lease: Duration) -> BoxFuture<'_, Result<(), Error>> {
        // A death is noticed when the lease is over: what was put in quarantine since may have been the cause.
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        Box::pin(async move {
            for root in self.quarantined.held_for(Cause::ProcessDied) {
                let Some(held) = self.quarantine_of(&root).await? else { continue };
                let before = held.at.plus_millis(lease.saturating_mul(2)) < self.clock.now();
                if before && !died_with.contains(&root) {
                    tracing::warn!(%root, "a host died without this tree too, so it may go on once more");
                    self.release(&root).await?;
                }
            }
            Ok(())
        })
    }

    /// A tree may have been marked by chance when somebody killed the host that had taken it over. So it may go on once
    /// more, after a while without deaths, and only while there is another host that would outlive this one.
    pub(crate) async fn pardon_in_quiet_times(self: &Arc<Self>) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        let held = self.quarantined.held_for(Cause::ProcessDied);
        if held.is_empty() {
            return Ok(());
        }
        let sessions = shared.sessions().await?;
        let live: Vec<u64> = sessions.iter().filter(|session| !session.lapsed).map(|session| session.epoch).collect();
        // One of them sees to it.
        if live.len() < 2 || live.iter().min() != Some(&shared.epoch()) {
            return Ok(());
        }
        let lease = u64::try_from(shared.lease().as_millis()).unwrap_or(u64::MAX);
        for root in held {
            let Some(held) = self.quarantine_of(&root).await? else { continue };
            if held.at.plus_millis(lease.saturating_mul(QUIET_LEASES)) < self.clock.now() {
                tracing::warn!(%root, "no host has died for a while, so this tree may go on once more");
                self.release(&root).await?;
            }
        }
        Ok(())
    }
}

/// At how many deaths of the process a run may have been the one that was stepped.
const DEATHS: usize = 2;

/// For how many leases a tree is left alone before it is let go on once, on a store that hosts share.
const QUIET_LEASES: u64 = 10;
