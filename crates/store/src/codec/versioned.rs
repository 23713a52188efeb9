//! Memory scopes, workspaces and their changes as columns.

use baton_model::{RunId, TenantId, Timestamp};

use super::column::{Column, integer, name, text, texts};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::values::Values;
use crate::versioned::{
    Change, Item, Meta, VersionedStoreId, VersionedStoreKind, VersionedStoreRow, VersionedStoreState,
};

pub fn versioned_id(row: &mut Fields<'_, impl Source>) -> Result<VersionedStoreId, Unreadable> {
    let tenant = TenantId::new(row.text("tenant")?);
    Ok(VersionedStoreId { tenant, kind: row.parsed("kind", VersionedStoreKind::parse)?, scope: row.text("scope")? })
}

pub fn write_versioned_id<'a>(id: &'a VersionedStoreId, out: &mut impl Values<'a>) {
    out.text("tenant", id.tenant.as_str());
    out.text("kind", id.kind.as_str());
    out.text("scope", &id.scope);
}

/// A versioned store and where it stands; see [`VersionedStoreState`].
pub fn write_versioned_store<'a>(
    id: &'a VersionedStoreId,
    version: u64,
    updated_at: Timestamp,
    forgotten: u64,
    out: &mut impl Values<'a>,
) {
    write_versioned_id(id, out);
    out.count("version", version);
    out.time("updated_at", updated_at);
    out.count("forgotten", forgotten);
}

/// `scope, version, updated_at`.
pub fn versioned_row(row: &mut Fields<'_, impl Source>) -> Result<VersionedStoreRow, Unreadable> {
    let scope = row.text("scope")?;
    Ok(VersionedStoreRow { scope, version: row.count("version")?, updated_at: row.time("updated_at")? })
}

impl Stored for VersionedStoreState {
    const TABLE: &'static str = "ledgers";
    const COLUMNS: &'static [Column] =
        &[text("tenant"), text("kind"), name("scope"), integer("version"), integer("updated_at"), integer("forgotten")];
    const KEY: &'static [&'static str] = &["ledger"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            ledger: versioned_id(row)?,
            version: row.count("version")?,
            updated_at: row.time("updated_at")?,
            forgotten: row.count("forgotten")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        write_versioned_store(&self.ledger, self.version, self.updated_at, self.forgotten, out);
    }
}

/// The columns of a change where tags have one of their own.
pub const CHANGE_WITH_TAGS: &[Column] = &[
    integer("version"),
    name("key"),
    integer("at"),
    text("run"),
    integer("expires_at"),
    texts("tags"),
    text("meta"),
    text("content"),
];

/// What is kept beside an item's content, as text. A deletion has nothing to keep.
fn meta(item: Option<&Item>, without_tags: bool) -> String {
    let text = item.and_then(|item| match without_tags {
        true => serde_json::to_string(&Meta { tags: Vec::new(), ..item.meta.clone() }).ok(),
        false => serde_json::to_string(&item.meta).ok(),
    });
    text.unwrap_or_else(|| "{}".to_owned())
}

/// What it is a change of, an adapter keeps beside these.
impl Stored for Change {
    const TABLE: &'static str = "changes";
    const COLUMNS: &'static [Column] = &[
        integer("version"),
        name("key"),
        integer("at"),
        text("run"),
        integer("expires_at"),
        text("meta"),
        text("content"),
    ];
    const KEY: &'static [&'static str] = &["ledger", "version"];
    /// What is long has one of its own: whoever leaves it out need not read it.
    const SUMS: &'static [Sum] = &[
        Sum { column: "sum", of: &["version", "key", "at", "run", "expires_at", "tags", "meta"] },
        Sum { column: "content_sum", of: &["content"] },
    ];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        read_change(row)
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        write_change(self, out);
    }
}

fn read_change<R: Source>(row: &mut Fields<'_, R>) -> Result<Change, Unreadable> {
    let (version, key, at) = (row.count("version")?, row.text("key")?, row.time("at")?);
    let run = row.maybe_text("run")?.map(RunId::new);
    let expires_at = row.maybe_time("expires_at")?;
    let tags = if R::TAGS_APART { Some(row.texts("tags")?) } else { None };
    let mut meta: Meta = row.json("meta")?;
    if let Some(tags) = tags {
        meta.tags = tags;
    }
    let item = row.maybe_text("content")?.map(|content| Item { content, expires_at, meta });
    Ok(Change { version, key, at, run, item })
}

fn write_change<'a, V: Values<'a>>(change: &'a Change, out: &mut V) {
    let item = change.item.as_ref();
    out.count("version", change.version);
    out.text("key", &change.key);
    out.time("at", change.at);
    out.maybe_text("run", change.run.as_ref().map(RunId::as_str));
    out.maybe_time("expires_at", item.and_then(|item| item.expires_at));
    if V::TAGS_APART {
        out.texts("tags", item.map_or(&[], |item| &item.meta.tags));
    }
    out.made("meta", meta(item, V::TAGS_APART));
    out.maybe_text("content", item.map(|item| item.content.as_str()));
}
