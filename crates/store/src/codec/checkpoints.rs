//! Checkpoints and what belongs to them, as rows.

use baton_model::{Digest, RunId};

use super::column::{Column, bytes, integer, text, texts};
use super::fields::{Fields, Source, Unreadable};
use super::stored::Stored;
use super::sum_columns::Sum;
use super::values::Values;
use crate::{Checkpoint, CheckpointChunk, SpendingRow};

impl Stored for Checkpoint {
    const TABLE: &'static str = "checkpoints";
    const COLUMNS: &'static [Column] =
        &[text("run"), integer("seq"), text("key"), texts("chunks"), text("digest"), bytes("body")];
    const KEY: &'static [&'static str] = &["run", "seq"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self {
            run: RunId::new(row.text("run")?),
            seq: row.count("seq")?,
            key: row.text("key")?,
            chunks: row.texts("chunks")?,
            digest: row.parsed("digest", Digest::parse)?,
            body: row.bytes("body")?,
        })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("run", self.run.as_str());
        out.count("seq", self.seq);
        out.text("key", &self.key);
        out.texts("chunks", &self.chunks);
        out.text("digest", self.digest.as_str());
        out.bytes("body", &self.body);
    }
}

impl Stored for CheckpointChunk {
    const TABLE: &'static str = "checkpoint_chunks";
    const COLUMNS: &'static [Column] = &[text("run"), text("name"), bytes("bytes")];
    const KEY: &'static [&'static str] = &["run", "name"];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        Ok(Self { run: RunId::new(row.text("run")?), name: row.text("name")?, bytes: row.bytes("bytes")? })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("run", self.run.as_str());
        out.text("name", &self.name);
        out.bytes("bytes", &self.bytes);
    }
}

impl Stored for SpendingRow {
    const TABLE: &'static str = "spending";
    const COLUMNS: &'static [Column] = &[text("run"), text("root"), integer("seq"), text("body")];
    const KEY: &'static [&'static str] = &["run"];
    const SUMS: &'static [Sum] = &[Sum { column: "sum", of: &["run", "root", "seq", "body"] }];

    fn read(row: &mut Fields<'_, impl Source>) -> Result<Self, Unreadable> {
        let (run, root) = (RunId::new(row.text("run")?), RunId::new(row.text("root")?));
        Ok(Self { run, root, seq: row.count("seq")?, body: row.text("body")? })
    }

    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        out.text("run", self.run.as_str());
        out.text("root", self.root.as_str());
        out.count("seq", self.seq);
        out.text("body", &self.body);
    }
}
