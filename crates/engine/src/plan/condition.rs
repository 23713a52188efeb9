//! Edge conditions: CEL, or one of the protocol's small comparisons over a dotted path.

use baton_model::workflow::{ConditionKind, EdgeCondition};
use serde_json::Value;

use super::Problem;
use crate::expr::{Expression, Scope};

#[derive(Debug)]
pub(crate) enum Condition {
    Expression(Expression),
    Compare { kind: ConditionKind, path: Vec<String>, right: Value },
}

impl Condition {
    pub(super) fn compile(condition: &EdgeCondition, pointer: &str) -> Result<Self, Problem> {
        if condition.kind == ConditionKind::Expression {
            let place = format!("{pointer}/expression");
            let Some(source) = &condition.expression else {
                return Err(Problem::at(place, "An expression condition needs `expression`."));
            };
            return Expression::compile(source)
                .map(Self::Expression)
                .map_err(|error| Problem::at(place, format!("Not valid CEL: {error}")));
        }
        let Some(left) = condition.left.as_deref().filter(|left| !left.is_empty()) else {
            return Err(Problem::at(format!("{pointer}/left"), "This condition needs `left`, a dotted path."));
        };
        let right = condition.right.clone().unwrap_or(Value::Null);
        if condition.kind == ConditionKind::Regex && right.as_str().is_none_or(|pattern| matches("", pattern).is_err())
        {
            return Err(Problem::at(format!("{pointer}/right"), "A regex condition needs a valid pattern in `right`."));
        }
        Ok(Self::Compare { kind: condition.kind, path: left.split('.').map(str::to_owned).collect(), right })
    }

    /// How to name this condition to the person who wrote it.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Expression(expression) => expression.source().to_owned(),
            Self::Compare { path, right: Value::String(pattern), .. } => format!("{} ~ {pattern}", path.join(".")),
            Self::Compare { path, .. } => path.join("."),
        }
    }

    pub(crate) fn holds(&self, scope: &dyn Scope) -> Result<bool, String> {
        match self {
            Self::Expression(expression) => expression.evaluate_bool(scope),
            Self::Compare { kind, path, right } => compare(*kind, read_path(scope, path).as_ref(), right),
        }
    }
}

/// `variables.a.b`, `inputs.x` and `nodes.n.out` read as written; a bare name is a variable.
fn read_path(scope: &dyn Scope, path: &[String]) -> Option<Value> {
    let (head, rest) = path.split_first()?;
    let (mut value, rest) = match scope.lookup(head) {
        Some(value) => (value, rest),
        None => (scope.lookup("variables")?, path),
    };
    for key in rest {
        value = match value {
            Value::Object(mut map) => map.remove(key)?,
            Value::Array(mut items) => {
                let index: usize = key.parse().ok()?;
                (index < items.len()).then(|| items.swap_remove(index))?
            }
            _ => return None,
        };
    }
    Some(value)
}

fn compare(kind: ConditionKind, left: Option<&Value>, right: &Value) -> Result<bool, String> {
    let left = left.unwrap_or(&Value::Null);
    Ok(match kind {
        ConditionKind::Equals => same(left, right),
        ConditionKind::NotEquals => !same(left, right),
        ConditionKind::Truthy => truthy(left),
        ConditionKind::Falsy => !truthy(left),
        ConditionKind::Contains => match (left, right) {
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            (Value::Array(items), wanted) => items.iter().any(|item| same(item, wanted)),
            (Value::Object(map), Value::String(key)) => map.contains_key(key),
            _ => false,
        },
        ConditionKind::Regex => match (left, right) {
            (Value::String(text), Value::String(pattern)) => matches(text, pattern)?,
            _ => false,
        },
        ConditionKind::Expression => false,
    })
}

/// Regular expressions run inside CEL, whose engine is linear in the text.
fn matches(text: &str, pattern: &str) -> Result<bool, String> {
    struct Two<'a>(&'a str, &'a str);
    impl Scope for Two<'_> {
        fn lookup(&self, name: &str) -> Option<Value> {
            match name {
                "text" => Some(self.0.into()),
                "pattern" => Some(self.1.into()),
                _ => None,
            }
        }
    }
    Expression::compile("text.matches(pattern)")?.evaluate_bool(&Two(text, pattern))
}

fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => left == right,
    }
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(number) => number.as_f64().is_some_and(|n| n != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
