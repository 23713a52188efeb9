//! Whether an envelope is taken. The order of the questions is fixed; the first that is answered with no decides.
//!
//! capability, shape, said before?, kind, schema version, payload, contract, limits, redaction, trust.

use std::collections::BTreeMap;

use baton_model::{Secret, Timestamp, Trust, redact, redact_value_counted};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kinds::{Kinds, UNIVERSAL};
use super::limits::{Counters, Limit};
use super::outcome::{Judgement, Meta, Outcome};
use super::violation::Violation;

/// What the host takes, whoever asks.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Envelopes are taken at all.
    pub enabled: bool,
    /// Kinds besides the universal ones.
    pub supported: &'a [String],
    /// The schema version it has for a kind.
    pub versions: &'a BTreeMap<String, u64>,
    pub strictness: Strictness,
    pub kinds: &'a Kinds,
}

/// What to do about an envelope that was written for an older schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strictness {
    #[default]
    Warn,
    Strict,
}

/// Who offers an envelope, and what came before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offer<'a> {
    /// Kinds the node takes besides the universal ones; `None` means every kind the host takes.
    pub accepts: Option<&'a [String]>,
    pub counters: Counters,
    /// How far the run's content is to be trusted where the envelope does not say.
    pub boundary: Option<Trust>,
    pub secrets: &'a [Secret],
    /// What was said before under the envelope's correlation id.
    pub earlier: Option<&'a BTreeMap<String, Earlier>>,
    /// It is offered as the answer to an approval.
    pub approval: bool,
}

/// An envelope that was judged before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Earlier {
    pub envelope_type: String,
    pub outcome: Outcome,
}

/// Judges one envelope.
pub fn accept(envelope: &Value, host: &Host<'_>, offer: &Offer<'_>) -> Judgement {
    if !host.enabled {
        return Judgement::fresh(invalid("capability_required".to_owned(), Vec::new()), &[]);
    }
    let read = match Read::from(envelope, host.kinds) {
        Ok(read) => read,
        Err(outcome) => return Judgement::fresh(clean(outcome, offer.secrets), &[]),
    };
    if let Some(earlier) = offer.earlier.and_then(|earlier| earlier.get(read.correlation)) {
        return again(&read, earlier, offer);
    }
    let (outcome, counts) = match judge(&read, host, offer) {
        Ok(outcome) => (outcome, Limit::of(read.kind)),
        Err((outcome, counts)) => (clean(outcome, offer.secrets), counts),
    };
    Judgement::fresh(outcome, counts)
}

/// The parts of an envelope whose shape is right.
struct Read<'a> {
    kind: &'a str,
    id: &'a str,
    correlation: &'a str,
    version: u64,
    payload: &'a Value,
    meta: &'a Value,
}

impl<'a> Read<'a> {
    fn from(envelope: &'a Value, kinds: &Kinds) -> Result<Self, Outcome> {
        const SHAPE: &str = "invalid_envelope_shape";
        let violations = kinds.shape(envelope);
        if !violations.is_empty() {
            return Err(invalid(format!("{SHAPE}: this is not an envelope"), violations));
        }
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let meta = &envelope["meta"];
        if Timestamp::parse(text(&meta["ts"])).is_none() {
            let told = "`meta.ts` is not an ISO 8601 instant";
            return Err(invalid(format!("{SHAPE}: {told}"), vec![Violation::new("/meta/ts", format!("{told}."))]));
        }
        Ok(Self {
            kind: text(&envelope["type"]),
            id: text(&envelope["envelopeId"]),
            correlation: text(&envelope["correlationId"]),
            version: envelope.get("schemaVersion").and_then(Value::as_u64).unwrap_or(0),
            payload: &envelope["payload"],
            meta,
        })
    }
}

/// The answer that was given before. A correlation id means one envelope for the life of a run.
fn again(read: &Read<'_>, earlier: &Earlier, offer: &Offer<'_>) -> Judgement {
    if earlier.envelope_type != read.kind {
        let told = "this correlation id belongs to an envelope of another type";
        let outcome = invalid(
            format!("envelope_correlation_conflict: {told}"),
            vec![Violation::new("/type", format!("{}.", capitalised(told)))],
        );
        return Judgement::fresh(outcome, &[]);
    }
    // What was good enough elsewhere may still not answer an approval.
    if offer.approval && earlier.outcome.trust() == Some(Trust::Untrusted) {
        return Judgement::fresh(not_for_approvals(), &[]);
    }
    Judgement { outcome: earlier.outcome.clone(), fresh: false, counts: Vec::new() }
}

type Refused = (Outcome, &'static [Limit]);

fn judge(read: &Read<'_>, host: &Host<'_>, offer: &Offer<'_>) -> Result<Outcome, Refused> {
    const A_SCHEMA_ROUND: &[Limit] = &[Limit::SchemaRounds];
    let kind = read.kind;
    let universal = UNIVERSAL.contains(&kind);
    let among = |kinds: &[String]| kinds.iter().any(|known| known == kind);
    if !universal && !among(host.supported) {
        let reason = format!("unknown_envelope_kind: this host has no envelopes of type `{kind}`");
        return Err((gated(reason, kind, host.supported), A_SCHEMA_ROUND));
    }
    let drift = version(read, host).map_err(|outcome| (outcome, [].as_slice()))?;
    let violations = host.kinds.payload(kind, read.payload);
    if !violations.is_empty() {
        let violations =
            violations.into_iter().map(|v| Violation { instance_path: format!("/payload{}", v.instance_path), ..v });
        let reason = format!("envelope_invalid: the payload is not what `{kind}` carries");
        return Err((invalid(reason, violations.collect()), A_SCHEMA_ROUND));
    }
    if let Some(accepts) = offer.accepts.filter(|accepts| !universal && !among(accepts)) {
        let reason = format!("envelope_contract_violation: this node takes no envelopes of type `{kind}`");
        return Err((gated(reason, kind, accepts), &[]));
    }
    for &limit in Limit::of(kind) {
        if let Some(counter) = offer.counters.spent(limit) {
            let outcome = Outcome::Breached {
                reason: format!("{} is at its cap of {}", limit.as_str(), counter.cap),
                cap_kind: limit.cap_kind().to_owned(),
                limit: counter.cap,
                observed: counter.current.saturating_add(1),
            };
            return Err((outcome, &[]));
        }
    }
    let (redacted_payload, redaction_count) = redact_value_counted(read.payload, offer.secrets);
    let normalized_meta = meta(read, offer);
    if offer.approval && normalized_meta.content_trust == Trust::Untrusted {
        return Err((not_for_approvals(), &[]));
    }
    Ok(Outcome::Accepted {
        envelope_id: redact(read.id, offer.secrets),
        recorded_event_ids: Vec::new(),
        normalized_meta: Box::new(normalized_meta),
        redacted_payload,
        redaction_count,
        schema_version_drift: drift,
    })
}

/// Whether the envelope was written for an older schema; a newer one than the host has is refused.
fn version(read: &Read<'_>, host: &Host<'_>) -> Result<bool, Outcome> {
    let Some(&ours) = host.versions.get(read.kind) else { return Ok(false) };
    let refused = |told: String| {
        let details = vec![Violation::new("/schemaVersion", format!("{}.", capitalised(&told)))];
        invalid(format!("unknown_schema_version: {told}"), details)
    };
    if read.version > ours {
        return Err(refused(format!("this host has version {ours} of `{}` and none after it", read.kind)));
    }
    if read.version < ours && host.strictness == Strictness::Strict {
        return Err(refused(format!("this host takes version {ours} of `{}` and none before it", read.kind)));
    }
    Ok(read.version < ours)
}

/// The envelope's own word on its trust, else the run's, else trusted.
fn meta(read: &Read<'_>, offer: &Offer<'_>) -> Meta {
    let said = read.meta.get("contentTrust").and_then(Value::as_str).and_then(Trust::read);
    let text = |key: &str| read.meta.get(key).and_then(Value::as_str).map(|text| redact(text, offer.secrets));
    Meta {
        source: text("source"),
        ts: text("ts"),
        content_trust: said.or(offer.boundary).unwrap_or(Trust::Trusted),
        traceparent: text("traceparent"),
        label: text("label"),
        rendering: read.meta.get("rendering").map(|rendering| redact_value_counted(rendering, offer.secrets).0),
    }
}

fn invalid(reason: String, details: Vec<Violation>) -> Outcome {
    Outcome::Invalid { reason, details }
}

fn not_for_approvals() -> Outcome {
    invalid("untrusted_content_blocks_approval".to_owned(), Vec::new())
}

fn gated(reason: String, kind: &str, others: &[String]) -> Outcome {
    let universal = UNIVERSAL.iter().map(|kind| (*kind).to_owned());
    let others = others.iter().filter(|kind| !UNIVERSAL.contains(&kind.as_str())).cloned();
    Outcome::Gated { reason, refused_type: kind.to_owned(), allowed_kinds: universal.chain(others).collect() }
}

/// A refusal without a word of a secret: a type or a key is the model's own text too.
fn clean(outcome: Outcome, secrets: &[Secret]) -> Outcome {
    match outcome {
        Outcome::Invalid { reason, details } => Outcome::Invalid {
            reason: redact(&reason, secrets),
            details: details.iter().map(|detail| detail.scrubbed(secrets)).collect(),
        },
        Outcome::Gated { reason, refused_type, allowed_kinds } => Outcome::Gated {
            reason: redact(&reason, secrets),
            refused_type: redact(&refused_type, secrets),
            allowed_kinds,
        },
        other => other,
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
