//! Rows as lists of values, one per column.

use std::borrow::Cow;

use baton_store::codec::{Column, Kind, Value, Values};

use crate::statement::Statement;
use crate::text;

/// A list per column.
pub(crate) struct Lists<'a> {
    lists: Vec<List<'a>>,
    /// How many columns of this row are there already.
    filled: usize,
}

enum List<'a> {
    Texts(Vec<Option<Cow<'a, str>>>),
    /// What an index knows of them, and the whole of those that are too long; see [`text::key`].
    Names(Vec<Option<Cow<'a, str>>>, Vec<Option<Cow<'a, str>>>),
    Integers(Vec<Option<i64>>),
    Flags(Vec<Option<bool>>),
    Literals(Vec<Option<String>>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> Lists<'a> {
    /// For about so many rows.
    pub(crate) fn new(columns: &[Column], rows: usize) -> Self {
        let list = |column: &Column| match column.kind {
            Kind::Text => List::Texts(Vec::with_capacity(rows)),
            Kind::Name => List::Names(Vec::with_capacity(rows), Vec::with_capacity(rows)),
            Kind::Integer => List::Integers(Vec::with_capacity(rows)),
            Kind::Flag => List::Flags(Vec::with_capacity(rows)),
            Kind::Texts => List::Literals(Vec::with_capacity(rows)),
            Kind::Bytes => List::Bytes(Vec::with_capacity(rows)),
        };
        Self { lists: columns.iter().map(list).collect(), filled: 0 }
    }

    pub(crate) fn row(&mut self, write: impl FnOnce(&mut Self)) {
        self.filled = 0;
        write(self);
    }

    pub(crate) fn statement(self, sql: &'static str) -> Statement<'a> {
        let (mut statement, mut longs) = (Statement::new(sql), Vec::new());
        for list in self.lists {
            statement = match list {
                List::Texts(texts) => statement.value(texts),
                List::Names(keys, whole) => {
                    longs.push(whole);
                    statement.value(keys)
                }
                List::Integers(numbers) => statement.value(numbers),
                List::Flags(flags) => statement.value(flags),
                List::Literals(lists) => statement.value(lists),
                List::Bytes(bytes) => statement.value(bytes),
            };
        }
        longs.into_iter().fold(statement, Statement::value)
    }
}

fn written(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => text::written(text),
        Cow::Owned(text) => Cow::Owned(text::written(&text).into_owned()),
    }
}

impl<'a> Values<'a> for Lists<'a> {
    const TAGS_APART: bool = true;

    fn put(&mut self, _: &'static str, value: Value<'a>) {
        let list = self.lists.get_mut(self.filled);
        self.filled += 1;
        match (list, value) {
            (Some(List::Texts(list)), Value::Text(text)) => list.push(Some(written(text))),
            (Some(List::Texts(list)), _) => list.push(None),
            (Some(List::Names(keys, whole)), Value::Text(Cow::Borrowed(text))) => {
                keys.push(Some(text::key(text)));
                whole.push(text::long(text));
            }
            (Some(List::Names(keys, whole)), _) => {
                keys.push(None);
                whole.push(None);
            }
            (Some(List::Integers(list)), Value::Integer(number)) => list.push(Some(number)),
            (Some(List::Integers(list)), _) => list.push(None),
            (Some(List::Flags(list)), Value::Flag(flag)) => list.push(Some(flag)),
            (Some(List::Flags(list)), _) => list.push(None),
            (Some(List::Literals(list)), Value::Texts(texts)) => list.push(Some(literal(texts))),
            (Some(List::Literals(list)), _) => list.push(None),
            (Some(List::Bytes(list)), Value::Bytes(bytes)) => list.push(Some(bytes)),
            (Some(List::Bytes(list)), _) => list.push(None),
            (None, _) => {}
        }
    }
}

/// A list as PostgreSQL writes one.
fn literal(list: &[String]) -> String {
    let quoted = |text: &String| format!("\"{}\"", text::written(text).replace('\\', "\\\\").replace('"', "\\\""));
    format!("{{{}}}", list.iter().map(quoted).collect::<Vec<_>>().join(","))
}
