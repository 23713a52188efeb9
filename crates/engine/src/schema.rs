//! JSON Schema behind one small door. References are never fetched: the crate is built without resolvers, and a
//! schema that needs one does not compile.

use serde_json::Value;

pub(crate) struct Schema(jsonschema::Validator);

/// A rule that a value breaks, and the place in the value. Neither repeats a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) path: String,
    pub(crate) rule: String,
}

impl Broken {
    /// The place, in words.
    pub(crate) fn place(&self) -> &str {
        if self.path.is_empty() { "it" } else { &self.path }
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

impl Schema {
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        jsonschema::draft202012::new(schema).map(Self).map_err(|error| error.to_string())
    }

    /// The rule of the schema that the value breaks first, told without a word of the value.
    pub(crate) fn broken_rule(&self, value: &Value) -> Option<String> {
        self.broken(value).map(|broken| broken.rule)
    }

    /// The first violation: which rule, and where.
    pub(crate) fn broken(&self, value: &Value) -> Option<Broken> {
        let error = self.0.iter_errors(value).next()?;
        Some(Broken { path: error.instance_path().to_string(), rule: error.schema_path().to_string() })
    }

    /// The first violation, with the place it was found at.
    pub(crate) fn check(&self, value: &Value) -> Result<(), (String, String)> {
        match self.0.iter_errors(value).next() {
            None => Ok(()),
            Some(error) => Err((error.instance_path().to_string(), error.to_string())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_the_place_of_a_violation() {
        let schema = Schema::compile(&json!({"properties": {"n": {"type": "integer"}}})).unwrap();
        assert_eq!(schema.check(&json!({"n": 1})), Ok(()));
        assert_eq!(schema.check(&json!({"n": "x"})).unwrap_err().0, "/n");
    }

    #[test]
    fn a_reference_to_the_outside_is_refused() {
        for place in ["http://127.0.0.1:9/x.json", "https://example.com/x.json", "file:///etc/passwd"] {
            assert!(Schema::compile(&json!({"$ref": place})).is_err(), "{place}");
        }
    }
}
