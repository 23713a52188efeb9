use super::*;

fn read(value: Value) -> Result<SemanticRequest, BadRequest> {
    SemanticRequest::read(value.as_object().unwrap())
}

fn key(value: Value) -> String {
    read(value).unwrap().cache_key().as_str().to_owned()
}

/// A request with these fields laid over it.
fn with(fields: Value) -> Value {
    let mut base =
        json!({"provider": "anthropic", "model": "claude-x", "messages": [{"role": "user", "content": "hello"}]});
    base.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    base
}

#[test]
fn the_protocols_check_values() {
    assert_eq!(key(with(json!({}))), "c92498949e9cc0e38bb2887e88e55b6936932e219b8344f0a7059b1de960073d");
    assert_eq!(key(with(json!({"seed": 7}))), "fb942dce9de88688c89d048499f4a4e5a19427775da08d0d5a7ad709c10b42d0");
}

#[test]
fn what_cannot_change_the_answer_does_not_change_the_key() {
    let plain = key(with(json!({})));
    let transport = json!({
        "stream": true, "metadata": {"trace": "x"}, "user": "u", "x-request-id": "r", "traceparent": "00-a-b-01",
        "tenantId": "t", "runId": "r", "timeoutMs": 30_000, "retryCount": 3,
    });
    assert_eq!(key(with(transport)), plain);
    for same in [json!({"tools": []}), json!({"seed": null}), json!({"provider": "Anthropic"})] {
        assert_eq!(key(with(same.clone())), plain, "{same}");
    }
}

#[test]
fn a_vendor_with_two_names_has_one_key() {
    let of = |provider: &str| key(with(json!({ "provider": provider })));
    assert_eq!(of("google"), of("gemini"));
    assert_eq!(of("Google"), of("gemini"));
    assert_ne!(of("google-vertex"), of("gemini"), "only the name itself");
    assert_eq!(read(with(json!({"provider": "google"}))).unwrap().provider, "google", "it is asked by the name it has");
}

#[test]
fn what_can_change_the_answer_changes_the_key() {
    let variants = [
        json!({}),
        json!({"model": "Claude-X"}),
        json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]}),
        json!({"messages": [{"role": "user", "content": "hello", "name": "ann"}]}),
        json!({"temperature": 0.1}),
        json!({"temperature": 0.2}),
        json!({"topP": 0.5}),
        json!({"topK": 5}),
        json!({"seed": 7}),
        json!({"seed": 8}),
        json!({"stop": []}),
        json!({"stop": ["STOP"]}),
        json!({"stop": ["HALT"]}),
        json!({"maxOutputTokens": 100}),
        json!({"maxOutputTokens": 1000}),
        json!({"responseFormat": {"type": "json_object"}}),
        json!({"safetySettings": {"level": "high"}}),
        json!({"tools": [{"name": "a"}]}),
        json!({"providerOptions": {"vendor.anthropic.logitBias": 1}}),
        json!({"providerOptions": {"vendor.anthropic.logitBias": 2}}),
        json!({"providerOptions": {}}),
    ];
    let keys: std::collections::BTreeSet<String> = variants.iter().cloned().map(|fields| key(with(fields))).collect();
    assert_eq!(keys.len(), variants.len());
}

#[test]
fn the_order_of_messages_counts_and_that_of_tools_does_not() {
    let tools = |names: &[&str]| with(json!({"tools": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()}));
    assert_eq!(key(tools(&["b", "a", "B"])), key(tools(&["B", "b", "a"])));
    let (a, b) = (json!({"role": "user", "content": "a"}), json!({"role": "user", "content": "b"}));
    assert_ne!(key(with(json!({"messages": [a, b]}))), key(with(json!({"messages": [b, a]}))));
}

#[test]
fn tools_stand_in_the_order_of_code_units() {
    // By code points the last one would be the second.
    let names = ["\u{ff5e}", "\u{1f600}", "a"];
    let request = read(with(json!({"tools": names.map(|name| json!({"name": name}))}))).unwrap();
    let sorted: Vec<Value> = request.canonical()["request"]["tools"].as_array().unwrap().clone();
    assert_eq!(sorted, ["a", "\u{1f600}", "\u{ff5e}"].map(|name| json!({"name": name})));
}

#[test]
fn a_bad_request_names_the_field() {
    let cases = [
        (json!({"provider": null}), "provider"),
        (json!({"model": ""}), "model"),
        (json!({"messages": "hello"}), "messages"),
        (json!({"messages": [{"content": "x"}]}), "messages/0"),
        (json!({"tools": [{"name": "a"}, {}]}), "tools/1"),
        (json!({"temperature": "warm"}), "temperature"),
        (json!({"maxOutputTokens": -1}), "maxOutputTokens"),
        (json!({"stop": "STOP"}), "stop"),
        (json!({"stop": [1]}), "stop"),
        (json!({"responseFormat": 1}), "responseFormat"),
        (json!({"providerOptions": []}), "providerOptions"),
    ];
    for (fields, field) in cases {
        assert_eq!(read(with(fields.clone())).unwrap_err().field, field, "{fields}");
    }
    assert_eq!(read(json!({"provider": "p", "model": "m"})).unwrap_err().field, "messages");
}

#[test]
fn a_stored_request_has_the_same_key() {
    let request = read(with(json!({"seed": 1, "stop": [], "tools": [{"name": "t"}], "temperature": 1.0}))).unwrap();
    let back: SemanticRequest = serde_json::from_str(&serde_json::to_string(&request).unwrap()).unwrap();
    assert_eq!((back.cache_key(), &back), (request.cache_key(), &request));
}
