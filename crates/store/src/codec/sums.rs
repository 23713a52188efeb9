//! Checksums of rows: kept in columns of their own behind those of the table, and compared whenever a row is read.
//!
//! A sum goes by names and values of columns and leaves out what holds nothing, so a column that is added later does not
//! change the sums of rows that have nothing in it. A row without a sum is from before there were any.

use super::column::{Column, Kind};
use super::fields::{Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::values::{Value, Values};
use crate::versioned::VersionedStoreId;

/// The names of a table's sums, as a statement lists them behind its columns: each with a comma before it.
pub fn sum_names<T: Stored>() -> String {
    T::SUMS.iter().map(|sum| format!(", {}", sum.column)).collect()
}

/// Bytes that no other values have: each says which column it is from, what it is and how long.
pub(crate) fn feed(out: &mut impl FnMut(&[u8]), column: &str, value: &Value<'_>) {
    let mut add = |kind: u8, bytes: &[u8]| {
        out(&[kind]);
        out(&(bytes.len() as u64).to_be_bytes());
        out(bytes);
    };
    if *value == Value::Null {
        return;
    }
    add(b'c', column.as_bytes());
    match value {
        Value::Null => {}
        Value::Text(text) => add(b't', text.as_bytes()),
        Value::Integer(number) => add(b'i', &number.to_be_bytes()),
        Value::Flag(flag) => add(b'f', &[u8::from(*flag)]),
        Value::Texts(texts) => {
            add(b'l', &(texts.len() as u64).to_be_bytes());
            texts.iter().for_each(|text| add(b't', text.as_bytes()));
        }
        Value::Bytes(bytes) => add(b'b', bytes),
    }
}

/// Adds up the columns of a row that a sum tells of.
pub(super) struct Adder<'s> {
    sum: &'s Sum,
    bytes: Vec<u8>,
}

/// Most rows have room in this.
const ROW: usize = 512;

impl<'s> Adder<'s> {
    fn new(sum: &'s Sum, whose: &[&str]) -> Self {
        let mut adder = Self { sum, bytes: Vec::with_capacity(ROW) };
        for name in whose {
            feed(&mut |bytes| adder.bytes.extend_from_slice(bytes), "", &Value::Text((*name).into()));
        }
        adder
    }

    fn add(&mut self, column: &str, value: &Value<'_>) {
        if self.sum.of.contains(&column) {
            feed(&mut |bytes| self.bytes.extend_from_slice(bytes), column, value);
        }
    }

    fn end(self) -> i64 {
        let mut first = [0; 8];
        first.copy_from_slice(&blake3::hash(&self.bytes).as_bytes()[..8]);
        i64::from_be_bytes(first)
    }
}

impl<'a> Values<'a> for Adder<'_> {
    fn put(&mut self, column: &'static str, value: Value<'a>) {
        self.add(column, &value);
    }
}

/// The same for whoever keeps tags in a column of their own.
struct ApartAdder<'s>(Adder<'s>);

impl<'a> Values<'a> for ApartAdder<'_> {
    const TAGS_APART: bool = true;

    fn put(&mut self, column: &'static str, value: Value<'a>) {
        self.0.add(column, &value);
    }
}

/// A sum of a row. `whose` names what the row belongs to beside its columns.
pub fn sum<T: Stored>(sum: &Sum, whose: &[&str], row: &T) -> i64 {
    let mut adder = Adder::new(sum, whose);
    row.write(&mut adder);
    adder.end()
}

/// The same where tags are apart.
pub fn sum_apart<T: Stored>(sum: &Sum, whose: &[&str], row: &T) -> i64 {
    let mut adder = ApartAdder(Adder::new(sum, whose));
    row.write(&mut adder);
    adder.0.end()
}

/// The same of what is written here.
pub(super) fn sum_with(sum: &Sum, write: impl FnOnce(&mut Adder<'_>)) -> i64 {
    let mut adder = Adder::new(sum, &[]);
    write(&mut adder);
    adder.end()
}

/// Whose a change is.
pub fn whose(ledger: &VersionedStoreId) -> [&str; 3] {
    [ledger.tenant.as_str(), ledger.kind.as_str(), &ledger.scope]
}

/// Compares the sums of a row, whose columns begin at `first`, with what it holds. The sums begin at `sums_at`.
pub fn check_sums(
    table: &'static str,
    columns: &[Column],
    sums: &'static [Sum],
    whose: &[&str],
    row: &impl Source,
    (first, sums_at): (usize, usize),
) -> Result<(), Unreadable> {
    for (sum, place) in sums.iter().zip(sums_at..) {
        let unreadable = |column, index, found| Unreadable { column, index, found };
        let Some(kept) = row.integer(place).map_err(|found| unreadable(sum.column, place, found))? else { continue };
        let mut adder = Adder::new(sum, whose);
        for (column, index) in columns.iter().zip(first..) {
            if !sum.of.contains(&column.name) {
                continue;
            }
            let failed = |found| unreadable(column.name, index, found);
            match column.kind {
                Kind::Text | Kind::Name => {
                    let text = row.text(index).map_err(failed)?;
                    adder.add(column.name, &text.map_or(Value::Null, Value::Text));
                }
                Kind::Integer => {
                    let number = row.integer(index).map_err(failed)?;
                    adder.add(column.name, &number.map_or(Value::Null, Value::Integer));
                }
                Kind::Flag => {
                    let flag = row.flag(index).map_err(failed)?;
                    adder.add(column.name, &flag.map_or(Value::Null, Value::Flag));
                }
                Kind::Texts => {
                    let texts = row.texts(index).map_err(failed)?;
                    adder.add(column.name, &texts.as_deref().map_or(Value::Null, Value::Texts));
                }
                Kind::Bytes => {
                    let bytes = row.bytes(index).map_err(failed)?;
                    adder.add(column.name, &bytes.as_deref().map_or(Value::Null, Value::Bytes));
                }
            }
        }
        if adder.end() != kept {
            let key = row.text(first).ok().flatten().unwrap_or_default();
            let found =
                format!("a checksum that does not fit the row of {table} that begins with {key:?}: it is damaged");
            return Err(unreadable(sum.column, place, found));
        }
    }
    Ok(())
}
