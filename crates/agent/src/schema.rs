//! Schemas of packs. Each is compiled on its own: nothing is fetched, and two packs may use the same `$id` for different
//! things.

use serde_json::Value;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How deeply a schema may nest; compiling one is recursive.
const MAX_DEPTH: usize = 64;

/// Schemas are weighed where they are used. What is read here only has to be compiled, so only what makes compiling long
/// is bounded: its size, its patterns, and keywords for which the validator compiles what stands beside them again.
const MAX_BYTES: u64 = 256 * 1024;
const MAX_PATTERN_BYTES: usize = 8 * 1024;
const MAX_PATTERNS: usize = 512;
const MAX_UNEVALUATED: usize = 8;
/// The compiled form of one pattern.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;

/// What takes long to compile.
#[derive(Default)]
struct Costs {
    patterns: usize,
    unevaluated: usize,
}

impl Costs {
    fn add(&mut self, schema: &Value) -> Result<(), String> {
        match schema {
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item)),
            Value::Object(map) => map.iter().try_for_each(|(key, value)| {
                match (key.as_str(), value) {
                    ("pattern", Value::String(text)) => self.pattern(text)?,
                    ("patternProperties", Value::Object(all)) => all.keys().try_for_each(|text| self.pattern(text))?,
                    ("unevaluatedProperties" | "unevaluatedItems", _) => self.unevaluated += 1,
                    _ => {}
                }
                self.add(value)
            }),
            _ => Ok(()),
        }
    }

    fn pattern(&mut self, text: &str) -> Result<(), String> {
        self.patterns += 1;
        if text.len() > MAX_PATTERN_BYTES {
            return Err(format!("it has a pattern of more than {MAX_PATTERN_BYTES} bytes"));
        }
        Ok(())
    }
}

/// Whether this is a schema of 2020-12 that stands on its own, or why not.
pub(crate) fn check(schema: &Value) -> Result<(), String> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err("a schema is an object".to_owned());
    }
    if baton_model::json::depth(schema) > MAX_DEPTH {
        return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
    }
    match schema.get("$schema").map(|dialect| dialect.as_str().map(|text| text.trim_end_matches('#'))) {
        None | Some(Some(DIALECT)) => {}
        Some(_) => return Err(format!("its `$schema` is not `{DIALECT}`")),
    }
    if baton_model::json::size(schema) > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    let mut costs = Costs::default();
    costs.add(schema)?;
    if costs.patterns > MAX_PATTERNS {
        return Err(format!("it has more than {MAX_PATTERNS} patterns"));
    }
    if costs.unevaluated > MAX_UNEVALUATED {
        return Err(format!("it says what is unevaluated in more than {MAX_UNEVALUATED} places"));
    }
    let patterns = jsonschema::PatternOptions::fancy_regex().size_limit(MAX_COMPILED_BYTES);
    let options = jsonschema::draft202012::options().with_pattern_options(patterns);
    options.build(schema).map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_that_cannot_be_used() {
        for bad in [
            json!([]),
            json!({"type": 12}),
            json!({"$ref": "https://example.com/other.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "other.schema.json"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
            json!({"$schema": 5}),
            json!({"pattern": "("}),
            json!({"pattern": "a".repeat(10_000)}),
            json!({"description": "x".repeat(300_000)}),
            json!({"pattern": "(\\\\p{L}{100}){100}"}),
            (0..20).fold(json!({}), |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": false})),
        ] {
            assert!(check(&bad).is_err(), "{bad}");
        }
        let deep = (0..200).fold(json!(true), |inner, _| json!({ "not": inner }));
        assert!(check(&deep).unwrap_err().contains("nests deeper"));
        assert!(check(&json!({"$schema": DIALECT, "$defs": {"a": {}}, "$ref": "#/$defs/a"})).is_ok());
    }
}
