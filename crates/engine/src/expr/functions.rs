//! The functions of the language. What they look through is paid for before they do.

use std::rc::Rc;

use super::code::Function;
use super::errors::{error, no_overload};
use super::meter::{Bound, Gauge, length};
pub(super) use super::pattern::Patterns;
use super::trouble::Trouble;
use super::value::{Bytes, Val};

/// Calls a function. For a member its target is the first of the arguments; none of them is an error.
pub(super) fn call<'a>(
    function: Function,
    mut arguments: Vec<Val<'a>>,
    member: bool,
    gauge: &mut Gauge,
    patterns: &mut Patterns,
) -> Result<Val<'a>, Bound> {
    for argument in &arguments {
        gauge.bytes(scanned(function, argument))?;
    }
    let value = match (function, arguments.as_slice()) {
        (Function::Size, [value]) => size(value, gauge)?,
        (Function::Contains, [Val::Text(text), Val::Text(part)]) => {
            Some(Val::Bool(text.as_str().contains(part.as_str())))
        }
        (Function::StartsWith, [Val::Text(text), Val::Text(part)]) => {
            Some(Val::Bool(text.as_str().starts_with(part.as_str())))
        }
        (Function::EndsWith, [Val::Text(text), Val::Text(part)]) => {
            Some(Val::Bool(text.as_str().ends_with(part.as_str())))
        }
        (Function::Matches, [Val::Text(text), Val::Text(pattern)]) => {
            Some(match patterns.matches(text.as_str(), pattern.as_str(), gauge)? {
                Some(found) => Val::Bool(found),
                None => error(Trouble::arguments("matches")),
            })
        }
        (Function::ToString, [value]) => to_string(value),
        (Function::ToInt, [value]) => to_int(value),
        (Function::ToUint, [value]) => to_uint(value),
        (Function::ToDouble, [value]) => to_double(value),
        (Function::ToBool, [value]) => to_bool(value),
        (Function::ToBytes, [value]) => match value {
            Val::Text(text) => Some(Val::Bytes(Bytes::Made(text.as_str().as_bytes().into()))),
            Val::Bytes(_) => Some(value.clone()),
            _ => None,
        },
        (Function::Type, [value]) => Some(Val::Type(value.type_name())),
        (Function::Dyn, [value]) => Some(value.clone()),
        (Function::OptionalNone, []) => Some(Val::Optional(None)),
        (Function::OptionalOf, [value]) => Some(Val::Optional(Some(Rc::new(value.clone())))),
        (Function::OptionalOfNonZero, [value]) => {
            Some(Val::Optional((!is_zero(value, gauge)?).then(|| Rc::new(value.clone()))))
        }
        (Function::HasValue, [Val::Optional(inner)]) => Some(Val::Bool(inner.is_some())),
        (Function::Value, [Val::Optional(inner)]) => Some(match inner {
            Some(inner) => inner.as_ref().clone(),
            None => error(Trouble::arguments("value")),
        }),
        (Function::Or, [Val::Optional(inner), other]) => {
            Some(if inner.is_some() { Val::Optional(inner.clone()) } else { other.clone() })
        }
        (Function::OrValue, [Val::Optional(inner), other]) => {
            Some(inner.as_ref().map_or_else(|| other.clone(), |inner| inner.as_ref().clone()))
        }
        _ => None,
    };
    Ok(value.unwrap_or_else(|| {
        let all: Vec<&Val<'_>> = arguments.iter_mut().map(|argument| &*argument).collect();
        error(no_overload(function.name(), &all, member))
    }))
}

/// How much of an argument a function looks through or copies.
fn scanned(function: Function, argument: &Val<'_>) -> u64 {
    match (function, argument) {
        (Function::Type | Function::Dyn | Function::Or | Function::OrValue | Function::Value, _) => 0,
        (_, Val::Text(text)) => length(text.as_str().len()),
        (_, Val::Bytes(bytes)) => length(bytes.len()),
        // The longest number has a little over three hundred digits.
        (Function::ToString, Val::Double(_)) => 320,
        _ => 0,
    }
}

fn size<'a>(value: &Val<'a>, gauge: &mut Gauge) -> Result<Option<Val<'a>>, Bound> {
    let size = match value {
        Val::Text(text) => text.as_str().chars().count(),
        Val::Bytes(bytes) => bytes.len(),
        Val::List(list) => list.len(),
        Val::Map(map) => map.len(gauge)?,
        _ => return Ok(None),
    };
    Ok(Some(Val::Int(i64::try_from(size).unwrap_or(i64::MAX))))
}

fn to_string<'a>(value: &Val<'a>) -> Option<Val<'a>> {
    Some(match value {
        Val::Text(_) => value.clone(),
        Val::Bool(bool) => Val::made(bool.to_string()),
        Val::Int(int) => Val::made(int.to_string()),
        Val::Uint(uint) => Val::made(uint.to_string()),
        Val::Double(float) => Val::made(float.to_string()),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Val::made(text.to_owned()),
            Err(_) => error(Trouble::arguments("string")),
        },
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "guarded by the range check")]
fn to_int<'a>(value: &Val<'a>) -> Option<Val<'a>> {
    let int = match value {
        Val::Int(int) => Some(*int),
        Val::Uint(uint) => i64::try_from(*uint).ok(),
        Val::Double(float) => (*float > i64::MIN as f64 && *float < i64::MAX as f64).then_some(*float as i64),
        Val::Text(text) => text.as_str().parse().ok(),
        _ => return None,
    };
    Some(int.map_or_else(|| error(Trouble::arguments("int")), Val::Int))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "guarded by the range check"
)]
fn to_uint<'a>(value: &Val<'a>) -> Option<Val<'a>> {
    let uint = match value {
        Val::Uint(uint) => Some(*uint),
        Val::Int(int) => u64::try_from(*int).ok(),
        Val::Double(float) => (*float >= 0.0 && *float < u64::MAX as f64).then_some(*float as u64),
        Val::Text(text) => text.as_str().parse().ok(),
        _ => return None,
    };
    Some(uint.map_or_else(|| error(Trouble::arguments("uint")), Val::Uint))
}

#[expect(clippy::cast_precision_loss, reason = "what a double is")]
fn to_double<'a>(value: &Val<'a>) -> Option<Val<'a>> {
    let float = match value {
        Val::Double(float) => Some(*float),
        Val::Int(int) => Some(*int as f64),
        Val::Uint(uint) => Some(*uint as f64),
        Val::Text(text) => text.as_str().parse().ok(),
        _ => return None,
    };
    Some(float.map_or_else(|| error(Trouble::arguments("double")), Val::Double))
}

fn to_bool<'a>(value: &Val<'a>) -> Option<Val<'a>> {
    Some(match value {
        Val::Bool(_) => value.clone(),
        Val::Text(text) => match text.as_str() {
            "1" | "t" | "true" | "TRUE" | "True" => Val::Bool(true),
            "0" | "f" | "false" | "FALSE" | "False" => Val::Bool(false),
            _ => error(Trouble::arguments("bool")),
        },
        _ => return None,
    })
}

fn is_zero(value: &Val<'_>, gauge: &mut Gauge) -> Result<bool, Bound> {
    Ok(match value {
        Val::Null => true,
        Val::Bool(bool) => !bool,
        Val::Int(int) => *int == 0,
        Val::Uint(uint) => *uint == 0,
        Val::Double(float) => *float == 0.0,
        Val::Text(text) => text.as_str().is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len(gauge)? == 0,
        Val::Type(_) | Val::Optional(_) | Val::Error(_) => false,
    })
}
