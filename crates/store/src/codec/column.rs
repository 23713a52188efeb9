//! What a table's columns are called and what they hold.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A text of any length that an index knows: some databases keep only a part of a long one there.
    Name,
    Integer,
    Flag,
    /// A list of texts.
    Texts,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

pub(super) const fn name(name: &'static str) -> Column {
    Column { name, kind: Kind::Name }
}

pub(super) const fn integer(name: &'static str) -> Column {
    Column { name, kind: Kind::Integer }
}

pub(super) const fn flag(name: &'static str) -> Column {
    Column { name, kind: Kind::Flag }
}

pub(super) const fn texts(name: &'static str) -> Column {
    Column { name, kind: Kind::Texts }
}

pub(super) const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

/// The names, as a statement lists them.
pub fn names(columns: &[Column]) -> String {
    columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
}
