//! One transaction: commits in, rows out.
//!
//! A part is checked before its first write, so a refused one leaves nothing behind and needs no savepoint. A run's row is
//! written once per transaction however many parts move it: a new run is inserted as its part leaves it, and rows of runs
//! that were there before are updated at the end.

use std::collections::HashMap;

use baton_model::{RunId, Timestamp};
use baton_store::codec::{Existing, NewRun, integer, moved_sum, pruned_sum};
use baton_store::{
    Checksum, CommitError, CommitPart, Committed, Pruned, RunRow, VersionedStoreCommitted, Webhook, WebhookChange,
    Write,
};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::cache::{Place, Places};
use crate::checkpoints;
use crate::dead_letters;
use crate::error::{Failure, is_of_the_data};
use crate::insert;
use crate::note;
use crate::rows;
use crate::runners;
use crate::versioned::{Grown, VersionedStores};

pub(crate) struct Transaction<'a> {
    connection: &'a Connection,
    places: &'a mut Places,
    /// Rows still to be updated, by run.
    moved: HashMap<i64, Moved<'a>>,
    grown: Grown,
    /// Whether there is anything to count.
    wrote: bool,
}

struct Moved<'a> {
    row: &'a RunRow,
    /// Whether anything changes that an index knows about. Mostly it does not, and SQLite would rewrite the index
    /// entries all the same if the columns were named in the update: over a third of what an append costs on disk.
    reindex: bool,
    /// Whether its summary is another one: long enough not to be written for nothing.
    resummarise: bool,
}

const MOVE: &str =
    "UPDATE runs SET next_seq = ?2, updated_at = ?3, current_node = ?4, error_code = ?5, chain = ?6, sum = ?7
    WHERE run = ?1";
const RESUMMARISE: &str = "UPDATE runs SET summary = ?2 WHERE run = ?1";
const KEPT_FORKS: &str =
    "SELECT id FROM runs WHERE origin_run = ?1 AND origin_run IS NOT NULL AND NOT pruned_log ORDER BY run";
const END_QUARANTINE: &str = "DELETE FROM quarantine WHERE root = ?1";
const REINDEX: &str = "UPDATE runs SET status = ?2, wake_at = ?3, busy = ?4 WHERE run = ?1";

impl<'a> Transaction<'a> {
    pub(crate) fn begin(connection: &'a Connection, places: &'a mut Places) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection, places, moved: HashMap::new(), grown: Grown::default(), wrote: false })
    }

    /// After `Refused` the transaction goes on as if the part had never come; after the others it must be rolled back.
    pub(crate) fn apply(
        &mut self,
        part: CommitPart<'a>,
    ) -> Result<(Vec<Committed>, Vec<VersionedStoreCommitted>), Failure> {
        part.check_size()?;
        let mut at = None;
        self.apply_writes(part, &mut at).map_err(|failure| match failure {
            Failure::Disk(error) if is_of_the_data(&error) => Failure::Data(part.refused(at, &error)),
            failure => failure,
        })
    }

    /// The same with everything that follows for rows, so that after `Data`, too, the transaction goes on as if the part
    /// had never come.
    pub(crate) fn apply_apart(
        &mut self,
        part: CommitPart<'a>,
    ) -> Result<(Vec<Committed>, Vec<VersionedStoreCommitted>), Failure> {
        self.connection.prepare_cached("SAVEPOINT part")?.execute([])?;
        let written = self.apply(part).and_then(|written| self.write_rows().map(|()| written));
        if let Err(Failure::Data(_)) = &written {
            self.connection.prepare_cached("ROLLBACK TO part")?.execute([])?;
            // They know of what was undone.
            self.places.clear();
            self.moved.clear();
            self.grown = Grown::default();
        }
        if !matches!(written, Err(Failure::Disk(_))) {
            self.connection.prepare_cached("RELEASE part")?.execute([])?;
        }
        written
    }

    /// `at` is the write that it is at.
    fn apply_writes(
        &mut self,
        part: CommitPart<'a>,
        at: &mut Option<&'a Write>,
    ) -> Result<(Vec<Committed>, Vec<VersionedStoreCommitted>), Failure> {
        let runs = part.check(|run| Ok::<_, Failure>(self.place(run)?.map(|place| place.next_seq)))?;
        let ledgers = part.check_versioned_stores(|ledger| Ok::<_, Failure>(self.ledgers().version(ledger)?))?;
        part.check_forks(|run| Ok::<_, Failure>(self.log_is_gone(run)?), |run| Ok(self.forks(run)?))?;
        self.wrote |= !part.writes.is_empty();
        let mut created = Vec::new();
        for (index, write) in part.writes.iter().enumerate() {
            if let Write::CreateRun(row) = write {
                *at = Some(write);
                let later = part.writes[index..].iter().rev().find_map(|write| match write {
                    Write::Append { row: later, .. } if later.id == row.id => Some(later),
                    _ => None,
                });
                let beginning = row.origin.as_ref().map_or(0, |origin| origin.seq);
                let next_seq = later.map_or(beginning, |later| later.next_seq);
                let first = part.writes[index..].iter().find_map(|write| match write {
                    Write::Append { row: later, records, .. } if later.id == row.id => records.first(),
                    _ => None,
                });
                let first = first.map(|record| record.versions);
                let new = NewRun { row, latest: later.unwrap_or(row), next_seq, pruned: None, first };
                insert::run(self.connection, Existing::Refuse, new)?;
                let run = self.connection.last_insert_rowid();
                self.places.runs.put(row.id.clone(), Place { next_seq, ..Place::of(run, later.unwrap_or(row)) });
                created.push(run);
            }
        }
        for write in part.writes {
            *at = Some(write);
            match write {
                Write::CreateRun(_) => {}
                Write::Append { row, records, expected } => {
                    // The check found it, so it is there.
                    let Some(place) = self.place(&row.id)? else { continue };
                    insert::records(self.connection, Existing::Refuse, place.run, records)?;
                    if !created.contains(&place.run) {
                        self.places.runs.put(row.id.clone(), Place::of(place.run, row));
                        self.move_row(place, row);
                        let begins = row.origin.as_ref().map_or(0, |origin| origin.seq);
                        if let Some(first) = records.first().filter(|_| *expected == begins) {
                            insert::first_versions(self.connection, place.run, first)?;
                        }
                    }
                }
                Write::Change { ledger, change } => self.ledgers().append(ledger, change)?,
                Write::ForkVersionedStore { ledger, base, version } => self.ledgers().fork(ledger, base, *version)?,
                Write::ForgetHistory { ledger, below } => self.ledgers().forget_history(ledger, *below)?,
                Write::DropVersionedStore(ledger) => self.ledgers().drop_versioned_store(ledger)?,
                Write::Prune { run, pruned } => self.prune(run, *pruned)?,
                write => self.write_part(write)?,
            }
        }
        for ended in runs.iter().filter(|committed| committed.terminal) {
            self.places.runs.forget(&ended.run);
        }
        Ok((runs, ledgers))
    }

    /// The number of this transaction, unless there was nothing to write.
    pub(crate) fn commit(mut self) -> Result<Option<u64>, Failure> {
        self.write_rows()?;
        let number = match self.wrote {
            true => self.connection.prepare_cached(note::COUNT)?.query_row([], rows::commits).optional()?,
            false => None,
        };
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(number)
    }

    /// Writes what was put off: the rows of runs that moved, and of versioned stores that grew.
    fn write_rows(&mut self) -> Result<(), Failure> {
        for (run, moved) in std::mem::take(&mut self.moved) {
            self.update_row(run, &moved).map_err(|error| {
                if !is_of_the_data(&error) {
                    return Failure::Disk(error);
                }
                let reason = format!("the row of {}: {error}", moved.row.id);
                Failure::Data(CommitError::Refused { run: Some(moved.row.id.clone()), reason })
            })?;
        }
        std::mem::take(&mut self.grown).write(self.connection)?;
        Ok(())
    }

    fn update_row(&self, run: i64, Moved { row, reindex, resummarise }: &Moved<'_>) -> rusqlite::Result<()> {
        self.connection.prepare_cached(MOVE)?.execute(params![
            run,
            integer(row.next_seq),
            row.updated_at.as_micros(),
            row.current_node.as_ref().map(|node| node.as_str()),
            row.error_code,
            row.chain.head.as_ref().map(Checksum::as_bytes),
            moved_sum(row),
        ])?;
        if *resummarise {
            self.connection.prepare_cached(RESUMMARISE)?.execute(params![run, row.summary.as_deref()])?;
        }
        if *reindex {
            let wake_at = row.wake_at.map(Timestamp::as_micros);
            self.connection.prepare_cached(REINDEX)?.execute(params![run, row.status.as_str(), wake_at, row.busy])?;
        }
        Ok(())
    }

    fn ledgers(&mut self) -> VersionedStores<'_> {
        VersionedStores { connection: self.connection, places: &mut self.places.ledgers, grown: &mut self.grown }
    }

    fn place(&mut self, id: &RunId) -> rusqlite::Result<Option<Place>> {
        if let Some(place) = self.places.runs.get(id) {
            return Ok(Some(place));
        }
        let mut find = self
            .connection
            .prepare_cached("SELECT run, next_seq, status, wake_at, busy, summary FROM runs WHERE id = ?1")?;
        let found = find.query_row([id.as_str()], rows::place).optional()?;
        Ok(found.map(|stored| {
            // The row may lag behind: it is updated at the end.
            let place = self.moved.get(&stored.run).map_or(stored, |moved| Place::of(stored.run, moved.row));
            self.places.runs.put(id.clone(), place);
            place
        }))
    }

    fn move_row(&mut self, from: Place, row: &'a RunRow) {
        let changes = from.status != row.status || from.wake_at != row.wake_at || from.busy != row.busy;
        let before = self.moved.get(&from.run);
        let reindex = changes || before.is_some_and(|moved| moved.reindex);
        let resummarise =
            from.summary != Place::mark(row.summary.as_deref()) || before.is_some_and(|moved| moved.resummarise);
        self.moved.insert(from.run, Moved { row, reindex, resummarise });
    }

    fn log_is_gone(&self, id: &RunId) -> rusqlite::Result<bool> {
        let gone = "SELECT 1 FROM runs WHERE id = ?1 AND pruned_log";
        self.connection.prepare_cached(gone)?.exists([id.as_str()])
    }

    /// Those that keep their logs.
    fn forks(&self, id: &RunId) -> rusqlite::Result<Vec<RunId>> {
        let mut kept = self.connection.prepare_cached(KEPT_FORKS)?;
        kept.query_map([id.as_str()], rows::run_id)?.collect()
    }

    fn prune(&self, id: &RunId, pruned: Pruned) -> rusqlite::Result<()> {
        let mark = "UPDATE runs SET pruned_at = ?2, pruned_log = max(pruned_log, ?3),
            pruned_sum = iif(max(pruned_log, ?3), ?4, ?5) WHERE id = ?1";
        let sum = |log| pruned_sum(id, Pruned { log, ..pruned });
        let values = params![id.as_str(), pruned.at.as_micros(), pruned.log, sum(true), sum(false)];
        self.connection.prepare_cached(mark)?.execute(values)?;
        self.connection.prepare_cached(END_QUARANTINE)?.execute([id.as_str()])?;
        if pruned.log {
            self.connection.prepare_cached("DELETE FROM annotations WHERE run = ?1")?.execute([id.as_str()])?;
            checkpoints::forget(self.connection, id.as_str())?;
            let drop_log = "DELETE FROM events WHERE run = (SELECT run FROM runs WHERE id = ?1)";
            self.connection.prepare_cached(drop_log)?.execute([id.as_str()])?;
        }
        Ok(())
    }

    fn write_part(&self, write: &Write) -> rusqlite::Result<()> {
        let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
            self.connection.prepare_cached(sql)?.execute(params).map(|_rows| ())
        };
        match write {
            // Runs and versioned stores, which `apply` has written.
            Write::CreateRun(_)
            | Write::Append { .. }
            | Write::Change { .. }
            | Write::ForkVersionedStore { .. }
            | Write::ForgetHistory { .. }
            | Write::DropVersionedStore(_)
            | Write::Prune { .. } => Ok(()),
            // For stores that several hosts share. A data directory has one owner (`lock.rs`): there is nobody to hand a
            // run to, to hold a claim or to send a letter, so there is nothing to note.
            Write::HandOver { .. } | Write::ReleaseClaim { .. } | Write::AnswerForwarded { .. } => Ok(()),
            Write::OpenInterrupt(row) => insert::row(self.connection, Existing::Replace, row),
            Write::CloseInterrupt { run: id, node } => {
                run("DELETE FROM interrupts WHERE run = ?1 AND node = ?2", params![id.as_str(), node.as_str()])
            }
            Write::PutBlob { digest, bytes } => insert::blob(self.connection, digest, bytes),
            Write::PutWorkflow(row) => insert::row(self.connection, Existing::Replace, row),
            Write::PutReply(reply) => insert::row(self.connection, Existing::Replace, reply),
            Write::PruneReplies { before } => {
                run("DELETE FROM replies WHERE expires_at < ?1", params![before.as_micros()])
            }
            Write::Probe { number } => {
                // A page of its own, taken and given back: changing a row in place proves nothing on a full disk.
                run("INSERT INTO probe (filler) VALUES (zeroblob(4096))", params![])?;
                run("DELETE FROM probe", params![])?;
                // Any 64 bits may be a number.
                run("INSERT OR REPLACE INTO canary (only, number) VALUES (1, ?1)", params![number.cast_signed()])
            }
            Write::Annotate(row) => insert::row(self.connection, Existing::Replace, row),
            Write::Checkpoint(write) => checkpoints::write(self.connection, write),
            Write::PutSpending(row) => checkpoints::spending(self.connection, row),
            Write::Quarantine(row) => insert::row(self.connection, Existing::Replace, row),
            Write::EndQuarantine { root } => run(END_QUARANTINE, params![root.as_str()]),
            Write::PutWebhook(row) => insert::row(self.connection, Existing::Replace, row),
            Write::NoteAttempt { webhook: id, attempt } => {
                let sql = format!("SELECT {} FROM webhooks WHERE id = ?1", rows::columns::<Webhook>());
                let mut find = self.connection.prepare_cached(&sql)?;
                let Some(mut row) = find.query_row([id.as_str()], rows::stored::<Webhook>).optional()? else {
                    return Ok(());
                };
                if row.note(attempt) { insert::row(self.connection, Existing::Replace, &row) } else { Ok(()) }
            }
            Write::ChangeWebhook { webhook: id, change: WebhookChange::Resumed { at } } => {
                let values = params![id.as_str(), at.as_micros()];
                run("UPDATE deliveries SET due_at = ?2 WHERE webhook = ?1 AND due_at > ?2", values)?;
                run(
                    "UPDATE webhooks SET status = 'active', consecutive_failures = 0, failures = 0, open_until = NULL,
                            window_start = ?2 WHERE id = ?1",
                    values,
                )
            }
            Write::ChangeWebhook { webhook: id, change: WebhookChange::Secret(secret) } => {
                run("UPDATE webhooks SET secret = ?2 WHERE id = ?1", params![id.as_str(), secret])
            }
            Write::Runners(write) => runners::write(self.connection, write),
            Write::DeadLetters(write) => dead_letters::write(self.connection, write),
            Write::DeleteWebhook(id) => {
                run("DELETE FROM dead_letters WHERE webhook = ?1", params![id.as_str()])?;
                run("DELETE FROM deliveries WHERE webhook = ?1", params![id.as_str()])?;
                run("DELETE FROM webhooks WHERE id = ?1", params![id.as_str()])
            }
            Write::PutDelivery(row) => insert::row(self.connection, Existing::Replace, row),
            Write::DeleteDelivery { webhook, run: id, seq } => run(
                "DELETE FROM deliveries WHERE webhook = ?1 AND run = ?2 AND seq = ?3",
                params![webhook.as_str(), id.as_str(), integer(*seq)],
            ),
        }
    }
}

/// Undoes whatever is open. Nothing to undo is fine: some failures end the transaction by themselves.
pub(crate) fn roll_back(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        // Recovery opens a new connection, and closing this one undoes it too.
        tracing::warn!(%error, "a failed transaction could not be rolled back");
    }
}
