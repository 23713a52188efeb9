//! What a transaction writes to memory scopes and workspaces.

use std::collections::BTreeMap;

use baton_model::{RunId, Timestamp};
use baton_store::{Change, LedgerId, Write};

use crate::known::Known;
use crate::rows;
use crate::statement::Statement;

/// Changes are gathered; what is forgotten or forked depends on them, and comes in its turn.
#[derive(Default)]
pub(crate) struct Ledgers<'a> {
    done: Vec<Statement<'a>>,
    growing: BTreeMap<&'a LedgerId, Growing<'a>>,
    /// Ledgers that have a row by now because of this transaction.
    made: Vec<&'a LedgerId>,
}

struct Growing<'a> {
    new: bool,
    changes: Vec<&'a Change>,
}

impl Growing<'_> {
    fn expected(&self) -> i64 {
        self.changes.first().map_or(0, |change| rows::integer(change.version) - 1)
    }

    fn version(&self) -> i64 {
        self.changes.last().map_or(0, |change| rows::integer(change.version))
    }

    fn at(&self) -> i64 {
        self.changes.last().map_or(0, |change| change.at.as_micros())
    }
}

impl<'a> Ledgers<'a> {
    pub(crate) fn add(&mut self, write: &'a Write, known: &Known<'_>) {
        match write {
            Write::Change { ledger, change } => {
                let new = !self.made.contains(&ledger) && !known.has_ledger(ledger, change.version);
                let growing = self.growing.entry(ledger).or_insert(Growing { new, changes: Vec::new() });
                growing.changes.push(change);
            }
            Write::ForkLedger { ledger, base, version } => {
                self.settle();
                let fork = ledger_row(FORK, ledger).value(rows::integer(*version)).value(rows::ledger_key(base));
                self.done.push(fork);
                self.made.push(ledger);
            }
            Write::ForgetHistory { ledger, below } => {
                self.settle();
                for step in FORGET {
                    self.done.push(Statement::new(step).value(rows::ledger_key(ledger)).value(rows::integer(*below)));
                }
            }
            Write::DropLedger(ledger) => {
                self.settle();
                for step in DROP {
                    self.done.push(Statement::new(step).value(rows::ledger_key(ledger)));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn statements(mut self) -> Vec<Statement<'a>> {
        self.settle();
        self.done
    }

    fn settle(&mut self) {
        let growing = std::mem::take(&mut self.growing);
        let (new, old): (Vec<_>, Vec<_>) = growing.iter().partition(|(_, growing)| growing.new);
        if !new.is_empty() {
            self.done.push(
                Statement::new(CREATE)
                    .list(new.iter().map(|(ledger, _)| rows::ledger_key(ledger)))
                    .texts(new.iter().map(|(ledger, _)| ledger.tenant.as_str()))
                    .texts(new.iter().map(|(ledger, _)| ledger.kind.as_str()))
                    .keys(new.iter().map(|(ledger, _)| ledger.scope.as_str()))
                    .list(new.iter().map(|(_, growing)| growing.version()))
                    .list(new.iter().map(|(_, growing)| growing.at()))
                    .long_texts(new.iter().map(|(ledger, _)| ledger.scope.as_str())),
            );
            self.made.extend(new.iter().map(|(ledger, _)| **ledger));
        }
        if !old.is_empty() {
            self.done.push(
                Statement::new(GROW)
                    .list(old.iter().map(|(ledger, _)| rows::ledger_key(ledger)))
                    .list(old.iter().map(|(_, growing)| growing.expected()))
                    .list(old.iter().map(|(_, growing)| growing.version()))
                    .list(old.iter().map(|(_, growing)| growing.at()))
                    .touching(old.len()),
            );
        }
        if !growing.is_empty() {
            self.done.push(insert_changes(&growing));
        }
    }
}

fn ledger_row<'a>(sql: &'static str, ledger: &'a LedgerId) -> Statement<'a> {
    Statement::new(sql)
        .value(rows::ledger_key(ledger))
        .value(crate::text::written(ledger.tenant.as_str()))
        .value(ledger.kind.as_str())
        .value(crate::text::key(&ledger.scope))
        .value(crate::text::long(&ledger.scope))
}

fn insert_changes<'a>(growing: &BTreeMap<&'a LedgerId, Growing<'a>>) -> Statement<'a> {
    let all =
        || growing.iter().flat_map(|(ledger, growing)| growing.changes.iter().map(move |change| (*ledger, *change)));
    let item = |change: &'a Change| change.item.as_ref();
    Statement::new(INSERT)
        .list(all().map(|(ledger, _)| rows::ledger_key(ledger)))
        .list(all().map(|(_, change)| rows::integer(change.version)))
        .keys(all().map(|(_, change)| change.key.as_str()))
        .list(all().map(|(_, change)| change.at.as_micros()))
        .maybe_texts(all().map(|(_, change)| change.run.as_ref().map(RunId::as_str)))
        .list(all().map(|(_, change)| item(change).and_then(|item| item.expires_at).map(Timestamp::as_micros)))
        .lists(all().map(|(_, change)| item(change).map_or(&[][..], |item| &item.meta.tags)))
        .list(all().map(|(_, change)| rows::meta(item(change))))
        .maybe_texts(all().map(|(_, change)| item(change).map(|item| item.content.as_str())))
        .long_texts(all().map(|(_, change)| change.key.as_str()))
}

const CREATE: &str = "INSERT INTO ledgers (ledger, tenant, kind, scope, version, updated_at, long_scope)
    SELECT * FROM unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::TEXT[])";
/// Finds a ledger only where it is expected.
const GROW: &str = "UPDATE ledgers SET version = new.version, updated_at = new.updated_at
    FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[]) AS new (ledger, expected, version, updated_at)
    WHERE ledgers.ledger = new.ledger AND ledgers.version = new.expected RETURNING 1";
const INSERT: &str = "INSERT INTO changes (ledger, version, key, at, run, expires_at, tags, meta, content, \
        long_key)
    SELECT ledger, version, key, at, run, expires_at, tags::TEXT[], meta, content, long_key
    FROM unnest($1::BYTEA[], $2::BIGINT[], $3::TEXT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::TEXT[], \
        $8::TEXT[], $9::TEXT[], $10::TEXT[]) \
        AS new (ledger, version, key, at, run, expires_at, tags, meta, content, long_key)";
/// Of a base that nobody ever wrote to there is nothing to see.
const FORK: &str =
    "INSERT INTO ledgers (ledger, tenant, kind, scope, long_scope, version, updated_at, forgotten, base, base_version)
    VALUES ($1, $2, $3, $4, $5, $6, 0, $6, (SELECT ledger FROM ledgers WHERE ledger = $7), $6)";

/// History is forgotten in steps, each from where the last one ended to a new line ($2), so that a step costs what was
/// written since and not what is stored: first what was replaced inside the step, which leaves one change of a key; then
/// what that one replaced from before; then deletions, which may go only once what they hide is gone. What lies in a
/// ledger below this one never is.
const FORGET: [&str; 4] = [
    "WITH step AS (SELECT forgotten AS lower, least(version, $2) AS upper FROM ledgers WHERE ledger = $1)
     DELETE FROM changes USING step WHERE ledger = $1 AND version > lower AND version < upper
     AND EXISTS (SELECT 1 FROM changes newer WHERE newer.ledger = changes.ledger AND newer.key = changes.key
                 AND newer.version > changes.version AND newer.version <= upper)",
    "WITH step AS (SELECT forgotten AS lower, least(version, $2) AS upper FROM ledgers WHERE ledger = $1)
     DELETE FROM changes USING step WHERE ledger = $1 AND version IN (
         SELECT old.version FROM step, changes newer JOIN changes old ON old.ledger = newer.ledger AND old.key = newer.key
         WHERE newer.ledger = $1 AND newer.version > lower AND newer.version <= upper AND old.version <= lower)",
    "WITH step AS (SELECT forgotten AS lower, least(version, $2) AS upper, base FROM ledgers WHERE ledger = $1)
     DELETE FROM changes USING step WHERE ledger = $1 AND version > lower AND version <= upper AND content IS NULL
     AND step.base IS NULL
     AND NOT EXISTS (SELECT 1 FROM changes newer WHERE newer.ledger = changes.ledger AND newer.key = changes.key
                     AND newer.version > changes.version)",
    "UPDATE ledgers SET forgotten = greatest(forgotten, least(version, $2)) WHERE ledger = $1",
];

const DROP: [&str; 2] = [
    "DELETE FROM changes WHERE ledger = $1",
    "UPDATE ledgers SET forgotten = version, base = NULL, base_version = 0 WHERE ledger = $1",
];
