//! An answer, as if the vendor had been told the author's own schema.

use serde_json::{Map, Value};

use super::shape::{Field, Kind, ScalarType, Shape};

impl Shape {
    /// The answer without the nulls that stand for absent fields. An answer that is no JSON, or has none, stays as it is,
    /// letter for letter.
    pub(crate) fn without_added_nulls(&self, answer: String) -> String {
        let Ok(mut value) = serde_json::from_str::<Value>(&answer) else { return answer };
        if self.without_nulls(&mut value) { value.to_string() } else { answer }
    }

    fn without_nulls(&self, value: &mut Value) -> bool {
        match (&self.kind, value) {
            (Kind::Object(fields), Value::Object(map)) => {
                let mut changed = false;
                for field in fields {
                    if field.stands_for_absent(map) {
                        map.remove(&field.name);
                        changed = true;
                    } else if let Some(value) = map.get_mut(&field.name) {
                        changed |= field.shape.without_nulls(value);
                    }
                }
                changed
            }
            (Kind::List(items), Value::Array(values)) => {
                // All of them, not only up to the first that changes.
                values.iter_mut().filter_map(|value| items.without_nulls(value).then_some(())).count() > 0
            }
            (Kind::AnyOf(shapes), value) => {
                shapes.iter().find(|shape| shape.could_be(value)).is_some_and(|shape| shape.without_nulls(value))
            }
            _ => false,
        }
    }

    /// Whether a value is of this branch, at a glance.
    fn could_be(&self, value: &Value) -> bool {
        match (&self.kind, value) {
            (Kind::Object(fields), Value::Object(map)) => fields.iter().all(|field| match map.get(&field.name) {
                None => field.optional,
                Some(value) => field.shape.constant().is_none_or(|text| value == text),
            }),
            (Kind::List(_), Value::Array(_)) | (Kind::Scalar(ScalarType::String, _), Value::String(_)) => true,
            (Kind::AnyOf(shapes), value) => shapes.iter().any(|shape| shape.could_be(value)),
            _ => false,
        }
    }
}

impl Field {
    fn stands_for_absent(&self, map: &Map<String, Value>) -> bool {
        self.optional && !self.shape.allows_null() && map.get(&self.name).is_some_and(Value::is_null)
    }
}

impl Shape {
    fn allows_null(&self) -> bool {
        let null = match &self.kind {
            Kind::Scalar(word, _) => *word == ScalarType::Null,
            Kind::AnyOf(shapes) => shapes.iter().any(Self::allows_null),
            _ => false,
        };
        self.nullable || null
    }
}
