//! Edge conditions: CEL, or one of the protocol's small comparisons over a dotted path.

use baton_model::workflow::{ConditionKind, EdgeCondition};
use serde_json::Value;

use super::problem::Problem;
use crate::expr::metered::{self, Ready};
use crate::expr::{Expression, Failure, Scope, Strictness, Val};

#[derive(Debug)]
pub(crate) enum Condition {
    Expression(Expression),
    Compare { kind: ConditionKind, path: Vec<String>, right: Value, pattern: Option<Ready> },
}

impl Condition {
    pub(super) fn compile(
        condition: &EdgeCondition,
        pointer: &str,
        place: &str,
        strictness: Strictness,
    ) -> Result<Self, Problem> {
        if condition.kind == ConditionKind::Expression {
            let pointer = format!("{pointer}/expression");
            let Some(source) = &condition.expression else {
                return Err(Problem::at(pointer, "An expression condition needs `expression`."));
            };
            return Expression::compile(source, place, strictness)
                .map(Self::Expression)
                .map_err(|error| Problem::at(pointer, format!("Not valid CEL: {error}")));
        }
        let Some(left) = condition.left.as_deref().filter(|left| !left.is_empty()) else {
            return Err(Problem::at(format!("{pointer}/left"), "This condition needs `left`, a dotted path."));
        };
        let right = condition.right.clone().unwrap_or(Value::Null);
        let mut ready = None;
        if condition.kind == ConditionKind::Regex {
            let wrong = |why: &str| Problem::at(format!("{pointer}/right"), format!("A regex condition needs {why}."));
            let pattern = right.as_str().ok_or_else(|| wrong("a valid pattern in `right`"))?;
            ready = Some(match Ready::compile(pattern) {
                Ok(Ok(ready)) => ready,
                // It was let in before there was a bound, and is refused when it is used.
                Err(bound) if strictness == Strictness::Recorded => Ready::refused(bound),
                Ok(Err(())) if strictness == Strictness::Recorded => {
                    Ready::refused("its pattern is not read".to_owned())
                }
                Ok(Err(())) => return Err(wrong("a valid pattern in `right`")),
                Err(bound) => return Err(wrong(&format!("a smaller pattern in `right`: {bound}"))),
            });
        }
        let path = left.split('.').map(str::to_owned).collect();
        Ok(Self::Compare { kind: condition.kind, path, right, pattern: ready })
    }

    /// How to name this condition to the person who wrote it.
    pub(crate) fn source(&self) -> String {
        match self {
            Self::Expression(expression) => expression.source().to_owned(),
            Self::Compare { path, right: Value::String(pattern), .. } => format!("{} ~ {pattern}", path.join(".")),
            Self::Compare { path, .. } => path.join("."),
        }
    }

    pub(crate) fn holds(&self, scope: &dyn Scope) -> Result<bool, Failure> {
        match self {
            Self::Expression(expression) => expression.evaluate_bool(scope),
            Self::Compare { path, pattern: Some(pattern), .. } => match read_path(scope, path) {
                Some(Val::Text(text)) => pattern.matches(text.as_str(), scope),
                _ => Ok(false),
            },
            Self::Compare { kind, path, right, .. } => {
                let left = read_path(scope, path).unwrap_or(Val::Null);
                compare(*kind, &left, right, scope)
            }
        }
    }
}

/// `variables.a.b`, `inputs.x` and `nodes.n.out` read as written; a bare name is a variable.
fn read_path<'a>(scope: &'a dyn Scope, path: &[String]) -> Option<Val<'a>> {
    let (head, rest) = path.split_first()?;
    let (mut value, rest) = match scope.lookup(head) {
        Some(value) => (value, rest),
        None => (scope.lookup("variables")?, path),
    };
    for key in rest {
        value = match value {
            Val::Map(map) => map.field(key)?,
            Val::List(list) => list.get(key.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

fn compare(kind: ConditionKind, left: &Val<'_>, right: &Value, scope: &dyn Scope) -> Result<bool, Failure> {
    let right = Val::from(right);
    let same = |left: &Val<'_>, right: &Val<'_>| metered::same(left, right, scope);
    Ok(match kind {
        ConditionKind::Equals => same(left, &right)?,
        ConditionKind::NotEquals => !same(left, &right)?,
        ConditionKind::Truthy => truthy(left),
        ConditionKind::Falsy => !truthy(left),
        ConditionKind::Contains => match (left, &right) {
            (Val::Text(text), Val::Text(part)) => metered::contains(text.as_str(), part.as_str(), scope)?,
            (Val::List(items), wanted) => {
                for item in (0..items.len()).filter_map(|index| items.get(index)) {
                    if same(&item, wanted)? {
                        return Ok(true);
                    }
                }
                false
            }
            (Val::Map(map), Val::Text(key)) => map.field(key.as_str()).is_some(),
            _ => false,
        },
        // A pattern is matched by itself.
        ConditionKind::Regex | ConditionKind::Expression => false,
    })
}

fn truthy(value: &Val<'_>) -> bool {
    match value {
        Val::Bool(b) => *b,
        Val::Int(int) => *int != 0,
        Val::Uint(uint) => *uint != 0,
        Val::Double(float) => *float != 0.0,
        Val::Text(text) => !text.as_str().is_empty(),
        Val::List(_) | Val::Map(_) => true,
        _ => false,
    }
}
