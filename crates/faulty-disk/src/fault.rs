//! What goes wrong, and when.

/// What SQLite asks a disk for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
}

/// Which file it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Database,
    Wal,
    /// A temporary file, or a journal.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An input/output error. After a failed sync the operating system takes what it could not write for written: a part
    /// of it is on the disk, and a later sync does not write the rest.
    Fail,
    /// No room left. A part of what was to be written is written.
    Full,
    /// Half of it is written, and then an error.
    Short,
    /// A sync that says it has synced.
    Lie,
    /// One bit of what was read is another one.
    Flip,
}

/// Something that goes wrong when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub op: Op,
    /// Any file if absent.
    pub part: Option<Part>,
    pub what: What,
    /// How many such operations go well before.
    pub after: u32,
    /// How many go wrong.
    pub times: u32,
}

impl Fault {
    /// Goes wrong once, at the next such operation.
    pub fn once(op: Op, part: Part, what: What) -> Self {
        Self { op, part: Some(part), what, after: 0, times: 1 }
    }

    /// Goes wrong from now on.
    pub fn lasting(op: Op, part: Part, what: What) -> Self {
        Self { times: u32::MAX, ..Self::once(op, part, what) }
    }

    pub fn after(self, after: u32) -> Self {
        Self { after, ..self }
    }

    /// Whether it is due now. Counts.
    pub(crate) fn is_due(&mut self, op: Op, part: Part) -> bool {
        if self.op != op || self.part.is_some_and(|of| of != part) || self.times == 0 {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        if self.times != u32::MAX {
            self.times -= 1;
        }
        true
    }
}
