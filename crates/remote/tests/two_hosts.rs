//! Two hosts on loopback and a bad network between them: a worker over there is made once, comes back with its harvest,
//! and both hosts can tell where it hangs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use baton_client::{Handover, StartRun};
use baton_model::TraceContext;
use baton_model::{ForeignCause, code};
use baton_runtime::Remotes;
use baton_testkit::proxy::{Fate, Proxy};
use serde_json::{Value, json};
use support::{KEY, Node, careful_work, in_time, near, team, work};
use tokio::sync::Notify;

const CREATE: &str = "POST /v1/runs ";

/// The other host, the network before it, and this one, whose team works over there.
async fn hosts(flow: baton_testkit::Flow) -> (Node, Proxy, Node) {
    let far = Node::open("far.example", Remotes::default()).await;
    far.register(flow).await;
    let proxy = Proxy::before(far.address).await;
    let near = near(proxy.address, KEY).await;
    near.register(team(proxy.address)).await;
    (far, proxy, near)
}

fn chain(log: &[Value]) -> Vec<&Value> {
    log.iter().filter(|event| event["type"] == "core.workflowChain.event").collect()
}

/// One child over there, the harvest here, and a way between them in both directions.
async fn all_is_well(far: &Node, near: &Node, proxy: &Proxy, run: &str) {
    let ended = near.ended(run).await;
    assert_eq!((&ended["status"], &ended["variables"]["n"]), (&json!("completed"), &json!(40)), "{ended}");
    let [child] = &far.runs().await[..] else { panic!("not one child: {:?}", far.runs().await) };
    // Down: from the parent's view to the child.
    let address = format!("http://{}/v1/runs/{child}", proxy.address);
    let seen = &ended["childRuns"][0];
    assert_eq!(
        (&seen["runId"], &seen["hostId"], &seen["url"]),
        (&json!(child), &json!("far.example"), &json!(address))
    );
    // Up: from the child to the event that asked for it.
    let ancestry = far.client.ancestry(child).await.unwrap();
    let parent = ancestry.parent.unwrap();
    assert_eq!((ancestry.host_id.as_str(), parent.host_id.as_str()), ("far.example", "near.example"));
    assert_eq!((parent.run_id.as_str(), parent.cause.as_str()), (run, "core.dispatch"));
    assert_eq!(parent.well_known_url.as_deref(), Some("http://near.example/.well-known/openwop"));
    assert!(near.client.ancestry(run).await.unwrap().parent.is_none());
    let log = near.log(run).await;
    let chain = chain(&log);
    let phases: Vec<&Value> = chain.iter().map(|event| &event["payload"]["phase"]).collect();
    assert_eq!(phases, ["dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"]);
    let decided = log.iter().find(|event| event["type"] == "runOrchestrator.decided").unwrap();
    let causes = std::iter::once(&decided["eventId"]).chain(chain.iter().map(|event| &event["eventId"]));
    assert!(chain.iter().map(|event| &event["causationId"]).eq(causes.take(4)), "each is caused by the one before");
    assert!(
        chain.iter().all(|event| event["payload"].get("causationHostId").is_none()),
        "nothing here has a foreign cause"
    );
    assert!(chain[1..].iter().all(|event| event["payload"]["childRunId"] == json!(child)));
    let first = &far.log(child).await[0];
    assert_eq!((&first["type"], &first["causationId"]), (&json!("run.started"), &chain[0]["eventId"]));
    assert_eq!(first["payload"]["causationHostId"], "near.example");
    assert_eq!(first["payload"]["inputs"], json!({"n": 4}));
}

#[tokio::test]
async fn a_worker_on_another_host_is_one_more_worker() {
    let (far, proxy, near) = hosts(work()).await;
    let run = near.start("team").await;
    all_is_well(&far, &near, &proxy, &run).await;
    assert_eq!(proxy.heard(CREATE), 1);
}

#[tokio::test]
async fn a_request_or_its_answer_may_be_lost() {
    for fate in [Fate::Lost, Fate::AnswerLost, Fate::Torn] {
        let (far, proxy, near) = hosts(work()).await;
        proxy.next(CREATE, 2, fate);
        let run = near.start("team").await;
        all_is_well(&far, &near, &proxy, &run).await;
        assert_eq!(proxy.heard(CREATE), 3, "asked until it was answered");
    }
}

#[tokio::test]
async fn a_request_may_arrive_twice() {
    let (far, proxy, near) = hosts(work()).await;
    proxy.next(CREATE, 1, Fate::Twice);
    let run = near.start("team").await;
    all_is_well(&far, &near, &proxy, &run).await;
    assert_eq!(proxy.answers(CREATE, 2).await, [201, 201], "both arrived");
}

#[tokio::test]
async fn a_request_may_arrive_long_after_everything_is_over() {
    let (far, proxy, near) = hosts(work()).await;
    let now = Arc::new(Notify::new());
    proxy.next(CREATE, 1, Fate::Late(Arc::clone(&now)));
    let run = near.start("team").await;
    all_is_well(&far, &near, &proxy, &run).await;
    now.notify_one();
    assert_eq!(in_time("the late request", proxy.answers(CREATE, 2)).await, [201, 201]);
    all_is_well(&far, &near, &proxy, &run).await;
}

#[tokio::test]
async fn the_line_may_break_while_the_child_is_followed() {
    let (far, proxy, near) = hosts(careful_work()).await;
    let run = near.start("team").await;
    near.until(&run, |run| run["status"] == "waiting-approval").await;
    let child = far.runs().await.remove(0);
    // The poll that is open is answered by half; so are the looks that follow.
    for look in ["/events/poll", " "] {
        proxy.next(&format!("GET /v1/runs/{child}{look}"), 2, Fate::Torn);
    }
    let accept = json!({"action": "accept"});
    far.client.resolve_interrupt(&child, "gate", None, &accept).await.unwrap();
    all_is_well(&far, &near, &proxy, &run).await;
}

#[tokio::test]
async fn the_other_host_may_be_away_for_a_while() {
    let (far, proxy, near) = hosts(careful_work()).await;
    proxy.next(CREATE, 3, Fate::Lost);
    let run = near.start("team").await;
    in_time("asking again", proxy.reasoning_chars(CREATE, 3)).await;
    near.until(&run, |run| run["status"] == "waiting-approval").await;
    let child = far.runs().await.remove(0);
    proxy.next("GET /v1/runs/", 4, Fate::Lost);
    let accept = json!({"action": "accept"});
    far.client.resolve_interrupt(&child, "gate", None, &accept).await.unwrap();
    all_is_well(&far, &near, &proxy, &run).await;
}

#[tokio::test]
async fn a_cancellation_goes_over_the_same_line() {
    let (far, proxy, near) = hosts(careful_work()).await;
    let run = near.start("team").await;
    near.until(&run, |run| run["status"] == "waiting-approval").await;
    let child = far.runs().await.remove(0);
    proxy.next(&format!("POST /v1/runs/{child}/cancel"), 1, Fate::AnswerLost);
    near.client.cancel(&run, None).await.unwrap();
    assert_eq!(near.ended(&run).await["status"], "cancelled");
    let left = far.ended(&child).await;
    assert_eq!(left["status"], "cancelled");
    assert_eq!(far.log(&child).await.last().unwrap()["payload"]["reason"], "parent-cancelled");
    let log = near.log(&run).await;
    assert_eq!(chain(&log)[2]["payload"]["phase"], "child.cancelled");
}

#[tokio::test]
async fn a_child_that_was_never_heard_of_is_taken_back() {
    let (far, proxy, near) = hosts(work()).await;
    let late = Arc::new(Notify::new());
    proxy.next(CREATE, 1, Fate::Late(Arc::clone(&late)));
    // Lost until the run is being cancelled.
    proxy.next(CREATE, 2, Fate::Lost);
    let run = near.start("team").await;
    in_time("the first request", proxy.reasoning_chars(CREATE, 1)).await;
    near.client.cancel(&run, None).await.unwrap();
    assert_eq!(near.ended(&run).await["status"], "cancelled");
    late.notify_one();
    in_time("the late request", proxy.answers(CREATE, 2)).await;
    let [child] = &far.runs().await[..] else { panic!("not one child") };
    let log = far.log(child).await;
    let kinds: Vec<&Value> = log.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["run.started", "run.cancelled"], "it never set out");
}

#[tokio::test]
async fn a_wrong_credential_ends_the_handoff_and_shows_nowhere() {
    let far = Node::open("far.example", Remotes::default()).await;
    far.register(work()).await;
    for (key, status) in [("not-the-right-key-at-all", 401), ("blind", 201)] {
        let near = near(far.address, key).await;
        near.register(team(far.address)).await;
        let run = near.start("team").await;
        if status == 201 {
            // It may create but not look: the child exists, so nobody says that it failed.
            near.until(&run, |run| run["childRuns"][0]["runId"].is_string()).await;
            near.close().await;
            continue;
        }
        assert_eq!(near.ended(&run).await["status"], "completed", "the loop goes on");
        let log = near.log(&run).await;
        let failed = &chain(&log)[1]["payload"];
        assert_eq!(
            (&failed["phase"], &failed["error"]["code"]),
            (&json!("dispatch.failed"), &json!(code::REMOTE_REFUSED))
        );
        assert!(failed["error"]["message"].as_str().unwrap().contains("[remotes.far]"), "{failed}");
        assert!(!json!(log).to_string().contains(key));
        assert!(far.runs().await.is_empty());
        near.close().await;
    }
}

/// What came with a run goes on to its workers, and its key is the child's place, the same every time.
#[tokio::test]
async fn the_trace_goes_along_and_the_key_stays_the_same() {
    let (far, proxy, near) = hosts(work()).await;
    proxy.next(CREATE, 1, Fate::AnswerLost);
    let trace = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some("a=b")).unwrap();
    let run = hand_over(&near, 1, Some(&trace)).await;
    near.ended(&run).await;
    let asked: Vec<String> = proxy.heads().into_iter().filter(|head| head.starts_with("post /v1/runs ")).collect();
    assert_eq!(asked.len(), 2);
    let lines = |name: &str| -> Vec<&str> {
        asked.iter().flat_map(|head| head.lines()).filter(|line| line.starts_with(name)).collect()
    };
    assert_eq!(lines("traceparent:"), vec![format!("traceparent: {}", trace.parent); 2]);
    assert_eq!(lines("tracestate:"), ["tracestate: a=b"; 2]);
    let keys = lines("idempotency-key:");
    assert!(keys[0] == keys[1] && keys[0].starts_with("idempotency-key: run_"), "{keys:?}");
    assert!(lines("baton-causation:")[0].contains("\"depth\":2"), "{asked:?}");
    assert_eq!(far.runs().await.len(), 1);
}

/// Starts the team as somebody else's child.
async fn hand_over(near: &Node, depth: u32, trace: Option<&TraceContext>) -> String {
    let cause = json!({
        "hostId": "far.example", "runId": "run_x", "eventId": "run_x.1", "cause": "core.dispatch",
        "wellKnownUrl": "http://far.example/.well-known/openwop", "depth": depth,
    });
    let cause = ForeignCause::parse(&cause.to_string()).unwrap();
    let handover = Handover { key: "place", cause: &cause, trace, withdrawn: false };
    let request = StartRun { workflow_id: Some("team".to_owned()), ..StartRun::default() };
    near.client.hand_over(&request, handover).await.unwrap().run_id.to_string()
}

/// A worker over there that has a worker back here, and so on: bounded by what either host allows.
#[tokio::test]
async fn hosts_do_not_dispatch_in_circles_for_ever() {
    let far = Node::open("far.example", Remotes::default()).await;
    let near = near(far.address, KEY).await;
    near.register(team(far.address)).await;
    far.register(work()).await;
    let run = hand_over(&near, 32, None).await;
    near.ended(&run).await;
    let log = near.log(&run).await;
    assert_eq!(chain(&log)[1]["payload"]["error"]["code"], code::NESTING_LIMIT_EXCEEDED);
    assert!(far.runs().await.is_empty());
}
