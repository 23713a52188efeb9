//! What a transaction leaves of rows, by key.

use std::collections::BTreeMap;

/// What the transaction leaves of a row: this, or nothing.
pub(super) type Left<K, V> = BTreeMap<K, Option<V>>;

/// The keys of which nothing is left, and the rows that are.
pub(super) fn split<K: Copy, V: Copy>(rows: &Left<K, V>) -> (Vec<K>, Vec<V>) {
    let gone = rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| *key).collect();
    (gone, rows.values().filter_map(|row| *row).collect())
}
