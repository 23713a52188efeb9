//! Folding one record. Total: a record that cannot follow is an [`IllegalRecord`], never a panic, and nothing here
//! evaluates an expression or reads a clock.

mod budget;
mod channel;
mod children;
mod invocation;
mod lookup;
mod map;
mod model_call;
mod node;
mod record;
mod routing;
mod run;
mod step_work;

pub(crate) use record::evolve_in_place;
pub use record::{IllegalRecord, evolve};
