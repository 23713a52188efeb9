//! Runs of every kind, and where they stand.

use baton_model::event::DrainPolicy;
use baton_model::{RunId, RunStatus};
use baton_runtime::PauseRun;
use baton_testkit::Flow;
use serde_json::{Value, json};

use crate::common::scenario::{self, call, delayed, delegate, gate, led, parent, pipeline};
use crate::common::versioned_stores::{DELETE, FILES, LIST, PUT, READ, WRITE, file, files, list, note};
use crate::common::{World, who};

pub enum Stands {
    /// Seen through to its end.
    Ended,
    /// Left where it waits by itself.
    Waiting,
    Paused,
    Cancelled,
}

pub struct Case {
    pub name: &'static str,
    pub flows: Vec<Flow>,
    pub stands: Stands,
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

/// Writes, reads, forgets and writes again, with a human in the middle.
pub fn mindful(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("one", PUT, note("one")),
            ("brief", PUT, json!({"content": "brief", "ttlSeconds": 60})),
            ("plan", WRITE, file("plan.md", "first")),
            ("seen", LIST, list()),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("forget", DELETE, json!({"idExpression": "variables.seen[0].id"})),
            ("two", PUT, note("two")),
            ("again", WRITE, file("plan.md", "second")),
            ("then", LIST, json!({"into": "then"})),
            ("read", READ, json!({"path": "plan.md", "into": "text"})),
            ("files", FILES, files()),
        ],
    )
}

/// A supervisor that goes on until it remembers enough, and workers that remember.
pub fn thoughtful(id: &str) -> Vec<Flow> {
    let rules = json!({
        "rules": [{"when": "size(memory) < 3", "decide": next(&["noting"])}],
        "otherwise": {"kind": "terminate", "reason": "enough"}
    });
    let noting = Flow::chain(
        "noting",
        &[
            ("put", PUT, json!({"content": "noted", "ttlSeconds": 3600})),
            ("write", WRITE, file("log.md", "noted")),
            ("list", LIST, json!({"into": "m"})),
        ],
    );
    vec![led(id, rules, "sequential"), noting]
}

/// A child whose outputs a human has to let in.
fn merged(id: &str) -> Flow {
    let mut config = call("pipeline");
    config["outputAttestation"] = json!({"checksum": true, "requireApproval": true});
    parent(id, config)
}

/// Every scenario seen through to its end, and some that stand elsewhere.
pub fn all() -> Vec<Case> {
    let of = |scenario: scenario::Scenario| Case { name: scenario.name, flows: scenario.flows, stands: Stands::Ended };
    let mut cases: Vec<Case> = scenario::all().into_iter().map(of).collect();
    let mut case = |name, stands, flows: Vec<Flow>| cases.push(Case { name, flows, stands });
    case("memory and files", Stands::Ended, vec![mindful("mindful")]);
    case("a loop that remembers", Stands::Ended, thoughtful("thoughtful"));
    case("a merge that a human lets in", Stands::Ended, vec![merged("merged"), pipeline("pipeline")]);
    case("waits for a human", Stands::Waiting, vec![gate("gated")]);
    case("its child waits for a human", Stands::Waiting, vec![parent("parent", call("gated")), gate("gated")]);
    case("its worker waits for a human", Stands::Waiting, vec![delegate("boss", "gated"), gate("gated")]);
    case("waits for an hour", Stands::Waiting, vec![delayed("delayed", 5000)]);
    case("remembers and waits", Stands::Waiting, vec![mindful("mindful")]);
    case("paused in a delay", Stands::Paused, vec![delayed("delayed", 5000)]);
    case("cancelled while it waits", Stands::Cancelled, vec![gate("gated")]);
    case("cancelled with its child", Stands::Cancelled, vec![parent("parent", call("gated")), gate("gated")]);
    cases
}

impl Case {
    pub fn ended(&self) -> bool {
        matches!(self.stands, Stands::Ended | Stands::Cancelled)
    }

    /// A world in which the run stands where it should.
    pub async fn played(&self) -> (World, RunId) {
        self.played_in(World::new().await).await
    }

    pub async fn played_in(&self, world: World) -> (World, RunId) {
        for flow in self.flows.clone() {
            world.register(flow).await;
        }
        let workflow = self.flows[0].clone().build()["id"].as_str().unwrap().to_owned();
        let run = world.start(&workflow).await;
        world.settle().await;
        match self.stands {
            Stands::Ended => world.drive(0).await,
            Stands::Waiting => assert!(!world.status(&run).await.is_terminal()),
            Stands::Paused => {
                let request = PauseRun { reason: None, drain: DrainPolicy::Immediate };
                world.host.pause(&who(), &run, request).await.unwrap();
                assert_eq!(world.status(&run).await, RunStatus::Paused);
            }
            Stands::Cancelled => {
                world.host.cancel(&who(), &run, Some("enough".to_owned())).await.unwrap();
                world.settle().await;
                assert_eq!(world.status(&run).await, RunStatus::Cancelled);
            }
        }
        (world, run)
    }
}
