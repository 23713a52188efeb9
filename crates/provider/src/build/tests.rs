#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

fn read(toml_like: serde_json::Value) -> ProviderSettings {
    serde_json::from_value(toml_like).unwrap()
}

fn problem(settings: &ProviderSettings) -> ConfigProblem {
    match build("mine", settings) {
        Ok(_) => panic!("{settings:?} is fine"),
        Err(problem) => problem,
    }
}

#[test]
fn vendors_want_a_key_and_servers_of_ones_own_need_none() {
    let bare = read(serde_json::json!({"kind": "anthropic"}));
    assert_eq!(problem(&bare).setting, "api_key");
    // Where there are no CA certificates, something else is wrong.
    let keyed = build("mine", &ProviderSettings { api_key: Some("sk-x".into()), ..bare });
    assert!(keyed.err().is_none_or(|problem| problem.setting != "api_key"));
    assert!(
        build("mine", &read(serde_json::json!({"kind": "openai", "base_url": "http://localhost:11434/v1"}))).is_ok()
    );
    assert_eq!(read(serde_json::json!({"kind": "google"})).kind, ProviderKind::Gemini);
}

#[test]
fn what_is_wrong_is_named_and_never_repeated() {
    let canary = "canary-7f3a";
    let with = |settings: ProviderSettings| {
        let problem = problem(&settings);
        let told = format!("{problem} {problem:?} {settings:?}");
        assert!(!told.contains(canary), "{told}");
        problem.setting
    };
    let settings = ProviderSettings { api_key: Some("sk-x".into()), ..ProviderSettings::default() };
    let based = |url: String| ProviderSettings { base_url: Some(url), ..settings.clone() };
    assert_eq!(with(based(format!("http://{canary}.example.com/v1"))), "base_url");
    assert_eq!(with(based(format!("https://user:{canary}@example.com/v1"))), "base_url");
    assert_eq!(with(based(format!("ftp://{canary}/v1"))), "base_url");
    let keyed = |key: String| ProviderSettings { api_key: Some(key.into()), ..settings.clone() };
    assert_eq!(with(keyed(format!("{canary}\n"))), "api_key");
    assert_eq!(with(keyed(String::new())), "api_key");
    let header = (String::from("x-account"), SecretString::from(format!("{canary}\r\nx: y")));
    assert_eq!(with(ProviderSettings { headers: [header].into(), ..settings.clone() }), "headers");
}

#[test]
fn a_script_or_a_recording_that_is_not_there_is_a_problem() {
    let nowhere = tempfile::tempdir().unwrap().path().join("nowhere");
    let scripted = ProviderSettings { kind: ProviderKind::Scripted, ..ProviderSettings::default() };
    assert!(build("mine", &scripted).is_ok());
    assert_eq!(problem(&ProviderSettings { script: Some(nowhere.clone()), ..scripted.clone() }).setting, "script");
    let recorded = |mode| Some(RecordingSettings { mode, path: nowhere.clone() });
    assert_eq!(
        problem(&ProviderSettings { recording: recorded(RecordingMode::Replay), ..scripted.clone() }).setting,
        "recording"
    );
    assert_eq!(
        problem(&ProviderSettings { recording: recorded(RecordingMode::Record), ..scripted }).setting,
        "recording"
    );
}

#[test]
fn a_vendor_is_told_from_somebody_who_speaks_like_it() {
    let keyed = |kind| ProviderSettings { kind, api_key: Some("sk-x".into()), ..ProviderSettings::default() };
    let vendor = |settings: &ProviderSettings| build("mine", settings).unwrap().vendor();
    assert_eq!(vendor(&keyed(ProviderKind::Anthropic)), Some("anthropic"));
    assert_eq!(vendor(&keyed(ProviderKind::Gemini)), Some("gemini"));
    let own =
        ProviderSettings { base_url: Some("http://127.0.0.1:11434/v1".to_owned()), ..keyed(ProviderKind::OpenAi) };
    assert_eq!((vendor(&keyed(ProviderKind::OpenAi)), vendor(&own)), (Some("openai"), None));
}
