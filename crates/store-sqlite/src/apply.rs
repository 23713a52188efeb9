//! One transaction: commits in, rows out.
//!
//! A commit is checked before its first write, so a refused one leaves nothing behind and needs no savepoint. A run's
//! row is written once per transaction however many commits move it: a new run is inserted as its commit leaves it,
//! and rows of runs that were there before are updated at the end.

use std::collections::HashMap;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunId, Timestamp};
use baton_store::{Commit, Committed, LedgerCommitted, Pruned, RunRow, StoredRecord, Webhook, WebhookStatus, Write};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::cache::{Place, Places};
use crate::error::Failure;
use crate::ledgers::{Grown, Ledgers};
use crate::rows;

pub(crate) struct Transaction<'a> {
    connection: &'a Connection,
    places: &'a mut Places,
    /// Rows still to be updated, by run.
    moved: HashMap<i64, Moved>,
    grown: Grown,
}

struct Moved {
    row: RunRow,
    /// Whether anything changes that an index knows about. Mostly it does not, and SQLite would rewrite the index
    /// entries all the same if the columns were named in the update: over a third of what an append costs on disk.
    reindex: bool,
    /// Whether its summary is another one: long enough not to be written for nothing.
    resummarise: bool,
}

const MOVE: &str = "UPDATE runs SET next_seq = ?2, updated_at = ?3, current_node = ?4, error_code = ?5 WHERE run = ?1";
const RESUMMARISE: &str = "UPDATE runs SET summary = ?2 WHERE run = ?1";
const REINDEX: &str = "UPDATE runs SET status = ?2, wake_at = ?3, busy = ?4 WHERE run = ?1";

impl<'a> Transaction<'a> {
    pub(crate) fn begin(connection: &'a Connection, places: &'a mut Places) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self { connection, places, moved: HashMap::new(), grown: Grown::default() })
    }

    /// After `Refused` the transaction goes on as if the commit had never come; after `Disk` it must be rolled back.
    pub(crate) fn apply(&mut self, commit: Commit) -> Result<(Vec<Committed>, Vec<LedgerCommitted>), Failure> {
        let runs = commit.check(|run| Ok::<_, Failure>(self.place(run)?.map(|place| place.next_seq)))?;
        let ledgers = commit.check_ledgers(|ledger| Ok::<_, Failure>(self.ledgers().version(ledger)?))?;
        let mut created = Vec::new();
        for (index, write) in commit.writes.iter().enumerate() {
            if let Write::CreateRun(row) = write {
                let later = commit.writes[index..].iter().rev().find_map(|write| match write {
                    Write::Append { row: later, .. } if later.id == row.id => Some(later),
                    _ => None,
                });
                let beginning = row.origin.as_ref().map_or(0, |origin| origin.seq);
                let next_seq = later.map_or(beginning, |later| later.next_seq);
                let run = self.insert_run(row, later.unwrap_or(row), next_seq)?;
                self.places.runs.put(row.id.clone(), Place { next_seq, ..Place::of(run, later.unwrap_or(row)) });
                created.push(run);
            }
        }
        for write in commit.writes {
            match write {
                Write::CreateRun(_) => {}
                Write::Append { row, records, .. } => {
                    // The check found it, so it is there.
                    let Some(place) = self.place(&row.id)? else { continue };
                    self.insert_records(place.run, &records)?;
                    if !created.contains(&place.run) {
                        self.places.runs.put(row.id.clone(), Place::of(place.run, &row));
                        self.move_row(place, row);
                    }
                }
                Write::Change { ledger, change } => self.ledgers().append(ledger, &change)?,
                Write::ForkLedger { ledger, base, version } => self.ledgers().fork(ledger, &base, version)?,
                Write::ForgetHistory { ledger, below } => self.ledgers().forget_history(&ledger, below)?,
                Write::DropLedger(ledger) => self.ledgers().drop_ledger(&ledger)?,
                Write::Prune { run, pruned } => self.prune(&run, pruned)?,
                write => self.write_part(write)?,
            }
        }
        for ended in runs.iter().filter(|committed| committed.terminal) {
            self.places.runs.forget(&ended.run);
        }
        Ok((runs, ledgers))
    }

    pub(crate) fn commit(self) -> rusqlite::Result<()> {
        for (run, Moved { row, reindex, resummarise }) in &self.moved {
            self.connection.prepare_cached(MOVE)?.execute(params![
                run,
                rows::integer(row.next_seq),
                row.updated_at.as_micros(),
                row.current_node.as_ref().map(|node| node.as_str()),
                row.error_code,
            ])?;
            if *resummarise {
                self.connection.prepare_cached(RESUMMARISE)?.execute(params![run, row.summary.as_deref()])?;
            }
            if *reindex {
                let wake_at = row.wake_at.map(Timestamp::as_micros);
                self.connection.prepare_cached(REINDEX)?.execute(params![
                    run,
                    row.status.as_str(),
                    wake_at,
                    row.busy
                ])?;
            }
        }
        self.grown.write(self.connection)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn ledgers(&mut self) -> Ledgers<'_> {
        Ledgers { connection: self.connection, places: &mut self.places.ledgers, grown: &mut self.grown }
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
            let place = self.moved.get(&stored.run).map_or(stored, |moved| Place::of(stored.run, &moved.row));
            self.places.runs.put(id.clone(), place);
            place
        }))
    }

    /// `row` says what the run is, `latest` where it stands after the commit.
    fn insert_run(&self, row: &RunRow, latest: &RunRow, next_seq: u64) -> rusqlite::Result<i64> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, parent,
                    scope, tags, current_node, error_code, busy, root, memory_scope,
                    workspace_scope, origin, origin_run, summary)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
                    ?21)",
        )?;
        insert.insert(params![
            row.id.as_str(),
            row.tenant.as_str(),
            row.workflow.as_str(),
            row.digest.as_str(),
            latest.status.as_str(),
            row.created_at.as_micros(),
            latest.updated_at.as_micros(),
            rows::integer(next_seq),
            latest.wake_at.map(Timestamp::as_micros),
            row.parent.as_ref().map(|parent| parent.as_str()),
            row.scope,
            rows::json_list(&row.tags),
            latest.current_node.as_ref().map(|node| node.as_str()),
            latest.error_code,
            latest.busy,
            row.root.as_ref().map(|root| root.as_str()),
            Some(row.memory_scope.as_str()).filter(|scope| *scope != rows::default_memory_scope(row)).unwrap_or(""),
            Some(row.workspace_scope.as_str()).filter(|scope| *scope != DEFAULT_WORKSPACE).unwrap_or(""),
            row.origin.as_ref().and_then(|origin| serde_json::to_string(origin).ok()),
            row.origin.as_ref().map(|origin| origin.source.as_str()),
            latest.summary.as_deref(),
        ])
    }

    fn move_row(&mut self, from: Place, row: RunRow) {
        let changes = from.status != row.status || from.wake_at != row.wake_at || from.busy != row.busy;
        let before = self.moved.get(&from.run);
        let reindex = changes || before.is_some_and(|moved| moved.reindex);
        let resummarise =
            from.summary != Place::mark(row.summary.as_deref()) || before.is_some_and(|moved| moved.resummarise);
        self.moved.insert(from.run, Moved { row, reindex, resummarise });
    }

    fn insert_records(&self, run: i64, records: &[StoredRecord]) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO events (run, seq, at, kind, body, private, memory, workspace, part)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        for record in records {
            insert.execute(params![
                run,
                rows::integer(record.seq),
                record.at.as_micros(),
                record.kind,
                record.body,
                record.private,
                rows::integer(record.versions.memory),
                rows::integer(record.versions.workspace),
                record.part.map(rows::part),
            ])?;
        }
        Ok(())
    }

    fn prune(&self, id: &RunId, pruned: Pruned) -> rusqlite::Result<()> {
        let mark = "UPDATE runs SET pruned_at = ?2, pruned_log = max(pruned_log, ?3) WHERE id = ?1";
        let values = params![id.as_str(), pruned.at.as_micros(), pruned.log];
        self.connection.prepare_cached(mark)?.execute(values)?;
        if pruned.log {
            let drop_log = "DELETE FROM events WHERE run = (SELECT run FROM runs WHERE id = ?1)";
            self.connection.prepare_cached(drop_log)?.execute([id.as_str()])?;
        }
        Ok(())
    }

    fn write_part(&self, write: Write) -> rusqlite::Result<()> {
        let run = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
            self.connection.prepare_cached(sql)?.execute(params).map(|_rows| ())
        };
        match write {
            // Runs and ledgers, which `apply` has written.
            Write::CreateRun(_)
            | Write::Append { .. }
            | Write::Change { .. }
            | Write::ForkLedger { .. }
            | Write::ForgetHistory { .. }
            | Write::DropLedger(_)
            | Write::Prune { .. } => Ok(()),
            // For stores that several hosts share. A data directory has one owner (`lock.rs`): there is nobody to hand a
            // run to, to hold a claim or to send a letter, so there is nothing to note.
            Write::HandOver { .. } | Write::ReleaseClaim { .. } | Write::AnswerLetter { .. } => Ok(()),
            Write::OpenInterrupt(row) => run(
                "INSERT OR REPLACE INTO interrupts (run, node, tenant, workflow, interrupt_id, key, kind, data,
                        requested_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    row.run.as_str(),
                    row.node.as_str(),
                    row.tenant.as_str(),
                    row.workflow.as_str(),
                    row.interrupt_id,
                    row.key,
                    row.kind,
                    row.data.to_string(),
                    row.requested_at.as_micros(),
                    row.expires_at.map(Timestamp::as_micros),
                ],
            ),
            Write::CloseInterrupt { run: id, node } => {
                run("DELETE FROM interrupts WHERE run = ?1 AND node = ?2", params![id.as_str(), node.as_str()])
            }
            Write::PutBlob { digest, bytes } => run(
                "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING",
                params![digest.as_str(), bytes],
            ),
            Write::PutWorkflow(row) => run(
                "INSERT OR REPLACE INTO workflows (tenant, id, version, digest, name, created_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    row.tenant.as_str(),
                    row.id.as_str(),
                    row.version,
                    row.digest.as_str(),
                    row.name,
                    row.created_at.as_micros(),
                ],
            ),
            Write::PutReply(reply) => run(
                "INSERT OR REPLACE INTO replies (key, request, status, body, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    reply.key.as_str(),
                    reply.request.as_str(),
                    reply.status,
                    reply.body,
                    reply.expires_at.as_micros(),
                ],
            ),
            Write::PruneReplies { before } => {
                run("DELETE FROM replies WHERE expires_at < ?1", params![before.as_micros()])
            }
            Write::PutWebhook(row) => self.put_webhook(&row),
            Write::UpdateWebhook(row) => {
                if row.status == WebhookStatus::Failed {
                    run("DELETE FROM deliveries WHERE webhook = ?1", params![row.id.as_str()])?;
                }
                let mut find = self.connection.prepare_cached("SELECT 1 FROM webhooks WHERE id = ?1")?;
                if find.exists([row.id.as_str()])? { self.put_webhook(&row) } else { Ok(()) }
            }
            Write::DeleteWebhook(id) => {
                run("DELETE FROM deliveries WHERE webhook = ?1", params![id.as_str()])?;
                run("DELETE FROM webhooks WHERE id = ?1", params![id.as_str()])
            }
            Write::PutDelivery(row) => run(
                "INSERT OR REPLACE INTO deliveries (webhook, run, seq, attempts, due_at) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    row.webhook.as_str(),
                    row.run.as_str(),
                    rows::integer(row.seq),
                    row.attempts,
                    row.due_at.as_micros(),
                ],
            ),
            Write::DeleteDelivery { webhook, run: id, seq } => run(
                "DELETE FROM deliveries WHERE webhook = ?1 AND run = ?2 AND seq = ?3",
                params![webhook.as_str(), id.as_str(), rows::integer(seq)],
            ),
        }
    }

    fn put_webhook(&self, row: &Webhook) -> rusqlite::Result<()> {
        let mut put = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO webhooks (id, tenant, url, events, tags, secret, status, consecutive_failures,
                    failures, window_start, open_until, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let put = put.execute(params![
            row.id.as_str(),
            row.tenant.as_str(),
            row.url,
            rows::json_list(&row.events),
            rows::json_list(&row.tags),
            row.secret,
            rows::webhook_status(row.status),
            row.consecutive_failures,
            row.failures,
            row.window_start.as_micros(),
            row.open_until.map(Timestamp::as_micros),
            row.created_at.as_micros(),
        ]);
        put.map(|_rows| ())
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
