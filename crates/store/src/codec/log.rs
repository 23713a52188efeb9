//! Records and blobs as columns.

use baton_model::{Part, Versions};

use super::column::{Column, bytes, integer, text};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::values::Values;
use crate::checksum::Checksum;
use crate::record::StoredRecord;

/// 0 and 1 take the least room in a row, and most records are one of them: what the engine decided by itself.
fn code(part: Part) -> i64 {
    i64::from(part.outside) << 1 | i64::from(!part.first)
}

fn part(code: i64) -> Option<Part> {
    (0..4).contains(&code).then_some(Part { outside: code & 2 != 0, first: code & 1 == 0 })
}

/// Whose record it is, an adapter keeps beside these.
impl Stored for StoredRecord {
    const TABLE: &'static str = "events";
    const COLUMNS: &'static [Column] = &[
        integer("seq"),
        integer("at"),
        text("kind"),
        text("body"),
        text("private"),
        integer("memory"),
        integer("workspace"),
        integer("part"),
        bytes(Self::SUM),
    ];
    const KEY: &'static [&'static str] = &["run", "seq"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            seq: row.count("seq")?,
            at: row.time("at")?,
            kind: row.text("kind")?,
            body: row.text("body")?,
            private: row.maybe_text("private")?,
            versions: Versions { memory: row.count("memory")?, workspace: row.count("workspace")? },
            part: row.code("part", part)?,
            sum: row.maybe_bytes(Self::SUM, Checksum::from_bytes)?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.count("seq", self.seq);
        out.time("at", self.at);
        out.text("kind", &self.kind);
        out.text("body", &self.body);
        out.maybe_text("private", self.private.as_deref());
        out.count("memory", self.versions.memory);
        out.count("workspace", self.versions.workspace);
        out.maybe_integer("part", self.part.map(code));
        out.maybe_bytes(Self::SUM, self.sum.as_ref().map(Checksum::as_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_part_stands_for_one_and_others_for_none() {
        for (outside, first) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(part(code(Part { outside, first })), Some(Part { outside, first }));
        }
        assert_eq!([part(-1), part(4), part(7)], [None; 3]);
    }
}
