//! Judges answers by the protocol's own schemas, where a copy of them is at hand: point `OPENWOP_SCHEMAS` at a folder
//! of them. Without one, the tests that call this check what they check themselves.

use std::path::PathBuf;

use serde_json::Value;

/// Panics if `value` does not fit the schema of this name.
#[track_caller]
pub fn judge(name: &str, value: &Value) {
    let Some(folder) = std::env::var_os("OPENWOP_SCHEMAS").map(PathBuf::from) else { return };
    let file = folder.join(format!("{name}.schema.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let schema: Value = serde_json::from_str(&text).unwrap();
    let validator = jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap();
    let problems: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{name}: {problems:#?}\n{value:#}");
}
