//! Families are written down as JSON and put together as objects.

use serde_json::{Map, Value};

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
