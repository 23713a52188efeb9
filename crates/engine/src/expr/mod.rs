//! CEL, metered.
//!
//! The `cel` crate parses. What it parsed becomes a flat list of steps (`compile`, `code`) for a machine that does not
//! recurse (`machine`), looks at the run's data where it lies (`value`), and counts what it does (`meter`). The crate's
//! own interpreter has no meter, copies what it looks at, recurses, and goes through maps in an order of chance; in the
//! tests it is the oracle for everything else.

mod code;
mod compile;
mod errors;
mod expression;
mod functions;
mod machine;
mod meter;
pub(crate) mod metered;
mod operators;
pub(crate) mod pattern;
pub(crate) mod reading;
mod scan;
mod scope;
#[cfg(test)]
mod tests;
mod trouble;
mod value;

pub(crate) use expression::{Expression, Strictness, fault, kind_of};
pub(crate) use meter::Meter;
pub(crate) use scope::Scope;
pub(crate) use trouble::Failure;
pub(crate) use value::{Fields, Sequence, Val};
