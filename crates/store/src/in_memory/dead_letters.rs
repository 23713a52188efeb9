//! Dead letters without a disk.

use std::collections::BTreeMap;

use baton_model::{RunId, TenantId, WebhookId};

use super::disk::Disk;
use crate::{DeadLetter, DeadLetterWrite, Delivery, WebhookLoad};

type Key = (WebhookId, RunId, u64);

impl Disk {
    pub(super) fn apply_letters(&mut self, write: DeadLetterWrite, me: u64) {
        match write {
            DeadLetterWrite::Put(letter) => {
                self.dead_letters.insert(key_of(&letter), letter);
            }
            DeadLetterWrite::Bury { webhook, keep, reason, at } => {
                let mine = |run: &RunId| me == 0 || self.log(run).is_some_and(|log| log.owner == me);
                let wanted = |delivery: &&Delivery| mine(&delivery.run);
                let mut waiting: Vec<Delivery> = of(&self.deliveries, &webhook).filter(wanted).cloned().collect();
                waiting.sort_by_key(|delivery| delivery.due_at);
                let over = waiting.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
                for Delivery { webhook, run, seq, attempts, .. } in waiting.into_iter().take(over) {
                    self.deliveries.remove(&(webhook.clone(), run.clone(), seq));
                    let kind = self.kind_of(&run, seq);
                    let letter = DeadLetter { webhook, run, seq, kind, attempts, reason, status: None, at };
                    self.dead_letters.insert(key_of(&letter), letter);
                }
            }
            DeadLetterWrite::Redeliver { webhook, which, due_at } => {
                let gone = |run: &RunId| self.log(run).and_then(|log| log.row.pruned).is_some_and(|pruned| pruned.log);
                let wanted = |letter: &DeadLetter| {
                    letter.webhook == webhook && which.includes(&letter.run, letter.seq) && !gone(&letter.run)
                };
                let found: Vec<DeadLetter> =
                    self.dead_letters.values().filter(|letter| wanted(letter)).cloned().collect();
                for letter in found {
                    let key = key_of(&letter);
                    self.dead_letters.remove(&key);
                    let DeadLetter { webhook, run, seq, .. } = letter;
                    let queued = Delivery { webhook, run, seq, attempts: 0, due_at };
                    self.deliveries.entry(key).or_insert(queued);
                }
            }
            DeadLetterWrite::Forget { webhook, which } => {
                self.dead_letters.retain(|(of, run, seq), _| *of != webhook || !which.includes(run, *seq));
            }
            DeadLetterWrite::Trim { webhook, keep } => {
                let kept = usize::try_from(keep).unwrap_or(usize::MAX);
                let over: Vec<DeadLetter> = self.letters_of(&webhook).into_iter().skip(kept).collect();
                for letter in &over {
                    self.dead_letters.remove(&key_of(letter));
                }
                if let Some(webhook) = self.webhooks.get_mut(&webhook) {
                    webhook.letters_dropped += over.len() as u64;
                }
            }
            DeadLetterWrite::Expire { before, limit } => {
                let old = self.dead_letters.values().filter(|letter| letter.at < before);
                let mut old: Vec<DeadLetter> = old.cloned().collect();
                old.sort_by_key(|letter| (letter.at, letter.webhook.clone(), letter.run.clone(), letter.seq));
                for letter in old.iter().take(usize::try_from(limit).unwrap_or(usize::MAX)) {
                    self.dead_letters.remove(&key_of(letter));
                }
            }
        }
    }

    fn kind_of(&self, run: &RunId, seq: u64) -> String {
        let records = self.log(run).map_or(&[][..], |log| &log.records);
        records.iter().find(|record| record.seq == seq).map(|record| record.kind.to_string()).unwrap_or_default()
    }

    /// Newest first.
    pub(super) fn letters_of(&self, webhook: &WebhookId) -> Vec<DeadLetter> {
        let mut found: Vec<DeadLetter> = of(&self.dead_letters, webhook).cloned().collect();
        found.sort_by_key(|letter| std::cmp::Reverse(letter.place()));
        found
    }

    pub(super) fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Vec<WebhookLoad> {
        let wanted = self.webhooks.values().filter(|webhook| webhook.tenant == *tenant);
        let wanted = wanted.filter(|webhook| only.is_none_or(|only| webhook.id == *only));
        let load = |id: &WebhookId| WebhookLoad {
            webhook: id.clone(),
            letters: of(&self.dead_letters, id).count() as u64,
            waiting: of(&self.deliveries, id).count() as u64,
        };
        wanted.map(|webhook| load(&webhook.id)).collect()
    }
}

/// Those of one subscriber, however many others have.
fn of<'a, T>(rows: &'a BTreeMap<Key, T>, webhook: &'a WebhookId) -> impl Iterator<Item = &'a T> {
    let first = (webhook.clone(), RunId::new(""), 0);
    rows.range(first..).take_while(move |((of, ..), _)| of == webhook).map(|(_, row)| row)
}

fn key_of(letter: &DeadLetter) -> Key {
    (letter.webhook.clone(), letter.run.clone(), letter.seq)
}
