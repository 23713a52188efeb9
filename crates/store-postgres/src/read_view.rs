//! What a view shows, found by index, each in one question, so that it is one state of the versioned store.
//!
//! A view is made of two parts that share no key. *Own* is what the view's run wrote after the view's version; all of it
//! is newer than *base*, which is the versioned store as of the version without the keys of the first part.
//!
//! There are two ways to find the base. Walking back from the version finds the newest few at once, but where few keys
//! are written over and over it would walk through everything they replaced. Going from key to key costs a step per
//! key, however often it was written, but also for keys that were first written later. Files are written over and
//! over, so there the walk is kept short, and what it does not find, the other way does; a memory entry is written once,
//! so there the walk goes on.

use baton_model::Timestamp;
use baton_store::codec::{after_prefix, integer};
use baton_store::{Change, Error, ReadView, VersionedStoreId, VersionedStoreKind};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::text::{self, written};
use crate::{PostgresStore, rows};

/// How many versions the walk back may look at beside those asked for.
const WALK: u64 = 64;

/// Parameters, the same in all statements here: $1 versioned store, $2 version, $3 instant, $4 tag, $5 first key, $6 end of
/// keys, $7 own run, $8 last own version, $9 where the page before ended, $10 limit, $11 where the walk ends, $12 what the
/// whole keys begin with: of a long one an index knows only a part.
macro_rules! wanted {
    () => {
        " AND c.content IS NOT NULL
          AND ($3::BIGINT IS NULL OR c.expires_at IS NULL OR c.expires_at > $3)
          AND ($4::TEXT IS NULL OR $4 = ANY(c.tags))
          AND c.key >= $5::TEXT AND ($6::TEXT IS NULL OR c.key < $6)
          AND left(coalesce(c.long_key, c.key), length($12::TEXT)) = $12
          AND ($9::BIGINT IS NULL OR c.version < $9)"
    };
}

macro_rules! own {
    () => {
        "ledger = $1 AND run = $7::TEXT AND run IS NOT NULL AND version > $2 AND version <= $8::BIGINT"
    };
}

macro_rules! newest {
    () => {
        " ORDER BY c.version DESC LIMIT $10::BIGINT"
    };
}

macro_rules! walk_back {
    () => {
        concat!(
            " FROM (
                (SELECT c.* FROM changes c WHERE c.ledger = $1 AND c.version <= $2 AND c.version > $11::BIGINT
                 AND NOT EXISTS (SELECT 1 FROM changes n WHERE n.ledger = $1 AND n.key = c.key
                                 AND n.version > c.version AND n.version <= $2)
                 AND c.key NOT IN (SELECT key FROM changes WHERE ",
            own!(),
            ")",
            wanted!(),
            newest!(),
            ")
                UNION ALL
                (SELECT c.* FROM changes c WHERE c.ledger = $1 AND c.version IN (
                    SELECT max(version) FROM changes WHERE ",
            own!(),
            " GROUP BY key)",
            wanted!(),
            ")) c WHERE true"
        )
    };
}

macro_rules! key_by_key {
    () => {
        concat!(
            " FROM changes c WHERE c.ledger = $1 AND $11::BIGINT >= 0 AND c.version IN (
                WITH RECURSIVE keys(key) AS (
                    (SELECT key FROM changes WHERE ledger = $1 AND key >= $5::TEXT ORDER BY key LIMIT 1)
                    UNION ALL
                    SELECT (SELECT n.key FROM changes n WHERE n.ledger = $1 AND n.key > keys.key ORDER BY n.key LIMIT 1)
                    FROM keys WHERE keys.key IS NOT NULL AND ($6::TEXT IS NULL OR keys.key < $6))
                SELECT (SELECT n.version FROM changes n WHERE n.ledger = $1 AND n.key = keys.key AND n.version <= $2
                        ORDER BY n.version DESC LIMIT 1)
                FROM keys WHERE keys.key IS NOT NULL AND keys.key NOT IN (SELECT key FROM changes WHERE ",
            own!(),
            ")
                UNION ALL
                SELECT max(version) FROM changes WHERE ",
            own!(),
            " GROUP BY key)",
            wanted!()
        )
    };
}

macro_rules! rows_of {
    ($from:expr) => {
        (
            concat!(
                "SELECT version, coalesce(long_key, key), at, run, expires_at, tags, meta, content, sum, content_sum",
                $from,
                newest!()
            ),
            concat!(
                "SELECT version, coalesce(long_key, key), at, run, expires_at, tags, meta, '' AS content, sum",
                $from,
                newest!()
            ),
        )
    };
}

/// With content, and without reading it: deletions are never shown, so there is one.
const WALK_BACK: (&str, &str) = rows_of!(walk_back!());
const KEY_BY_KEY: (&str, &str) = rows_of!(key_by_key!());
/// The limit does not matter, and must be mentioned.
const COUNT_BACK: &str = concat!("SELECT count(*)", walk_back!(), " AND $10::BIGINT >= 0");
const COUNT_BY_KEY: &str = concat!("SELECT count(*)", key_by_key!(), " AND $10::BIGINT >= 0");

pub(crate) async fn items(store: &PostgresStore, id: &VersionedStoreId, lens: &ReadView) -> Result<Vec<Change>, Error> {
    let view = View::new(id, lens);
    let pick = |(full, bare): (&'static str, &'static str)| if lens.bare { bare } else { full };
    if let Some(limit) = lens.limit {
        let reach = (limit as u64).saturating_mul(4).saturating_add(WALK);
        let end = lens.version.saturating_sub(reach);
        let newest = view.ask(store, pick(WALK_BACK), end, integer(limit as u64)).await?;
        if end == 0 || newest.len() == limit {
            return newest.iter().map(|row| rows::change(row, id, lens.bare)).collect();
        }
    }
    let rest = match id.kind {
        VersionedStoreKind::Memory => WALK_BACK,
        VersionedStoreKind::Workspace => KEY_BY_KEY,
    };
    let limit = lens.limit.map_or(i64::MAX, |limit| integer(limit as u64));
    view.ask(store, pick(rest), 0, limit).await?.iter().map(|row| rows::change(row, id, lens.bare)).collect()
}

pub(crate) async fn count(store: &PostgresStore, id: &VersionedStoreId, lens: &ReadView) -> Result<u64, Error> {
    let sql = match id.kind {
        VersionedStoreKind::Memory => COUNT_BACK,
        VersionedStoreKind::Workspace => COUNT_BY_KEY,
    };
    let counted = View::new(id, lens).ask(store, sql, 0, i64::MAX).await?;
    counted.first().map_or(Ok(0), rows::count)
}

pub(crate) async fn item(
    store: &PostgresStore,
    id: &VersionedStoreId,
    key: &str,
    lens: &ReadView,
) -> Result<Option<Change>, Error> {
    const ITEM: &str = "SELECT version, coalesce(long_key, key), at, run, expires_at, tags, meta,
            CASE WHEN $6 AND content IS NOT NULL THEN '' ELSE content END, sum, content_sum
        FROM changes WHERE ledger = $1 AND version = coalesce(
            (SELECT max(version) FROM changes
             WHERE ledger = $1 AND run = $4::TEXT AND run IS NOT NULL AND version > $3 AND version <= $5::BIGINT
             AND key = $2),
            (SELECT max(version) FROM changes WHERE ledger = $1 AND key = $2 AND version <= $3))";
    let own_run = lens.own.as_ref().map(|(run, _)| written(run.as_str()));
    let own_last = lens.own.as_ref().map(|(_, last)| integer(*last));
    let values: [&(dyn ToSql + Sync); 6] =
        [&rows::versioned_key(id), &text::key(key), &integer(lens.version), &own_run, &own_last, &lens.bare];
    let found = store.questions.one(ITEM, &values, |row| rows::change(row, id, lens.bare)).await?;
    Ok(found.filter(|change| lens.wants(change)))
}

pub(crate) async fn changes(
    store: &PostgresStore,
    id: &VersionedStoreId,
    key: Option<&str>,
    before: Option<u64>,
    limit: i64,
) -> Result<Vec<Change>, Error> {
    const ALL: &str = "SELECT version, coalesce(long_key, key), at, run, expires_at, tags, meta, content, sum, content_sum FROM changes
        WHERE ledger = $1 AND version < $2 ORDER BY version DESC LIMIT $3";
    const OF_KEY: &str =
        "SELECT version, coalesce(long_key, key), at, run, expires_at, tags, meta, content, sum, content_sum FROM changes
        WHERE ledger = $1 AND version < $2 AND key = $4 ORDER BY version DESC LIMIT $3";
    let ledger = rows::versioned_key(id);
    let before = integer(before.unwrap_or(u64::MAX));
    match key {
        None => store.questions.list(ALL, &[&ledger, &before, &limit], |row| rows::change(row, id, false)).await,
        Some(key) => {
            store
                .questions
                .list(OF_KEY, &[&ledger, &before, &limit, &text::key(key)], |row| rows::change(row, id, false))
                .await
        }
    }
}

/// A view as parameters.
struct View {
    ledger: Vec<u8>,
    version: i64,
    at: Option<i64>,
    tag: Option<String>,
    prefix: String,
    first_key: String,
    end_of_keys: Option<String>,
    own_run: Option<String>,
    own_last: Option<i64>,
    before: Option<i64>,
}

impl View {
    fn new(id: &VersionedStoreId, lens: &ReadView) -> Self {
        let first_key = text::key_prefix(lens.prefix.as_deref().unwrap_or_default());
        Self {
            ledger: rows::versioned_key(id),
            version: integer(lens.version),
            at: lens.at.map(Timestamp::as_micros),
            tag: lens.tag.as_deref().map(|tag| written(tag).into_owned()),
            prefix: written(lens.prefix.as_deref().unwrap_or_default()).into_owned(),
            end_of_keys: after_prefix(&first_key),
            first_key,
            own_run: lens.own.as_ref().map(|(run, _)| written(run.as_str()).into_owned()),
            own_last: lens.own.as_ref().map(|(_, last)| integer(*last)),
            before: lens.before.map(integer),
        }
    }

    async fn ask(&self, store: &PostgresStore, sql: &str, end: u64, limit: i64) -> Result<Vec<Row>, Error> {
        let end = integer(end);
        let values: [&(dyn ToSql + Sync); 12] = [
            &self.ledger,
            &self.version,
            &self.at,
            &self.tag,
            &self.first_key,
            &self.end_of_keys,
            &self.own_run,
            &self.own_last,
            &self.before,
            &limit,
            &end,
            &self.prefix,
        ];
        store.questions.ask(sql, &values).await
    }
}
