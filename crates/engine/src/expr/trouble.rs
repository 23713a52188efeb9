//! Why an expression failed, in words that give away no value: messages end up in public events, and operands may come
//! from sensitive variables.

use super::meter::Bound;

/// What is wrong with a value, or with the lack of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    NoSuchKey(String),
    /// Something else stands where a boolean must.
    NotBool(&'static str),
    Said(String),
}

impl Trouble {
    fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    pub(super) fn no_overload_of(function: &str, types: &[&str], member: bool) -> Self {
        let signature = match types {
            [target, rest @ ..] if member => format!("{target}.({})", rest.join(", ")),
            all => format!("({})", all.join(", ")),
        };
        Self::said(format!("found no matching overload for '{function}' applied to '{signature}'"))
    }

    pub(super) fn operator(operator: &str, left: &str, right: &str) -> Self {
        Self::said(format!("`{operator}` does not apply to {left} and {right}"))
    }

    pub(super) fn overflow(operator: &str) -> Self {
        Self::said(format!("`{operator}` overflowed"))
    }

    pub(super) fn division_by_zero() -> Self {
        Self::said("division by zero")
    }

    pub(super) fn arguments(function: &str) -> Self {
        Self::said(format!("`{function}` did not accept its arguments"))
    }

    pub(super) fn undeclared(name: &str) -> Self {
        Self::said(format!("Undeclared reference to '{name}'"))
    }

    pub(super) fn unexpected(got: &str, want: &str) -> Self {
        Self::said(format!("Unexpected type: got '{got}', want '{want}'"))
    }

    pub(super) fn not_a_key(kind: &str) -> Self {
        Self::said(format!("{kind} is not a key"))
    }

    pub(super) fn not_an_index(index: &str, target: &str) -> Self {
        Self::said(format!("{index} does not index {target}"))
    }

    pub(super) fn out_of_bounds() -> Self {
        Self::said("the index is out of bounds")
    }

    pub(super) fn same_key_twice() -> Self {
        Self::said("a map has the same key twice")
    }

    pub(super) fn unknown() -> Self {
        Self::said("it cannot be evaluated")
    }

    fn explain(&self, source: &str) -> String {
        match self {
            // A key that stands in the expression is no secret; a computed one may be.
            Self::NoSuchKey(key) if source.contains(key.as_str()) => format!("there is no `{key}`"),
            Self::NoSuchKey(_) => "there is no such key".to_owned(),
            Self::NotBool(got) => format!("Unexpected type: got '{got}', want 'bool'"),
            Self::Said(text) => text.clone(),
        }
    }
}

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The expression does not fit the data.
    Wrong(String),
    /// It wants more than it may have.
    TooCostly(String),
}

impl Failure {
    pub(super) fn wrong(source: &str, trouble: &Trouble) -> Self {
        Self::Wrong(trouble.explain(source))
    }

    pub(crate) fn expected(what: &str) -> Self {
        Self::Wrong(format!("expected {what}"))
    }

    /// Why, without which of the two it is.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Wrong(text) | Self::TooCostly(text) => text,
        }
    }
}

impl From<Bound> for Failure {
    fn from(bound: Bound) -> Self {
        Self::TooCostly(bound.sentence())
    }
}
