use serde_json::{Value, json};

use super::*;

/// Put together here, so that nobody who searches this file for credentials finds one.
fn keys() -> Vec<String> {
    let body = "9Lt7Nw2QrZ0aB8mYjPpQe";
    let mut all: Vec<String> = ["sk-", "sk-proj-", "sk-ant-", "sk_live_", "hk_", "bk_", "github_pat_", "xoxb-1-"]
        .iter()
        .map(|prefix| format!("{prefix}{body}"))
        .collect();
    all.extend("pousr".chars().map(|letter| format!("gh{letter}_{body}")));
    all.push("AKIA".to_owned() + "IOSFODNN7EXAMPLE");
    all.push(format!("AIza{body}{body}"));
    all.push(format!("eyJhbGciOiJIUzI1NiJ9.eyJjYW5hcnkiOnRydWV9.{body}"));
    all.push("sk-".to_owned() + "canary-rfc0056-do-not-leak-abc123");
    all
}

fn in_json(value: &Value) -> Value {
    let text = value.to_string();
    let clean = mask_shapes_in_json(text.as_bytes()).unwrap_or_else(|| text.into_bytes());
    // What is no JSON any more is equal to nothing that is expected.
    serde_json::from_slice(&clean).unwrap_or_default()
}

#[test]
fn every_shape_goes_wherever_it_stands() {
    for key in keys() {
        for (before, after) in
            [("", ""), ("use ", " now"), ("\"", "\""), ("a\n", "\n"), ("é", "é"), ("\u{1}", "\\"), ("x=", "&y")]
        {
            let text = format!("{before}{key}{after}");
            assert_eq!(mask_shapes(&text), format!("{before}{SHAPE_MARK}{after}"), "{text}");
            assert_eq!(
                in_json(&json!({ "a": [text] })),
                json!({"a": [format!("{before}{SHAPE_MARK}{after}")]}),
                "{text}"
            );
        }
        assert_eq!(in_json(&json!({ &key: 1 })), json!({ SHAPE_MARK: 1 }), "a name is text like any other");
        let nested = json!({ "body": json!({"k": key}).to_string() });
        assert_eq!(in_json(&nested), json!({"body": json!({"k": SHAPE_MARK}).to_string()}));
        let named = format!("missing-{key}");
        assert!(!mask_shapes(&named).contains(&key), "{named}");
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    let link = format!(
        "https://a.test/v1/interrupts/eyJydW5JZCI6InJ1bl8xIn0.{}",
        "sk-9Lt7Nw2QrZ0aB8mYjPpQe-_sk-9Lt7Nw2QrZ0aB8mY"
    );
    for text in [
        "",
        "task-force-2024-roadmap-v2",
        "risk-9Lt7Nw2QrZ0aB8mYjPpQe",
        "sk-learn-tutorial-for-beginners",
        "sk-short-1",
        "bk_name",
        "hk_test_full",
        "AKIA",
        "AKIAish things are here",
        "xoxo-1234567890",
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJIUzI1NiJ9.a.b",
        "BEGIN with something",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "run_0197c2f8a1b27c3d9e4f5a6b7c8d9e0f",
        &link,
    ] {
        assert!(matches!(mask_shapes(text), Cow::Borrowed(_)), "{text}");
        assert_eq!(mask_shapes_in_json(json!([text]).to_string().as_bytes()), None, "{text}");
    }
}

#[test]
fn a_private_key_goes_whole_and_an_open_one_to_the_end() {
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let block = format!("-----BEGIN {label}-----\nMIIEvQ\"IBADANBg\nkq==\n-----END {label}-----");
        let text = format!("a {block} b {block}");
        let clean = format!("a {SHAPE_MARK} b {SHAPE_MARK}");
        assert_eq!(mask_shapes(&text), clean);
        assert_eq!(in_json(&json!([text, 1])), json!([clean, 1]));
        let open = format!("a -----BEGIN {label}-----\nMIIEvQ");
        assert_eq!(mask_shapes(&open), format!("a {SHAPE_MARK}"));
        assert_eq!(in_json(&json!([open, "next"])), json!([format!("a {SHAPE_MARK}"), "next"]));
    }
}

/// A hostile text takes no longer than its length allows: what was looked at is not looked at again for every dash.
#[test]
fn a_megabyte_of_beginnings_is_looked_at_once() {
    let pieces = [
        "sk-",
        "eyJ",
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "xoxb-",
        "-----BEGIN ",
        "AIza",
        "xAKIA",
        "\\nsk-",
    ];
    for piece in pieces {
        let text = piece.repeat(1_000_000 / piece.len());
        let clean = mask_shapes(&text);
        assert!(clean.len() <= text.len() + SHAPE_MARK.len(), "{piece}");
        mask_shapes_in_json(json!([text]).to_string().as_bytes());
    }
}
