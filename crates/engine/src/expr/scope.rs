//! What an expression may see.

use baton_model::ValueBounds;

use super::meter::Meter;
use super::value::Val;

/// What an expression may see. Lookup is by top-level name, and what is found is looked at in place.
pub(crate) trait Scope {
    fn lookup<'a>(&'a self, name: &str) -> Option<Val<'a>>;

    fn meter(&self) -> &Meter;

    fn bounds(&self) -> ValueBounds;
}
