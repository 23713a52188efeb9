//! Children on other hosts: what is asked for, under which name, and what it is called once it exists.

use crate::support;

use baton_engine::{Command, Effect, RemoteChildAction, RemoteChildTask, outstanding, snapshot};
use baton_model::event::RemoteRun;
use baton_model::{EventId, Fault, ForeignCause, Origin, RunId, RunStatus, code};
use serde_json::{Value, json};
use support::script::{News, outcome, started_afar};
use support::{World, plan, run, start_command, workflow};

const WORKER: &str = "https://far.example/workflows/work";

fn parent(config: Value) -> World {
    let mut config = config;
    config["workflowId"] = WORKER.into();
    let mut definition = workflow(&[("sub", "core.subWorkflow", config)], &[]);
    definition["variables"] = json!([{"name": "topic", "type": "string", "defaultValue": "tea"}]);
    definition["nodes"][0]["settings"] = json!({"timeout": 5000, "maxRetries": 3, "retryDelayMs": 1});
    run(definition)
}

fn mandate(world: &World) -> RemoteChildTask {
    let found = outstanding(&world.state).into_iter().find_map(|effect| match effect {
        Effect::Remote(mandate) => Some(*mandate),
        Effect::StartChild { .. } | Effect::AwaitChild { .. } | Effect::CancelChild { .. } => {
            panic!("a child elsewhere is nobody's business here")
        }
        _ => None,
    });
    found.expect("something is to be done elsewhere")
}

#[test]
fn it_is_ordered_by_its_place_and_known_by_its_own_name_afterwards() {
    let mut world = parent(json!({"inputMapping": {"subject": "topic"}, "outputMapping": {"topic": "result"}}));
    let RemoteChildTask { child: place, worker, action: RemoteChildAction::Create(order) } = mandate(&world) else {
        panic!("not an order")
    };
    assert_eq!((worker.as_str(), &order.plan.run), (WORKER, &place));
    let asked = world.log.iter().rposition(|record| record.event.type_name() == "node.started").unwrap() as u64;
    assert_eq!(order.event, EventId::at(&RunId::new("run_test"), asked));
    assert_eq!((order.depth, order.max_duration_ms, order.root.as_str()), (1, Some(5000), "run_test"));
    world.command(&started_afar(&place)).unwrap();
    let name = RunId::new(format!("far_{place}"));
    assert_eq!(world.payloads("node.dispatched")[0]["childRunId"], json!(name));
    let RemoteChildTask { child, action: RemoteChildAction::Follow { since, timeout_ms }, .. } = mandate(&world) else {
        panic!("not followed")
    };
    assert_eq!((&child, timeout_ms, since), (&name, Some(5000), world.log[asked as usize].at));
    // Said twice, or said of the place it once had, is no news.
    for late in [
        started_afar(&place),
        Command::ChildRefused { child: place.clone(), fault: Fault::new("x", "x") },
        Command::ChildEnded { child: place, outcome: outcome(RunStatus::Failed) },
    ] {
        let before = world.log.len();
        world.command(&late).unwrap();
        assert_eq!(world.log.len(), before, "{late:?}");
    }
    let view = &snapshot(&world.state).unwrap().child_runs[0];
    assert_eq!(
        (&view.run_id, view.url.as_deref()),
        (&name, Some(format!("https://far.example/v1/runs/{name}").as_str()))
    );
    world.tell(&name, News::Ended(RunStatus::Completed));
    assert_eq!((world.status(), world.variable("topic")), (RunStatus::Completed, Some(&json!(0.1))));
}

#[test]
fn silence_and_refusals_are_final_for_the_node() {
    // Another attempt would be another child, while the first may exist.
    for code in [code::REMOTE_UNREACHABLE, code::REMOTE_REFUSED] {
        let mut world = parent(json!({}));
        let child = mandate(&world).child;
        world.command(&Command::ChildRefused { child, fault: Fault::new(code, "No.") }).unwrap();
        assert_eq!(world.status(), RunStatus::Failed, "{code}");
        assert!(world.payloads("node.retried").is_empty());
    }
}

#[test]
fn a_child_that_may_not_exist_is_withdrawn_and_one_that_does_is_cancelled() {
    let cancel = Command::Cancel { reason: None, by: None, parent: None };
    let mut world = parent(json!({}));
    let RemoteChildAction::Create(order) = mandate(&world).action else { panic!("not an order") };
    world.command(&cancel).unwrap();
    let RemoteChildTask { child: place, action: RemoteChildAction::Withdraw(back), .. } = mandate(&world) else {
        panic!("not withdrawn")
    };
    assert_eq!(back, order, "under the same key, for the same reason");
    world.command(&started_afar(&place)).unwrap();
    let RemoteChildTask { child, action: RemoteChildAction::Cancel, .. } = mandate(&world) else {
        panic!("not cancelled")
    };
    assert_eq!(world.status(), RunStatus::Cancelling, "its end comes first");
    world.tell(&child, News::Ended(RunStatus::Cancelled));
    assert_eq!(world.status(), RunStatus::Cancelled);
    // One that nobody hears of any more is let go, and the log says why.
    let mut world = parent(json!({}));
    world.command(&started_afar(&mandate(&world).child)).unwrap();
    world.command(&cancel).unwrap();
    let mut lost = outcome(RunStatus::Failed);
    lost.error = Some(Fault::new(code::REMOTE_UNREACHABLE, "Gone."));
    world.command(&Command::ChildEnded { child: mandate(&world).child, outcome: lost }).unwrap();
    assert_eq!(world.status(), RunStatus::Cancelled);
    assert_eq!(world.payloads("node.cancelled")[0]["reason"], "remote-unreachable");
}

#[test]
fn a_branch_asks_for_a_child_of_its_own() {
    let mut world = parent(json!({}));
    let first = mandate(&world).child;
    world.command(&started_afar(&first)).unwrap();
    let origin: Origin = serde_json::from_value(json!({
        "source": "run_test", "seq": world.log.len(), "mode": "branch", "at": "2030-01-01T00:00:00Z",
    }))
    .unwrap();
    let branch = World { state: world.state.clone().branch(RunId::new("run_branch"), &origin), ..world };
    let RemoteChildTask { child, action: RemoteChildAction::Create(order), .. } = mandate(&branch) else {
        panic!("not ordered anew")
    };
    assert!(child != first && order.event.as_str().starts_with("run_branch."), "{order:?}");
    assert!(snapshot(&branch.state).unwrap().child_runs.is_empty());
}

#[test]
fn a_run_that_was_taken_back_has_only_a_beginning_and_an_end() {
    let cause = ForeignCause {
        host_id: "far.example".to_owned(),
        run_id: RunId::new("run_far"),
        event_id: EventId::new("run_far.3"),
        node_id: None,
        workflow_id: None,
        cause: "core.dispatch".to_owned(),
        well_known_url: "https://far.example/.well-known/openwop".to_owned(),
        depth: 2,
        simulated: false,
        scopes: None,
    };
    for withdrawn in [true, false] {
        let mut start = start_command(json!({}));
        (start.settings.cause, start.withdrawn) = (Some(Box::new(cause.clone())), withdrawn);
        let world = World::started(plan(workflow(&[("n", "core.noop", json!({}))], &[])), start);
        let public: Value = serde_json::from_str(&world.log[0].public_json(&world.state.run)).unwrap();
        assert_eq!(
            (&public["causationId"], &public["payload"]["causationHostId"]),
            (&json!("run_far.3"), &json!("far.example"))
        );
        assert_eq!(world.status(), if withdrawn { RunStatus::Cancelled } else { RunStatus::Completed });
        assert_eq!(world.payloads("node.started").len(), usize::from(!withdrawn));
    }
    let remote = RemoteRun { place: RunId::new("run_x"), run: RunId::new("y"), host_id: None, url: String::new() };
    let mut world = run(workflow(&[("n", "core.noop", json!({}))], &[]));
    world.command(&Command::RemoteStarted { remote }).unwrap();
    assert!(world.payloads("node.dispatched").is_empty(), "nobody asked for it");
}
