//! Runners, who may be one, and their steps.

use baton_model::{RunId, TenantId};

use super::sample::{at, write};
use crate::{RunnerRow, RunnerWrite, StepRow, StepState, Store, TokenRow, Write};

fn token(id: &str) -> TokenRow {
    TokenRow {
        id: id.to_owned(),
        kind: "runner".to_owned(),
        tenant: TenantId::new("acme"),
        subject: "\0 ann '".to_owned(),
        name: "\u{10FFFF}".to_owned(),
        hash: format!("hash-{id}"),
        scopes: String::new(),
        created_at: at(1),
        expires_at: Some(at(2)),
    }
}

fn runner(version: u64, epoch: u64) -> RunnerRow {
    RunnerRow { key: "k".to_owned(), version, epoch, seen_at: at(1), body: format!("{{\"v\":{version}}}") }
}

fn step(key: &str, state: StepState, version: u64, second: i64) -> StepRow {
    let (run, owner) = (RunId::new("run_a"), "o".to_owned());
    StepRow { key: key.to_owned(), run, owner, state, version, at: at(second), body: "{}".to_owned() }
}

async fn put(store: &impl Store, all: impl IntoIterator<Item = RunnerWrite>) {
    write(store, all.into_iter().map(Write::Runners).collect()).await;
}

pub(super) async fn tokens_are_found_by_hash_until_deleted(store: impl Store) {
    put(&store, [RunnerWrite::PutToken(token("b")), RunnerWrite::PutToken(token("a"))]).await;
    assert_eq!(store.tokens(9).await.expect("readable"), [token("a"), token("b")]);
    assert_eq!(store.tokens(1).await.expect("readable"), [token("a")]);
    assert_eq!(store.token("hash-b").await.expect("readable"), Some(token("b")));
    put(&store, [RunnerWrite::DeleteToken { id: "b".to_owned() }]).await;
    assert_eq!(store.token("hash-b").await.expect("readable"), None);
    let named = TokenRow { name: "new".to_owned(), ..token("a") };
    put(&store, [RunnerWrite::PutToken(named.clone())]).await;
    assert_eq!(store.tokens(9).await.expect("readable"), [named]);
}

pub(super) async fn the_row_of_the_greater_version_counts(store: impl Store) {
    put(&store, [RunnerWrite::PutRunner(runner(1, 1))]).await;
    put(&store, [RunnerWrite::PutRunner(runner(3, 2))]).await;
    put(&store, [RunnerWrite::PutRunner(runner(3, 7)), RunnerWrite::PutRunner(runner(2, 7))]).await;
    assert_eq!(store.runners(9).await.expect("readable"), [runner(3, 2)]);
    // In one commit as in several.
    put(&store, [RunnerWrite::PutRunner(runner(9, 1)), RunnerWrite::PutRunner(runner(8, 2))]).await;
    assert_eq!(store.runners(9).await.expect("readable"), [runner(9, 1)]);
    let delete = || RunnerWrite::DeleteRunner { key: "k".to_owned() };
    put(&store, [delete(), RunnerWrite::PutRunner(runner(1, 5))]).await;
    assert_eq!(store.runners(9).await.expect("readable"), [runner(1, 5)]);
    put(&store, [RunnerWrite::PutRunner(runner(2, 5)), delete()]).await;
    assert_eq!(store.runners(9).await.expect("readable"), []);
    for (version, state) in [(1, StepState::Queued), (2, StepState::Leased), (2, StepState::Done)] {
        put(&store, [RunnerWrite::PutStep(step("s", state, version, 1))]).await;
    }
    assert_eq!(store.step("s").await.expect("readable"), Some(step("s", StepState::Leased, 2, 1)));
    assert_eq!(store.step("x").await.expect("readable"), None);
}

pub(super) async fn steps_are_listed_by_age_and_forgotten(store: impl Store) {
    let all = [("a", 3), ("b", 1), ("c", 2)].map(|(key, at)| step(key, StepState::Queued, 1, at));
    put(&store, all.map(RunnerWrite::PutStep)).await;
    put(&store, [RunnerWrite::PutStep(step("d", StepState::Done, 1, 0))]).await;
    let queued = async |limit| {
        let rows = store.steps_of("o", StepState::Queued, None, limit).await.expect("readable");
        rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(queued(9).await, ["b", "c", "a"]);
    assert_eq!(queued(1).await, ["b"]);
    let behind = async |after| {
        let rows = store.steps_of("o", StepState::Queued, Some(after), 9).await.expect("readable");
        rows.into_iter().map(|row| row.key).collect::<Vec<_>>()
    };
    assert_eq!(
        (behind((at(1), "b")).await, behind((at(2), "b")).await),
        (vec!["c".into(), "a".into()], vec!["c".into(), "a".into()])
    );
    put(&store, [RunnerWrite::ForgetSteps { before: at(3), state: Some(StepState::Lost), limit: 9 }]).await;
    assert!(store.step("d").await.expect("readable").is_some(), "of another state");
    assert_eq!(store.steps_of("p", StepState::Queued, None, 9).await.expect("readable"), [], "of another owner");
    put(&store, [RunnerWrite::ForgetSteps { before: at(3), state: Some(StepState::Done), limit: 2 }]).await;
    put(&store, [RunnerWrite::ForgetSteps { before: at(3), state: None, limit: 1 }]).await;
    assert_eq!((queued(9).await, store.step("d").await.expect("readable")), (vec!["c".into(), "a".into()], None));
    put(&store, [RunnerWrite::ForgetSteps { before: at(3), state: None, limit: 2 }]).await;
    assert_eq!(queued(9).await, ["a"]);
    put(&store, [RunnerWrite::DeleteStep { key: "a".to_owned() }]).await;
    assert_eq!(queued(9).await, [""; 0]);
}
