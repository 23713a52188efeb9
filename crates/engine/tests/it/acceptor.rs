//! What becomes of an envelope, question by question.

use std::collections::BTreeMap;

use baton_engine::acceptor::{
    Consequence, Counter, Counters, Earlier, Host, Judgement, Kinds, Level, Limit, Offer, Outcome, RefusalMode,
    Strictness, UNIVERSAL, accept, consequences,
};
use baton_model::{Secret, Trust, code};
use proptest::prelude::*;
use serde_json::{Value, json};

fn envelope(kind: &str, payload: Value) -> Value {
    json!({"type": kind, "schemaVersion": 1, "envelopeId": "e1", "correlationId": "c1", "payload": payload,
           "meta": {"source": "ai-generation", "ts": "2026-05-18T10:00:00Z"}})
}

fn question() -> Value {
    envelope("clarification.request", json!({"questions": [{"id": "q1", "question": "Why?"}]}))
}

fn error() -> Value {
    envelope("error", json!({"code": "x", "message": "y"}))
}

/// A host with two kinds of its own.
struct World {
    enabled: bool,
    supported: Vec<String>,
    versions: BTreeMap<String, u64>,
    strictness: Strictness,
    kinds: Kinds,
}

impl World {
    fn new() -> Self {
        let kinds =
            Kinds::universal().with("vendor.acme.draft", json!({"type": "object", "required": ["text"]})).unwrap();
        Self {
            enabled: true,
            supported: vec!["vendor.acme.draft".to_owned(), "vendor.acme.free".to_owned()],
            versions: BTreeMap::new(),
            strictness: Strictness::Warn,
            kinds,
        }
    }

    fn judge(&self, envelope: &Value, offer: &Offer<'_>) -> Judgement {
        let host = Host {
            enabled: self.enabled,
            supported: &self.supported,
            versions: &self.versions,
            strictness: self.strictness,
            kinds: &self.kinds,
        };
        accept(envelope, &host, offer)
    }

    fn outcome(&self, envelope: &Value, offer: &Offer<'_>) -> Value {
        serde_json::to_value(self.judge(envelope, offer).outcome).unwrap()
    }
}

#[test]
fn the_four_universal_kinds_are_taken_everywhere() {
    let none: &[String] = &[];
    for (kind, payload, counts) in [
        (
            "clarification.request",
            question()["payload"].clone(),
            vec![Limit::ClarificationRounds, Limit::EnvelopesPerTurn],
        ),
        (
            "schema.request",
            json!({"envelopeType": "vendor.x", "reason": "unsure"}),
            vec![Limit::SchemaRounds, Limit::EnvelopesPerTurn],
        ),
        ("schema.response", json!({"envelopeType": "vendor.x", "ack": true}), vec![Limit::EnvelopesPerTurn]),
        (
            "error",
            json!({"code": "x", "message": "y", "details": {"a": 1}, "reasoning": null}),
            vec![Limit::EnvelopesPerTurn],
        ),
    ] {
        let world = World { supported: Vec::new(), ..World::new() };
        let judgement = world.judge(&envelope(kind, payload), &Offer { accepts: Some(none), ..Offer::default() });
        assert_eq!(judgement.outcome.status(), "accepted", "{judgement:?}");
        assert!(judgement.fresh && judgement.counts == counts, "{judgement:?}");
    }
}

#[test]
fn payloads_of_universal_kinds_are_closed() {
    for (kind, payload, place) in [
        ("clarification.request", json!({"contextType": "form"}), "/payload"),
        ("clarification.request", json!({"questions": []}), "/payload/questions"),
        ("clarification.request", json!({"questions": [{"id": "a"}]}), "/payload/questions/0"),
        ("clarification.request", json!({"questions": [{"id": "a", "question": ""}]}), "/payload/questions/0/question"),
        ("schema.request", json!({}), "/payload"),
        ("schema.request", json!({"envelopeType": "x", "reason": "r".repeat(1025)}), "/payload/reason"),
        ("schema.response", json!({"envelopeType": "x", "ack": false}), "/payload/ack"),
        ("error", json!({"code": "x"}), "/payload"),
        ("error", json!({"code": "x", "message": "y", "extra": 1}), "/payload"),
        ("error", json!("x"), "/payload"),
        ("vendor.acme.draft", json!({}), "/payload"),
    ] {
        let judgement = World::new().judge(&envelope(kind, payload), &Offer::default());
        let Outcome::Invalid { reason, details } = &judgement.outcome else { panic!("{kind}: {judgement:?}") };
        assert!(reason.starts_with("envelope_invalid"), "{reason}");
        assert!(details.iter().any(|detail| detail.instance_path == place), "{kind}: no {place} in {details:?}");
        assert_eq!(judgement.counts, [Limit::SchemaRounds], "it counts as a schema round");
    }
    let free = World::new().outcome(&envelope("vendor.acme.free", json!([1, "anything"])), &Offer::default());
    assert_eq!(free["status"], "accepted");
}

#[test]
fn the_shape_comes_first() {
    for (pointer, value, place) in [
        ("/meta", Value::Null, "/meta"),
        ("/type", json!(""), "/type"),
        ("/type", json!("x".repeat(257)), "/type"),
        ("/envelopeId", json!("x".repeat(129)), "/envelopeId"),
        ("/correlationId", json!(5), "/correlationId"),
        ("/schemaVersion", json!(-1), "/schemaVersion"),
        ("/schemaVersion", json!(1.5), "/schemaVersion"),
        ("/extra", json!(1), ""),
        ("/meta/vendor", json!(1), "/meta"),
        ("/meta/source", json!("robot"), "/meta/source"),
        ("/meta/contentTrust", json!("maybe"), "/meta/contentTrust"),
        ("/meta/label", json!("x".repeat(257)), "/meta/label"),
        ("/meta/rendering", json!({"display": "hologram"}), "/meta/rendering/display"),
        ("/partial", json!({"isPartial": true}), "/partial"),
        ("/partial", json!({"isPartial": true, "index": 0, "total": -2}), "/partial/total"),
    ] {
        let mut bad = envelope("vendor.unknown", json!({}));
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = value;
        let outcome = World::new().outcome(&bad, &Offer::default());
        assert_eq!(outcome["status"], "invalid", "{pointer}");
        assert!(outcome["reason"].as_str().unwrap().starts_with("invalid_envelope_shape"), "{outcome}");
        let places: Vec<&str> =
            outcome["details"].as_array().unwrap().iter().map(|d| d["instancePath"].as_str().unwrap()).collect();
        assert!(places.contains(&place), "{pointer}: {places:?}");
    }
    for missing in ["type", "envelopeId", "correlationId", "payload", "meta"] {
        let mut bad = error();
        bad.as_object_mut().unwrap().remove(missing);
        let outcome = World::new().outcome(&bad, &Offer::default());
        assert_eq!(outcome["status"], "invalid", "{missing}");
        assert!(!outcome["details"].as_array().unwrap().is_empty());
    }
    for ts in ["tomorrow", "", "2026-13-01T00:00:00Z", "2026-05-18"] {
        let mut bad = error();
        bad["meta"]["ts"] = json!(ts);
        let outcome = World::new().outcome(&bad, &Offer::default());
        assert_eq!(
            (&outcome["status"], &outcome["details"][0]["instancePath"]),
            (&json!("invalid"), &json!("/meta/ts"))
        );
        assert!(outcome["reason"].as_str().unwrap().contains("ISO 8601"), "{outcome}");
    }
    let minimal = json!({"type": "error", "envelopeId": "e", "correlationId": "c", "payload": {"code": "a", "message": "b"},
                         "meta": {"source": "system", "ts": "2026-05-18T10:00:00+02:00"}, "nodeId": "n",
                         "partial": {"isPartial": false, "index": 2, "total": -1}});
    assert_eq!(World::new().outcome(&minimal, &Offer::default())["status"], "accepted");
}

#[test]
fn a_host_that_takes_none_says_so_before_anything_else() {
    let world = World { enabled: false, ..World::new() };
    for offered in [error(), envelope("vendor.unknown", json!({})), json!("junk")] {
        let outcome = world.outcome(&offered, &Offer::default());
        assert_eq!((&outcome["status"], &outcome["reason"]), (&json!("invalid"), &json!("capability_required")));
    }
}

#[test]
fn kinds_are_gated_by_the_host_and_then_by_the_node() {
    let world = World::new();
    let accepts = ["vendor.unknown".to_owned(), "vendor.acme.free".to_owned()];
    let offer = Offer { accepts: Some(&accepts), ..Offer::default() };
    let judgement = world.judge(&envelope("vendor.unknown", json!({})), &offer);
    let Outcome::Gated { reason, refused_type, allowed_kinds } = &judgement.outcome else { panic!("{judgement:?}") };
    assert!(reason.starts_with("unknown_envelope_kind"), "{reason}");
    assert_eq!(refused_type, "vendor.unknown");
    assert_eq!(allowed_kinds[..4], UNIVERSAL);
    assert_eq!(allowed_kinds[4..], ["vendor.acme.draft", "vendor.acme.free"]);
    assert_eq!(judgement.counts, [Limit::SchemaRounds]);

    let judgement = world.judge(&envelope("vendor.acme.draft", json!({"text": "t"})), &offer);
    let Outcome::Gated { reason, allowed_kinds, .. } = &judgement.outcome else { panic!("{judgement:?}") };
    assert!(reason.starts_with("envelope_contract_violation"), "{reason}");
    assert_eq!(allowed_kinds[4..], ["vendor.unknown", "vendor.acme.free"]);
    assert!(judgement.counts.is_empty());
    // The payload is looked at before the contract.
    let outcome = world.outcome(&envelope("vendor.acme.draft", json!({})), &offer);
    assert_eq!(outcome["status"], "invalid");
    assert_eq!(world.outcome(&envelope("vendor.acme.free", json!({})), &offer)["status"], "accepted");
}

#[test]
fn schema_versions_may_lag_unless_the_host_is_strict() {
    let at = |version: Option<u64>| {
        let mut envelope = error();
        match version {
            Some(version) => envelope["schemaVersion"] = json!(version),
            None => drop(envelope.as_object_mut().unwrap().remove("schemaVersion")),
        }
        envelope
    };
    for (said, strictness, expected, drift) in [
        (Some(2), Strictness::Warn, "accepted", false),
        (Some(2), Strictness::Strict, "accepted", false),
        (Some(1), Strictness::Warn, "accepted", true),
        (None, Strictness::Warn, "accepted", true),
        (Some(1), Strictness::Strict, "invalid", false),
        (None, Strictness::Strict, "invalid", false),
        (Some(3), Strictness::Warn, "invalid", false),
        (Some(3), Strictness::Strict, "invalid", false),
    ] {
        let world = World { versions: BTreeMap::from([("error".to_owned(), 2)]), strictness, ..World::new() };
        let outcome = world.outcome(&at(said), &Offer::default());
        assert_eq!(outcome["status"], expected, "{said:?} {strictness:?}");
        assert_eq!(outcome.get("schemaVersionDrift").is_some(), drift, "{outcome}");
        if expected == "invalid" {
            assert!(outcome["reason"].as_str().unwrap().starts_with("unknown_schema_version"), "{outcome}");
            assert_eq!(outcome["details"][0]["instancePath"], "/schemaVersion");
        }
    }
    assert_eq!(World::new().outcome(&at(Some(99)), &Offer::default())["status"], "accepted", "no version, no rule");
}

#[test]
fn a_bound_that_is_reached_is_breached() {
    let at = |current, cap| Some(Counter { current, cap });
    let schema = envelope("schema.request", json!({"envelopeType": "x"}));
    for (envelope, counters, cap_kind, name) in [
        (error(), Counters { envelopes_per_turn: at(32, 32), ..Counters::default() }, "envelopes", "envelopesPerTurn"),
        (
            question(),
            Counters { clarification_rounds: at(5, 5), ..Counters::default() },
            "clarification",
            "clarificationRounds",
        ),
        (schema, Counters { schema_rounds: at(3, 3), ..Counters::default() }, "schema", "schemaRounds"),
        (question(), Counters { envelopes_per_turn: at(7, 5), ..Counters::default() }, "envelopes", "envelopesPerTurn"),
    ] {
        let judgement = World::new().judge(&envelope, &Offer { counters, ..Offer::default() });
        let Outcome::Breached { reason, cap_kind: kind, limit, observed } = &judgement.outcome else {
            panic!("{judgement:?}")
        };
        assert_eq!(kind, cap_kind);
        assert!(observed > limit, "{observed} > {limit}");
        assert!(reason.contains(name) && reason.contains(&limit.to_string()), "{reason}");
        assert!(judgement.counts.is_empty());
    }
    let room = Counters { envelopes_per_turn: at(31, 32), schema_rounds: at(3, 3), clarification_rounds: at(0, 1) };
    for fine in [error(), question()] {
        assert_eq!(World::new().outcome(&fine, &Offer { counters: room, ..Offer::default() })["status"], "accepted");
    }
    let read: Counters = serde_json::from_value(json!({"envelopesPerTurn": {"current": 32, "cap": 32}})).unwrap();
    assert_eq!(read.envelopes_per_turn, at(32, 32));
}

#[test]
fn the_same_envelope_gets_the_same_answer() {
    let world = World::new();
    let first = world.judge(&question(), &Offer::default()).outcome;
    // Through JSON and back, as a store would keep it.
    let kept: Outcome = serde_json::from_value(serde_json::to_value(&first).unwrap()).unwrap();
    let earlier = |kind: &str, outcome: Outcome| {
        BTreeMap::from([("c1".to_owned(), Earlier { envelope_type: kind.to_owned(), outcome })])
    };
    let known = earlier("clarification.request", kept);
    let mut again = question();
    again["envelopeId"] = json!("e2");
    // Even at the cap: it is no further envelope.
    let counters = Counters { clarification_rounds: Some(Counter { current: 1, cap: 1 }), ..Counters::default() };
    let judgement = world.judge(&again, &Offer { earlier: Some(&known), counters, ..Offer::default() });
    assert!(!judgement.fresh && judgement.counts.is_empty());
    assert_eq!(judgement.outcome, first);
    assert_eq!(serde_json::to_value(&judgement.outcome).unwrap()["envelopeId"], "e1");
    assert!(consequences("clarification.request", &judgement, RefusalMode::FailNode).is_empty());

    let conflict = world.judge(&error(), &Offer { earlier: Some(&known), ..Offer::default() });
    let told = serde_json::to_value(&conflict.outcome).unwrap();
    assert_eq!(told["status"], "invalid");
    assert!(told["reason"].as_str().unwrap().contains("envelope_correlation_conflict"), "{told}");

    let cached = json!({"status": "gated", "reason": "not advertised", "allowedKinds": ["error"]});
    let cached: Outcome = serde_json::from_value(cached).unwrap();
    let known = earlier("vendor.acme.free", cached.clone());
    let judgement =
        world.judge(&envelope("vendor.acme.free", json!({})), &Offer { earlier: Some(&known), ..Offer::default() });
    assert_eq!(judgement.outcome, cached, "whatever it was, and though it would be taken now");
    let seen: Outcome = serde_json::from_value(json!({
        "status": "accepted", "envelopeId": "e", "recordedEventIds": [], "normalizedMeta": {"contentTrust": "trusted"},
    }))
    .unwrap();
    assert_eq!(seen.trust(), Some(Trust::Trusted));
}

#[test]
fn trust_is_settled_and_approvals_need_it() {
    let tagged = |tag: Option<&str>| {
        let mut envelope = question();
        if let Some(tag) = tag {
            envelope["meta"]["contentTrust"] = json!(tag);
        }
        envelope
    };
    for (tag, boundary, expected) in [
        (None, None, "trusted"),
        (None, Some(Trust::Untrusted), "untrusted"),
        (None, Some(Trust::Trusted), "trusted"),
        (Some("untrusted"), None, "untrusted"),
        (Some("untrusted"), Some(Trust::Trusted), "untrusted"),
        (Some("trusted"), Some(Trust::Untrusted), "trusted"),
    ] {
        let offer = Offer { boundary, ..Offer::default() };
        let outcome = World::new().outcome(&tagged(tag), &offer);
        assert_eq!(outcome["status"], "accepted");
        assert_eq!(outcome["normalizedMeta"]["contentTrust"], expected, "{tag:?} {boundary:?}");
        let outcome = World::new().outcome(&tagged(tag), &Offer { approval: true, ..offer });
        if expected == "trusted" {
            assert_eq!(outcome["status"], "accepted");
        } else {
            assert_eq!(
                (&outcome["status"], &outcome["reason"]),
                (&json!("invalid"), &json!("untrusted_content_blocks_approval"))
            );
        }
    }
    // What was taken elsewhere does not answer an approval by being said again.
    let outcome = World::new().judge(&tagged(Some("untrusted")), &Offer::default()).outcome;
    let known =
        BTreeMap::from([("c1".to_owned(), Earlier { envelope_type: "clarification.request".to_owned(), outcome })]);
    let offer = Offer { earlier: Some(&known), approval: true, ..Offer::default() };
    let told = World::new().outcome(&tagged(Some("trusted")), &offer);
    assert_eq!(told["reason"], "untrusted_content_blocks_approval");
}

#[test]
fn secrets_stay_out_of_every_answer() {
    let secrets = [Secret::new("vault-1", "sk-canary-alpha-1"), Secret::new("vault-2", "sk-canary-beta-22")];
    let offer = Offer { secrets: &secrets, ..Offer::default() };
    let mut nested = envelope(
        "clarification.request",
        json!({"questions": [
            {"id": "q1", "question": "What is sk-canary-alpha-1?"},
            {"id": "q2", "question": "none", "context": {"trace": ["sk-canary-alpha-1/sk-canary-beta-22"], "sk-canary-beta-22": 1}},
        ]}),
    );
    nested["meta"]["label"] = json!("sk-canary-alpha-1");
    nested["meta"]["rendering"] = json!({"title": "sk-canary-beta-22"});
    nested["envelopeId"] = json!("sk-canary-alpha-1");
    let outcome = World::new().outcome(&nested, &offer);
    assert_eq!((&outcome["status"], &outcome["redactionCount"]), (&json!("accepted"), &json!(4)));
    assert!(!outcome.to_string().contains("sk-canary"), "{outcome}");
    assert_eq!(outcome["redactedPayload"]["questions"][0]["question"], "What is [REDACTED:vault-1]?");
    assert_eq!(
        outcome["redactedPayload"]["questions"][1]["context"]["trace"][0],
        "[REDACTED:vault-1]/[REDACTED:vault-2]"
    );

    let clean =
        World::new().outcome(&envelope("error", json!({"code": "x", "message": "had [REDACTED:old] before"})), &offer);
    assert_eq!((&clean["status"], &clean["redactionCount"]), (&json!("accepted"), &json!(0)));

    let mut bad_time = envelope("error", json!({"code": "x", "message": "sk-canary-alpha-1"}));
    bad_time["meta"]["ts"] = json!("sk-canary-alpha-1");
    let mut stray = error();
    stray["sk-canary-alpha-1"] = json!(1);
    for refused in [
        bad_time,
        stray,
        envelope("sk-canary-alpha-1", json!({})),
        envelope("error", json!({"code": 5, "message": "sk-canary-alpha-1", "sk-canary-beta-22": 1})),
        envelope("error", json!("sk-canary-alpha-1")),
    ] {
        let outcome = World::new().outcome(&refused, &offer);
        assert_ne!(outcome["status"], "accepted");
        assert!(!outcome.to_string().contains("sk-canary"), "{outcome}");
    }
}

#[test]
fn what_follows_from_an_outcome() {
    let world = World::new();
    let follow = |envelope: &Value, offer: &Offer<'_>, mode| {
        consequences(envelope["type"].as_str().unwrap(), &world.judge(envelope, offer), mode)
    };
    let usual = |envelope: &Value| follow(envelope, &Offer::default(), RefusalMode::FailNode);
    let clarify = Consequence::Clarify { questions: question()["payload"]["questions"].clone(), context_type: None };
    assert_eq!(usual(&question()), [clarify]);
    let logged = usual(&error());
    assert!(
        matches!(&logged[..], [Consequence::Log { level: Level::Error, .. }]),
        "an error of the model fails nobody"
    );
    let taught = usual(&envelope("schema.request", json!({"envelopeType": "vendor.acme.draft"})));
    assert!(
        matches!(&taught[..], [Consequence::Log { level: Level::Debug, .. }, Consequence::TeachSchema { kind }] if kind == "vendor.acme.draft")
    );
    let acknowledged = usual(&envelope("schema.response", json!({"envelopeType": "x", "ack": true})));
    assert!(matches!(&acknowledged[..], [Consequence::Log { level: Level::Debug, .. }]));
    assert!(usual(&envelope("vendor.acme.free", json!({}))).is_empty());
    assert!(usual(&envelope("error", json!({}))).is_empty(), "an invalid one is asked for again");

    let accepts = ["vendor.acme.draft".to_owned()];
    let offer = Offer { accepts: Some(&accepts), ..Offer::default() };
    let outside = envelope("vendor.acme.free", json!({}));
    for refused in [follow(&outside, &offer, RefusalMode::FailNode), usual(&envelope("vendor.unknown", json!({})))] {
        let [Consequence::NodeFailed(fault)] = &refused[..] else { panic!("{refused:?}") };
        assert_eq!(fault.code, code::ENVELOPE_CONTRACT_VIOLATION);
        let details = fault.details.as_ref().unwrap();
        assert!(details["refusedType"].is_string());
        assert!(details["acceptedTypes"].as_array().unwrap().contains(&json!("vendor.acme.draft")));
    }
    let warned = follow(&outside, &offer, RefusalMode::DiscardAndWarn);
    assert!(matches!(&warned[..], [Consequence::Log { level: Level::Warn, .. }]), "{warned:?}");

    let counters = Counters { clarification_rounds: Some(Counter { current: 5, cap: 5 }), ..Counters::default() };
    let breached = follow(&question(), &Offer { counters, ..Offer::default() }, RefusalMode::FailNode);
    let [Consequence::CapBreached { kind, limit: 5, observed: 6, node: true }, Consequence::NodeFailed(fault)] =
        &breached[..]
    else {
        panic!("{breached:?}")
    };
    assert_eq!((kind.as_str(), fault.code.as_str()), ("clarification", code::CAP_BREACHED));
}

#[test]
fn schemas_can_be_served() {
    let kinds = World::new().kinds;
    for kind in UNIVERSAL {
        assert_eq!(kinds.schema(kind).unwrap()["additionalProperties"], json!(false), "{kind}");
    }
    assert!(kinds.schema("vendor.acme.draft").is_some() && kinds.schema("vendor.acme.free").is_none());
    assert!(Kinds::universal().with("x", json!({"type": 5})).is_err());
    let ours = Kinds::universal().with("error", json!(true)).unwrap();
    assert_eq!(ours.schema("error"), Kinds::universal().schema("error"), "a universal kind stays what it is");
}

proptest! {
    #[test]
    fn acceptance_never_panics(kind in ".{0,20}", payload in ".{0,20}", ts in ".{0,20}") {
        let mut offered = envelope(&kind, json!({"x": payload}));
        offered["meta"]["ts"] = json!(ts);
        let _ = World::new().judge(&offered, &Offer::default());
    }
}
