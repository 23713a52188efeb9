//! Errors as values: what an operator or a function yields where its operands do not fit.

use std::rc::Rc;

use super::trouble::Trouble;
use super::value::Val;

pub(super) fn error<'a>(trouble: Trouble) -> Val<'a> {
    Val::Error(Rc::new(trouble))
}

/// The first error among values.
pub(super) fn first_error<'a>(values: &[Val<'a>]) -> Option<Val<'a>> {
    values.iter().find(|value| matches!(value, Val::Error(_))).cloned()
}

pub(super) fn no_overload(function: &str, values: &[&Val<'_>], member: bool) -> Trouble {
    let names: Vec<&str> = values.iter().map(|value| value.type_name()).collect();
    Trouble::no_overload_of(function, &names, member)
}

pub(super) fn wrong_operands(operator: &str, left: &Val<'_>, right: &Val<'_>) -> Trouble {
    Trouble::operator(operator, left.kind(), right.kind())
}
