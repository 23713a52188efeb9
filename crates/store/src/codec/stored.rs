//! What has a table.

use super::column::Column;
use super::fields::{Fields, Source, Unreadable};
use super::sum_columns::Sum;
use super::values::Values;

/// A row of a table. Reading and writing follow the order of the columns.
pub trait Stored: Sized {
    const TABLE: &'static str;
    const COLUMNS: &'static [Column];
    /// The columns that tell its rows apart.
    const KEY: &'static [&'static str];
    /// Its checksums, in columns of their own behind these.
    const SUMS: &'static [Sum] = &[];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable>;

    fn write<'a>(&'a self, out: &mut impl Values<'a>);
}

/// A row whose first columns are those of its table.
pub fn read<T: Stored>(row: &impl Source) -> Result<T, Unreadable> {
    T::read(&mut Fields::new(row))
}
