//! Data goes to stdout, talk to stderr. Colour is decoration: it is dropped for pipes, `NO_COLOR` and `--no-color`,
//! and nothing needs it to be read.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(json: bool, quiet: bool, no_color: bool) -> Self {
        if no_color {
            anstream::ColorChoice::Never.write_global();
        }
        Self { json, quiet }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// One line of data.
    pub(crate) fn line(&self, text: impl std::fmt::Display) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// Text exactly as it is: no line break added, nothing taken out for a pipe.
    pub(crate) fn raw(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A document, for a person's eyes and `jq` alike.
    pub(crate) fn json(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(serde_json::to_string_pretty(value)?)
    }

    /// One document a line.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> io::Result<()> {
        self.line(serde_json::to_string(value)?)
    }

    pub(crate) fn table(&self, table: &Table) -> io::Result<()> {
        self.line(table.trim_fmt())
    }

    /// Talk: silenced by `-q`. Nobody can be told when stderr is gone, so that is not an error.
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    /// What to type next, spelt so that it can be typed as it stands.
    pub(crate) fn hint(&self, text: impl std::fmt::Display) {
        let typed = std::env::args().next().unwrap_or_default();
        self.note(format_args!("hint: {}", as_typed(&text.to_string(), &typed)));
    }

    /// Said even with `-q`.
    pub(crate) fn error(&self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

/// A program started by its path is not on the search path, so hints must name it the same way.
fn as_typed(hint: &str, program: &str) -> String {
    match hint.strip_prefix("baton ") {
        Some(rest) if program.contains('/') && !program.contains(char::is_whitespace) => format!("{program} {rest}"),
        _ => hint.to_owned(),
    }
}

/// A table that reads well in a terminal, a log and a paste: columns, no lines.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).force_no_tty();
    table.set_header(header.to_vec());
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_can_be_typed_as_they_stand() {
        assert_eq!(as_typed("baton run list", "baton"), "baton run list");
        assert_eq!(as_typed("baton run list", "target/debug/baton"), "target/debug/baton run list");
        assert_eq!(as_typed("type more digits of the id", "./baton"), "type more digits of the id");
    }

    #[test]
    fn tables_are_plain_columns() {
        let mut rows = table(&["A", "LONGER"]);
        rows.add_row(["1", "2"]).add_row(["three", ""]);
        assert_eq!(rows.trim_fmt(), "A      LONGER\n1      2\nthree");
    }
}
