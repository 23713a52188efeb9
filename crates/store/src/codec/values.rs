//! What is written to columns.

use std::borrow::Cow;

use baton_model::Timestamp;

/// What one column of one row is to hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Integer(i64),
    Flag(bool),
    Texts(&'a [String]),
    Bytes(&'a [u8]),
}

/// Databases' integers are signed; counts beyond that do not occur, and a bound beyond that means "no bound".
pub fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Takes the columns of a row one after the other.
pub trait Values<'a> {
    /// Whether an item's tags have a column of their own, beside what else is kept of it.
    const TAGS_APART: bool = false;

    fn put(&mut self, column: &'static str, value: Value<'a>);

    fn text(&mut self, column: &'static str, text: &'a str) {
        self.put(column, Value::Text(Cow::Borrowed(text)));
    }

    fn maybe_text(&mut self, column: &'static str, text: Option<&'a str>) {
        self.put(column, text.map_or(Value::Null, |text| Value::Text(Cow::Borrowed(text))));
    }

    /// A text that was made for this: JSON.
    fn made(&mut self, column: &'static str, text: String) {
        self.put(column, Value::Text(Cow::Owned(text)));
    }

    fn integer(&mut self, column: &'static str, number: i64) {
        self.put(column, Value::Integer(number));
    }

    fn maybe_integer(&mut self, column: &'static str, number: Option<i64>) {
        self.put(column, number.map_or(Value::Null, Value::Integer));
    }

    fn count(&mut self, column: &'static str, count: u64) {
        self.integer(column, integer(count));
    }

    fn time(&mut self, column: &'static str, at: Timestamp) {
        self.integer(column, at.as_micros());
    }

    fn maybe_time(&mut self, column: &'static str, at: Option<Timestamp>) {
        self.maybe_integer(column, at.map(Timestamp::as_micros));
    }

    fn flag(&mut self, column: &'static str, flag: bool) {
        self.put(column, Value::Flag(flag));
    }

    fn maybe_bytes(&mut self, column: &'static str, bytes: Option<&'a [u8]>) {
        self.put(column, bytes.map_or(Value::Null, Value::Bytes));
    }

    fn texts(&mut self, column: &'static str, texts: &'a [String]) {
        self.put(column, Value::Texts(texts));
    }

    fn bytes(&mut self, column: &'static str, bytes: &'a [u8]) {
        self.put(column, Value::Bytes(bytes));
    }
}
