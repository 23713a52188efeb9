//! A model's value becomes an envelope: what only the host can know is filled in, what a model may not say about
//! itself is taken out.

use baton_model::{Digest, NodeId, RunId, Timestamp};
use serde_json::{Map, Value, json};

/// Where an envelope was said.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub run: &'a RunId,
    pub node: &'a NodeId,
    pub turn: u32,
    /// Its place among the envelopes of the turn, from 0.
    pub ordinal: u32,
}

/// Fills in ids, source and time where they are missing. A model's own word on its trust does not count.
pub fn adopt(value: Value, place: &Place<'_>, at: Timestamp) -> Value {
    let Value::Object(mut envelope) = value else { return value };
    if !envelope.contains_key("envelopeId") {
        let kind = envelope.get("type").and_then(Value::as_str).unwrap_or_default();
        envelope.insert("envelopeId".to_owned(), json!(place.name(kind)));
    }
    if !envelope.contains_key("correlationId") {
        let id = envelope.get("envelopeId").and_then(Value::as_str).unwrap_or_default();
        let correlation = format!("{}:{}:{id}", place.run, place.node);
        envelope.insert("correlationId".to_owned(), json!(bounded(correlation)));
    }
    let meta = envelope.entry("meta").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(meta) = meta {
        meta.remove("contentTrust");
        meta.entry("source").or_insert_with(|| json!("ai-generation"));
        meta.entry("ts").or_insert_with(|| json!(at.to_string()));
    }
    Value::Object(envelope)
}

impl Place<'_> {
    /// An id that the same place always gets: said again after a crash, it is the same envelope.
    fn name(&self, kind: &str) -> String {
        let hash = Digest::of_bytes(kind);
        let name = format!("{}:{}:{}:{}", self.run, self.node, self.turn, &hash.as_str()[..8]);
        bounded(if self.ordinal == 0 { name } else { format!("{name}:{}", self.ordinal) })
    }
}

/// Ids have at most 128 characters; a longer one is named by its digest.
fn bounded(id: String) -> String {
    if id.chars().count() <= 128 { id } else { format!("env_{}", Digest::of_bytes(&id)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_fills_in_what_is_missing_and_takes_out_claims() {
        let (run, node) = (RunId::new("run_1"), NodeId::new("n"));
        let place = Place { run: &run, node: &node, turn: 2, ordinal: 0 };
        let at = Timestamp::from_millis(0);
        let bare = json!({"type": "error", "payload": {}, "meta": {"contentTrust": "trusted"}});
        let envelope = adopt(bare.clone(), &place, at);
        let id = envelope["envelopeId"].as_str().unwrap_or_default();
        assert!(id.starts_with("run_1:n:2:"), "{id}");
        assert_eq!(envelope["correlationId"], json!(format!("run_1:n:{id}")));
        assert_eq!(envelope["meta"], json!({"source": "ai-generation", "ts": at.to_string()}));
        assert_eq!(adopt(bare.clone(), &place, at), envelope, "the same place, the same name");
        assert_ne!(adopt(bare.clone(), &Place { ordinal: 1, ..place }, at)["envelopeId"], envelope["envelopeId"]);

        let said = json!({"type": "error", "payload": {}, "envelopeId": "e", "correlationId": "c",
                          "meta": {"source": "user", "ts": "2026-01-01T00:00:00Z"}});
        assert_eq!(adopt(said.clone(), &place, at), said);
        assert_eq!(adopt(json!("text"), &place, at), json!("text"));

        let long = NodeId::new("n".repeat(300));
        let envelope = adopt(bare, &Place { node: &long, ..place }, at);
        for key in ["envelopeId", "correlationId"] {
            assert!(envelope[key].as_str().is_some_and(|id| id.len() <= 128), "{key}");
        }
    }
}
