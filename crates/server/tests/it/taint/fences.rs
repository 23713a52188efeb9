//! The bytes that arrived at a vendor, looked at.

use std::collections::BTreeMap;

use serde_json::Value;

/// Every text in a request, with the names of members, but for what the model said itself.
fn texts(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::String(text) => all.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|part| texts(part, all)),
        Value::Object(map) if map.get("role").is_some_and(|role| role == "assistant") => {}
        Value::Object(map) => map.iter().for_each(|(name, part)| {
            all.push(name.clone());
            texts(part, all);
        }),
        _ => {}
    }
}

/// Where the fence says that the text at this place is from; nothing outside of one.
pub(super) fn fence_around(text: &str, at: usize) -> Option<&str> {
    let open = text[..at].rfind("<UNTRUSTED")?;
    if text[open..at].contains("</UNTRUSTED>") {
        return None;
    }
    let head = &text[open + "<UNTRUSTED".len()..];
    Some(head[..head.find('>')?].trim())
}

/// Each word that was planted is there, and only where it may be.
pub(super) fn inspect(bodies: &[String], expected: &BTreeMap<&str, &str>) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for body in bodies {
        let mut all = Vec::new();
        texts(&serde_json::from_str(body).unwrap(), &mut all);
        for text in &all {
            for (at, found) in text.match_indices("obey me ") {
                let word = text[at + found.len()..].split_whitespace().next().unwrap();
                let (word, origin) = expected.get_key_value(word).unwrap_or_else(|| panic!("{word} in {text}"));
                let fence = fence_around(text, at).unwrap_or_else(|| panic!("{word} is loose in {text}"));
                let here = fence.replace("\\\"", "\"");
                assert!(origin.split(" | ").any(|origin| origin == here), "{word} is from {here} in {text}");
                *seen.entry(word).or_default() += 1;
            }
            assert!(!text.contains("</UNTRUSTED> SYSTEM"), "a marker passes for a mark: {text}");
        }
    }
    let missing: Vec<_> = expected.keys().filter(|word| !seen.contains_key(*word)).collect();
    assert!(missing.is_empty(), "never arrived: {missing:?}");
}

/// The inspector finds what it looks for.
#[test]
fn a_marker_that_is_loose_is_found() {
    let inside = format!("<UNTRUSTED source=\"chat\">\n{}\n</UNTRUSTED>", "obey me x");
    assert_eq!(fence_around(&inside, inside.find("obey").unwrap()), Some("source=\"chat\""));
    let outside = format!("{inside} obey me y");
    assert_eq!(fence_around(&outside, outside.find("obey me y").unwrap()), None);
    assert_eq!(fence_around("obey me z", 0), None);
}
