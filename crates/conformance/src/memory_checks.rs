//! The memory checks: what each writes, and what it leaves of what it saw. The host does the writing and reading.

use baton_engine::Probe;
use baton_model::{Secret, Timestamp};
use baton_runtime::{Note, Readback};
use serde_json::{Map, Value, json};

const SECRET_ID: &str = "conformance-test-secret";
const SECRET_VALUE: &str = "conformance-secret-value-0123456789";

/// The secret that tests expect a host to know by name.
pub(crate) fn secret() -> Secret {
    Secret::new(SECRET_ID, SECRET_VALUE)
}

pub(crate) fn notes(check: &Probe, at: Timestamp) -> Result<Vec<Note>, String> {
    let note = |content: &str, expires_at| Note {
        content: content.to_owned(),
        tags: vec!["conformance".to_owned()],
        expires_at,
    };
    Ok(match check {
        Probe::WriteThenRead => vec![note("A note to be read back.", None)],
        Probe::CrossTenant { .. } => vec![note("The owner's own note.", None)],
        Probe::Redaction { secret } if secret != SECRET_ID => {
            return Err("The host knows no secret of that name.".to_owned());
        }
        Probe::Redaction { .. } => vec![note(&format!("The key is {SECRET_VALUE}, keep it safe."), None)],
        Probe::Ttl => vec![
            note("Has expired.", Some(Timestamp::from_micros(at.as_micros() - 1_000_000))),
            note("Has not.", Some(at.plus_millis(3_600_000))),
        ],
    })
}

pub(crate) fn readback(check: &Probe, seen: &Readback<'_>) -> Map<String, Value> {
    let Readback { shown, ids, foreign } = seen;
    let value = match check {
        Probe::WriteThenRead | Probe::Redaction { .. } => json!({"memoryReadback": shown.first()}),
        Probe::Ttl => json!({"memoryList": shown, "expiredId": ids.first(), "freshId": ids.get(1)}),
        Probe::CrossTenant { .. } => {
            json!({"crossTenantProbe": foreign, "ownerProbe": shown, "ownerEntryId": ids.first()})
        }
    };
    value.as_object().cloned().unwrap_or_default()
}
