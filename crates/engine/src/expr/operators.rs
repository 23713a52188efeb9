//! Operators, as the language has them: whole numbers that overflow fail, numbers of different kinds compare by their
//! value, and nothing is converted silently.

use std::cmp::Ordering;
use std::rc::Rc;

use super::code::Binary;
use super::errors::{error, no_overload, wrong_operands};
use super::meter::{Bound, Gauge, length};
use super::trouble::Trouble;
use super::value::{Bytes, List, Object, Val, whole};

pub(super) fn not(value: Val<'_>) -> Val<'_> {
    match value {
        Val::Bool(bool) => Val::Bool(!bool),
        Val::Error(_) => value,
        other => error(no_overload("!_", &[&other], false)),
    }
}

pub(super) fn negate(value: Val<'_>) -> Val<'_> {
    match value {
        Val::Int(int) => int.checked_neg().map_or_else(|| error(Trouble::overflow("negate")), Val::Int),
        Val::Double(float) => Val::Double(-float),
        Val::Error(_) => value,
        other => error(no_overload("-_", &[&other], false)),
    }
}

pub(super) fn binary<'a>(
    operator: Binary,
    left: &Val<'a>,
    right: &Val<'a>,
    gauge: &mut Gauge,
) -> Result<Val<'a>, Bound> {
    for side in [left, right] {
        if let Val::Error(_) = side {
            return Ok(side.clone());
        }
    }
    let compared = |ordering: Option<Ordering>, word: &str, holds: fn(Ordering) -> bool| match ordering {
        Some(ordering) => Val::Bool(holds(ordering)),
        None => error(no_overload(word, &[left, right], false)),
    };
    Ok(match operator {
        Binary::Add => add(left, right, gauge)?,
        Binary::Subtract => match (left, right) {
            (Val::Int(a), Val::Int(b)) => int("sub", a.checked_sub(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint("sub", a.checked_sub(*b)),
            (Val::Double(a), Val::Double(b)) => Val::Double(a - b),
            _ => error(wrong_operands("sub", left, right)),
        },
        Binary::Multiply => match (left, right) {
            (Val::Int(a), Val::Int(b)) => int("mul", a.checked_mul(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint("mul", a.checked_mul(*b)),
            (Val::Double(a), Val::Double(b)) => Val::Double(a * b),
            _ => error(wrong_operands("mul", left, right)),
        },
        Binary::Divide => match (left, right) {
            (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => error(Trouble::division_by_zero()),
            (Val::Int(a), Val::Int(b)) => int("div", a.checked_div(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint("div", a.checked_div(*b)),
            (Val::Double(a), Val::Double(b)) => Val::Double(a / b),
            _ => error(wrong_operands("div", left, right)),
        },
        Binary::Remainder => match (left, right) {
            (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => error(Trouble::division_by_zero()),
            (Val::Int(a), Val::Int(b)) => int("rem", a.checked_rem(*b)),
            (Val::Uint(a), Val::Uint(b)) => uint("rem", a.checked_rem(*b)),
            _ => error(wrong_operands("rem", left, right)),
        },
        Binary::Equal => Val::Bool(equal(left, right, gauge)?),
        Binary::NotEqual => Val::Bool(!equal(left, right, gauge)?),
        Binary::Less => compared(compare(left, right, gauge)?, "_<_", Ordering::is_lt),
        Binary::LessOrEqual => compared(compare(left, right, gauge)?, "_<=_", Ordering::is_le),
        Binary::Greater => compared(compare(left, right, gauge)?, "_>_", Ordering::is_gt),
        Binary::GreaterOrEqual => compared(compare(left, right, gauge)?, "_>=_", Ordering::is_ge),
        Binary::In => contains(left, right, gauge)?,
    })
}

fn int<'a>(operator: &str, result: Option<i64>) -> Val<'a> {
    result.map_or_else(|| error(Trouble::overflow(operator)), Val::Int)
}

fn uint<'a>(operator: &str, result: Option<u64>) -> Val<'a> {
    result.map_or_else(|| error(Trouble::overflow(operator)), Val::Uint)
}

fn add<'a>(left: &Val<'a>, right: &Val<'a>, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    Ok(match (left, right) {
        (Val::Int(a), Val::Int(b)) => int("add", a.checked_add(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint("add", a.checked_add(*b)),
        (Val::Double(a), Val::Double(b)) => Val::Double(a + b),
        (Val::Text(a), Val::Text(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            room(a.len() + b.len(), gauge)?;
            let mut text = String::with_capacity(a.len() + b.len());
            text.push_str(a);
            text.push_str(b);
            Val::made(text)
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            room(a.len() + b.len(), gauge)?;
            Val::Bytes(Bytes::Made([&**a, &**b].concat().into()))
        }
        (Val::List(a), Val::List(b)) => joined(a, b, gauge)?,
        // A map stands for its keys, in their order.
        (Val::List(a), Val::Map(b)) => {
            let keys = b.keys(gauge)?.into_iter().map(Val::from).collect();
            let Val::List(keys) = Val::list(keys)? else { return Ok(Val::Null) };
            joined(a, &keys, gauge)?
        }
        _ => error(wrong_operands("add", left, right)),
    })
}

/// Room for a new text, paid for before it is made.
fn room(bytes: usize, gauge: &mut Gauge) -> Result<(), Bound> {
    gauge.fits(length(bytes))?;
    gauge.bytes(length(bytes))
}

fn joined<'a>(left: &List<'a>, right: &List<'a>, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    let count = left.len() + right.len();
    // An item is a reference here, and at least a digit and a comma wherever it is written to.
    gauge.fits(length(count).saturating_mul(2))?;
    gauge.charge(length(count))?;
    let mut items = Vec::with_capacity(count);
    for list in [left, right] {
        items.extend((0..list.len()).filter_map(|index| list.get(index)));
    }
    Val::list(items)
}

/// Whether two values are the same. Numbers are by their value, and different kinds never are.
pub(super) fn equal(left: &Val<'_>, right: &Val<'_>, gauge: &mut Gauge) -> Result<bool, Bound> {
    gauge.charge(1)?;
    Ok(match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Type(a), Val::Type(b)) => a == b,
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => equal(a, b, gauge)?,
            _ => false,
        },
        (Val::List(a), Val::List(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for index in 0..a.len() {
                let (Some(a), Some(b)) = (a.get(index), b.get(index)) else { return Ok(false) };
                if !equal(&a, &b, gauge)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(a), Val::Map(b)) => same_entries(a, b, gauge)?,
        _ => compare(left, right, gauge)? == Some(Ordering::Equal),
    })
}

fn same_entries(left: &Object<'_>, right: &Object<'_>, gauge: &mut Gauge) -> Result<bool, Bound> {
    if left.len(gauge)? != right.len(gauge)? {
        return Ok(false);
    }
    for key in left.keys(gauge)? {
        // It is looked up on both sides.
        gauge.bytes(length(key.len()).saturating_mul(2))?;
        let mine = left.find(&key);
        let theirs = right.lookup(&Val::from(key)).flatten();
        let (Some(mine), Some(theirs)) = (mine, theirs) else { return Ok(false) };
        if !equal(&mine, &theirs, gauge)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two values; `None` if they have none.
#[expect(clippy::cast_precision_loss, reason = "a whole number and a double compare as doubles")]
fn compare(left: &Val<'_>, right: &Val<'_>, gauge: &mut Gauge) -> Result<Option<Ordering>, Bound> {
    Ok(match (left, right) {
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b),
        (Val::Int(a), Val::Uint(b)) => Some(u64::try_from(*a).map_or(Ordering::Less, |a| a.cmp(b))),
        (Val::Uint(a), Val::Int(b)) => Some(u64::try_from(*b).map_or(Ordering::Greater, |b| a.cmp(&b))),
        (Val::Int(a), Val::Double(b)) => (*a as f64).partial_cmp(b),
        (Val::Double(a), Val::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Val::Uint(a), Val::Double(b)) => (*a as f64).partial_cmp(b),
        (Val::Double(a), Val::Uint(b)) => a.partial_cmp(&(*b as f64)),
        (Val::Text(a), Val::Text(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            gauge.bytes(length(a.len().min(b.len())))?;
            Some(a.cmp(b))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            gauge.bytes(length(a.len().min(b.len())))?;
            Some((**a).cmp(&**b))
        }
        _ => None,
    })
}

fn contains<'a>(value: &Val<'a>, container: &Val<'a>, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    match container {
        Val::List(list) => {
            for index in 0..list.len() {
                let Some(item) = list.get(index) else { break };
                if equal(&item, value, gauge)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        Val::Map(map) => Ok(match lookup(map, value, gauge)? {
            Some(found) => Val::Bool(found.is_some()),
            None => error(no_overload("@in", &[value, container], false)),
        }),
        _ => Ok(error(no_overload("@in", &[value, container], false))),
    }
}

pub(super) fn index<'a>(operand: &Val<'a>, index: &Val<'a>, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    // What is looked up in an optional is optional itself.
    if let Val::Optional(inner) = operand {
        return Ok(match inner {
            None => Val::Optional(None),
            Some(inner) => match (index, element(inner, index, gauge)?) {
                (Val::Error(_), _) => index.clone(),
                (_, Val::Error(_)) => Val::Optional(None),
                (_, found) => Val::Optional(Some(Rc::new(found))),
            },
        });
    }
    for side in [operand, index] {
        if let Val::Error(_) = side {
            return Ok(side.clone());
        }
    }
    element(operand, index, gauge)
}

fn element<'a>(operand: &Val<'a>, index: &Val<'a>, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    let mismatch = || error(no_overload("_[_]", &[operand, index], false));
    Ok(match operand {
        Val::List(list) => {
            let position = match index {
                Val::Int(int) => usize::try_from(*int).ok(),
                Val::Uint(uint) => usize::try_from(*uint).ok(),
                Val::Double(float) => match whole(*float) {
                    Some(int) => usize::try_from(int).ok(),
                    None => return Ok(error(Trouble::not_an_index(index.kind(), operand.kind()))),
                },
                _ => return Ok(mismatch()),
            };
            position.and_then(|position| list.get(position)).unwrap_or_else(|| error(Trouble::out_of_bounds()))
        }
        Val::Map(map) => match lookup(map, index, gauge)? {
            Some(Some(value)) => value,
            Some(None) => no_such_key(index, gauge)?,
            None => mismatch(),
        },
        _ => mismatch(),
    })
}

/// Looks a key up. The longer it is, the longer that takes.
fn lookup<'a>(map: &Object<'a>, key: &Val<'_>, gauge: &mut Gauge) -> Result<Option<Option<Val<'a>>>, Bound> {
    if let Val::Text(text) = key {
        gauge.bytes(length(text.as_str().len()))?;
    }
    Ok(map.lookup(key))
}

fn no_such_key<'a>(key: &Val<'_>, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    let key = match key {
        Val::Text(text) => text.as_str().to_owned(),
        Val::Int(int) => int.to_string(),
        Val::Uint(uint) => uint.to_string(),
        Val::Double(float) => float.to_string(),
        Val::Bool(bool) => bool.to_string(),
        _ => String::new(),
    };
    gauge.bytes(length(key.len()))?;
    Ok(error(Trouble::NoSuchKey(key)))
}

pub(super) fn select<'a>(operand: &Val<'a>, field: &'a str, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    gauge.bytes(length(field.len()))?;
    let missing = |gauge: &mut Gauge| no_such_key(&Val::from(field), gauge);
    Ok(match operand {
        Val::Map(map) => match map.field(field) {
            Some(value) => value,
            None => missing(gauge)?,
        },
        Val::Optional(None) | Val::Error(_) => operand.clone(),
        Val::Optional(Some(inner)) => match inner.as_ref() {
            Val::Map(map) => Val::Optional(map.field(field).map(Rc::new)),
            Val::List(_) => Val::Optional(None),
            _ => missing(gauge)?,
        },
        other => error(no_overload("_._", &[other, &Val::from(field)], false)),
    })
}

pub(super) fn has<'a>(operand: &Val<'a>, field: &'a str, gauge: &mut Gauge) -> Result<Val<'a>, Bound> {
    gauge.bytes(length(field.len()))?;
    Ok(match operand {
        Val::Map(map) => Val::Bool(map.field(field).is_some()),
        Val::Optional(None) => Val::Bool(false),
        Val::Optional(Some(inner)) => match inner.as_ref() {
            Val::Map(map) => Val::Bool(map.field(field).is_some()),
            Val::List(_) => Val::Bool(false),
            _ => error(Trouble::NoSuchKey(field.to_owned())),
        },
        Val::Error(_) => operand.clone(),
        other => error(no_overload("_._", &[other, &Val::from(field)], false)),
    })
}
