//! Webhooks of several hosts: what one was told holds on all, and a subscriber's health is one count.

use crate::common;
use crate::receiver::Receiver;
use crate::sharing;

use std::time::Duration;

use baton_model::{Timestamp, WebhookId};
use baton_runtime::{NewWebhook, Options, RegisteredWebhook};
use baton_store::{Commit, Journal as _, Letters, Webhook, WebhookStatus, Write};
use common::scenario::pipeline;
use common::{World, options, tenant, who};
use sharing::{Company, settle, shared, while_time_passes};

async fn company() -> (Company, [World; 3]) {
    let company = Company::new();
    let options = || Options { allow_private_webhooks: true, ..options(512) };
    let hosts = [company.join(7, options()).await, company.join(8, options()).await, company.join(9, options()).await];
    hosts[0].register(pipeline("pipeline")).await;
    settle(&[&hosts[0], &hosts[1], &hosts[2]]).await;
    // Whoever wants to know something has to ask, or to wait until it looks by itself.
    company.cluster.silence();
    (company, hosts)
}

async fn subscribe(world: &World, url: &str) -> RegisteredWebhook {
    let webhook = NewWebhook { url: url.to_owned(), events: vec!["run.completed".to_owned()], tags: Vec::new() };
    world.host.register_webhook(&who(), webhook).await.unwrap()
}

/// How much is on its way to a subscriber from the runs of this host.
async fn queued(world: &World, webhook: &WebhookId) -> usize {
    let all = world.reader.deliveries(Timestamp::from_micros(i64::MAX), 1000).await.unwrap();
    all.iter().filter(|delivery| delivery.webhook == *webhook).count()
}

async fn run(world: &World) {
    let run = world.start("pipeline").await;
    world.ended(&run).await;
}

#[tokio::test]
async fn what_was_acknowledged_on_one_host_holds_on_all() {
    let (company, hosts) = company().await;
    let everybody = hosts.each_ref();
    let receiver = Receiver::start(&company.clock, &[]).await;
    for (asked, others) in [(0, [1, 2]), (1, [0, 2])] {
        let subscription = subscribe(&hosts[asked], &receiver.url);
        let id = while_time_passes(&company, &everybody, subscription).await.id;
        // Not an instant has passed since.
        for other in others {
            run(&hosts[other]).await;
            assert_eq!(queued(&hosts[other], &id).await, 1, "subscribed on {asked}, recorded on {other}");
        }
        let me = who();
        let deletion = hosts[asked].host.delete_webhook(&me, &id);
        while_time_passes(&company, &everybody, deletion).await.unwrap();
        for other in others {
            run(&hosts[other]).await;
            assert_eq!(queued(&hosts[other], &id).await, 0, "deleted on {asked}, recorded on {other}");
        }
    }
}

/// A host that says nothing keeps nobody waiting for longer than its lease, and knows better when it comes back.
#[tokio::test]
async fn a_silent_host_is_not_waited_for_beyond_its_lease() {
    let (company, [a, b, c]) = company().await;
    let receiver = Receiver::start(&company.clock, &[]).await;
    let before = shared(&b).epoch();
    b.store.freeze();
    let id = while_time_passes(&company, &[&a, &c], subscribe(&a, &receiver.url)).await.id;
    let live = shared(&a).sessions().await.unwrap();
    assert!(live.iter().all(|session| session.epoch != before), "whoever has not answered has no session");
    b.store.thaw();
    company.past_lease(&[&a, &b, &c]).await;
    assert!(shared(&b).epoch() > before && b.host.readiness().ready);
    run(&b).await;
    assert_eq!(queued(&b, &id).await, 1);
}

#[tokio::test]
async fn failures_are_counted_whichever_host_called() {
    let (company, hosts) = company().await;
    let receiver = Receiver::start(&company.clock, &[500; 50]).await;
    let id = while_time_passes(&company, &hosts.each_ref(), subscribe(&hosts[0], &receiver.url)).await.id;
    let webhook = async || -> Webhook { hosts[0].reader.webhook(&tenant(), &id).await.unwrap().unwrap() };
    // Each calls once at first: by then nobody has looked at what the others wrote.
    for host in &hosts {
        run(host).await;
    }
    let until = async |done: &mut dyn FnMut(&Webhook, usize) -> bool| {
        let patience = async {
            loop {
                let (webhook, got) = (webhook().await, receiver.got().len());
                if done(&webhook, got) {
                    return;
                }
                company.clock.advance(5);
                // Calls happen on sockets, which only real time moves.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(common::PATIENCE, patience).await.expect("it happens eventually");
    };
    until(&mut |webhook, _| webhook.failures >= 3).await;
    // The next failure of any of them is the fourth in a row.
    until(&mut |webhook, _| webhook.status == WebhookStatus::Open).await;
    until(&mut |webhook, got| webhook.failures as usize == got).await;
    assert!((4..=6).contains(&receiver.got().len()), "each host has one call under way at most");
}

/// Whoever is asked: letters are one list, and the host that drives a run sends its events again.
#[tokio::test]
async fn letters_of_one_host_are_sent_again_by_asking_another() {
    let (company, hosts) = company().await;
    let everybody = hosts.each_ref();
    let receiver = Receiver::start(&company.clock, &[]).await;
    let id = while_time_passes(&company, &everybody, subscribe(&hosts[0], &receiver.url)).await.id;
    let me = who();
    let failed = hosts[0].reader.webhook(&tenant(), &id).await.unwrap().unwrap();
    let failed = Webhook { status: WebhookStatus::Failed, ..failed };
    let commit = Commit::new(hosts[0].store.generation(), vec![Write::PutWebhook(failed)]);
    hosts[0].store.submit(commit).await.unwrap();
    // A new secret is known to everybody when this returns, and so is the rest.
    while_time_passes(&company, &everybody, hosts[0].host.rotate_secret(&me, &id)).await.unwrap();
    run(&hosts[0]).await;
    run(&hosts[1]).await;
    let letters = hosts[2].host.dead_letters(&tenant(), &id, None, 9).await.unwrap();
    assert_eq!((letters.len(), receiver.got().len()), (2, 0));
    while_time_passes(&company, &everybody, hosts[2].host.resume_webhook(&me, &id)).await.unwrap();
    let again = hosts[2].host.redeliver(&me, &id, Letters::All);
    assert_eq!(while_time_passes(&company, &everybody, again).await.unwrap(), 2);
    let patience = async {
        while receiver.got().len() < 2 {
            company.clock.advance(5);
            // Calls happen on sockets, which only real time moves.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(common::PATIENCE, patience).await.expect("they arrive");
    assert_eq!(hosts[0].host.dead_letters(&tenant(), &id, None, 9).await.unwrap(), []);
}
