//! A store of one host on a disk that several share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};
use tokio::sync::broadcast;

use super::cluster::{Cluster, Member};
use super::disk::Disk;
use super::members::Sent;
use super::store::{Fault, MemoryStore};
use crate::{Claim, ClusterEvent, Error, ForwardedCommand, Owner, Recipient, Session, Shared, Suspect};

impl Cluster {
    /// Opens the disk for one more host.
    pub fn join(&self, host: &str) -> MemoryStore {
        MemoryStore::on(Arc::clone(&self.disk), Some(Member::new(self.clone(), host)))
    }

    /// The disk as somebody sees it who is none of the hosts.
    #[must_use]
    pub fn observe(&self) -> MemoryStore {
        MemoryStore::on(Arc::clone(&self.disk), None)
    }
}

fn gone(reason: &str) -> Error {
    Error::Unavailable { reason: reason.to_owned(), source: None }
}

impl MemoryStore {
    fn member(&self) -> Result<&Member, Error> {
        self.member.as_ref().ok_or_else(|| gone("the disk is not shared"))
    }

    /// Does something durable outside the journal, unless the process is dead or its session has ended. It counts as a
    /// commit where those are counted, so a crash can come here too.
    fn change<T>(&self, change: impl FnOnce(&mut Disk, &Member) -> T) -> Result<T, Error> {
        let member = self.member()?;
        let mut state = self.state.lock();
        if let Fault::Crash { left: 0 } = state.fault {
            drop(state);
            self.crashed.send_replace(true);
            return Err(gone("the process is gone"));
        }
        let mut disk = self.disk.lock();
        if state.closed || disk.members.has_ended(member.epoch()) {
            return Err(gone("this session has ended"));
        }
        if let Fault::Crash { left } = &mut state.fault {
            *left -= 1;
        }
        state.commits += 1;
        Ok(change(&mut disk, member))
    }

    /// What asks for something waits here while it is frozen, or while others read: such questions go over the same
    /// connections.
    async fn alive(&self) -> Result<&Member, Error> {
        drop(self.turn().await);
        self.thawed().await
    }

    /// What is frozen waits here.
    async fn thawed(&self) -> Result<&Member, Error> {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.frozen.subscribe().wait_for(|frozen| !*frozen).await;
        if *self.crashed.borrow() {
            return Err(gone("the process is gone"));
        }
        self.reach()?;
        self.member()
    }
}

#[async_trait]
impl Shared for MemoryStore {
    fn epoch(&self) -> u64 {
        self.epoch_now()
    }

    fn lease(&self) -> Duration {
        self.member.as_ref().map_or(Duration::MAX, |member| member.cluster.lease)
    }

    async fn renew(&self, load: u64) -> Result<bool, Error> {
        // It waits for nobody who reads.
        let member = self.thawed().await?;
        let lease_until = member.cluster.lease_from_now();
        let mut disk = self.disk.lock();
        let seat = disk.members.sessions.get_mut(&member.epoch()).filter(|seat| !seat.ended);
        Ok(seat.map(|seat| (seat.load, seat.lease_until) = (load, lease_until)).is_some())
    }

    async fn sessions(&self) -> Result<Vec<Session>, Error> {
        let now = self.alive().await?.cluster.now();
        let disk = self.disk.lock();
        let live = disk.members.sessions.iter().filter(|(_, seat)| !seat.ended);
        let session = live.map(|(epoch, seat)| Session {
            epoch: *epoch,
            host: seat.host.clone(),
            load: seat.load,
            lapsed: seat.lease_until < now,
        });
        Ok(session.collect())
    }

    async fn end_lapsed(&self) -> Result<Vec<u64>, Error> {
        let member = self.alive().await?;
        let now = member.cluster.now();
        let mut disk = self.disk.lock();
        let all: Vec<u64> = disk.members.sessions.keys().copied().collect();
        let lapsed = all.into_iter().filter(|epoch| disk.members.has_lapsed(*epoch, now)).collect::<Vec<_>>();
        let ended: Vec<u64> = lapsed.into_iter().filter(|epoch| disk.members.bury(*epoch)).collect();
        disk.members.tidy(now);
        disk.forget_suspects();
        drop(disk);
        ended.iter().for_each(|epoch| member.cluster.tell(ClusterEvent::Ended { epoch: *epoch }));
        Ok(ended)
    }

    async fn adopt(&self, until: Timestamp, limit: usize) -> Result<Vec<RunId>, Error> {
        self.alive().await?;
        if self.disk.lock().orphans(until, limit).is_empty() {
            return Ok(Vec::new());
        }
        self.change(|disk, member| {
            let trees = disk.orphans(until, limit);
            for root in &trees {
                disk.take_tree(root, member.epoch(), member.cluster.now());
            }
            trees
        })
    }

    async fn adopt_tree(&self, run: &RunId) -> Result<Option<Owner>, Error> {
        let member = self.alive().await?;
        let (me, now) = (member.epoch(), member.cluster.now());
        let (root, owner) = {
            let disk = self.disk.lock();
            let Some(log) = disk.log(run) else { return Ok(None) };
            if log.owner == me {
                return Ok(Some(Owner::Me));
            }
            if !disk.members.has_ended(log.owner) && !disk.members.has_lapsed(log.owner, now) {
                return Ok(Some(Owner::Other(log.owner)));
            }
            (log.tree().clone(), log.owner)
        };
        self.change(|disk, member| {
            if disk.members.bury(owner) {
                member.cluster.tell(ClusterEvent::Ended { epoch: owner });
            }
            disk.take_tree(&root, member.epoch(), member.cluster.now());
        })?;
        Ok(Some(Owner::Taken))
    }

    async fn suspects(&self) -> Result<Vec<Suspect>, Error> {
        let me = self.alive().await?.epoch();
        let disk = self.disk.lock();
        let mine = disk.members.suspects.iter().filter(|(root, _)| disk.log(root).is_some_and(|log| log.owner == me));
        let suspect =
            mine.map(|(root, held)| Suspect { root: root.clone(), takeovers: held.takeovers, deaths: held.deaths });
        Ok(suspect.collect())
    }

    async fn mark_suspect(&self, root: &RunId) -> Result<(), Error> {
        self.alive().await?;
        self.change(|disk, member| {
            if disk.log(root).is_none_or(|log| log.owner != member.epoch()) {
                return Err(gone("the tree belongs to another host"));
            }
            disk.members.suspects.entry(root.clone()).or_default().marked_by = Some(member.epoch());
            Ok(())
        })?
    }

    async fn unmark_suspect(&self, root: &RunId) -> Result<(), Error> {
        self.alive().await?;
        self.change(|disk, member| {
            if let Some(held) = disk.members.suspects.get_mut(root) {
                held.marked_by = held.marked_by.filter(|by| *by != member.epoch());
            }
        })
    }

    async fn clear_suspect(&self, root: &RunId) -> Result<(), Error> {
        self.alive().await?;
        self.change(|disk, member| {
            let marked = disk.members.suspects.get(root).is_some_and(|held| held.marked_by.is_some());
            if !marked && disk.log(root).is_some_and(|log| log.owner == member.epoch()) {
                disk.members.suspects.remove(root);
            }
        })
    }

    async fn owner(&self, run: &RunId) -> Result<Option<u64>, Error> {
        Ok(self.disk.lock().log(run).map(|log| log.owner))
    }

    async fn claim(&self, name: &str) -> Result<Claim, Error> {
        let me = self.alive().await?.epoch();
        {
            let disk = self.disk.lock();
            match disk.members.claims.get(name) {
                Some(holder) if *holder == me && !disk.members.has_ended(me) => return Ok(Claim::Mine),
                Some(holder) if !disk.members.has_ended(*holder) => return Ok(Claim::Held(*holder)),
                _ => {}
            }
        }
        self.change(|disk, member| {
            disk.members.claims.insert(name.to_owned(), member.epoch());
            Claim::Mine
        })
    }

    async fn send(&self, forwarded: ForwardedCommand) -> Result<(), Error> {
        self.alive().await?;
        if self.disk.lock().members.sent(&forwarded.id).is_some() {
            return Ok(());
        }
        self.change(|disk, member| {
            disk.members.forwarded_commands.push(Sent { forwarded, answer: None });
            member.cluster.tell(ClusterEvent::ForwardedCommand);
        })
    }

    async fn forwarded_commands(&self, limit: usize) -> Result<Vec<ForwardedCommand>, Error> {
        let me = self.alive().await?.epoch();
        let disk = self.disk.lock();
        let mine = disk.members.forwarded_commands.iter().filter(|sent| {
            sent.answer.is_none()
                && match &sent.forwarded.to {
                    Recipient::Run(run) => disk.log(run).is_some_and(|log| log.owner == me),
                    Recipient::Session(epoch) => *epoch == me,
                }
        });
        Ok(mine.take(limit).map(|sent| sent.forwarded.clone()).collect())
    }

    async fn forwarded(&self, id: &str) -> Result<Option<(ForwardedCommand, Option<String>)>, Error> {
        self.alive().await?;
        let disk = self.disk.lock();
        let sent = disk.members.sent(id);
        Ok(sent.map(|sent| (sent.forwarded.clone(), sent.answer.as_ref().map(|(body, _)| body.clone()))))
    }

    async fn forget_forwarded(&self, id: &str, answer: &str) -> Result<(), Error> {
        self.alive().await?;
        self.change(|disk, _| {
            let thus = |sent: &Sent| sent.answer.as_ref().is_some_and(|(body, _)| body == answer);
            disk.members.forwarded_commands.retain(|sent| sent.forwarded.id != id || !thus(sent));
        })
    }

    fn news(&self) -> broadcast::Receiver<ClusterEvent> {
        // Without a cluster there is nobody to hear from.
        self.member.as_ref().map_or_else(|| broadcast::channel(1).1, |member| member.cluster.news.subscribe())
    }

    async fn epochs(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<(u64, u64)>, Error> {
        let disk = self.disk.lock();
        let Some(log) = disk.log(run) else { return Ok(Vec::new()) };
        let all = log.records.iter().map(|record| record.seq).zip(log.epochs.iter().copied());
        Ok(all.filter(|(seq, _)| *seq >= from).take(limit).collect())
    }
}
