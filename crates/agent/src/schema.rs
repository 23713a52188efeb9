//! Schemas of packs. Each is compiled on its own: nothing is fetched, and two packs may use the same `$id` for different
//! things.

use serde_json::Value;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How deeply a schema may nest; compiling one is recursive.
const MAX_DEPTH: usize = 64;

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
    jsonschema::draft202012::new(schema).map(|_| ()).map_err(|error| error.to_string())
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
        ] {
            assert!(check(&bad).is_err(), "{bad}");
        }
        let deep = (0..200).fold(json!(true), |inner, _| json!({ "not": inner }));
        assert!(check(&deep).unwrap_err().contains("nests deeper"));
        assert!(check(&json!({"$schema": DIALECT, "$defs": {"a": {}}, "$ref": "#/$defs/a"})).is_ok());
    }
}
