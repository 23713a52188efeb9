//! What the guide shows works.

use crate::support;

use baton_provider::{NoSink, Provider as _, ProviderSettings, Script, ScriptedProvider};
use serde_json::json;
use support::request;

const GUIDE: &str = include_str!("../../../../docs/guide/providers.md");

#[tokio::test]
async fn the_script_of_the_guide_plays() {
    // The last one; those before it are parts of workflows.
    let (_, rest) = GUIDE.rsplit_once("```json\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    let provider = ScriptedProvider::new(Script::read(script).unwrap());
    let conversation = |system: &str, user: &str| json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]});
    let ask = async |raw| provider.call(&request(raw), &NoSink).await.unwrap();
    assert!(ask(conversation("You lead.", "Go")).await.content.contains("next-worker"));
    let reply = ask(conversation("You research.", "Go")).await;
    assert_eq!(reply.tools[0].name, "openwop:http.fetch");
    let answered =
        json!({"messages": [{"role": "tool", "toolCallId": "c", "name": "openwop:http.fetch", "content": "hi"}]});
    let worked = ask(answered).await.content;
    assert_eq!(worked, "The page says: hi");
    assert!(ask(conversation("You lead.", &worked)).await.content.contains("terminate"));
    assert!(ask(conversation("You dance.", "Go")).await.is_refusal());
}

#[test]
fn the_settings_of_the_guide_are_the_settings() {
    let defaults = ProviderSettings::default();
    let rows = [
        ("timeout_ms", defaults.timeout_ms),
        ("connect_timeout_ms", defaults.connect_timeout_ms),
        ("idle_timeout_ms", defaults.idle_timeout_ms),
        ("retries", defaults.retries as u64),
        ("retry_pause_ms", defaults.retry_pause_ms),
        ("retry_after_limit_ms", defaults.retry_after_limit_ms),
    ];
    for (name, value) in rows {
        assert!(GUIDE.contains(&format!("| `{name}` | {value} |")), "{name}");
    }
    assert_eq!((defaults.max_reply_bytes >> 20, defaults.max_stream_bytes >> 20), (16, 64));
    for (name, value) in [("max_reply_bytes", 16), ("max_stream_bytes", 64)] {
        assert!(GUIDE.contains(&format!("| `{name}` | {value} MiB |")), "{name}");
    }
    // A name that is not a setting would be refused.
    let section = GUIDE.split_once("## Settings").unwrap().1.split_once("\n## ").unwrap().0;
    let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name);
    // Where a key is found is the business of whoever reads the file.
    for name in names.filter(|name| !name.starts_with("api_key")) {
        let read: Result<ProviderSettings, _> = serde_json::from_value(json!({ name: null }));
        let problem = read.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!problem.contains("unknown field"), "{name}: {problem}");
    }
    let kept = serde_json::from_value::<ProviderSettings>(json!({"api_key": "sk-x"}));
    assert!(kept.is_err(), "a key in a file of settings is refused");
}
