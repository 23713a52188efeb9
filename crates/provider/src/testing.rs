//! What the translators' tests share.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use baton_model::{ModelReply, ModelRequest, SemanticRequest};
use serde_json::{Value, json};

use crate::wire::{Progress, Vendor};
use crate::{Delta, ProviderFault};

pub(crate) struct Heard(pub(crate) Vec<Delta>);

pub(crate) fn text(text: &str) -> Delta {
    Delta::Text(text.to_owned())
}

/// A request for the model `m`.
pub(crate) fn request(provider: &str, raw: Value) -> ModelRequest {
    let mut raw = raw.as_object().unwrap().clone();
    raw.insert("provider".to_owned(), provider.into());
    raw.entry("model").or_insert(json!("m"));
    let semantic = Arc::new(SemanticRequest::read(&raw).unwrap());
    ModelRequest {
        key: "call/1".to_owned(),
        node: "n".into(),
        semantic,
        timeout_ms: None,
        trace: None,
        reasoning: false,
        cap: None,
    }
}

/// The reply that a stream of events comes to, and what was heard of it.
pub(crate) fn read_events(
    vendor: &Vendor,
    request: &ModelRequest,
    events: &[Value],
) -> (Result<ModelReply, ProviderFault>, Heard) {
    let (_, mut decoder) = vendor.translate(request).unwrap();
    let mut heard = Vec::new();
    for event in events {
        match decoder.event(&event.to_string(), &mut heard) {
            Ok(Progress::More) => {}
            Ok(Progress::Done) => break,
            Err(fault) => return (Err(fault), Heard(heard)),
        }
    }
    (decoder.finish(), Heard(heard))
}

pub(crate) fn read_whole(vendor: &Vendor, request: &ModelRequest, body: &Value) -> Result<ModelReply, ProviderFault> {
    let (_, mut decoder) = vendor.translate(request).unwrap();
    decoder.whole(body)?;
    decoder.finish()
}

/// The value with each of its parts, one at a time, replaced by something else.
fn spoilt(value: &Value) -> Vec<Value> {
    let mut all: Vec<Value> =
        [json!(null), json!(true), json!(-1), json!(u64::MAX), json!("\u{0}x"), json!([]), json!({})].into();
    let mut put = |place: &dyn Fn(&mut Value) -> Option<&mut Value>, inner: &Value| {
        for spoilt in spoilt(inner) {
            let mut whole = value.clone();
            if let Some(slot) = place(&mut whole) {
                *slot = spoilt;
                all.push(whole);
            }
        }
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(i, item)| put(&|whole| whole.get_mut(i), item)),
        Value::Object(map) => map.iter().for_each(|(key, item)| put(&|whole| whole.get_mut(key), item)),
        _ => {}
    }
    all
}

/// Whatever a server sends: an answer or a fault, and never a panic.
pub(crate) fn survives_nonsense(vendor: &Vendor, request: &ModelRequest, events: &[Value], whole: &Value) {
    for i in 0..events.len() {
        for nonsense in spoilt(&events[i]) {
            let mut events = events.to_vec();
            events[i] = nonsense;
            let _ = read_events(vendor, request, &events);
        }
    }
    for nonsense in spoilt(whole) {
        let _ = read_whole(vendor, request, &nonsense);
    }
}
