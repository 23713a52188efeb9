//! What is read from columns.

use std::borrow::Cow;
use std::fmt::Display;

use baton_model::Timestamp;
use serde::de::DeserializeOwned;

use crate::Error;

/// A row as a driver hands it out: what each column holds, nothing where it is NULL, or in words why it cannot be had.
pub trait Source {
    /// See [`super::Values::TAGS_APART`].
    const TAGS_APART: bool = false;

    fn text(&self, index: usize) -> Result<Option<Cow<'_, str>>, String>;
    fn integer(&self, index: usize) -> Result<Option<i64>, String>;
    fn flag(&self, index: usize) -> Result<Option<bool>, String>;
    fn texts(&self, index: usize) -> Result<Option<Vec<String>>, String>;
    fn bytes(&self, index: usize) -> Result<Option<Vec<u8>>, String>;
}

/// What is stored does not read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{column} holds {found}")]
pub struct Unreadable {
    pub column: &'static str,
    pub index: usize,
    /// What is there instead.
    pub found: String,
}

impl From<Unreadable> for Error {
    fn from(unreadable: Unreadable) -> Self {
        Self::Corrupt { reason: unreadable.to_string() }
    }
}

type Read<T> = Result<T, Unreadable>;

/// The columns of a row, one after the other.
#[derive(Debug)]
pub struct Fields<'r, R> {
    row: &'r R,
    next: usize,
}

impl<'r, R: Source> Fields<'r, R> {
    pub fn new(row: &'r R) -> Self {
        Self::starting_at(row, 0)
    }

    /// From the column with this number on.
    pub fn starting_at(row: &'r R, first: usize) -> Self {
        Self { row, next: first }
    }

    fn take<T>(
        &mut self,
        column: &'static str,
        fetch: impl FnOnce(&'r R, usize) -> Result<Option<T>, String>,
    ) -> Read<Option<T>> {
        let index = self.next;
        self.next += 1;
        fetch(self.row, index).map_err(|found| Unreadable { column, index, found })
    }

    fn there<T>(&self, column: &'static str, value: Option<T>) -> Read<T> {
        value.ok_or_else(|| self.unreadable(column, "nothing"))
    }

    /// What was taken last is not what it should be.
    fn unreadable(&self, column: &'static str, found: impl Display) -> Unreadable {
        Unreadable { column, index: self.next.saturating_sub(1), found: found.to_string() }
    }

    pub fn text(&mut self, column: &'static str) -> Read<String> {
        let text = self.take(column, R::text)?;
        self.there(column, text).map(Cow::into_owned)
    }

    pub fn maybe_text(&mut self, column: &'static str) -> Read<Option<String>> {
        Ok(self.take(column, R::text)?.map(Cow::into_owned))
    }

    pub fn texts(&mut self, column: &'static str) -> Read<Vec<String>> {
        let texts = self.take(column, R::texts)?;
        self.there(column, texts)
    }

    pub fn bytes(&mut self, column: &'static str) -> Read<Vec<u8>> {
        let bytes = self.take(column, R::bytes)?;
        self.there(column, bytes)
    }

    /// Bytes that stand for something, if there are any.
    pub fn maybe_bytes<T>(&mut self, column: &'static str, parse: impl FnOnce(&[u8]) -> Option<T>) -> Read<Option<T>> {
        let Some(bytes) = self.take(column, R::bytes)? else { return Ok(None) };
        parse(&bytes).map(Some).ok_or_else(|| self.unreadable(column, format_args!("{} bytes", bytes.len())))
    }

    pub fn flag(&mut self, column: &'static str) -> Read<bool> {
        let flag = self.take(column, R::flag)?;
        self.there(column, flag)
    }

    pub fn integer(&mut self, column: &'static str) -> Read<i64> {
        let number = self.maybe_integer(column)?;
        self.there(column, number)
    }

    pub fn maybe_integer(&mut self, column: &'static str) -> Read<Option<i64>> {
        self.take(column, R::integer)
    }

    /// A number that is no smaller than 0 and has room in `T`.
    pub fn count<T: TryFrom<i64>>(&mut self, column: &'static str) -> Read<T> {
        let count = self.maybe_count(column)?;
        self.there(column, count)
    }

    pub fn maybe_count<T: TryFrom<i64>>(&mut self, column: &'static str) -> Read<Option<T>> {
        let Some(number) = self.maybe_integer(column)? else { return Ok(None) };
        T::try_from(number).map(Some).map_err(|_| self.unreadable(column, number))
    }

    pub fn time(&mut self, column: &'static str) -> Read<Timestamp> {
        self.integer(column).map(Timestamp::from_micros)
    }

    pub fn maybe_time(&mut self, column: &'static str) -> Read<Option<Timestamp>> {
        Ok(self.maybe_integer(column)?.map(Timestamp::from_micros))
    }

    /// A text that stands for something. One that stands for nothing we know is an error.
    pub fn parsed<T>(&mut self, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Read<T> {
        let text = self.take(column, R::text)?;
        let text = self.there(column, text)?;
        parse(&text).ok_or_else(|| self.unreadable(column, format_args!("{text:?}")))
    }

    pub fn json<T: DeserializeOwned>(&mut self, column: &'static str) -> Read<T> {
        let value = self.maybe_json(column)?;
        self.there(column, value)
    }

    pub fn maybe_json<T: DeserializeOwned>(&mut self, column: &'static str) -> Read<Option<T>> {
        let Some(text) = self.take(column, R::text)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|_| self.unreadable(column, format_args!("{text:?}")))
    }

    /// A number that stands for something, the same way.
    pub fn code<T>(&mut self, column: &'static str, parse: impl FnOnce(i64) -> Option<T>) -> Read<Option<T>> {
        let Some(code) = self.maybe_integer(column)? else { return Ok(None) };
        parse(code).map(Some).ok_or_else(|| self.unreadable(column, code))
    }
}
