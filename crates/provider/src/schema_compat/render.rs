//! A shape, written for a vendor.

use serde_json::{Map, Value, json};

use super::shape::{Field, Kind, ScalarType, Shape};

/// Which language the vendor's schemas are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The common part of JSON Schema: OpenAI and Anthropic.
    JsonSchema,
    /// The part of OpenAPI that Gemini knows.
    OpenApi,
}

impl Shape {
    pub(crate) fn render(&self, dialect: Dialect) -> Value {
        self.written(dialect, self.nullable)
    }

    fn written(&self, dialect: Dialect, nullable: bool) -> Value {
        let mut schema = match dialect {
            Dialect::JsonSchema => self.json_schema(nullable),
            Dialect::OpenApi => self.open_api(nullable),
        };
        if let Some(note) = self.note(dialect) {
            schema.insert("description".to_owned(), note.into());
        }
        Value::Object(schema)
    }

    fn json_schema(&self, nullable: bool) -> Map<String, Value> {
        let dialect = Dialect::JsonSchema;
        let schema = match &self.kind {
            Kind::Scalar(word, choices) => {
                let nullable = nullable && *word != ScalarType::Null;
                let mut schema = Map::new();
                let word = word.as_str();
                schema.insert("type".to_owned(), if nullable { json!([word, "null"]) } else { json!(word) });
                if !choices.is_empty() {
                    let null = nullable.then_some(Value::Null);
                    schema.insert("enum".to_owned(), choices.iter().cloned().chain(null).collect());
                }
                return schema;
            }
            Kind::Object(fields) => json!({
                "type": "object",
                "properties": properties(fields, dialect),
                "required": fields.iter().map(|field| &field.name).collect::<Vec<_>>(),
                "additionalProperties": false,
            }),
            Kind::List(items) => json!({"type": "array", "items": items.render(dialect)}),
            Kind::AnyOf(shapes) => {
                let null = nullable.then(|| json!({"type": "null"}));
                let any: Vec<Value> = shapes.iter().map(|shape| shape.render(dialect)).chain(null).collect();
                return map(json!({"anyOf": any}));
            }
        };
        map(if nullable { json!({"anyOf": [schema, {"type": "null"}]}) } else { schema })
    }

    fn open_api(&self, nullable: bool) -> Map<String, Value> {
        let dialect = Dialect::OpenApi;
        let mut schema = map(match &self.kind {
            Kind::Scalar(ScalarType::String, choices) if !choices.is_empty() => {
                json!({"type": "STRING", "enum": choices})
            }
            Kind::Scalar(word, _) => json!({"type": word.as_str().to_ascii_uppercase()}),
            Kind::Object(fields) => {
                let mut names: Vec<&String> = fields.iter().map(|field| &field.name).collect();
                // To think first and answer then is better than the other way round.
                names.sort_by_key(|name| name.as_str() != "reasoning");
                json!({
                    "type": "OBJECT",
                    "properties": properties(fields, dialect),
                    "required": names,
                    "propertyOrdering": names,
                })
            }
            Kind::List(items) => json!({"type": "ARRAY", "items": items.render(dialect)}),
            Kind::AnyOf(shapes) => {
                json!({"anyOf": shapes.iter().map(|shape| shape.render(dialect)).collect::<Vec<_>>()})
            }
        });
        if nullable {
            schema.insert("nullable".to_owned(), true.into());
        }
        schema
    }

    fn note(&self, dialect: Dialect) -> Option<String> {
        let choices = match &self.kind {
            // Only texts can be enumerated there.
            Kind::Scalar(word, choices) if dialect == Dialect::OpenApi && *word != ScalarType::String => {
                choices.as_slice()
            }
            _ => &[],
        };
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        let choices = (!choices.is_empty()).then(|| format!("(one of: {})", choices.join(", ")));
        let parts: Vec<String> = self.note.clone().into_iter().chain(choices).collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

fn properties(fields: &[Field], dialect: Dialect) -> Map<String, Value> {
    let written = |field: &Field| field.shape.written(dialect, field.shape.nullable || field.optional);
    fields.iter().map(|field| (field.name.clone(), written(field))).collect()
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
