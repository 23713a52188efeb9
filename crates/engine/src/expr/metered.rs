//! Single operations for conditions that are no expressions, on the same meter.

use super::meter::{Bound, Gauge, length};
use super::pattern::{MAX_BYTES, MAX_STATES, Pattern, weigh};
use super::value::Val;
use super::{Failure, Scope, operators, reading};

/// Whether two values are the same; numbers by their value as doubles.
#[expect(clippy::cast_precision_loss, reason = "what these conditions promise")]
pub(crate) fn same(left: &Val<'_>, right: &Val<'_>, scope: &dyn Scope) -> Result<bool, Failure> {
    let number = |value: &Val<'_>| match value {
        Val::Int(int) => Some(*int as f64),
        Val::Uint(uint) => Some(*uint as f64),
        Val::Double(float) => Some(*float),
        _ => None,
    };
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(left == right);
    }
    on_meter(scope, |gauge| operators::equal(left, right, gauge))
}

pub(crate) fn contains(text: &str, part: &str, scope: &dyn Scope) -> Result<bool, Failure> {
    on_meter(scope, |gauge| {
        gauge.bytes(length(text.len()))?;
        Ok(text.contains(part))
    })
}

/// A pattern that is compiled once and matched often.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The pattern; or, of one that is over a bound that did not apply when it was accepted, why it is not used.
    pattern: Result<Pattern, String>,
}

impl Ready {
    /// Compiles a pattern. The outer error is about a bound, the inner one about the pattern.
    pub(crate) fn compile(pattern: &str) -> Result<Result<Self, ()>, String> {
        let too_large = || Bound::Pattern.sentence();
        let weight = weigh(pattern, MAX_BYTES).filter(|weight| weight.states <= MAX_STATES).ok_or_else(too_large)?;
        reading::spend(weight.compiling())?;
        let made = Pattern::compile(pattern, weight).map_err(Bound::sentence)?;
        Ok(made.map(|pattern| Self { pattern: Ok(pattern) }).ok_or(()))
    }

    /// One that is on record, and is not used.
    pub(crate) fn refused(why: String) -> Self {
        Self { pattern: Err(why) }
    }

    pub(crate) fn matches(&self, text: &str, scope: &dyn Scope) -> Result<bool, Failure> {
        let pattern = self.pattern.as_ref().map_err(|why| Failure::TooCostly(why.clone()))?;
        on_meter(scope, |gauge| pattern.is_match(text, gauge))
    }
}

fn on_meter<T>(scope: &dyn Scope, work: impl FnOnce(&mut Gauge) -> Result<T, Bound>) -> Result<T, Failure> {
    let mut gauge = scope.meter().gauge(scope.bounds());
    let result = work(&mut gauge);
    scope.meter().settle(&gauge);
    Ok(result?)
}
