//! What a transaction writes to versioned stores. A versioned store's row is updated once per transaction, at the end, as runs' rows are.

use std::collections::HashMap;

use baton_model::Timestamp;
use baton_store::codec::{Existing, integer};
use baton_store::{Change, Error, VersionedStoreId, VersionedStoreState};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::cache::{CachedVersion, Recent};
use crate::insert;
use crate::rows;

/// Rows still to be updated: how far each versioned store has come, and when.
#[derive(Debug, Default)]
pub(crate) struct Grown(HashMap<i64, (u64, Timestamp)>);

pub(crate) struct VersionedStores<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) places: &'a mut Recent<VersionedStoreId, CachedVersion>,
    pub(crate) grown: &'a mut Grown,
}

const FIND: &str = "SELECT ledger, version FROM ledgers WHERE tenant = ?1 AND kind = ?2 AND scope = ?3";
const GROW: &str = "UPDATE ledgers SET version = ?2, updated_at = ?3 WHERE ledger = ?1";
const FORGOTTEN: &str = "UPDATE ledgers SET forgotten = ?2 WHERE ledger = ?1";
/// History is forgotten in steps, each from where the last one ended (?2) to a new line (?3), so that a step costs what
/// was written since and not what is stored: first what was replaced inside the step, which leaves one change of a key;
/// then what that one replaced from before; then deletions, which may go only once what they hide is gone. What lies in
/// a versioned store below this one never is.
const FORGET: [&str; 3] = [
    "DELETE FROM changes WHERE ledger = ?1 AND version > ?2 AND version < ?3
     AND EXISTS (SELECT 1 FROM changes newer WHERE newer.ledger = changes.ledger AND newer.key = changes.key
                 AND newer.version > changes.version AND newer.version <= ?3)",
    "DELETE FROM changes WHERE ledger = ?1 AND version IN (
         SELECT old.version FROM changes newer CROSS JOIN changes old
         WHERE newer.ledger = ?1 AND newer.version > ?2 AND newer.version <= ?3
         AND old.ledger = ?1 AND old.key = newer.key AND old.version <= ?2)",
    "DELETE FROM changes WHERE ledger = ?1 AND version > ?2 AND version <= ?3 AND content IS NULL
     AND (SELECT base FROM ledgers WHERE ledger = ?1) IS NULL
     AND NOT EXISTS (SELECT 1 FROM changes newer WHERE newer.ledger = changes.ledger AND newer.key = changes.key
                     AND newer.version > changes.version)",
];

/// What is on disk of a versioned store, if anybody ever wrote to it.
pub(crate) fn find(connection: &Connection, id: &VersionedStoreId) -> rusqlite::Result<Option<CachedVersion>> {
    let mut find = connection.prepare_cached(FIND)?;
    find.query_row([id.tenant.as_str(), id.kind.as_str(), &id.scope], rows::cached_version).optional()
}

/// The same for whoever reads: a row that says less or more than its changes is damaged.
pub(crate) fn find_whole(connection: &Connection, id: &VersionedStoreId) -> rusqlite::Result<Option<CachedVersion>> {
    const ENDS: &str =
        "SELECT (SELECT max(version) FROM changes WHERE ledger = ?1), forgotten FROM ledgers WHERE ledger = ?1";
    let snapshot = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
    let Some(place) = find(connection, id)? else { return Ok(None) };
    let ends = |row: &rusqlite::Row<'_>| {
        rows::fields(row, |row| Ok((row.maybe_count::<u64>("version")?, row.count::<u64>("forgotten")?)))
    };
    let (last, forgotten) = connection.prepare_cached(ENDS)?.query_row([place.ledger], ends)?;
    drop(snapshot);
    // What was forgotten may have been the last.
    if last.is_some_and(|last| last > place.version) || last.unwrap_or(0).max(forgotten) < place.version {
        let (kind, scope) = (id.kind.as_str(), &id.scope);
        let reason = format!("{kind} {scope} says that it is at version {}, and its changes are not", place.version);
        return Err(rows::damaged(Error::Corrupt { reason }));
    }
    Ok(Some(place))
}

/// What a versioned store was forked from.
pub(crate) fn base(
    connection: &Connection,
    id: &VersionedStoreId,
) -> rusqlite::Result<Option<(VersionedStoreId, u64)>> {
    let mut find = connection.prepare_cached(
        "SELECT base.scope, forked.base_version FROM ledgers forked JOIN ledgers base ON base.ledger = forked.base
         WHERE forked.tenant = ?1 AND forked.kind = ?2 AND forked.scope = ?3",
    )?;
    let row = |row: &rusqlite::Row<'_>| {
        rows::fields(row, |row| {
            let base = VersionedStoreId { scope: row.text("scope")?, ..id.clone() };
            Ok((base, row.count("base_version")?))
        })
    };
    find.query_row([id.tenant.as_str(), id.kind.as_str(), &id.scope], row).optional()
}

impl VersionedStores<'_> {
    pub(crate) fn version(&mut self, id: &VersionedStoreId) -> rusqlite::Result<u64> {
        Ok(self.place(id)?.map_or(0, |place| place.version))
    }

    fn place(&mut self, id: &VersionedStoreId) -> rusqlite::Result<Option<CachedVersion>> {
        if let Some(place) = self.places.get(id) {
            return Ok(Some(place));
        }
        Ok(find(self.connection, id)?.map(|mut place| {
            // The row may lag behind: it is updated at the end.
            if let Some((version, _)) = self.grown.0.get(&place.ledger) {
                place.version = *version;
            }
            self.places.put(id.clone(), place);
            place
        }))
    }

    /// A change that the commit's check has let through.
    pub(crate) fn append(&mut self, id: &VersionedStoreId, change: &Change) -> rusqlite::Result<()> {
        let ledger = match self.place(id)? {
            Some(place) => {
                self.grown.0.insert(place.ledger, (change.version, change.at));
                place.ledger
            }
            None => self.create(id, change)?,
        };
        insert::change(self.connection, Existing::Refuse, ledger, id, change)?;
        self.places.put(id.clone(), CachedVersion { ledger, version: change.version });
        Ok(())
    }

    /// A versioned store that sees another one up to a version, and goes on from there.
    pub(crate) fn fork(
        &mut self,
        id: &VersionedStoreId,
        base: &VersionedStoreId,
        version: u64,
    ) -> rusqlite::Result<()> {
        // Nobody ever wrote to the other one: there is nothing to see.
        let base = self.place(base)?.map(|place| place.ledger);
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO ledgers (tenant, kind, scope, version, updated_at, forgotten, base, base_version)
             VALUES (?1, ?2, ?3, ?4, 0, ?4, ?5, ?4)",
        )?;
        let (tenant, version_there) = (id.tenant.as_str(), integer(version));
        let ledger = insert.insert(params![tenant, id.kind.as_str(), id.scope, version_there, base])?;
        self.places.put(id.clone(), CachedVersion { ledger, version });
        Ok(())
    }

    fn create(&self, id: &VersionedStoreId, first: &Change) -> rusqlite::Result<i64> {
        let (ledger, version, updated_at) = (id.clone(), first.version, first.at);
        insert::row(
            self.connection,
            Existing::Refuse,
            &VersionedStoreState { ledger, version, updated_at, forgotten: 0 },
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    pub(crate) fn forget_history(&mut self, id: &VersionedStoreId, below: u64) -> rusqlite::Result<()> {
        let Some(CachedVersion { ledger, version }) = self.place(id)? else { return Ok(()) };
        let below = integer(below.min(version));
        let mut forgotten = self.connection.prepare_cached("SELECT forgotten FROM ledgers WHERE ledger = ?1")?;
        let from: i64 = forgotten.query_row([ledger], |row| row.get(0))?;
        if below > from {
            for step in FORGET {
                self.connection.prepare_cached(step)?.execute([ledger, from, below])?;
            }
            self.connection.prepare_cached(FORGOTTEN)?.execute([ledger, below])?;
        }
        Ok(())
    }

    pub(crate) fn drop_versioned_store(&mut self, id: &VersionedStoreId) -> rusqlite::Result<()> {
        let Some(CachedVersion { ledger, version }) = self.place(id)? else { return Ok(()) };
        self.connection.prepare_cached("DELETE FROM changes WHERE ledger = ?1")?.execute([ledger])?;
        let dropped = "UPDATE ledgers SET forgotten = ?2, base = NULL, base_version = 0 WHERE ledger = ?1";
        self.connection.prepare_cached(dropped)?.execute(params![ledger, integer(version)])?;
        Ok(())
    }
}

impl Grown {
    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        for (ledger, (version, at)) in &self.0 {
            let mut grow = connection.prepare_cached(GROW)?;
            grow.execute(params![ledger, integer(*version), at.as_micros()])?;
        }
        Ok(())
    }
}
