//! Webhooks end to end: a real host over a store without a disk, a subscriber on loopback, time in the test's hands.

use crate::receiver;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_model::{Principal, RunId, Scopes, TenantId, WebhookId, code, json::hex};
use baton_runtime::{Clock, Host, NewWebhook, Options, RandomIds, RegisteredWebhook, StartRun};
use baton_store::reads::*;
use baton_store::{Commit, Journal, MemoryStore, Store, Webhook, WebhookStatus, Write};
use baton_testkit::{Flow, SimClock};
use hmac::{Hmac, KeyInit, Mac};
use receiver::{Receiver, Request};
use serde_json::json;
use sha2::Sha256;

pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<SimClock>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::over(MemoryStore::new(), Arc::new(SimClock::default()), true).await
    }

    pub(crate) async fn over(store: MemoryStore, clock: Arc<SimClock>, allow_private_webhooks: bool) -> Self {
        Self::configured(store, clock, Options { allow_private_webhooks, ..Options::default() }).await
    }

    pub(crate) async fn configured(store: MemoryStore, clock: Arc<SimClock>, options: Options) -> Self {
        let store = Arc::new(store);
        let time = Arc::clone(&clock) as Arc<dyn Clock>;
        let host = Host::open_with(Arc::clone(&store) as Arc<dyn Store>, options, time, Arc::new(RandomIds));
        let host = host.await.unwrap();
        let flow = Flow::chain("hello", &[("a", "core.noop", json!({}))]).build();
        host.register_shared_workflow(flow).await.unwrap();
        Self { host, store, clock }
    }

    /// The process ends and another one opens what it left on disk.
    pub(crate) async fn restart(self) -> Self {
        self.host.shutdown().await;
        Self::over(MemoryStore::from_disk(self.store.disk()), self.clock, true).await
    }

    pub(crate) async fn subscribe(&self, tenant: &str, url: &str, events: &[&str], tags: &[&str]) -> RegisteredWebhook {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let webhook = NewWebhook { url: url.to_owned(), events: list(events), tags: list(tags) };
        self.host.register_webhook(&who(tenant), webhook).await.unwrap()
    }

    pub(crate) async fn run(&self, tenant: &str, tags: &[&str]) -> RunId {
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        let request = StartRun { workflow_id: "hello".to_owned(), tags, ..StartRun::default() };
        self.host.start_run(&who(tenant), request, None).await.unwrap().run_id
    }

    pub(crate) async fn webhook(&self, id: &WebhookId) -> Webhook {
        self.store.webhook(&TenantId::new("acme"), id).await.unwrap().expect("a subscription")
    }

    pub(crate) async fn undelivered(&self) -> usize {
        self.store.deliveries(self.clock.now().plus_millis(u64::MAX), 1000).await.unwrap().len()
    }

    /// Lets time pass, `step` by `step`, until `done`.
    pub(crate) async fn until(&self, step: u64, mut done: impl AsyncFnMut() -> bool) {
        let patience = async {
            while !done().await {
                self.clock.advance(step);
                // What happens now happens on sockets, which only real time moves.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), patience).await.expect("it happens eventually");
    }

    /// Waits until `done` though no time passes.
    pub(crate) async fn meanwhile(&self, mut done: impl AsyncFnMut() -> bool) {
        let patience = async {
            while !done().await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), patience).await.expect("it happens eventually");
    }

    pub(crate) async fn until_got(&self, receiver: &Receiver, count: usize) {
        self.until(20, async || receiver.got().len() >= count).await;
    }
}

pub(crate) fn who(tenant: &str) -> Principal {
    Principal {
        tenant: TenantId::new(tenant),
        subject: "test".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: false,
    }
}

#[tokio::test]
async fn a_completed_run_is_delivered_and_signed() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    let run = world.run("acme", &[]).await;
    world.until_got(&receiver, 1).await;

    let request = receiver.got().remove(0);
    assert_eq!(request.line, "POST /hook?key=1 HTTP/1.1");
    let header = |name: &str| request.headers[name].clone();
    assert_eq!(header("content-type"), "application/json");
    assert_eq!(header("user-agent"), format!("openwop-webhook-dispatcher/{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(header("x-openwop-webhook-id"), webhook.id.as_str());
    assert_eq!(header("x-openwop-event-type"), "run.completed");
    assert_eq!(header("x-openwop-signature-algorithm"), "v1");
    for name in ["webhook-id", "event-type", "timestamp", "signature", "signature-algorithm"] {
        assert_eq!(header(&format!("x-openwop-{name}")), header(&format!("openwop-{name}")), "{name}");
    }
    let sent_at: i64 = header("x-openwop-timestamp").parse().unwrap();
    assert!((request.at.as_millis() / 1000 - sent_at).abs() <= 5, "seconds since the epoch");
    let mut mac = Hmac::<Sha256>::new_from_slice(webhook.secret.as_bytes()).unwrap();
    mac.update(format!("{sent_at}.{}", request.body).as_bytes());
    assert_eq!(header("x-openwop-signature"), format!("sha256={}", hex(&mac.finalize().into_bytes())));

    let page = world.host.events(&TenantId::new("acme"), &run, None, 100).await.unwrap();
    let event: serde_json::Value = serde_json::from_str(&page.events.last().unwrap().body).unwrap();
    let expected = json!({"type": "run.completed", "runId": run, "workspaceId": "acme", "event": event});
    assert_eq!(request.json(), expected);
    world.until(20, async || world.undelivered().await == 0).await;
}

#[tokio::test]
async fn events_tags_and_tenants_filter() {
    let world = World::new().await;
    let (all, some, foreign) = (
        Receiver::start(&world.clock, &[]).await,
        Receiver::start(&world.clock, &[]).await,
        Receiver::start(&world.clock, &[]).await,
    );
    world.subscribe("acme", &all.url, &["*"], &[]).await;
    world.subscribe("acme", &some.url, &["run.started", "run.completed"], &["blue", "green"]).await;
    world.subscribe("other", &foreign.url, &["*"], &[]).await;
    let plain = world.run("acme", &["red"]).await;
    let tagged = world.run("acme", &["green", "red"]).await;
    let theirs = world.run("other", &["green"]).await;
    world.until(20, async || world.undelivered().await == 0).await;

    let kinds = |receiver: &Receiver, run: &RunId| -> Vec<String> {
        let of_run = |request: &receiver::Request| request.json()["runId"] == json!(run);
        receiver.got().iter().filter(|request| of_run(request)).map(receiver::Request::kind).collect()
    };
    let log = |tenant: &'static str, run: RunId| {
        let host = world.host.clone();
        async move {
            let page = host.events(&TenantId::new(tenant), &run, None, 100).await.unwrap();
            page.events.iter().map(|event| event.kind.to_string()).collect::<Vec<_>>()
        }
    };
    assert_eq!(kinds(&all, &plain), log("acme", plain.clone()).await, "everything, in the order of the log");
    assert_eq!(kinds(&all, &tagged), log("acme", tagged.clone()).await);
    assert_eq!(kinds(&some, &tagged), ["run.started", "run.completed"]);
    assert_eq!(some.got().len(), 2, "no other run and no other type");
    assert_eq!(kinds(&foreign, &theirs), log("other", theirs.clone()).await);
    assert_eq!(foreign.got().len(), kinds(&foreign, &theirs).len(), "nothing of another tenant");
    assert!(kinds(&all, &theirs).is_empty());
}

#[tokio::test]
async fn a_failure_is_retried_with_the_same_body_and_later_events_wait_for_it() {
    let world = World::new().await;
    // A redirect is a failure too, and is not followed.
    let receiver = Receiver::start(&world.clock, &[500, 302]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.started", "run.completed"], &[]).await;
    world.run("acme", &[]).await;
    world.until(100, async || world.undelivered().await == 0).await;

    let got = receiver.got();
    assert!(got.iter().all(|request| request.line.starts_with("POST /hook")), "{got:?}");
    let kinds: Vec<String> = got.iter().map(receiver::Request::kind).collect();
    assert_eq!(kinds, ["run.started", "run.started", "run.started", "run.completed"]);
    assert_eq!(got[0].body, got[1].body);
    assert_eq!(got[0].body, got[2].body);
    assert!(got[1].at.millis_since(got[0].at) >= 1_000);
    assert!(got[2].at.millis_since(got[1].at) >= 5_000);
    let webhook = world.webhook(&webhook.id).await;
    assert_eq!((webhook.status, webhook.consecutive_failures, webhook.failures), (WebhookStatus::Active, 0, 2));
}

#[tokio::test]
async fn four_failures_open_the_circuit_and_a_probe_closes_it() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[500, 500, 500, 500, 503]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    for _ in 0..3 {
        world.run("acme", &[]).await;
    }
    world.until(100, async || world.webhook(&webhook.id).await.status == WebhookStatus::Open).await;
    assert_eq!(receiver.got().len(), 4);
    // Queued while the circuit is open.
    world.run("acme", &[]).await;
    world.until(60_000, async || world.undelivered().await == 0).await;

    let got = receiver.got();
    assert_eq!(got.len(), 4 + 1 + 4, "four failures, a failed probe, then all four events");
    assert!(got[4].at.millis_since(got[3].at) >= 3_600_000, "left alone for an hour");
    assert!(got[5].at.millis_since(got[4].at) >= 3_600_000, "one probe, then left alone again");
    let webhook = world.webhook(&webhook.id).await;
    assert_eq!((webhook.status, webhook.consecutive_failures, webhook.open_until), (WebhookStatus::Active, 0, None));
}

#[tokio::test]
async fn what_was_queued_survives_a_restart() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[500]).await;
    world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    let run = world.run("acme", &[]).await;
    world.until_got(&receiver, 1).await;
    let world = world.restart().await;
    world.until(20, async || world.undelivered().await == 0).await;
    let got = receiver.got();
    assert!(got.len() >= 2);
    assert_eq!(got[0].body, got[1].body);
    assert_eq!(got[1].json()["runId"], json!(run));
}

#[tokio::test]
async fn an_answer_that_could_not_be_noted_is_asked_for_again_once_the_disk_is_back() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[]).await;
    world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    world.run("acme", &[]).await;
    world.store.fail_after(0);
    world.until(20, async || !world.host.readiness().ready).await;
    let passed = world.clock.now().plus_millis(10_000);
    world.until(100, async || world.clock.now() >= passed).await;
    assert_eq!(receiver.got().len(), 1, "nobody is called while nothing can be noted");
    world.store.heal();
    world.until(100, async || world.undelivered().await == 0).await;
    let got = receiver.got();
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].body, got[1].body);
}

#[tokio::test]
async fn a_deleted_subscription_stays_deleted() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[500; 10]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["*"], &[]).await;
    world.run("acme", &[]).await;
    world.until_got(&receiver, 1).await;
    let foreign = world.host.delete_webhook(&who("other"), &webhook.id).await.unwrap_err();
    assert_eq!(foreign.code, code::SUBSCRIPTION_NOT_FOUND);
    world.host.delete_webhook(&who("acme"), &webhook.id).await.unwrap();
    // An attempt may have been under way; whatever it notes must not bring anything back. What a later subscriber
    // gets shows that deliveries have gone on meanwhile.
    let next = Receiver::start(&world.clock, &[]).await;
    let kept = world.subscribe("acme", &next.url, &["run.completed"], &[]).await;
    for count in 1..=3 {
        world.run("acme", &[]).await;
        world.until_got(&next, count).await;
    }
    world.until(1000, async || world.undelivered().await == 0).await;
    let left: Vec<WebhookId> = world.store.webhooks().await.unwrap().into_iter().map(|webhook| webhook.id).collect();
    assert_eq!(left, [kept.id]);
    assert!(receiver.got().len() <= 2, "at most the attempt that was under way");
}

#[tokio::test]
async fn an_address_that_leads_inwards_is_refused_at_registration() {
    let world = World::over(MemoryStore::new(), Arc::new(SimClock::default()), false).await;
    for (url, expected) in [
        ("http://hooks.example.com", code::WEBHOOK_URL_REJECTED),
        ("https://127.0.0.1/x", code::WEBHOOK_URL_REJECTED),
        ("https://metadata.google.internal", code::WEBHOOK_URL_REJECTED),
        ("not an address", code::VALIDATION_ERROR),
    ] {
        let webhook = NewWebhook { url: url.to_owned(), events: vec!["*".to_owned()], tags: Vec::new() };
        let error = world.host.register_webhook(&who("acme"), webhook).await.unwrap_err();
        assert_eq!(error.code, expected, "{url}");
    }
    assert!(world.store.webhooks().await.unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_leads_inwards_is_refused_again_at_delivery() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.completed"], &[]).await;
    world.host.shutdown().await;
    // The next process is not a test process any more: what was registered before is not trusted.
    let world = World::over(MemoryStore::from_disk(world.store.disk()), world.clock, false).await;
    world.run("acme", &[]).await;
    world.until(20, async || world.webhook(&webhook.id).await.failures > 0).await;
    assert!(receiver.got().is_empty());
}

/// As many as there are lanes, all of them slow to answer though they answer well, and a queue for each.
#[tokio::test]
async fn slow_subscribers_of_some_tenants_do_not_keep_another_waiting() {
    const LANES: usize = 64;
    const RUNS: usize = 4;
    let world = World::new().await;
    let (slow, quick) = (Receiver::slow(&world.clock, 2000).await, Receiver::start(&world.clock, &[]).await);
    for _ in 0..LANES / 2 {
        world.subscribe("acme", &slow.url, &["run.completed"], &[]).await;
        world.subscribe("other", &slow.url, &["run.completed"], &[]).await;
    }
    // Two that answer at once, the first beside slow ones of its own tenant.
    let near = Receiver::start(&world.clock, &[]).await;
    world.subscribe("acme", &near.url, &["run.completed"], &[]).await;
    world.subscribe("third", &quick.url, &["run.completed"], &[]).await;
    world.run("third", &[]).await;
    world.until(20, async || quick.got().len() == 1).await;
    for _ in 0..RUNS {
        world.run("acme", &[]).await;
        world.run("other", &[]).await;
    }
    // A quarter of the lanes is for those who are known to answer.
    world.meanwhile(async || slow.got().len() >= LANES / 2).await;
    for count in 2..=5 {
        world.run("third", &[]).await;
        world.meanwhile(async || quick.got().len() == count).await;
    }
    assert!(slow.got().len() <= LANES * 3 / 4, "{}", slow.got().len());
    // Everybody's first call is answered. From then on they are known to be slow, and half of the lanes are not for them.
    world.until(20, async || near.got().len() == RUNS).await;
    for count in 6..=10 {
        world.run("third", &[]).await;
        world.run("acme", &[]).await;
        world.meanwhile(async || quick.got().len() == count && near.got().len() == RUNS + count - 5).await;
    }
    let all = LANES * RUNS + LANES / 2 * 5;
    world.until(500, async || slow.got().len() == all).await;
    world.until(500, async || world.undelivered().await == 0).await;
    assert_eq!(slow.got().len(), all, "each once");
}

/// What an event was held back for may be gone: another host has sent it, or it was given up there.
#[tokio::test]
async fn an_event_is_not_held_back_for_one_that_is_gone() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[500]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.started", "run.completed"], &[]).await;
    let run = world.run("acme", &[]).await;
    world.meanwhile(async || world.webhook(&webhook.id).await.failures == 1).await;
    let gone = Write::DeleteDelivery { webhook: webhook.id.clone(), run, seq: 0 };
    world.store.submit(Commit::new(world.store.generation(), vec![gone])).await.unwrap();
    world.until(100, async || world.undelivered().await == 0).await;
    let kinds: Vec<String> = receiver.got().iter().map(receiver::Request::kind).collect();
    assert_eq!(kinds, ["run.started", "run.completed"]);
}

/// What it was held back for may have been put off: then it waits as long, and nobody turns round meanwhile.
#[tokio::test]
async fn an_event_is_held_back_for_as_long_as_the_one_before_it() {
    let world = World::new().await;
    let receiver = Receiver::start(&world.clock, &[500]).await;
    let webhook = world.subscribe("acme", &receiver.url, &["run.started", "run.completed"], &[]).await;
    world.run("acme", &[]).await;
    world.meanwhile(async || world.webhook(&webhook.id).await.failures == 1).await;
    let mut first = world.store.deliveries_of(&webhook.id, 10).await.unwrap();
    first.retain(|delivery| delivery.seq == 0);
    first[0].due_at = world.clock.now().plus_millis(600_000);
    let put_off = vec![Write::PutDelivery(first.remove(0))];
    world.store.submit(Commit::new(world.store.generation(), put_off)).await.unwrap();
    let (before, passed) = (world.store.commits(), world.clock.now().plus_millis(500_000));
    world.until(5000, async || world.clock.now() >= passed).await;
    assert_eq!(receiver.got().len(), 1);
    assert!(world.store.commits() - before < 20, "put off once, not over and over");
    world.until(5000, async || world.undelivered().await == 0).await;
    let kinds: Vec<String> = receiver.got().iter().map(receiver::Request::kind).collect();
    assert_eq!(kinds, ["run.started", "run.started", "run.completed"]);
}

/// Hundreds of lanes want the one reader, and so do callers and runs. Whoever is given it must be running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_subscribers_share_one_reader() {
    const SUBSCRIBERS: usize = 300;
    const RUNS: usize = 6;
    let world = World::new().await;
    let (well, failing) =
        (Receiver::start(&world.clock, &[]).await, Receiver::start(&world.clock, &[500; 10_000]).await);
    for number in 0..SUBSCRIBERS {
        let tenant = ["acme", "other", "third"][number % 3];
        let url = if number % 2 == 0 { &well.url } else { &failing.url };
        world.subscribe(tenant, url, &["run.completed"], &[]).await;
    }
    world.store.limit_readers(1);
    for _ in 0..RUNS {
        for tenant in ["acme", "other", "third"] {
            world.run(tenant, &[]).await;
        }
    }
    // Each event once, though one may come twice where the machine is too busy to answer in time.
    let taken = || {
        let got = well.got();
        let what = |request: &Request| (request.headers["x-openwop-webhook-id"].clone(), request.body.clone());
        got.iter().map(what).collect::<BTreeSet<_>>().len()
    };
    world.until(50, async || taken() == SUBSCRIBERS / 2 * RUNS && !failing.got().is_empty()).await;
    // Ends though many wait for their turn to read.
    tokio::time::timeout(Duration::from_secs(20), world.host.shutdown()).await.expect("it stops");
}
