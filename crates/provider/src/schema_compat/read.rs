//! From a schema to its shape.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::shape::{Field, Kind, ScalarType, Shape};

/// Beyond these, vendors refuse a schema.
const DEEPEST: usize = 5;
const MOST_FIELDS: usize = 100;

/// CallLimits that no vendor takes as such.
const REMARKS: &[&str] = &[
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Where these are, an answer cannot be described by fields, lists and scalars alone.
const BEYOND: &[&str] = &["patternProperties", "prefixItems", "$dynamicRef", "$recursiveRef"];

impl Shape {
    /// The shape of a schema, or nothing where vendors cannot be told: what is asked for then goes into the prompt.
    pub(crate) fn read(schema: &Value) -> Option<Self> {
        let mut reader = Reader { root: schema, fields: 0, open: Vec::new() };
        reader.shape(schema, 0).filter(|shape| matches!(shape.kind, Kind::Object(_)) && !shape.nullable)
    }
}

struct Reader<'a> {
    root: &'a Value,
    /// Fields read so far.
    fields: usize,
    /// References that are being followed. To meet one again would never end.
    open: Vec<String>,
}

type Schema = Map<String, Value>;

impl Reader<'_> {
    fn shape(&mut self, schema: &Value, depth: usize) -> Option<Shape> {
        let entered = self.open.len();
        let flat = self.flat(schema.as_object()?)?;
        let shape = self.flat_shape(&flat, depth);
        self.open.truncate(entered);
        let mut shape = shape?;
        shape.note = note(&flat).or(shape.note);
        Some(shape)
    }

    fn flat_shape(&mut self, schema: &Schema, depth: usize) -> Option<Shape> {
        if BEYOND.iter().any(|word| schema.contains_key(*word)) {
            return None;
        }
        if let Some(branches) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            return self.branches(schema, branches.as_array()?, depth);
        }
        if let Some(choices) = choices(schema) {
            return scalar(choices);
        }
        let words = types(schema)?;
        let nullable = words.len() > 1 && words.contains(&"null");
        let mut kinds = words.iter().filter(|word| !nullable || **word != "null");
        let shapes: Vec<Shape> =
            kinds.by_ref().map(|word| self.typed(schema, word, depth)).collect::<Option<Vec<_>>>()?;
        Some(Shape { nullable, ..one_or_any(shapes)? })
    }

    fn typed(&mut self, schema: &Schema, word: &str, depth: usize) -> Option<Shape> {
        match word {
            "object" => self.object(schema, depth + 1),
            "array" => {
                let items = self.shape(schema.get("items")?, depth)?;
                Some(Shape::new(Kind::List(Box::new(items))))
            }
            scalar => Some(Shape::new(Kind::Scalar(ScalarType::read(scalar)?, Vec::new()))),
        }
    }

    fn object(&mut self, schema: &Schema, depth: usize) -> Option<Shape> {
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let open = schema.get("additionalProperties").is_some() && !closed;
        let fields = schema.get("properties").and_then(Value::as_object);
        // An object without named fields is a map: closed, it would be an empty one.
        if open || depth > DEEPEST || (fields.is_none_or(Map::is_empty) && !closed) {
            return None;
        }
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut read = Vec::new();
        for (name, field) in fields.into_iter().flatten() {
            self.fields += 1;
            if self.fields > MOST_FIELDS {
                return None;
            }
            let shape = self.shape(field, depth)?;
            read.push(Field { name: name.clone(), shape, optional: !required.contains(&name.as_str()) });
        }
        // Required but described nowhere: it could be anything.
        let described = required.iter().all(|name| read.iter().any(|field| field.name == **name));
        described.then_some(Shape::new(Kind::Object(read)))
    }

    fn branches(&mut self, schema: &Schema, branches: &[Value], depth: usize) -> Option<Shape> {
        // Beside branches, only remarks: fields there would hold for all of them.
        let shaped = ["properties", "required", "items", "enum", "const", "additionalProperties"];
        if shaped.iter().any(|word| schema.contains_key(*word))
            || (schema.contains_key("anyOf") && schema.contains_key("oneOf"))
        {
            return None;
        }
        let shapes: Vec<Shape> = branches.iter().map(|branch| self.shape(branch, depth)).collect::<Option<_>>()?;
        // A type beside them may only say once more what they all are.
        if let Some(words) = types(schema)
            && !shapes.iter().all(|shape| shape.is_one_of(&words))
        {
            return None;
        }
        let (nulls, shapes): (Vec<_>, Vec<_>) =
            shapes.into_iter().partition(|shape| matches!(shape.kind, Kind::Scalar(ScalarType::Null, _)));
        let objects: Vec<&Shape> = shapes.iter().filter(|shape| matches!(shape.kind, Kind::Object(_))).collect();
        if objects.len() > 1 && !told_apart(&objects) {
            return None;
        }
        let nullable = !nulls.is_empty();
        if shapes.is_empty() {
            return nulls.into_iter().next();
        }
        let shape = one_or_any(shapes)?;
        Some(Shape { nullable: nullable || shape.nullable, ..shape })
    }

    /// The schema with references followed and `allOf` merged.
    fn flat(&mut self, schema: &Schema) -> Option<Schema> {
        let mut flat = schema.clone();
        let target = flat.remove("$ref");
        let all = flat.remove("allOf");
        if let Some(place) = target {
            let place = place.as_str()?.strip_prefix('#')?.to_owned();
            if self.open.contains(&place) {
                return None;
            }
            let target = self.root.pointer(&place)?.as_object()?.clone();
            self.open.push(place);
            merge(&mut flat, self.flat(&target)?)?;
        }
        for part in all.as_ref().and_then(Value::as_array).into_iter().flatten() {
            merge(&mut flat, self.flat(part.as_object()?)?)?;
        }
        Some(flat)
    }
}

impl Shape {
    fn is_one_of(&self, words: &[&str]) -> bool {
        let kind = match &self.kind {
            Kind::Object(_) => words.contains(&"object"),
            Kind::List(_) => words.contains(&"array"),
            Kind::Scalar(ScalarType::Integer, _) => words.contains(&"integer") || words.contains(&"number"),
            Kind::Scalar(word, _) => words.contains(&word.as_str()),
            Kind::AnyOf(shapes) => shapes.iter().all(|shape| shape.is_one_of(words)),
        };
        kind && (!self.nullable || words.contains(&"null"))
    }
}

/// Both at once, where that can be said in one schema.
fn merge(flat: &mut Schema, more: Schema) -> Option<()> {
    for (word, value) in more {
        let Some(have) = flat.get_mut(&word) else {
            flat.insert(word, value);
            continue;
        };
        match (word.as_str(), have, value) {
            ("properties", Value::Object(have), Value::Object(more)) => {
                for (name, field) in more {
                    if have.get(&name).is_some_and(|known| *known != field) {
                        return None;
                    }
                    have.insert(name, field);
                }
            }
            ("required", Value::Array(have), Value::Array(more)) => have.extend(more),
            ("$defs" | "definitions" | "description" | "title" | "$schema" | "$id" | "examples" | "default", ..) => {}
            (_, have, value) if *have == value => {}
            _ => return None,
        }
    }
    Some(())
}

/// Each has a field that only it has this text in, so that one look tells which it is.
fn told_apart(objects: &[&Shape]) -> bool {
    let constants = |shape: &Shape| -> Vec<(String, String)> {
        let Kind::Object(fields) = &shape.kind else { return Vec::new() };
        let fixed = fields.iter().filter(|field| !field.optional);
        fixed.filter_map(|field| Some((field.name.clone(), field.shape.constant()?.to_owned()))).collect()
    };
    let mut names = constants(objects[0]).into_iter().map(|(name, _)| name);
    names.any(|name| {
        let texts: Vec<String> = objects
            .iter()
            .filter_map(|shape| constants(shape).into_iter().find(|(field, _)| *field == name))
            .map(|(_, text)| text)
            .collect();
        let distinct: BTreeSet<&String> = texts.iter().collect();
        texts.len() == objects.len() && distinct.len() == objects.len()
    })
}

fn one_or_any(mut shapes: Vec<Shape>) -> Option<Shape> {
    match shapes.len() {
        0 => None,
        1 => shapes.pop(),
        _ => Some(Shape::new(Kind::AnyOf(shapes))),
    }
}

/// The values there are to choose from, as far as the other words of the schema leave them.
fn choices(schema: &Schema) -> Option<Vec<Value>> {
    let listed = schema.get("enum").and_then(Value::as_array);
    let mut choices = match (schema.get("const"), listed) {
        (Some(value), _) => vec![value.clone()],
        (None, Some(values)) => values.clone(),
        (None, None) => return None,
    };
    let words = types(schema);
    choices.retain(|value| {
        let typed = words.as_ref().is_none_or(|words| words.iter().any(|word| is_a(value, word)));
        typed && listed.is_none_or(|listed| listed.contains(value))
    });
    Some(choices)
}

fn is_a(value: &Value, word: &str) -> bool {
    match ScalarType::of(value) {
        Some(ScalarType::Integer) => matches!(word, "integer" | "number"),
        Some(found) => found.as_str() == word,
        None => matches!((value, word), (Value::Array(_), "array") | (Value::Object(_), "object")),
    }
}

/// One scalar among a few, of one type; `null` may be among them.
fn scalar(choices: Vec<Value>) -> Option<Shape> {
    let nullable = choices.len() > 1 && choices.contains(&Value::Null);
    let choices: Vec<Value> = choices.into_iter().filter(|value| !nullable || !value.is_null()).collect();
    let mut words = choices.iter().map(ScalarType::of);
    let mut word = words.next()??;
    for other in words {
        word = match (word, other?) {
            (one, other) if one == other => one,
            (ScalarType::Integer | ScalarType::Number, ScalarType::Integer | ScalarType::Number) => ScalarType::Number,
            _ => return None,
        };
    }
    Some(Shape { nullable, ..Shape::new(Kind::Scalar(word, choices)) })
}

fn types(schema: &Schema) -> Option<Vec<&str>> {
    match schema.get("type") {
        Some(Value::String(word)) => Some(vec![word]),
        Some(Value::Array(words)) => words.iter().map(Value::as_str).collect(),
        None if schema.contains_key("properties") => Some(vec!["object"]),
        None if schema.contains_key("items") => Some(vec!["array"]),
        _ => None,
    }
}

fn note(schema: &Schema) -> Option<String> {
    let described = schema.get("description").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
    let bounds: Vec<String> =
        REMARKS.iter().filter_map(|word| Some(format!("{word}: {}", schema.get(*word)?))).collect();
    let parts = [described, if bounds.is_empty() { String::new() } else { format!("({})", bounds.join(", ")) }];
    Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
        .filter(|note| !note.is_empty())
}
