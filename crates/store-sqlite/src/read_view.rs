//! What a view shows, found by index.
//!
//! First the versions that are shown, which are numbers, then their rows: content may be long, and is read only for
//! what is wanted. A view is made of two parts that share no key. *Own* is what the view's run wrote after the view's
//! version; all of it is newer than *base*, which is the versioned store as of the version without the keys of the first part.
//!
//! There are two ways to find the base. Walking back from the version finds the newest few at once, but where few keys
//! are written over and over it would walk through everything they replaced. Going from key to key costs a step per
//! key, however often it was written, but also for keys that were first written later. Files are written over and
//! over, so there the walk is kept short, and what it does not find, the other way does; a memory entry is written once,
//! so there the walk goes on.

use baton_model::{RunId, Timestamp};
use baton_store::codec::{after_prefix, integer};
use baton_store::{Change, ReadView, VersionedStoreId, VersionedStoreKind};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::cache::CachedVersion;
use crate::{rows, versioned};

/// How many versions the walk back may look at beside those asked for.
const WALK: u64 = 64;

/// Parameters, the same in all statements here: ?1 versioned store, ?2 version, ?3 instant, ?4 tag, ?5 first key, ?6 end of
/// keys, ?7 own run, ?8 last own version, ?9 where the walk ends, ?10 limit, ?11 where the page before ended.
macro_rules! wanted {
    () => {
        " AND c.content IS NOT NULL
          AND (?3 IS NULL OR c.expires_at IS NULL OR c.expires_at > ?3)
          AND (?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(c.meta, '$.tags') WHERE value = ?4))
          AND +c.key >= ?5 AND (?6 IS NULL OR +c.key < ?6)
          AND (?11 IS NULL OR c.version < ?11)
          ORDER BY c.version DESC LIMIT ?10"
    };
}

macro_rules! own {
    () => {
        "ledger = ?1 AND run = ?7 AND version > ?2 AND version <= ?8"
    };
}

const OWN: &str = concat!(
    "SELECT c.version FROM changes c WHERE c.ledger = ?1
     AND c.version IN (SELECT max(version) FROM changes WHERE ",
    own!(),
    " GROUP BY key)",
    wanted!()
);

const WALK_BACK: &str = concat!(
    "SELECT c.version FROM changes c WHERE c.ledger = ?1 AND c.version <= ?2 AND c.version > ?9
     AND NOT EXISTS (SELECT 1 FROM changes n WHERE n.ledger = ?1 AND n.key = c.key
                     AND n.version > c.version AND n.version <= ?2)
     AND c.key NOT IN (SELECT key FROM changes WHERE ",
    own!(),
    ")",
    wanted!()
);

const KEY_BY_KEY: &str = concat!(
    "WITH RECURSIVE keys(key) AS (
         SELECT * FROM (SELECT key FROM changes WHERE ledger = ?1 AND key >= ?5 ORDER BY key LIMIT 1)
         UNION ALL
         SELECT (SELECT key FROM changes WHERE ledger = ?1 AND key > keys.key ORDER BY key LIMIT 1)
         FROM keys WHERE keys.key IS NOT NULL AND (?6 IS NULL OR keys.key < ?6))
     SELECT c.version FROM changes c WHERE c.ledger = ?1 AND c.version IN (
         SELECT (SELECT n.version FROM changes n WHERE n.ledger = ?1 AND n.key = keys.key AND n.version <= ?2
                 ORDER BY n.version DESC LIMIT 1)
         FROM keys WHERE keys.key NOT IN (SELECT key FROM changes WHERE ",
    own!(),
    "))",
    wanted!()
);

const CHANGE: &str = "SELECT version, key, at, run, expires_at, meta, content, sum, content_sum FROM changes
    WHERE ledger = ?1 AND version = ?2";
/// The same without reading the content. Whether there is one says the row's header.
const BARE_CHANGE: &str =
    "SELECT version, key, at, run, expires_at, meta, iif(content IS NULL, NULL, ''), sum FROM changes
    WHERE ledger = ?1 AND version = ?2";

const fn change(lens: &ReadView) -> &'static str {
    if lens.bare { BARE_CHANGE } else { CHANGE }
}

fn read_change(row: &Row<'_>, id: &VersionedStoreId, lens: &ReadView) -> rusqlite::Result<Change> {
    if lens.bare { rows::bare_change(row, id) } else { rows::change(row, id) }
}

pub(crate) fn items(connection: &Connection, id: &VersionedStoreId, lens: &ReadView) -> rusqlite::Result<Vec<Change>> {
    // One snapshot for all questions, whatever is written or forgotten meanwhile.
    let snapshot = connection.unchecked_transaction()?;
    let Some(place) = versioned::find_whole(&snapshot, id)? else { return Ok(Vec::new()) };
    let shown = shown(&snapshot, id.kind, place, lens)?;
    let mut change = snapshot.prepare_cached(change(lens))?;
    shown
        .into_iter()
        .map(|version| change.query_row([place.ledger, version], |row| read_change(row, id, lens)))
        .collect()
}

pub(crate) fn count(connection: &Connection, id: &VersionedStoreId, lens: &ReadView) -> rusqlite::Result<u64> {
    let snapshot = connection.unchecked_transaction()?;
    let Some(place) = versioned::find_whole(&snapshot, id)? else { return Ok(0) };
    let unlimited = ReadView { limit: None, ..lens.clone() };
    Ok(shown(&snapshot, id.kind, place, &unlimited)?.len() as u64)
}

pub(crate) fn item(
    connection: &Connection,
    id: &VersionedStoreId,
    key: &str,
    lens: &ReadView,
) -> rusqlite::Result<Option<Change>> {
    const NEWEST: &str = "SELECT max(version) FROM changes WHERE ledger = ?1 AND key = ?2 AND version <= ?3";
    // Not by key: others may have written this one over and over since the view's version.
    const OWN: &str = "SELECT max(version) FROM changes
        WHERE ledger = ?1 AND +key = ?2 AND version > ?3 AND version <= ?4 AND run = ?5";
    let snapshot = connection.unchecked_transaction()?;
    let Some(CachedVersion { ledger, .. }) = versioned::find_whole(&snapshot, id)? else { return Ok(None) };
    let upto = integer(lens.version);
    let mut version: Option<i64> = None;
    if let Some((run, last)) = &lens.own {
        let values = params![ledger, key, upto, integer(*last), run.as_str()];
        version = snapshot.prepare_cached(OWN)?.query_row(values, |row| row.get(0))?;
    }
    if version.is_none() {
        version = snapshot.prepare_cached(NEWEST)?.query_row(params![ledger, key, upto], |row| row.get(0))?;
    }
    let found = snapshot
        .prepare_cached(change(lens))?
        .query_row(params![ledger, version], |row| read_change(row, id, lens))
        .optional()?;
    Ok(found.filter(|change| lens.wants(change)))
}

pub(crate) fn changes(
    connection: &Connection,
    id: &VersionedStoreId,
    key: Option<&str>,
    before: Option<u64>,
    limit: i64,
) -> rusqlite::Result<Vec<Change>> {
    const ALL: &str = "SELECT version, key, at, run, expires_at, meta, content, sum, content_sum FROM changes
        WHERE ledger = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3";
    const OF_KEY: &str = "SELECT version, key, at, run, expires_at, meta, content, sum, content_sum FROM changes
        WHERE ledger = ?1 AND version < ?2 AND key = ?4 ORDER BY version DESC LIMIT ?3";
    let Some(CachedVersion { ledger, .. }) = versioned::find_whole(connection, id)? else { return Ok(Vec::new()) };
    let before = integer(before.unwrap_or(u64::MAX));
    match key {
        None => connection
            .prepare_cached(ALL)?
            .query_map(params![ledger, before, limit], |row| rows::change(row, id))?
            .collect(),
        Some(key) => {
            let mut query = connection.prepare_cached(OF_KEY)?;
            query.query_map(params![ledger, before, limit, key], |row| rows::change(row, id))?.collect()
        }
    }
}

/// The versions a view shows, newest first.
fn shown(
    connection: &Connection,
    kind: VersionedStoreKind,
    place: CachedVersion,
    lens: &ReadView,
) -> rusqlite::Result<Vec<i64>> {
    let view = View::new(place, lens);
    let limit = lens.limit.map_or(u64::MAX, |limit| limit as u64);
    let mut shown = if lens.own.is_some() { view.versions(connection, OWN, 0, limit)? } else { Vec::new() };
    let left = limit - shown.len() as u64;
    if left > 0 {
        shown.extend(base(connection, kind, &view, lens.limit.map(|_| left))?);
    }
    Ok(shown)
}

fn base(
    connection: &Connection,
    kind: VersionedStoreKind,
    view: &View<'_>,
    limit: Option<u64>,
) -> rusqlite::Result<Vec<i64>> {
    if let Some(limit) = limit {
        let end = view.version.saturating_sub(limit.saturating_mul(4).saturating_add(WALK));
        let newest = view.versions(connection, WALK_BACK, end, limit)?;
        if end == 0 || newest.len() as u64 == limit {
            return Ok(newest);
        }
    }
    let rest = match kind {
        VersionedStoreKind::Memory => WALK_BACK,
        VersionedStoreKind::Workspace => KEY_BY_KEY,
    };
    view.versions(connection, rest, 0, limit.unwrap_or(u64::MAX))
}

/// A view as parameters.
struct View<'a> {
    ledger: i64,
    version: u64,
    at: Option<i64>,
    tag: Option<&'a str>,
    first_key: &'a str,
    end_of_keys: Option<String>,
    own: Option<(&'a RunId, u64)>,
    before: Option<u64>,
}

impl<'a> View<'a> {
    fn new(place: CachedVersion, lens: &'a ReadView) -> Self {
        let prefix = lens.prefix.as_deref().unwrap_or_default();
        Self {
            ledger: place.ledger,
            // Nothing lies beyond, and the walk back should not begin out there.
            version: lens.version.min(place.version),
            at: lens.at.map(Timestamp::as_micros),
            tag: lens.tag.as_deref(),
            first_key: prefix,
            end_of_keys: after_prefix(prefix),
            own: lens.own.as_ref().map(|(run, last)| (run, *last)),
            before: lens.before,
        }
    }

    fn versions(&self, connection: &Connection, sql: &str, end: u64, limit: u64) -> rusqlite::Result<Vec<i64>> {
        let mut query = connection.prepare_cached(sql)?;
        let values = params![
            self.ledger,
            integer(self.version),
            self.at,
            self.tag,
            self.first_key,
            self.end_of_keys,
            self.own.map(|(run, _)| run.as_str()),
            self.own.map(|(_, last)| integer(last)),
            integer(end),
            integer(limit),
            self.before.map(integer),
        ];
        query.query_map(values, |row| row.get(0))?.collect()
    }
}
