//! Tokens in any order: whatever comes of it, it ends within its bounds.

use proptest::prelude::*;
use serde_json::json;

use super::hostile::MAX_UNITS;
use super::*;

pub(super) const TOKENS: &[&str] = &[
    "1",
    "2u",
    "0.5",
    "-1",
    "'a'",
    "b'x'",
    "r'\\w+'",
    "true",
    "null",
    "v",
    "l",
    "s",
    "m",
    "x",
    ".",
    ".a",
    ".b",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ",",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    " in ",
    "&&",
    "||",
    "!",
    ".map(x,",
    ".filter(x,",
    ".all(x,",
    ".exists(x,",
    ".exists_one(x,",
    "size(",
    "string(",
    "int(",
    "has(",
    ".matches(",
    ".contains(",
    "type(",
    "optional.of(",
    ".value()",
    "dyn(",
    "'",
    "\"",
    "//",
    "\\",
    "`",
    "@",
    "é",
];

fn data() -> Value {
    json!({"v": {"a": {"b": 1}}, "l": [1, 2, [3, "a"]], "s": "a text", "m": {"a": 1, "b": [true, null, 2.5]}, "x": 7})
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tokens_end_within_the_bounds(picks in prop::collection::vec(0..TOKENS.len(), 1..120)) {
        let source: String = picks.into_iter().map(|pick| TOKENS[pick]).collect();
        if let Ok(expression) = compile(&source) {
            let names = Names::new(data());
            let _ = expression.evaluate(&names);
            prop_assert!(names.meter.used() <= MAX_UNITS);
        }
    }

    #[test]
    fn any_text_ends_within_the_bounds(source in "\\PC{0,200}") {
        if let Ok(expression) = compile(&source) {
            let names = Names::new(data());
            let _ = expression.evaluate(&names);
            prop_assert!(names.meter.used() <= MAX_UNITS);
        }
    }
}
