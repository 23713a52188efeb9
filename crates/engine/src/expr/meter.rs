//! What an expression may use up: units of work, and bytes of one value. Both are counted, never timed, so that an
//! expression that is too costly is so wherever and however often it is evaluated.

use baton_model::ValueBounds;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are moved for one unit.
pub(crate) const UNIT_BYTES: u64 = 64;
/// What one node of a value takes in memory beside its text.
pub(super) const NODE_BYTES: u64 = 32;
/// What a table of members takes, and how many share one when they come in order.
const TABLE_BYTES: u64 = 640;
const TABLE_MEMBERS: u64 = 5;
/// One table that is not full.
const FIRST_TABLE: u64 = 11;
/// How often others are let go first: some ten microseconds of work lie in between.
const UNITS_BETWEEN_BREATHERS: u64 = 1024;
/// How deeply a computed value may nest. Copying and comparing follow the nesting, and the log takes 64 levels at most.
pub(super) const MAX_DEPTH: u32 = 128;

/// What the expressions of the step under way have used. It is set back when a step begins, and no record depends on
/// it but through the step that is being decided.
#[derive(Default)]
pub(crate) struct Meter {
    used: AtomicU64,
}

/// It is no part of what a run is: two runs with the same log are the same.
impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meter")
    }
}

impl Clone for Meter {
    fn clone(&self) -> Self {
        Self { used: AtomicU64::new(self.used()) }
    }
}

impl Meter {
    /// A step begins.
    pub(crate) fn restart(&self) {
        self.used.store(0, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What is left of the step's budget.
    pub(super) fn gauge(&self, bounds: ValueBounds) -> Gauge {
        let used = self.used();
        Gauge { began: used, used, most: bounds.units(), breather: used, loose: 0, value_bytes: bounds.largest_value() }
    }

    /// What an evaluation that began with [`Meter::gauge`] ended with.
    pub(super) fn settle(&self, gauge: &Gauge) {
        self.used.store(gauge.used.min(gauge.most), Ordering::Relaxed);
        crate::pause_hook::used(gauge.used.saturating_sub(gauge.began));
    }
}

/// Which bound an expression met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Units(u64),
    ValueBytes(u64),
    Depth,
    Pattern,
}

impl Bound {
    pub(crate) fn sentence(self) -> String {
        match self {
            Self::Units(most) => format!("the expressions of one step have {most} units together, and it needs more"),
            Self::ValueBytes(most) => format!("it makes a value of more than {most} bytes (`max_value_bytes`)"),
            Self::Depth => format!("it makes a value that nests more than {MAX_DEPTH} levels"),
            Self::Pattern => "its pattern is too large".to_owned(),
        }
    }
}

/// The meter of one evaluation.
#[derive(Debug)]
pub(crate) struct Gauge {
    /// What had been used before this evaluation.
    began: u64,
    used: u64,
    most: u64,
    /// The next time others are let go first.
    breather: u64,
    /// Bytes that do not make up a unit yet.
    loose: u64,
    value_bytes: u64,
}

impl Gauge {
    /// For what no expression asked for; only its size is bounded.
    pub(super) fn open(value_bytes: u64) -> Self {
        Self { began: 0, used: 0, most: u64::MAX, breather: 0, loose: 0, value_bytes }
    }

    pub(super) fn charge(&mut self, units: u64) -> Result<(), Bound> {
        self.used = self.used.saturating_add(units);
        if self.used >= self.breather {
            self.breather = self.used.saturating_add(UNITS_BETWEEN_BREATHERS);
            crate::pause_hook::breather();
        }
        if self.used > self.most { Err(Bound::Units(self.most)) } else { Ok(()) }
    }

    /// Bytes copied, compared or looked through.
    pub(super) fn bytes(&mut self, bytes: u64) -> Result<(), Bound> {
        let all = self.loose.saturating_add(bytes);
        self.loose = all % UNIT_BYTES;
        self.charge(all / UNIT_BYTES)
    }

    /// Refuses a value of so many bytes.
    pub(super) fn fits(&self, bytes: u64) -> Result<(), Bound> {
        if bytes > self.value_bytes { Err(Bound::ValueBytes(self.value_bytes)) } else { Ok(()) }
    }
}

/// What so many members of an object or a map take in memory, without the values' own.
pub(super) fn members(count: usize) -> u64 {
    match count as u64 {
        0 => 0,
        few if few <= FIRST_TABLE => TABLE_BYTES,
        many => (many / TABLE_MEMBERS).saturating_mul(TABLE_BYTES),
    }
}

pub(super) fn length(bytes: usize) -> u64 {
    bytes as u64
}
