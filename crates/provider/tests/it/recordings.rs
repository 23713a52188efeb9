//! Answers that are recorded once and played back without a network.

use crate::support;

use std::io::Write as _;
use std::path::Path;

use baton_provider::{
    NoSink, Provider as _, ProviderKind, ProviderSettings, RecordingMode, RecordingSettings, build, recording,
};
use serde_json::json;
use support::{Answer, KEY, Stub, all, call, openai, provider, request};

fn recorded_at(settings: ProviderSettings, mode: RecordingMode, path: &Path) -> ProviderSettings {
    ProviderSettings { recording: Some(RecordingSettings { mode, path: path.to_owned() }), ..settings }
}

#[tokio::test]
async fn what_was_recorded_is_played_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    for speech in all() {
        let stub = Stub::new([Answer::events(&speech.stream)]).await;
        let settings = stub.settings(&speech);
        let asked = request(json!({"model": format!("m-{:?}-{:?}", speech.kind, speech.wire).to_lowercase()}));
        let recorded = call(&recorded_at(settings.clone(), RecordingMode::Record, &path), &asked).await.0.unwrap();
        // Neither server nor key is needed any more.
        let bare = ProviderSettings { kind: speech.kind, ..ProviderSettings::default() };
        let (played, notes) = call(&recorded_at(bare, RecordingMode::Replay, &path), &asked).await;
        assert_eq!((played.unwrap(), notes.text().as_str()), (recorded, "Hello"));
        assert_eq!(stub.asked().len(), 1);
    }
    let recording_text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(recording_text.lines().count(), 4);
    for secret in [KEY, "the secret plan", "127.0.0.1"] {
        assert!(!recording_text.contains(secret), "{recording_text}");
    }
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    let settings = recorded_at(ProviderSettings::default(), RecordingMode::Replay, &path);
    let missed = call(&settings, &request(json!({"temperature": 0.9}))).await.0.unwrap_err();
    assert_eq!(missed.outcome(), "rejected");
    assert!(missed.to_string().contains("`record`"), "{missed}");
}

#[tokio::test]
async fn the_newest_answer_counts_and_faults_are_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let said = |text: &str| {
        let mut whole = openai().whole;
        whole["choices"][0]["message"]["content"] = text.into();
        Answer::json(200, whole)
    };
    let stub = Stub::new([said("one"), Answer::json(400, json!({})), said("two")]).await;
    let recorder = provider(&recorded_at(stub.settings(ProviderKind::OpenAi), RecordingMode::Record, &path));
    let asked = request(json!({}));
    assert_eq!(recorder.call(&asked, &NoSink).await.unwrap().content, "one");
    assert!(recorder.call(&asked, &NoSink).await.is_err());
    assert_eq!(recorder.call(&asked, &NoSink).await.unwrap().content, "two");
    assert_eq!(recording::Player::new(&path).unwrap().call(&asked, &NoSink).await.unwrap().content, "two");
}

#[tokio::test]
async fn a_line_that_was_cut_off_never_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let stub = Stub::new([Answer::json(200, openai().whole)]).await;
    let record = recorded_at(stub.settings(ProviderKind::OpenAi), RecordingMode::Record, &path);
    let asked = [request(json!({"seed": 1})), request(json!({"seed": 2}))];
    call(&record, &asked[0]).await.0.unwrap();
    let append = |bytes: &[u8]| std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(bytes).unwrap();
    append(b"{\"key\":\"00");
    let play = async |request| recording::Player::new(&path).unwrap().call(request, &NoSink).await;
    assert!(play(&asked[0]).await.is_ok());
    call(&record, &asked[1]).await.0.unwrap();
    assert!(play(&asked[0]).await.is_ok() && play(&asked[1]).await.is_ok());
    append(b"not a line\n");
    let replay = recorded_at(ProviderSettings::default(), RecordingMode::Replay, &path);
    let problem = build("p", &replay).err().unwrap();
    assert!(problem.to_string().contains("line 3"), "{problem}");
}
