//! Records as a chain: each has a checksum over what it holds, whose it is and the checksum before it. So no record can be
//! changed, moved, left out or added behind without a sum that does not fit.

use baton_model::RunId;

use crate::checksum::{Checksum, LogChain};
use crate::codec::{Stored as _, Value, Values, feed};
use crate::{Error, RunRow, StoredRecord};

/// Hashes columns as they come, all but the sum itself.
struct Hash(blake3::Hasher);

impl<'a> Values<'a> for Hash {
    fn put(&mut self, column: &'static str, value: Value<'a>) {
        if column != StoredRecord::SUM {
            let add = &mut |bytes: &[u8]| {
                self.0.update(bytes);
            };
            feed(add, column, &value);
        }
    }
}

impl StoredRecord {
    /// What its checksum must be behind a record that has this one.
    pub fn checksum(&self, run: &RunId, before: Option<Checksum>) -> Checksum {
        let mut hash = Hash(blake3::Hasher::new());
        hash.put("before", before.as_ref().map_or(Value::Null, |before| Value::Bytes(before.as_bytes())));
        hash.put("run", Value::Text(run.as_str().into()));
        self.write(&mut hash);
        Checksum::of(&hash.0.finalize())
    }
}

impl RunRow {
    /// Gives records their checksums that are about to be added to the log, and takes in the last one.
    pub fn seal(&mut self, records: &mut [StoredRecord]) {
        for record in records {
            let sum = record.checksum(&self.id, self.chain.head);
            (record.sum, self.chain.head) = (Some(sum), Some(sum));
        }
    }
}

/// Where a log stands, by the row of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEnds {
    /// The sequence of its first own record.
    pub begins: u64,
    pub next_seq: u64,
    pub chain: LogChain,
    /// Its records were dropped.
    pub gone: bool,
}

impl LogEnds {
    pub fn of(row: &RunRow) -> Self {
        let begins = row.origin.as_ref().map_or(0, |origin| origin.seq);
        let gone = row.pruned.is_some_and(|pruned| pruned.log);
        Self { begins, next_seq: row.next_seq, chain: row.chain, gone }
    }
}

/// Compares records with their checksums, one after the other.
#[derive(Debug)]
pub struct LogCheck<'a> {
    run: &'a RunId,
    ends: LogEnds,
    next: u64,
    before: Option<Checksum>,
    /// A record was there.
    begun: bool,
}

impl<'a> LogCheck<'a> {
    /// The record whose checksum must be known to begin here, if it must.
    pub fn needs(ends: &LogEnds, from: u64) -> Option<u64> {
        (!ends.gone && from > ends.begins && from < ends.next_seq).then(|| from - 1)
    }

    /// For records from this sequence on; `before` is what [`Self::needs`] asked for.
    pub fn new(run: &'a RunId, ends: LogEnds, from: u64, before: Option<Checksum>) -> Self {
        let (next, before) = if from <= ends.begins { (ends.begins, ends.chain.base) } else { (from, before) };
        Self { run, ends, next, before, begun: false }
    }

    /// The next record.
    pub fn take(&mut self, record: &StoredRecord) -> Result<(), Error> {
        if self.ends.gone && !self.begun {
            // What came after the log was dropped follows nothing that is there.
            (self.begun, self.before, self.next) = (true, record.sum, record.seq + 1);
            return Ok(());
        }
        if record.seq != self.next {
            return Err(self.damaged(self.next, format_args!("the record is missing; {} comes instead", record.seq)));
        }
        if record.seq >= self.ends.next_seq {
            let next = self.ends.next_seq;
            return Err(self.damaged(record.seq, format_args!("the row of the run knows of no record after {next}")));
        }
        match record.sum {
            None if self.before.is_some() => {
                return Err(self.damaged(record.seq, "the record has no checksum, and the one before it has"));
            }
            Some(sum) if sum != record.checksum(self.run, self.before) => {
                return Err(self.damaged(record.seq, "the record is not what was written, or not what follows here"));
            }
            _ => {}
        }
        (self.before, self.next) = (record.sum, self.next + 1);
        if self.next == self.ends.next_seq { self.check_head() } else { Ok(()) }
    }

    /// There are no more. Not to be called where a page ends for another reason.
    pub fn end(&self) -> Result<(), Error> {
        if self.ends.gone || self.next >= self.ends.next_seq {
            return Ok(());
        }
        let next = self.ends.next_seq;
        Err(self.damaged(self.next, format_args!("the log ends here, and should have {next} records")))
    }

    fn check_head(&self) -> Result<(), Error> {
        if self.before == self.ends.chain.head {
            return Ok(());
        }
        Err(self.damaged(self.next - 1, "the record is not the last one that was written"))
    }

    fn damaged(&self, seq: u64, what: impl std::fmt::Display) -> Error {
        Error::damaged(self.run, seq, what)
    }
}
