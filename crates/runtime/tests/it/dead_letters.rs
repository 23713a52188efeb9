//! What subscribers did not take: it is kept, within bounds, until somebody sends it again. This is what
//! `webhooks.durable` in the discovery document says.

use std::sync::Arc;

use baton_model::json::hex;
use baton_model::{RunId, TenantId, WebhookId, code};
use baton_runtime::{Clock, DeadLetterBounds, DeadLetterView, Options, WebhookState, WebhookView};
use baton_store::reads::*;
use baton_store::{Commit, DeathReason, Journal, Letters, MemoryStore, Pruned, Webhook, WebhookStatus, Write};
use baton_testkit::Flow;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::receiver::{Receiver, Request};
use crate::webhooks::{World, who};

const HOUR: u64 = 3_600_000;

fn acme() -> TenantId {
    TenantId::new("acme")
}

impl World {
    async fn view(&self, id: &WebhookId) -> WebhookView {
        self.host.webhook(&acme(), id).await.unwrap()
    }

    async fn letters(&self, id: &WebhookId) -> Vec<DeadLetterView> {
        self.host.dead_letters(&acme(), id, None, 100_000).await.unwrap()
    }

    /// As if it had failed for a week, and the process began anew.
    async fn given_up(self, id: &WebhookId, options: Options) -> Self {
        let failed = Webhook { status: WebhookStatus::Failed, failures: 100, ..self.webhook(id).await };
        let commit = Commit::new(self.store.generation(), vec![Write::PutWebhook(failed)]);
        self.store.submit(commit).await.unwrap();
        self.host.shutdown().await;
        Self::configured(MemoryStore::from_disk(self.store.disk()), self.clock, options).await
    }
}

fn options() -> Options {
    Options { allow_private_webhooks: true, ..Options::default() }
}

fn is_signed_with(request: &Request, secret: &str) -> bool {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{}.{}", request.headers["x-openwop-timestamp"], request.body).as_bytes());
    request.headers["x-openwop-signature"] == format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

fn one(letter: &DeadLetterView) -> Letters {
    Letters::One { run: letter.letter.run.clone(), seq: letter.letter.seq }
}

/// Fails without dead-lettering: then nothing is left of what was tried six times.
#[tokio::test]
async fn webhooks_are_durable_as_advertised() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[503; 6]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    let run = world.run("acme", &[]).await;
    world.until(60_000, async || world.undelivered().await == 0).await;
    assert_eq!(receiver.got().len(), 6, "retried by policy");
    let letters = world.letters(&webhook.id).await;
    assert_eq!(letters.len(), 1, "and kept instead of dropped");
    let (letter, expires_at) = (&letters[0].letter, letters[0].expires_at);
    assert_eq!((&letter.run, letter.kind.as_str(), letter.attempts), (&run, "run.completed", 6));
    assert_eq!((letter.reason, letter.status), (DeathReason::RetriesExhausted, Some(503)));
    assert_eq!(expires_at.millis_since(letter.at), 30 * 24 * HOUR);
    let view = world.view(&webhook.id).await;
    assert_eq!((view.dead_letters, view.waiting, view.state), (1, 0, WebhookState::Failing));
    assert_eq!(view.last_failure.and_then(|last| last.status), Some(503));

    // The receiver is mended. Asked for twice, sent once: the same event, signed anew with a secret that is new.
    let world = world.restart().await;
    let rotated = world.host.rotate_secret(&who("acme"), &webhook.id).await.unwrap();
    assert_ne!(rotated.fingerprint, webhook.fingerprint);
    world.host.resume_webhook(&who("acme"), &webhook.id).await.unwrap();
    let again = async || world.host.redeliver(&who("acme"), &webhook.id, one(&letters[0])).await;
    let (first, second) = tokio::join!(again(), again());
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    world.until(20, async || world.undelivered().await == 0).await;
    let got = receiver.got();
    assert_eq!(got.len(), 7);
    assert_eq!(got[6].body, got[0].body, "so the receiver knows it again");
    assert!(is_signed_with(&got[0], &webhook.secret) && is_signed_with(&got[6], &rotated.secret));
    assert!(world.letters(&webhook.id).await.is_empty());
    let late = again().await.unwrap_err();
    assert_eq!(late.code, code::NOT_FOUND, "it has arrived since");
}

#[tokio::test]
async fn a_subscription_that_fails_for_long_is_kept_and_resumed() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[500; 1]).await;
    let registered = world.subscribe("acme", &receiver.url, &["run.started", "run.completed"], &[]).await;
    let nearly = Webhook { failures: 99, ..world.webhook(&registered.id).await };
    world.store.submit(Commit::new(world.store.generation(), vec![Write::PutWebhook(nearly)])).await.unwrap();
    let world = world.restart().await;
    let first = world.run("acme", &[]).await;
    world.until(20, async || world.undelivered().await == 0).await;
    let view = world.view(&registered.id).await;
    assert_eq!((view.state, view.dead_letters), (WebhookState::Failed, 2), "what waited is kept");
    // What happens meanwhile is kept as well, and nobody is called.
    let second = world.run("acme", &[]).await;
    world.meanwhile(async || world.letters(&registered.id).await.len() == 4).await;
    assert_eq!((world.undelivered().await, receiver.got().len()), (0, 1));
    let refused = world.host.redeliver(&who("acme"), &registered.id, Letters::All).await.unwrap_err();
    assert_eq!(refused.code, code::SUBSCRIPTION_NOT_ACTIVE);

    // It survives a restart, and is resumed.
    let world = world.restart().await;
    assert_eq!(world.view(&registered.id).await.dead_letters, 4);
    let resumed = world.host.resume_webhook(&who("acme"), &registered.id).await.unwrap();
    assert_eq!((resumed.state, resumed.dead_letters), (WebhookState::Active, 4));
    assert_eq!(world.host.redeliver(&who("acme"), &registered.id, Letters::All).await.unwrap(), 4);
    world.until(20, async || world.undelivered().await == 0).await;
    for run in [first, second] {
        let of_run = |request: &&Request| request.json()["runId"] == json!(run);
        let mut kinds: Vec<String> = receiver.got()[1..].iter().filter(of_run).map(Request::kind).collect();
        kinds.dedup();
        assert_eq!(kinds, ["run.started", "run.completed"], "in order");
    }
    assert_eq!(receiver.got().len(), 5, "each once");
    world.run("acme", &[]).await;
    world.until_got(&receiver, 7).await;
}

/// A crash at every commit around the last failure: the event is either still to be sent or a letter, never both, never
/// neither.
#[tokio::test]
async fn a_crash_neither_loses_nor_doubles_what_is_given_up() {
    for commits in 0..16 {
        let world = World::new().await;
        let receiver = Receiver::start(&world.clock, &[500; 20]).await;
        let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
        world.run("acme", &[]).await;
        world.store.fail_after(commits);
        let (clock, end) = (Arc::clone(&world.clock), world.clock.now().plus_millis(4 * HOUR));
        world.until(60_000, async || clock.now() >= end || !world.letters(&webhook.id).await.is_empty()).await;
        // As it lies on disk: the process is gone.
        let disk = MemoryStore::from_disk(world.store.disk());
        world.store.heal();
        world.host.shutdown().await;
        let waiting = disk.deliveries_of(&webhook.id, 10).await.unwrap().len();
        let letters = disk.dead_letters(&webhook.id, None, 10).await.unwrap().len();
        assert_eq!(waiting + letters, 1, "after {commits} commits");
        let world = World::over(disk, world.clock, true).await;
        world.until(60_000, async || world.undelivered().await == 0).await;
        assert_eq!(world.letters(&webhook.id).await.len(), 1, "after {commits} commits");
    }
}

#[tokio::test]
async fn letters_are_bounded_in_number_and_age_and_what_goes_is_told() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[]).await;
    let (mut ids, mut world) = (Vec::new(), world);
    for events in [&["*"][..], &["run.completed"], &["*"]] {
        ids.push(world.subscribe("acme", &receiver.url, events, &[]).await.id);
    }
    let dead_letters = DeadLetterBounds { per_webhook: 12, per_tenant: 20, days: 30 };
    let options = || Options { dead_letters, ..options() };
    for id in &ids {
        world = world.given_up(id, options()).await;
    }
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(world.run("acme", &[]).await);
    }
    world.meanwhile(async || world.view(&ids[1]).await.dead_letters == 6).await;
    let mut events = 0;
    for run in runs {
        events += world.host.events(&acme(), &run, None, 100).await.unwrap().events.len() as u64;
    }
    world.until(60_000, async || world.view(&ids[0]).await.dead_letters_dropped > 0).await;
    world.until(60_000, async || world.view(&ids[2]).await.dead_letters_dropped > 0).await;
    let views = [world.view(&ids[0]).await, world.view(&ids[1]).await, world.view(&ids[2]).await];
    assert_eq!((views[1].dead_letters, views[1].dead_letters_dropped), (6, 0), "who has few keeps them");
    for view in [&views[0], &views[2]] {
        assert_eq!((view.dead_letters, view.dead_letters_dropped), (7, events - 7), "who has most gives way");
    }
    let kept = world.letters(&ids[0]).await;
    assert!(kept.windows(2).all(|pair| pair[0].letter.place() > pair[1].letter.place()), "newest first");

    // Nothing is a month old before a month has passed.
    let expires = kept.last().unwrap().expires_at;
    world.until(12 * HOUR, async || world.view(&ids[0]).await.dead_letters == 0).await;
    assert!(world.clock.now() >= expires);
    world.until(12 * HOUR, async || world.view(&ids[1]).await.dead_letters == 0).await;
    assert_eq!(world.view(&ids[0]).await.dead_letters_dropped, events - 7, "age is no surprise");
}

/// Ten thousand letters to a receiver that is dead: it is called as often as any other dead one, nothing is lost, nobody
/// else waits, and a second click adds nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_sent_again_to_a_receiver_that_is_still_dead() {
    const NODES: usize = 40;
    /// Two of each node and two of the run.
    const EVENTS: u64 = 2 * (NODES as u64 + 1);
    const RUNS: u64 = 10_000 / EVENTS + 1;
    let world = World::new().await;
    let (dead, well) = (Receiver::start(&world.clock, &[500; 10_000]).await, Receiver::start(&world.clock, &[]).await);
    let webhook = world.subscribe("acme", &dead.url, &["*"], &[]).await;
    world.subscribe("other", &well.url, &["run.completed"], &[]).await;
    let dead_letters = DeadLetterBounds { per_webhook: 20_000, ..DeadLetterBounds::default() };
    let world = world.given_up(&webhook.id, Options { dead_letters, ..options() }).await;
    let nodes: Vec<String> = (0..NODES).map(|number| format!("n{number}")).collect();
    let nodes: Vec<_> = nodes.iter().map(|name| (name.as_str(), "core.noop", json!({}))).collect();
    world.host.register_shared_workflow(Flow::chain("long", &nodes).build()).await.unwrap();
    let request = || baton_runtime::StartRun { workflow_id: "long".to_owned(), ..Default::default() };
    for _ in 0..RUNS {
        world.host.start_run(&who("acme"), request(), None).await.unwrap();
    }
    world.meanwhile(async || world.view(&webhook.id).await.dead_letters == RUNS * EVENTS).await;
    world.host.resume_webhook(&who("acme"), &webhook.id).await.unwrap();
    assert_eq!(world.host.redeliver(&who("acme"), &webhook.id, Letters::All).await.unwrap(), RUNS * EVENTS);
    assert_eq!(world.host.redeliver(&who("acme"), &webhook.id, Letters::All).await.unwrap(), 0, "a second click");
    world.until(100, async || world.view(&webhook.id).await.state == WebhookState::Failing).await;
    assert_eq!(dead.got().len(), 4, "and then it is left alone");
    for count in 1..=3 {
        world.run("other", &[]).await;
        world.until(20, async || well.got().len() == count).await;
    }
    let view = world.view(&webhook.id).await;
    assert_eq!((view.waiting, view.dead_letters, view.dead_letters_dropped), (RUNS * EVENTS, 0, 0), "nothing is lost");
}

/// A thousand subscriptions that are all given up, and a tenant that goes on: what is kept of it stays bounded while it goes
/// on, and another tenant is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_dead_subscriptions_stay_within_their_tenants_bounds() {
    const SUBSCRIBERS: u64 = 1000;
    const KEPT: u64 = 3_000;
    /// How much there may be more for a moment, before everything is counted; and one more run.
    const SLACK: u64 = 5_000 + SUBSCRIBERS;
    let world = World::new().await;
    let well = Receiver::start(&world.clock, &[]).await;
    let mut failed = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let id = world.subscribe("acme", "http://127.0.0.1:9/", &["run.completed"], &[]).await.id;
        failed.push(Write::PutWebhook(Webhook { status: WebhookStatus::Failed, ..world.webhook(&id).await }));
    }
    world.subscribe("other", &well.url, &["run.completed"], &[]).await;
    world.store.submit(Commit::new(world.store.generation(), failed)).await.unwrap();
    world.host.shutdown().await;
    let dead_letters = DeadLetterBounds { per_tenant: KEPT, ..DeadLetterBounds::default() };
    let disk = MemoryStore::from_disk(world.store.disk());
    let world = World::configured(disk, world.clock, Options { dead_letters, ..options() }).await;
    let count = async || {
        let loads = world.store.webhook_loads(&acme(), None).await.unwrap();
        loads.iter().map(|load| load.letters).sum::<u64>()
    };
    for runs in 1..=20 {
        world.run("acme", &[]).await;
        world.run("other", &[]).await;
        world.until(10, async || well.got().len() == runs).await;
        // Counting is a task of its own; it must not fall behind for good.
        world.meanwhile(async || count().await <= KEPT + SLACK).await;
    }
    world.until(60_000, async || count().await <= KEPT).await;
    let dropped = world.host.webhooks(&acme(), None, 2000).await.unwrap();
    let (kept, dropped) = dropped
        .iter()
        .fold((0, 0), |(kept, dropped), view| (kept + view.dead_letters, dropped + view.dead_letters_dropped));
    assert_eq!(kept + dropped, 20 * SUBSCRIBERS, "all of it is told");
}

/// A receiver that answers well every other time gets everything, and nothing is given up.
#[tokio::test]
async fn a_receiver_that_flaps_gets_everything() {
    let world = World::new().await;
    let answers: Vec<u16> = (0..200).map(|number| if number % 2 == 0 { 500 } else { 200 }).collect();
    let receiver = Receiver::start(&world.clock, &answers).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    let mut runs = Vec::new();
    for _ in 0..10 {
        runs.push(world.run("acme", &[]).await.to_string());
    }
    world.until(500, async || world.undelivered().await == 0).await;
    let got = receiver.got();
    let mut taken: Vec<String> =
        got.iter().skip(1).step_by(2).map(|request| request.json()["runId"].as_str().unwrap().to_owned()).collect();
    taken.sort();
    runs.sort();
    assert_eq!(taken, runs, "each was taken once");
    assert_eq!(world.view(&webhook.id).await.dead_letters, 0);
}

#[tokio::test]
async fn another_tenants_subscription_is_not_there() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    let world = world.given_up(&webhook.id, options()).await;
    world.run("acme", &[]).await;
    world.meanwhile(async || world.letters(&webhook.id).await.len() == 1).await;
    let (host, stranger, theirs) = (&world.host, who("other"), TenantId::new("other"));
    let letter = one(&world.letters(&webhook.id).await[0]);
    for id in [&webhook.id, &WebhookId::new("wh_nobody")] {
        for code in [
            host.webhook(&theirs, id).await.unwrap_err().code,
            host.dead_letters(&theirs, id, None, 9).await.unwrap_err().code,
            host.redeliver(&stranger, id, Letters::All).await.unwrap_err().code,
            host.redeliver(&stranger, id, letter.clone()).await.unwrap_err().code,
            host.forget_letters(&stranger, id, Letters::All).await.unwrap_err().code,
            host.resume_webhook(&stranger, id).await.unwrap_err().code,
            host.rotate_secret(&stranger, id).await.unwrap_err().code,
        ] {
            assert_eq!(code, code::SUBSCRIPTION_NOT_FOUND);
        }
    }
    assert_eq!(host.webhooks(&theirs, None, 9).await.unwrap(), []);
    let view = world.view(&webhook.id).await;
    assert_eq!((view.dead_letters, view.state), (1, WebhookState::Failed), "nothing has changed");
    assert!(view.url.ends_with("/hook?...") && !format!("{view:?}").contains(&webhook.secret), "{view:?}");
    // With the subscription its letters go.
    host.delete_webhook(&who("acme"), &webhook.id).await.unwrap();
    assert_eq!(world.store.dead_letters(&webhook.id, None, 9).await.unwrap(), []);
}

/// A letter holds nothing of its event. Pruned with its log, it stays as a note of what was missed.
#[tokio::test]
async fn a_letter_of_a_pruned_log_stays_and_is_not_sent() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    let world = world.given_up(&webhook.id, options()).await;
    let (gone, kept) = (world.run("acme", &[]).await, world.run("acme", &[]).await);
    world.meanwhile(async || world.letters(&webhook.id).await.len() == 2).await;
    let pruned = Pruned { at: world.clock.now(), log: true };
    let prune = Write::Prune { run: gone.clone(), pruned };
    world.store.submit(Commit::new(world.store.generation(), vec![prune])).await.unwrap();
    world.host.resume_webhook(&who("acme"), &webhook.id).await.unwrap();
    let of = |run: &RunId, letters: &[DeadLetterView]| letters.iter().find(|view| view.letter.run == *run).map(one);
    let letters = world.letters(&webhook.id).await;
    let error = world.host.redeliver(&who("acme"), &webhook.id, of(&gone, &letters).unwrap()).await.unwrap_err();
    assert_eq!(error.code, code::RUN_PRUNED);
    world.host.redeliver(&who("acme"), &webhook.id, Letters::All).await.unwrap();
    world.until_got(&receiver, 1).await;
    assert_eq!(receiver.got()[0].json()["runId"], json!(kept));
    let left = world.letters(&webhook.id).await;
    assert!(left.len() == 1 && of(&gone, &left).is_some());
    world.host.forget_letters(&who("acme"), &webhook.id, of(&gone, &left).unwrap()).await.unwrap();
    assert!(world.letters(&webhook.id).await.is_empty());
}
