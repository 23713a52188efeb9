//! What a transaction writes to memory scopes and workspaces.

use std::collections::BTreeMap;

use baton_model::Timestamp;
use baton_store::codec::{Existing, integer};
use baton_store::{Change, VersionedStoreId, Write};

use crate::insert::{self, Standing};
use crate::known::Known;
use crate::rows;
use crate::statement::Statement;

/// Changes are gathered; what is forgotten or forked depends on them, and comes in its turn.
#[derive(Default)]
pub(crate) struct VersionedStores<'a> {
    done: Vec<Statement<'a>>,
    growing: BTreeMap<&'a VersionedStoreId, Growing<'a>>,
    /// Versioned stores that have a row by now because of this transaction.
    made: Vec<&'a VersionedStoreId>,
}

struct Growing<'a> {
    new: bool,
    changes: Vec<&'a Change>,
}

impl<'a> Growing<'a> {
    fn expected(&self) -> i64 {
        self.changes.first().map_or(0, |change| integer(change.version) - 1)
    }

    fn version(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.version)
    }

    fn at(&self) -> Timestamp {
        self.changes.last().map_or_else(Timestamp::default, |change| change.at)
    }

    fn standing(&self, ledger: &'a VersionedStoreId) -> Standing<'a> {
        (ledger, self.version(), self.at(), 0)
    }
}

impl<'a> VersionedStores<'a> {
    pub(crate) fn add(&mut self, write: &'a Write, known: &Known<'_>) {
        match write {
            Write::Change { ledger, change } => {
                let new = !self.made.contains(&ledger) && !known.has_versioned_store(ledger, change.version);
                let growing = self.growing.entry(ledger).or_insert(Growing { new, changes: Vec::new() });
                growing.changes.push(change);
            }
            Write::ForkVersionedStore { ledger, base, version } => {
                self.settle();
                let fork = versioned_row(FORK, ledger).value(integer(*version)).value(rows::versioned_key(base));
                self.done.push(fork);
                self.made.push(ledger);
            }
            Write::ForgetHistory { ledger, below } => {
                self.settle();
                for step in FORGET {
                    self.done.push(Statement::new(step).value(rows::versioned_key(ledger)).value(integer(*below)));
                }
            }
            Write::DropVersionedStore(ledger) => {
                self.settle();
                for step in DROP {
                    self.done.push(Statement::new(step).value(rows::versioned_key(ledger)));
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
            let standing: Vec<_> = new.iter().map(|(ledger, growing)| growing.standing(ledger)).collect();
            self.done.push(insert::ledgers(Existing::Refuse, &standing));
            self.made.extend(new.iter().map(|(ledger, _)| **ledger));
        }
        if !old.is_empty() {
            self.done.push(
                Statement::new(GROW)
                    .list(old.iter().map(|(ledger, _)| rows::versioned_key(ledger)))
                    .list(old.iter().map(|(_, growing)| growing.expected()))
                    .list(old.iter().map(|(_, growing)| integer(growing.version())))
                    .list(old.iter().map(|(_, growing)| growing.at().as_micros()))
                    .touching(old.len()),
            );
        }
        if !growing.is_empty() {
            let of = |(ledger, growing): (&&'a VersionedStoreId, &Growing<'a>)| {
                let ledger = *ledger;
                growing.changes.iter().map(move |change| (ledger, *change)).collect::<Vec<_>>()
            };
            let changes: Vec<_> = growing.iter().flat_map(of).collect();
            self.done.push(insert::changes(Existing::Refuse, &changes));
        }
    }
}

fn versioned_row<'a>(sql: &'static str, ledger: &'a VersionedStoreId) -> Statement<'a> {
    Statement::new(sql)
        .value(rows::versioned_key(ledger))
        .value(crate::text::written(ledger.tenant.as_str()))
        .value(ledger.kind.as_str())
        .value(crate::text::key(&ledger.scope))
        .value(crate::text::long(&ledger.scope))
}

/// Finds a versioned store only where it is expected.
const GROW: &str = "UPDATE ledgers SET version = new.version, updated_at = new.updated_at
    FROM unnest($1::BYTEA[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[]) AS new (ledger, expected, version, updated_at)
    WHERE ledgers.ledger = new.ledger AND ledgers.version = new.expected RETURNING 1";
/// Of a base that nobody ever wrote to there is nothing to see.
const FORK: &str =
    "INSERT INTO ledgers (ledger, tenant, kind, scope, long_scope, version, updated_at, forgotten, base, base_version)
    VALUES ($1, $2, $3, $4, $5, $6, 0, $6, (SELECT ledger FROM ledgers WHERE ledger = $7), $6)";

/// History is forgotten in steps, each from where the last one ended to a new line ($2), so that a step costs what was
/// written since and not what is stored: first what was replaced inside the step, which leaves one change of a key; then
/// what that one replaced from before; then deletions, which may go only once what they hide is gone. What lies in a
/// versioned store below this one never is.
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
