//! Why an expression failed, in words that give away no value: messages end up in public events, and operands may come
//! from sensitive variables.

use cel::ExecutionError;
use cel::Value as Cel;

pub(crate) fn explain(source: &str, error: &ExecutionError) -> String {
    match error {
        // A key that stands in the expression is no secret; a computed one may be.
        ExecutionError::NoSuchKey(key) if source.contains(key.as_str()) => format!("there is no `{key}`"),
        ExecutionError::NoSuchKey(_) => "there is no such key".to_owned(),
        ExecutionError::UnsupportedTargetType { target } => format!("it does not apply to {}", kind(target)),
        ExecutionError::NotSupportedAsMethod { method, target } => {
            format!("{} has no method `{method}`", kind(target))
        }
        ExecutionError::UnsupportedKeyType(key) => format!("{} is not a key", kind(key)),
        ExecutionError::ValuesNotComparable(left, right) => {
            format!("{} and {} cannot be compared", kind(left), kind(right))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            format!("`{operator}` does not apply to {} and {}", kind(left), kind(right))
        }
        ExecutionError::UnsupportedIndex(index, target) => format!("{} does not index {}", kind(index), kind(target)),
        ExecutionError::FunctionError { function, .. } => format!("`{function}` did not accept its arguments"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("`{operator}` overflowed"),
        ExecutionError::IndexOutOfBounds(_) => "the index is out of bounds".to_owned(),
        ExecutionError::DuplicateKey(_) => "a map has the same key twice".to_owned(),
        // These name types, functions and variables only.
        ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::NoSuchOverload(_)
        | ExecutionError::UndeclaredReference(_)
        | ExecutionError::MissingArgumentOrTarget => error.to_string(),
        _ => "it cannot be evaluated".to_owned(),
    }
}

fn kind(value: &Cel) -> &'static str {
    match value {
        Cel::Null => "null",
        Cel::Bool(_) => "a boolean",
        Cel::Int(_) | Cel::UInt(_) | Cel::Float(_) => "a number",
        Cel::String(_) => "a string",
        Cel::List(_) => "a list",
        Cel::Map(_) => "a map",
        _ => "this value",
    }
}
