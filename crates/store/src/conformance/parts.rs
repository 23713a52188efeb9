//! Everything that is not a run or its log.

use baton_model::{Digest, NodeId, RunId, TenantId, WebhookId, WorkflowId};
use serde_json::json;

use super::sample::{at, row, start, write};
use crate::{
    Attempt, Delivery, FailurePolicy, InterruptFilter, InterruptRow, LastFailure, Reply, Store, Webhook, WebhookChange,
    WebhookStatus, WorkflowVersion, Write,
};

pub(super) async fn blobs(store: impl Store) {
    let bytes: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let digest = Digest::of_bytes(&bytes);
    let put = || Write::PutBlob { digest: digest.clone(), bytes: bytes.clone() };
    write(&store, vec![put(), put()]).await;
    write(&store, vec![put()]).await;
    assert_eq!(store.blob(&digest).await.expect("readable"), Some(bytes.clone()), "bytes read back");
    assert_eq!(store.blob(&Digest::of_bytes("?")).await.expect("readable"), None);
    let empty = Digest::of_bytes("");
    write(&store, vec![Write::PutBlob { digest: empty.clone(), bytes: Vec::new() }]).await;
    assert_eq!(store.blob(&empty).await.expect("readable"), Some(Vec::new()), "empty is not absent");
}

pub(super) async fn workflows_show_their_newest_version(store: impl Store) {
    let version = |tenant: &str, id: &str, version: u32| WorkflowVersion {
        tenant: TenantId::new(tenant),
        id: WorkflowId::new(id),
        version,
        digest: Digest::of_bytes(format!("{tenant}/{id}/{version}")),
        name: format!("{id} no. {version}"),
        created_at: at(version.into()),
    };
    let put = |v: &WorkflowVersion| Write::PutWorkflow(v.clone());
    let (old, new) = (version("acme", "loop", 9), version("acme", "loop", 10));
    let (echo, foreign) = (version("acme", "echo", 1), version("other", "loop", 77));
    write(&store, vec![put(&old), put(&echo), put(&foreign)]).await;
    let newest = async |tenant: &str, id: &str| {
        store.workflow(&TenantId::new(tenant), &WorkflowId::new(id)).await.expect("readable")
    };
    assert_eq!(newest("acme", "loop").await, Some(old));
    write(&store, vec![put(&new)]).await;
    assert_eq!(newest("acme", "loop").await, Some(new.clone()), "10 is newer than 9");
    assert_eq!(newest("other", "loop").await, Some(foreign));
    assert_eq!(newest("other", "echo").await, None, "another tenant's workflow is not there");
    let all = store.workflows(&TenantId::new("acme")).await.expect("readable");
    assert_eq!(all, [echo, new], "one version of each, by id");
}

pub(super) async fn interrupts_open_and_close(store: impl Store) {
    let open = |run: &str, node: &str, kind: &str, tenant: &str, requested: i64| InterruptRow {
        run: RunId::new(run),
        tenant: TenantId::new(tenant),
        workflow: WorkflowId::new("ask"),
        node: NodeId::new(node),
        interrupt_id: format!("{run}/{node}"),
        key: "k\0ey".to_owned(),
        kind: kind.to_owned(),
        data: json!({ "prompt": "¿ok?\0", "n": [1, 2.5, null] }),
        requested_at: at(requested),
        expires_at: (requested > 10).then(|| at(1000)),
    };
    let rows = [
        open("run_a", "n2", "approval", "acme", 20),
        open("run_a", "n1", "input", "acme", 10),
        open("run_b", "n1", "approval", "other", 30),
    ];
    write(&store, rows.iter().cloned().map(Write::OpenInterrupt).collect()).await;
    let list = async |filter: InterruptFilter| store.interrupts(&filter).await.expect("readable");
    let all = || InterruptFilter { limit: 10, ..InterruptFilter::default() };
    let [second, first, third] = rows;
    let everything = [first.clone(), second.clone(), third.clone()];
    assert_eq!(list(all()).await, everything, "oldest question first");
    assert_eq!(list(InterruptFilter { limit: 1, ..all() }).await, everything[..1]);
    assert_eq!(list(InterruptFilter { tenant: Some(TenantId::new("other")), ..all() }).await, everything[2..]);
    assert_eq!(list(InterruptFilter { run: Some(RunId::new("run_a")), ..all() }).await, everything[..2]);
    assert_eq!(list(InterruptFilter { kind: Some("approval".to_owned()), ..all() }).await, everything[1..]);

    let at_n1 = async || store.interrupt(&RunId::new("run_a"), &NodeId::new("n1")).await.expect("readable");
    assert_eq!(at_n1().await, Some(first.clone()));
    let again = InterruptRow { interrupt_id: "second visit".to_owned(), ..first.clone() };
    write(&store, vec![Write::OpenInterrupt(again.clone())]).await;
    assert_eq!(at_n1().await, Some(again), "a node asks one question at a time");
    let close = Write::CloseInterrupt { run: first.run, node: first.node };
    write(&store, vec![close.clone()]).await;
    assert_eq!(at_n1().await, None);
    write(&store, vec![close]).await;
    assert_eq!(list(all()).await, [second, third], "only that one is closed");
}

pub(super) async fn replies_are_replaced_and_pruned(store: impl Store) {
    let reply = |key: &str, body: &str, expires: i64| Reply {
        key: Digest::of_bytes(key),
        request: Digest::of_bytes(body),
        status: 201,
        body: body.to_owned(),
        expires_at: at(expires),
    };
    let get = async |key: &str| store.reply(&Digest::of_bytes(key)).await.expect("readable");
    let (a, b) = (reply("a", "{\"first\":\"\0\"}", 10), reply("b", "{}", 20));
    write(&store, vec![Write::PutReply(a.clone()), Write::PutReply(b.clone())]).await;
    assert_eq!(get("a").await, Some(a));
    assert_eq!(get("c").await, None);
    let replaced = Reply { status: 409, ..reply("a", "{\"second\":2}", 15) };
    write(&store, vec![Write::PutReply(replaced.clone())]).await;
    assert_eq!(get("a").await, Some(replaced.clone()), "the latest reply counts");
    write(&store, vec![Write::PruneReplies { before: at(15) }]).await;
    assert_eq!(get("a").await, Some(replaced), "what expires at the instant is kept");
    write(&store, vec![Write::PruneReplies { before: at(16) }]).await;
    assert_eq!(get("a").await, None, "what expired before it is not");
    assert_eq!(get("b").await, Some(b));
}

pub(super) async fn webhooks(store: impl Store) {
    let webhook = |id: &str, tenant: &str| Webhook {
        id: WebhookId::new(id),
        tenant: TenantId::new(tenant),
        url: "https://example.test/hook?a=ü".to_owned(),
        events: vec!["run.completed".to_owned(), "*".to_owned()],
        tags: vec!["x".to_owned()],
        secret: "s3cret".to_owned(),
        status: WebhookStatus::Active,
        consecutive_failures: 0,
        failures: 0,
        window_start: at(1),
        open_until: None,
        created_at: at(0),
        last_failure: None,
        letters_dropped: 0,
    };
    let (a, b) = (webhook("wh_a", "acme"), webhook("wh_b", "other"));
    write(&store, vec![Write::PutWebhook(a.clone()), Write::PutWebhook(b.clone())]).await;
    let get = async |tenant: &str, id: &str| {
        store.webhook(&TenantId::new(tenant), &WebhookId::new(id)).await.expect("readable")
    };
    assert_eq!(get("acme", "wh_a").await, Some(a.clone()));
    assert_eq!(get("acme", "wh_b").await, None, "another tenant's webhook is not there");
    for status in [WebhookStatus::Open, WebhookStatus::Failed] {
        let changed = Webhook {
            status,
            consecutive_failures: 5,
            failures: u32::MAX,
            open_until: Some(at(9)),
            events: Vec::new(),
            last_failure: Some(LastFailure {
                at: at(8),
                status: Some(u16::MAX).filter(|_| status == WebhookStatus::Open),
            }),
            letters_dropped: 1 << 40,
            ..a.clone()
        };
        write(&store, vec![Write::PutWebhook(changed.clone())]).await;
        assert_eq!(get("acme", "wh_a").await, Some(changed), "replaced as a whole");
    }
    assert_eq!(store.webhooks().await.expect("readable").len(), 2);
    let delivery = |id: &WebhookId| {
        Write::PutDelivery(Delivery {
            webhook: id.clone(),
            run: RunId::new("run_a"),
            seq: 0,
            attempts: 0,
            due_at: at(0),
        })
    };
    start(&store, row("run_a"), 1).await;
    write(&store, vec![delivery(&a.id), delivery(&b.id)]).await;
    write(&store, vec![Write::DeleteWebhook(a.id.clone())]).await;
    assert_eq!(store.webhooks().await.expect("readable"), std::slice::from_ref(&b));
    let left = store.deliveries(at(10), 10).await.expect("readable");
    assert_eq!(left.len(), 1, "what was on its way to a deleted webhook is forgotten");
    assert_eq!(left[0].webhook, b.id);

    let policy = FailurePolicy { opens_at: 3, open_ms: 500, gives_up_at: 7, window_ms: 1000 };
    let note = |id: &WebhookId, attempt| Write::NoteAttempt { webhook: id.clone(), attempt };
    let failed = |millis: i64| {
        let status = (millis % 2 == 0).then_some(503);
        Attempt::Failed { at: at(millis * 1000), status, policy }
    };
    let mut expected = b.clone();
    // One by one and several at a time; what was deleted stays so; a window ends; the circuit opens and closes.
    for attempts in [
        vec![Attempt::Succeeded],
        vec![failed(5), failed(6)],
        vec![Attempt::Succeeded],
        vec![failed(7), failed(8), failed(9)],
        vec![Attempt::Succeeded, failed(10)],
        vec![failed(1001), failed(1002), failed(1003)],
    ] {
        let both = |attempt: &Attempt| [note(&a.id, *attempt), note(&b.id, *attempt)];
        write(&store, attempts.iter().flat_map(both).collect()).await;
        for attempt in &attempts {
            expected.note(attempt);
        }
        assert_eq!(store.webhooks().await.expect("readable"), std::slice::from_ref(&expected), "{attempts:?}");
    }
    assert_eq!((expected.status, expected.failures, expected.consecutive_failures), (WebhookStatus::Open, 3, 4));
    assert_eq!((expected.window_start, expected.open_until), (at(1_001_000), Some(at(1_503_000))));
    assert_eq!(store.deliveries(at(10), 10).await.expect("readable").len(), 1);
    let more = Delivery { webhook: b.id.clone(), run: RunId::new("run_a"), seq: 1, attempts: 1, due_at: at(0) };
    let last = [failed(1004), failed(1005), failed(1006), failed(1007), Attempt::Succeeded];
    let last = last.map(|attempt| note(&b.id, attempt));
    write(&store, [Write::PutDelivery(more)].into_iter().chain(last).collect()).await;
    assert_eq!(store.deliveries(at(10), 10).await.expect("readable").len(), 2, "what waits is not lost");
    let last_failure = Some(LastFailure { at: at(1_007_000), status: None });
    let given_up = Webhook { status: WebhookStatus::Failed, consecutive_failures: 8, failures: 7, ..expected };
    let given_up = Webhook { open_until: None, last_failure, ..given_up };
    assert_eq!(store.webhooks().await.expect("readable"), std::slice::from_ref(&given_up), "until it is resumed");
    let change = |id: &WebhookId, change| Write::ChangeWebhook { webhook: id.clone(), change };
    let (resumed, secret) = (WebhookChange::Resumed { at: at(7) }, WebhookChange::Secret("n\0w".to_owned()));
    let mut mended = given_up;
    mended.change(&resumed);
    mended.change(&secret);
    assert_eq!((mended.status, mended.failures, mended.window_start), (WebhookStatus::Active, 0, at(7)));
    // One after the other in one commit, and the other way round; one that was deleted stays deleted.
    let later = Delivery { webhook: b.id.clone(), run: RunId::new("run_a"), seq: 2, attempts: 1, due_at: at(1 << 40) };
    write(&store, vec![Write::PutDelivery(later)]).await;
    let writes = vec![change(&b.id, secret.clone()), change(&a.id, resumed.clone()), change(&b.id, resumed)];
    write(&store, writes).await;
    assert_eq!(store.webhooks().await.expect("readable"), std::slice::from_ref(&mended));
    write(&store, vec![note(&b.id, failed(2001)), change(&b.id, secret)]).await;
    mended.note(&failed(2001));
    let due: Vec<_> = store.deliveries_of(&b.id, 9).await.expect("readable").iter().map(|d| d.due_at).collect();
    assert_eq!(due, [at(0), at(0), at(7)], "what waits is due when it is resumed, and no later than it was");
    assert_eq!(store.webhooks().await.expect("readable"), [mended]);
}

pub(super) async fn deliveries_are_due_in_order(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    let delivery = |seq: u64, due: i64| Delivery {
        webhook: WebhookId::new("wh"),
        run: RunId::new("run_a"),
        seq,
        attempts: 0,
        due_at: at(due),
    };
    let put = |d: &Delivery| Write::PutDelivery(d.clone());
    let rows = [delivery(0, 30), delivery(1, 10), delivery(2, 10), delivery(3, 20), delivery(4, 50)];
    write(&store, rows.iter().map(put).collect()).await;
    let due = async |now: i64, limit| {
        let due = store.deliveries(at(now), limit).await.expect("readable");
        due.iter().map(|d| (d.seq, d.attempts)).collect::<Vec<_>>()
    };
    assert_eq!(due(30, 10).await, [(1, 0), (2, 0), (3, 0), (0, 0)], "earliest first, then by sequence");
    assert_eq!(due(30, 2).await, [(1, 0), (2, 0)]);
    assert_eq!(due(9, 10).await, []);
    let other = Delivery { webhook: WebhookId::new("other"), ..delivery(0, 1) };
    write(&store, vec![put(&other)]).await;
    let of = async |webhook: &str, limit| {
        let waits = store.deliveries_of(&WebhookId::new(webhook), limit).await.expect("readable");
        waits.iter().map(|d| d.seq).collect::<Vec<_>>()
    };
    assert_eq!(of("wh", 10).await, [1, 2, 3, 0, 4], "of one subscriber, due or not, earliest first");
    assert_eq!((of("wh", 2).await, of("other", 10).await, of("none", 10).await), (vec![1, 2], vec![0], vec![]));
    write(&store, vec![Write::DeleteDelivery { webhook: other.webhook, run: other.run, seq: 0 }]).await;
    let retried = Delivery { attempts: 1, due_at: at(40), ..delivery(1, 0) };
    write(&store, vec![put(&retried)]).await;
    assert_eq!(due(40, 10).await, [(2, 0), (3, 0), (0, 0), (1, 1)], "a retry replaces the delivery");
    let sent = |seq| Write::DeleteDelivery { webhook: WebhookId::new("wh"), run: RunId::new("run_a"), seq };
    write(&store, vec![sent(2), sent(0), sent(99)]).await;
    assert_eq!(due(40, 10).await, [(3, 0), (1, 1)]);
}
