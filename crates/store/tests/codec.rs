//! Rows come back from their columns as they were, and what stands for nothing is an error that names it.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::borrow::Cow;
use std::fmt::Debug;

use baton_store::archive::Entry;
use baton_store::codec::{CHANGE_WITH_TAGS, Column, Fields, Kind, Source, Stored, Unreadable, Value, Values};
use baton_store::conformance::everything;
use baton_store::{Change, CheckpointWrite, DeadLetterWrite, Error, RunRow, StoredRecord, Webhook, Write};

/// A row in memory; with tags apart or not.
#[derive(Default)]
struct Row<const APART: bool>(Vec<(&'static str, Held)>);

#[derive(Clone, Debug, PartialEq)]
enum Held {
    Null,
    Text(String),
    Integer(i64),
    Flag(bool),
    Texts(Vec<String>),
    Bytes(Vec<u8>),
}

impl<'a, const APART: bool> Values<'a> for Row<APART> {
    const TAGS_APART: bool = APART;

    fn put(&mut self, column: &'static str, value: Value<'a>) {
        let held = match value {
            Value::Null => Held::Null,
            Value::Text(text) => Held::Text(text.into_owned()),
            Value::Integer(number) => Held::Integer(number),
            Value::Flag(flag) => Held::Flag(flag),
            Value::Texts(texts) => Held::Texts(texts.to_vec()),
            Value::Bytes(bytes) => Held::Bytes(bytes.to_vec()),
        };
        self.0.push((column, held));
    }
}

macro_rules! held {
    ($row:expr, $index:expr, $kind:ident($value:ident) => $give:expr) => {
        match $row.0.get($index).map(|(_, held)| held) {
            Some(Held::Null) => Ok(None),
            Some(Held::$kind($value)) => Ok(Some($give)),
            other => Err(format!("{other:?}")),
        }
    };
}

impl<const APART: bool> Source for Row<APART> {
    const TAGS_APART: bool = APART;

    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>, String> {
        held!(self, index, Text(text) => Cow::Borrowed(text.as_str()))
    }
    fn integer(&self, index: usize) -> Result<Option<i64>, String> {
        held!(self, index, Integer(number) => *number)
    }
    fn flag(&self, index: usize) -> Result<Option<bool>, String> {
        held!(self, index, Flag(flag) => *flag)
    }
    fn texts(&self, index: usize) -> Result<Option<Vec<String>>, String> {
        held!(self, index, Texts(texts) => texts.clone())
    }
    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, String> {
        held!(self, index, Bytes(bytes) => bytes.clone())
    }
}

fn fits(kind: Kind, held: &Held) -> bool {
    match held {
        Held::Null => true,
        Held::Text(_) => matches!(kind, Kind::Text | Kind::Name),
        Held::Integer(_) => kind == Kind::Integer,
        Held::Flag(_) => kind == Kind::Flag,
        Held::Texts(_) => kind == Kind::Texts,
        Held::Bytes(_) => kind == Kind::Bytes,
    }
}

fn comes_back<T: Stored + PartialEq + Debug, const APART: bool>(row: &T, columns: &[Column]) {
    let mut written = Row::<APART>::default();
    row.write(&mut written);
    let names: Vec<&str> = written.0.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, columns.iter().map(|column| column.name).collect::<Vec<_>>(), "{}", T::TABLE);
    for (column, (_, held)) in columns.iter().zip(&written.0) {
        assert!(fits(column.kind, held), "{}.{} is {held:?}", T::TABLE, column.name);
    }
    assert_eq!(&T::read(&mut Fields::new(&written)).unwrap(), row);
}

fn same<T: Stored + PartialEq + Debug>(row: &T) {
    comes_back::<T, false>(row, T::COLUMNS);
}

#[test]
fn everything_comes_back_as_it_was() {
    let mut seen = 0;
    for write in everything::commits().into_iter().flatten() {
        seen += 1;
        match write {
            // A new run stands where its log does.
            Write::CreateRun(row) | Write::Append { row, .. } => same(&RunRow { pruned: None, ..row }),
            Write::OpenInterrupt(row) => same(&row),
            Write::Change { change, .. } => {
                same(&change);
                comes_back::<Change, true>(&change, CHANGE_WITH_TAGS);
            }
            Write::PutWorkflow(row) => same(&row),
            Write::PutReply(row) => same(&row),
            Write::PutWebhook(row) => same(&row),
            Write::PutDelivery(row) => same(&row),
            Write::DeadLetters(DeadLetterWrite::Put(row)) => same(&row),
            Write::Quarantine(row) => same(&row),
            Write::Annotate(row) => same(&row),
            Write::PutSpending(row) => same(&row),
            Write::Checkpoint(CheckpointWrite::Put { checkpoint, chunks }) => {
                same(&checkpoint);
                chunks.iter().for_each(same);
            }
            _ => seen -= 1,
        }
    }
    assert!(seen > 15, "{seen}");
}

/// Reads a row with another value in one column.
fn spoiled<T: Stored + Debug>(row: &T, column: &str, held: Held) -> Unreadable {
    let mut written = Row::<false>::default();
    row.write(&mut written);
    let at = written.0.iter_mut().find(|(name, _)| *name == column).unwrap();
    at.1 = held;
    match T::read(&mut Fields::new(&written)) {
        Ok(row) => panic!("{column} was taken for something: {row:?}"),
        Err(unreadable) => unreadable,
    }
}

#[test]
fn a_code_that_nobody_knows_is_told_with_its_column() {
    let writes: Vec<Write> = everything::commits().into_iter().flatten().collect();
    let row: &RunRow =
        writes.iter().find_map(|write| if let Write::CreateRun(row) = write { Some(row) } else { None }).unwrap();
    let record: &StoredRecord = writes
        .iter()
        .find_map(|write| if let Write::Append { records, .. } = write { records.first() } else { None })
        .unwrap();
    let hook: &Webhook =
        writes.iter().find_map(|write| if let Write::PutWebhook(row) = write { Some(row) } else { None }).unwrap();
    let text = |text: &str| Held::Text(text.to_owned());
    for (found, says) in [
        (spoiled(row, "status", text("dozing")), r#"status holds "dozing""#),
        (spoiled(row, "digest", text("x")), r#"digest holds "x""#),
        (spoiled(row, "origin", text("{")), r#"origin holds "{""#),
        (spoiled(row, "next_seq", Held::Integer(-1)), "next_seq holds -1"),
        (spoiled(row, "tenant", Held::Null), "tenant holds nothing"),
        (spoiled(record, "part", Held::Integer(7)), "part holds 7"),
        (spoiled(hook, "status", text("asleep")), r#"status holds "asleep""#),
        (spoiled(hook, "failures", Held::Integer(i64::MAX)), "failures holds 9223372036854775807"),
    ] {
        assert_eq!(found.to_string(), says);
        assert!(matches!(Error::from(found), Error::Corrupt { .. }));
    }
}

#[test]
fn a_digest_tells_rows_apart() {
    let writes = everything::commits().into_iter().flatten();
    let rows = writes.filter_map(|write| if let Write::CreateRun(row) = write { Some(row) } else { None });
    let mut digests: Vec<_> = rows.clone().map(|row| Entry::Run(Box::new(row)).digest()).collect();
    assert_eq!(digests, rows.clone().map(|row| Entry::Run(Box::new(row)).digest()).collect::<Vec<_>>());
    digests.extend(rows.map(|row| Entry::Run(Box::new(RunRow { busy: !row.busy, ..row })).digest()));
    digests.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    let all = digests.len();
    digests.dedup();
    assert_eq!(digests.len(), all);
}
