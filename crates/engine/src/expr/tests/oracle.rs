//! The crate's own interpreter over the same parsed tree. It keeps maps in hash tables, so a comprehension over a map is
//! given the sorted list of its keys, as ours is.

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};
use cel::objects::Key;
use cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::{Map, Number, Value};

const IN_ORDER: &str = "@in_order";

pub(super) fn eval(source: &str, data: &Value) -> Result<Value, String> {
    let program = Program::compile(source).map_err(|error| error.to_string())?;
    let mut context = Context::default();
    for (name, value) in data.as_object().unwrap() {
        context.add_variable_from_value(name.as_str(), to_cel(value));
    }
    context.add_function(IN_ORDER, sorted_keys).unwrap();
    let mut tree = program.expression().clone();
    walk(&mut tree);
    let value = context.resolve(&tree).map_err(|error| explain(source, &error))?;
    from_cel(&value).ok_or_else(|| "the result is not JSON".to_owned())
}

fn explain(source: &str, error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) if source.contains(key.as_str()) => format!("there is no `{key}`"),
        ExecutionError::NoSuchKey(_) => "there is no such key".to_owned(),
        ExecutionError::UnsupportedKeyType(key) => format!("{} is not a key", kind(key)),
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            format!("`{operator}` does not apply to {} and {}", kind(left), kind(right))
        }
        ExecutionError::UnsupportedIndex(index, target) => format!("{} does not index {}", kind(index), kind(target)),
        ExecutionError::FunctionError { function, .. } => format!("`{function}` did not accept its arguments"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("`{operator}` overflowed"),
        ExecutionError::IndexOutOfBounds(_) => "the index is out of bounds".to_owned(),
        ExecutionError::DuplicateKey(_) => "a map has the same key twice".to_owned(),
        other => other.to_string(),
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

fn sorted_keys(range: Cel) -> Cel {
    match range {
        Cel::Map(map) => {
            let mut keys: Vec<Key> = map.map.keys().cloned().collect();
            keys.sort();
            Cel::List(Arc::new(keys.into_iter().map(Cel::from).collect()))
        }
        other => other,
    }
}

fn walk(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| walk(target));
            call.args.iter_mut().for_each(walk);
        }
        Expr::Comprehension(around) => {
            walk(&mut around.loop_step);
            walk(&mut around.iter_range);
            let range = std::mem::take(&mut around.iter_range);
            let id = range.id;
            let call = CallExpr { func_name: IN_ORDER.to_owned(), target: None, args: vec![range] };
            around.iter_range = IdedExpr { id, expr: Expr::Call(call) };
        }
        Expr::List(list) => list.elements.iter_mut().for_each(walk),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| walk_entry(&mut entry.expr)),
        Expr::Struct(literal) => literal.entries.iter_mut().for_each(|entry| walk_entry(&mut entry.expr)),
        Expr::Select(select) => walk(&mut select.operand),
    }
}

fn walk_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            walk(&mut entry.key);
            walk(&mut entry.value);
        }
        EntryExpr::StructField(field) => walk(&mut field.value),
    }
}

fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(number) => number_to_cel(number),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(map) => Cel::Map(cel::objects::Map {
            map: Arc::new(map.iter().map(|(key, value)| (Key::from(key.clone()), to_cel(value))).collect()),
        }),
    }
}

fn number_to_cel(number: &Number) -> Cel {
    if let Some(int) = number.as_i64() {
        return Cel::Int(int);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    if float.fract() == 0.0 && float.abs() < 9.0e15 { Cel::Int(float as i64) } else { Cel::Float(float) }
}

fn from_cel(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(b) => Value::Bool(*b),
        Cel::Int(int) => Value::from(*int),
        Cel::UInt(uint) => Value::from(*uint),
        Cel::Float(float) => Value::Number(Number::from_f64(*float)?),
        Cel::String(text) => Value::String(text.as_str().to_owned()),
        Cel::List(items) => Value::Array(items.iter().map(from_cel).collect::<Option<_>>()?),
        Cel::Map(map) => {
            let mut object = Map::new();
            let mut keys: Vec<&Key> = map.map.keys().collect();
            keys.sort();
            for key in keys {
                let name = match key {
                    Key::String(text) => text.as_str().to_owned(),
                    Key::Int(int) => int.to_string(),
                    Key::Uint(uint) => uint.to_string(),
                    Key::Bool(b) => b.to_string(),
                };
                object.insert(name, from_cel(&map.map[key])?);
            }
            Value::Object(object)
        }
        _ => return None,
    })
}
