//! Dead letters, and what their owners may ask about subscriptions.

use baton_model::{RunId, TenantId, Timestamp, WebhookId};

use super::sample::{at, row, start, write};
use super::shared::Hosts;
use crate::{
    DeadLetter, DeadLetterPlace, DeadLetterWrite, DeathReason, Delivery, Letters, Pruned, Store, Webhook, WebhookLoad,
    WebhookStatus, Write,
};

fn hook(id: &str, tenant: &str) -> Webhook {
    Webhook {
        id: WebhookId::new(id),
        tenant: TenantId::new(tenant),
        url: "https://example.test/hook".to_owned(),
        events: vec!["*".to_owned()],
        tags: Vec::new(),
        secret: "s3cret".to_owned(),
        status: WebhookStatus::Active,
        consecutive_failures: 0,
        failures: 0,
        window_start: at(0),
        open_until: None,
        created_at: at(0),
        last_failure: None,
        letters_dropped: 0,
    }
}

fn dead(webhook: &str, run: &str, seq: u64, micros: i64) -> DeadLetter {
    DeadLetter {
        webhook: WebhookId::new(webhook),
        run: RunId::new(run),
        seq,
        kind: "node.started".to_owned(),
        attempts: 6,
        reason: DeathReason::RetriesExhausted,
        status: Some(503),
        at: at(micros),
    }
}

fn waiting(webhook: &str, run: &str, seq: u64, due: i64) -> Write {
    let (webhook, run) = (WebhookId::new(webhook), RunId::new(run));
    Write::PutDelivery(Delivery { webhook, run, seq, attempts: 3, due_at: at(due) })
}

fn put(letter: &DeadLetter) -> Write {
    Write::DeadLetters(DeadLetterWrite::Put(letter.clone()))
}

fn bury(webhook: &str, keep: u64) -> Write {
    let reason = DeathReason::BacklogFull;
    Write::DeadLetters(DeadLetterWrite::Bury { webhook: WebhookId::new(webhook), keep, reason, at: at(77) })
}

fn redeliver(webhook: &str, which: Letters) -> Write {
    Write::DeadLetters(DeadLetterWrite::Redeliver { webhook: WebhookId::new(webhook), which, due_at: at(9) })
}

fn trim(webhook: &str, keep: u64) -> Write {
    Write::DeadLetters(DeadLetterWrite::Trim { webhook: WebhookId::new(webhook), keep })
}

fn one(run: &str, seq: u64) -> Letters {
    Letters::One { run: RunId::new(run), seq }
}

async fn letters(store: &impl Store, webhook: &str, before: Option<&DeadLetterPlace>, limit: usize) -> Vec<DeadLetter> {
    store.dead_letters(&WebhookId::new(webhook), before, limit).await.expect("readable")
}

async fn places(store: &impl Store, webhook: &str) -> Vec<(String, u64)> {
    let found = letters(store, webhook, None, 100).await;
    found.into_iter().map(|letter| (letter.run.to_string(), letter.seq)).collect()
}

async fn queued(store: &impl Store, webhook: &str) -> Vec<(String, u64, u32)> {
    let found = store.deliveries_of(&WebhookId::new(webhook), 100).await.expect("readable");
    found.into_iter().map(|delivery| (delivery.run.to_string(), delivery.seq, delivery.attempts)).collect()
}

async fn loads(store: &impl Store, tenant: &str, only: Option<&str>) -> Vec<(String, u64, u64)> {
    let only = only.map(WebhookId::new);
    let found = store.webhook_loads(&TenantId::new(tenant), only.as_ref()).await.expect("readable");
    let plain = |load: WebhookLoad| (load.webhook.to_string(), load.letters, load.waiting);
    found.into_iter().map(plain).collect()
}

async fn dropped(store: &impl Store, webhook: &str) -> u64 {
    let found = store.webhook(&TenantId::new("acme"), &WebhookId::new(webhook)).await.expect("readable");
    found.map_or(0, |webhook| webhook.letters_dropped)
}

fn at_run(run: &str, seqs: impl IntoIterator<Item = u64>) -> Vec<(String, u64)> {
    seqs.into_iter().map(|seq| (run.to_owned(), seq)).collect()
}

pub(super) async fn letters_are_listed_newest_first(store: impl Store) {
    // Their age first; of one instant, the run and the place in its log.
    let all = [dead("wh", "run_b", 4, 30), dead("wh", "run_a", 9, 30), dead("wh", "run_a", 1, 30), {
        let (reason, status, attempts) = (DeathReason::EventGone, None, u32::MAX);
        DeadLetter { reason, status, attempts, kind: String::new(), ..dead("wh", "run_a", 7, 20) }
    }];
    write(&store, all.iter().rev().map(put).collect()).await;
    write(&store, vec![put(&dead("other", "run_a", 0, 99))]).await;
    assert_eq!(letters(&store, "wh", None, 100).await, all);
    assert_eq!(letters(&store, "wh", None, 2).await, all[..2]);
    for (index, letter) in all.iter().enumerate() {
        assert_eq!(letters(&store, "wh", Some(&letter.place()), 100).await, all[index + 1..], "after {index}");
    }
    assert_eq!(letters(&store, "none", None, 100).await, []);
    let get = async |webhook: &str, seq| {
        store.dead_letter(&WebhookId::new(webhook), &RunId::new("run_a"), seq).await.expect("readable")
    };
    assert_eq!((get("wh", 9).await, get("wh", 2).await), (Some(all[1].clone()), None));
    assert_eq!(get("nobody", 9).await, None);
    assert_eq!(store.oldest_dead_letter().await.expect("readable"), Some(at(20)));
    let again = DeadLetter { attempts: 1, reason: DeathReason::SubscriptionFailed, ..dead("wh", "run_a", 7, 40) };
    write(&store, vec![put(&again)]).await;
    assert_eq!(letters(&store, "wh", None, 1).await, [again], "one for each event");
    assert_eq!(letters(&store, "wh", None, 9).await.len(), 4);
}

pub(super) async fn what_waits_is_buried_earliest_first(store: impl Store) {
    start(&store, row("run_a"), 4).await;
    let rows = [(0, 30), (1, 10), (2, 40), (3, 20)];
    write(&store, rows.map(|(seq, due)| waiting("wh", "run_a", seq, due)).to_vec()).await;
    write(&store, vec![waiting("other", "run_a", 0, 5), waiting("wh", "run_a", 8, 15)]).await;
    write(&store, vec![bury("wh", 5), bury("wh", u64::MAX)]).await;
    assert_eq!(queued(&store, "wh").await.len(), 5, "there is room for all of them");
    write(&store, vec![bury("wh", 2)]).await;
    assert_eq!(queued(&store, "wh").await, [("run_a".to_owned(), 0, 3), ("run_a".to_owned(), 2, 3)]);
    assert_eq!(queued(&store, "other").await.len(), 1);
    let found = letters(&store, "wh", None, 9).await;
    let buried = |run: &str, seq, kind: &str| DeadLetter {
        kind: kind.to_owned(),
        attempts: 3,
        reason: DeathReason::BacklogFull,
        status: None,
        ..dead("wh", run, seq, 77)
    };
    let expected = [buried("run_a", 8, ""), buried("run_a", 3, "node.started"), buried("run_a", 1, "node.started")];
    assert_eq!(found, expected, "with what they are about, where that is known");
    // What is queued before it in the same commit goes too, and what comes after it does not.
    let more = vec![waiting("wh", "run_a", 1, 0), bury("wh", 0), waiting("wh", "run_a", 3, 0)];
    write(&store, more).await;
    assert_eq!(queued(&store, "wh").await, [("run_a".to_owned(), 3, 3)]);
    assert_eq!(letters(&store, "wh", None, 9).await.len(), 5);
}

pub(super) async fn letters_are_queued_again_once(store: impl Store) {
    start(&store, row("run_a"), 4).await;
    start(&store, row("run_b"), 2).await;
    let all = [dead("wh", "run_a", 0, 1), dead("wh", "run_a", 3, 2), dead("wh", "run_b", 1, 3)];
    write(&store, all.iter().map(put).chain([put(&dead("other", "run_a", 0, 1))]).collect()).await;
    write(&store, vec![redeliver("wh", one("run_a", 3)), redeliver("wh", one("run_a", 3))]).await;
    write(&store, vec![redeliver("wh", one("run_a", 3)), redeliver("wh", one("run_x", 3))]).await;
    assert_eq!(queued(&store, "wh").await, [("run_a".to_owned(), 3, 0)], "as if it had never been tried");
    assert_eq!(places(&store, "wh").await, [("run_b".to_owned(), 1), ("run_a".to_owned(), 0)]);
    let due = store.delivery(&WebhookId::new("wh"), &RunId::new("run_a"), 3).await.expect("readable");
    assert_eq!(due.map(|delivery| delivery.due_at), Some(at(9)));
    assert_eq!(store.delivery(&WebhookId::new("wh"), &RunId::new("run_a"), 0).await.expect("readable"), None);

    // What is queued as well is not set back, and there is nothing to send of a log that is gone.
    let pruned = Pruned { at: at(5), log: true };
    write(&store, vec![waiting("wh", "run_a", 0, 50)]).await;
    write(&store, vec![Write::Prune { run: RunId::new("run_b"), pruned }]).await;
    write(&store, vec![redeliver("wh", Letters::All)]).await;
    let expected = [("run_a".to_owned(), 3, 0), ("run_a".to_owned(), 0, 3)];
    assert_eq!(queued(&store, "wh").await, expected);
    assert_eq!(places(&store, "wh").await, [("run_b".to_owned(), 1)], "it stays as a note of what was missed");
    assert_eq!(places(&store, "other").await.len(), 1, "another's are another's");

    // Put and queued again in one commit, and the other way round.
    let back = dead("wh", "run_a", 2, 8);
    write(&store, vec![put(&back), redeliver("wh", Letters::All)]).await;
    assert_eq!((queued(&store, "wh").await.len(), places(&store, "wh").await.len()), (3, 1));
    let forget = Write::DeleteDelivery { webhook: back.webhook.clone(), run: back.run.clone(), seq: back.seq };
    write(&store, vec![redeliver("wh", Letters::All), forget, put(&back)]).await;
    assert_eq!(queued(&store, "wh").await.len(), 2);
    assert_eq!(places(&store, "wh").await, [("run_a".to_owned(), 2), ("run_b".to_owned(), 1)]);
    let drop_one = |which| Write::DeadLetters(DeadLetterWrite::Forget { webhook: WebhookId::new("wh"), which });
    write(&store, vec![drop_one(one("run_a", 2)), drop_one(one("run_a", 99))]).await;
    assert_eq!(places(&store, "wh").await, [("run_b".to_owned(), 1)]);
    write(&store, vec![drop_one(Letters::All)]).await;
    assert_eq!((places(&store, "wh").await.len(), places(&store, "other").await.len()), (0, 1));
}

pub(super) async fn letters_are_trimmed_and_counted(store: impl Store) {
    let hooks = ["wh", "wide"].map(|id| Write::PutWebhook(hook(id, "acme")));
    write(&store, hooks.to_vec()).await;
    let letter = |webhook: &str, seq: u64| put(&dead(webhook, "run_a", seq, seq.cast_signed()));
    write(&store, (0..10).flat_map(|seq| [letter("wh", seq), letter("wide", seq)]).collect()).await;
    write(&store, vec![trim("wh", 10), trim("wh", u64::MAX), trim("nobody", 0)]).await;
    assert_eq!((places(&store, "wh").await.len(), dropped(&store, "wh").await), (10, 0));
    write(&store, vec![trim("wh", 7), letter("wh", 10), trim("wh", 4)]).await;
    assert_eq!(places(&store, "wh").await, at_run("run_a", (7..=10).rev()), "the newest stay");
    assert_eq!((dropped(&store, "wh").await, dropped(&store, "wide").await), (7, 0));
    write(&store, vec![trim("wh", 0)]).await;
    assert_eq!((places(&store, "wh").await.len(), dropped(&store, "wh").await), (0, 11));
    assert_eq!(places(&store, "wide").await.len(), 10);
}

pub(super) async fn letters_go_with_their_subscription_and_with_age(store: impl Store) {
    write(&store, ["wh", "kept"].map(|id| Write::PutWebhook(hook(id, "acme"))).to_vec()).await;
    let letter = |webhook: &str, seq: u64| put(&dead(webhook, "run_a", seq, seq.cast_signed()));
    write(&store, (0..5).flat_map(|seq| [letter("wh", seq), letter("kept", seq)]).collect()).await;
    // One that is put again after the deletion would be nobody's; adapters may keep it or not.
    write(&store, vec![letter("wh", 9), Write::DeleteWebhook(WebhookId::new("wh"))]).await;
    assert_eq!((places(&store, "wh").await.len(), places(&store, "kept").await.len()), (0, 5));
    let expire = |micros, limit| Write::DeadLetters(DeadLetterWrite::Expire { before: at(micros), limit });
    write(&store, vec![expire(3, 2)]).await;
    assert_eq!(places(&store, "kept").await, at_run("run_a", [4, 3, 2]), "at most so many, oldest first");
    write(&store, vec![expire(3, 100)]).await;
    assert_eq!(places(&store, "kept").await, at_run("run_a", [4, 3]), "what is of that instant stays");
    assert_eq!(dropped(&store, "kept").await, 0, "age is no surprise, so it is not counted");
    write(
        &store,
        vec![Write::DeadLetters(DeadLetterWrite::Expire { before: Timestamp::from_micros(i64::MAX), limit: 9 })],
    )
    .await;
    assert_eq!(store.oldest_dead_letter().await.expect("readable"), None);
}

pub(super) async fn subscriptions_of_a_tenant_are_paged(store: impl Store) {
    for (id, tenant) in [("b", "acme"), ("a", "acme"), ("c", "other"), ("d", "acme")] {
        write(&store, vec![Write::PutWebhook(hook(id, tenant))]).await;
    }
    let of = async |tenant: &str, after: Option<&str>, limit| {
        let after = after.map(WebhookId::new);
        let page = store.webhooks_of(&TenantId::new(tenant), after.as_ref(), limit).await.expect("readable");
        page.into_iter().map(|webhook| webhook.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of("acme", None, 10).await, ["a", "b", "d"]);
    assert_eq!(
        (of("acme", None, 2).await, of("acme", Some("b"), 2).await),
        (vec!["a".into(), "b".into()], vec!["d".into()])
    );
    assert_eq!(of("other", None, 10).await, ["c"]);
    assert_eq!(of("nobody", None, 10).await, [""; 0]);
    write(&store, vec![put(&dead("a", "run_a", 0, 0)), put(&dead("a", "run_a", 1, 0)), waiting("d", "run_a", 0, 0)])
        .await;
    let load = |id: &str, letters, waiting| (id.to_owned(), letters, waiting);
    assert_eq!(loads(&store, "acme", None).await, [load("a", 2, 0), load("b", 0, 0), load("d", 0, 1)]);
    assert_eq!(loads(&store, "acme", Some("a")).await, [load("a", 2, 0)]);
    assert_eq!(loads(&store, "other", Some("a")).await, []);
}

pub(super) async fn each_host_buries_what_it_owns(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    write(&a, vec![Write::PutWebhook(hook("wh", "acme"))]).await;
    start(&a, row("run_a"), 3).await;
    start(&b, row("run_b"), 3).await;
    write(&a, (0..3).map(|seq| waiting("wh", "run_a", seq, seq.cast_signed())).collect()).await;
    write(&b, (0..3).map(|seq| waiting("wh", "run_b", seq, seq.cast_signed())).collect()).await;
    write(&a, vec![bury("wh", 1)]).await;
    assert_eq!((queued(&a, "wh").await.len(), queued(&b, "wh").await.len()), (1, 3));
    assert_eq!(places(&b, "wh").await, at_run("run_a", [1, 0]), "everybody sees the letters");
    assert_eq!(loads(&b, "acme", None).await, [("wh".to_owned(), 2, 4)], "and all that waits");
}

pub(super) async fn anybody_queues_anybodys_letters_again(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    write(&a, vec![Write::PutWebhook(hook("wh", "acme"))]).await;
    start(&a, row("run_a"), 3).await;
    write(&a, (0..3).map(|seq| put(&dead("wh", "run_a", seq, seq.cast_signed()))).collect()).await;
    write(&b, vec![trim("wh", 2), redeliver("wh", one("run_a", 2)), redeliver("wh", Letters::All)]).await;
    assert_eq!(queued(&b, "wh").await, [], "whose run it is sends it");
    assert_eq!(queued(&a, "wh").await, [1, 2].map(|seq| ("run_a".to_owned(), seq, 0)));
    assert_eq!((places(&a, "wh").await.len(), dropped(&a, "wh").await), (0, 1));
}
