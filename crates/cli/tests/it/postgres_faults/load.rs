//! What callers do meanwhile: each asks any host for anything, and remembers what it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hosts::Host;
use crate::support::flow::{chain, hand_to, node, team};
use crate::support::http::{Answer, PATIENCE};
use crate::support::rng::Rng;
use crate::support::web::Web;

/// Per client, so that the audit at the end stays short however fast the machine is.
const MAX_RUNS: usize = 150;
const MAX_WRITES: usize = 150;
/// Clients rest up to this long between requests, so that the load lasts through all faults.
const REST_MS: u64 = 120;

pub const APPROVAL: &str = "conformance-approval";
/// Three turns of a supervisor. Each worker waits, remembers, and writes to a file that the workers of all hosts share.
pub const TEAM: &str = "faults-team";
const WORKER: &str = "faults-worker";
pub const WORKFLOWS: [&str; 6] = [
    "conformance-noop",
    "conformance-multi-node",
    "conformance-delay",
    "conformance-subworkflow-parent",
    APPROVAL,
    TEAM,
];
pub const SCOPE: &str = "shared";

pub fn register(web: &Web) {
    let steps = vec![
        node("wait", "core.delay", json!({"ms": 40})),
        node("remember", "vendor.baton.memory.put", json!({"content": "a finding", "tags": ["finding"]})),
        node("report", "vendor.baton.workspace.put", json!({"path": "team/report.md", "content": "found"})),
    ];
    web.post("/v1/workflows", chain(WORKER, steps)).expect(201);
    let rules = json!([{"when": "size(memory) < 3", "decide": hand_to(WORKER)}]);
    let enough = json!({"kind": "terminate", "reason": "three are enough"});
    web.post("/v1/workflows", team(TEAM, rules, enough, json!({}))).expect(201);
}

/// What one client was told.
#[derive(Default)]
pub struct Replies {
    /// Run → its workflow.
    pub acknowledged: BTreeMap<String, String>,
    /// Idempotency key → the run that was made under it.
    pub keyed: BTreeMap<String, String>,
    pub answered: BTreeSet<String>,
    /// Entries and files as they were acknowledged.
    pub entries: Vec<Value>,
    pub keyed_entries: Vec<Value>,
    pub files: Vec<Value>,
}

/// A run that has not moved for so many looks may be in quarantine.
const LOOKS_BEFORE_RELEASE: usize = 400;

pub struct Client<'a> {
    pub number: u64,
    pub hosts: &'a [Host],
    pub rng: Rng,
    pub replies: Replies,
}

impl<'a> Client<'a> {
    pub fn new(number: u64, seed: u64, hosts: &'a [Host]) -> Self {
        Self { number, hosts, rng: Rng::new(seed ^ (number + 1)), replies: Replies::default() }
    }

    /// Goes on until told to stop, then finishes what it began.
    pub fn work(mut self, stop: &AtomicBool) -> Replies {
        let mut open: Vec<String> = Vec::new();
        for count in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(Duration::from_millis(self.rng.below(REST_MS)));
            if self.rng.below(3) == 0 {
                self.write(count);
            } else if self.replies.acknowledged.len() < MAX_RUNS {
                open.extend(self.start(count));
            }
            // Some questions stay open across many faults.
            if !open.is_empty() && self.rng.below(4) == 0 {
                let run = open.swap_remove(self.rng.below(open.len() as u64) as usize);
                self.answer(&run);
            }
        }
        for run in open {
            self.answer(&run);
        }
        self.replies
    }

    fn any(&mut self) -> &'a Host {
        &self.hosts[self.rng.below(self.hosts.len() as u64) as usize]
    }

    /// Two hosts, not the same.
    fn any_two(&mut self) -> [&'a Host; 2] {
        let first = self.rng.below(self.hosts.len() as u64) as usize;
        let step = 1 + self.rng.below(self.hosts.len() as u64 - 1) as usize;
        [&self.hosts[first], &self.hosts[(first + step) % self.hosts.len()]]
    }

    /// Without a key, an unknown outcome stays unknown. With one, two hosts are asked at the same time, and again until
    /// both have said the same.
    fn start(&mut self, count: usize) -> Option<String> {
        let workflow = WORKFLOWS[self.rng.below(WORKFLOWS.len() as u64) as usize];
        let mut body = json!({"workflowId": workflow, "inputs": {"delayMs": 300}});
        let run = if self.rng.below(3) == 0 {
            let key = format!("key-{}-{count}", self.number);
            body["tags"] = json!([key]);
            let [first, second] = self.any_two();
            let ask = |host: &Host| until_known(host, "POST", "/v1/runs", &key, &body).expect(201)["runId"].clone();
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(|| ask(second));
                (ask(first), other.join().unwrap())
            });
            assert_eq!(one, other, "{key} made two runs");
            let run = one.as_str().unwrap().to_owned();
            self.replies.keyed.insert(key, run.clone());
            run
        } else {
            let answer = self.any().attempt("POST", "/v1/runs", &[], Some(&body))?;
            answer.expect(201)["runId"].as_str().unwrap().to_owned()
        };
        self.replies.acknowledged.insert(run.clone(), workflow.to_owned());
        (workflow == APPROVAL).then_some(run)
    }

    /// Answers a question, on any host, until it is known to be answered. Nobody else answers it.
    fn answer(&mut self, run: &str) {
        let (key, keyed) = (format!("answer-{run}"), self.rng.below(2) == 0);
        let headers: &[(&str, &str)] = if keyed { &[("Idempotency-Key", &key)] } else { &[] };
        let body = json!({"resumeValue": {"action": "accept"}});
        let (mut tried, mut looks) = (false, 0);
        let deadline = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < deadline, "{run} cannot be answered");
            let host = self.any();
            let Some(snapshot) = host.attempt("GET", &format!("/v1/runs/{run}"), &[], None) else { continue };
            let snapshot = snapshot.expect(200);
            match snapshot["status"].as_str().unwrap() {
                "waiting-approval" => {}
                "completed" if tried && keyed => {}
                // A key and no answer yet: asked for again. No key: it was taken.
                "completed" if tried => break,
                "pending" | "running" => {
                    std::thread::sleep(Duration::from_millis(5));
                    looks += 1;
                    if looks % LOOKS_BEFORE_RELEASE == 0 {
                        self.release(run);
                    }
                    continue;
                }
                other => panic!("{run} is {other} before its answer"),
            }
            let path = format!("/v1/runs/{run}/interrupts/gate");
            match self.any().attempt("POST", &path, headers, Some(&body)) {
                Some(answer) if answer.status == 200 => break,
                // The attempt whose outcome was unknown was taken meanwhile.
                Some(answer) if tried && !keyed && [404, 409, 410].contains(&answer.status) => {}
                Some(answer) if answer.status == 409 && is_under_way(&answer) => {}
                // It happened to be stepped when two hosts died: by design, somebody has to say that it goes on.
                Some(answer) if answer.status == 409 && answer.text().contains("run_quarantined") => self.release(run),
                Some(answer) => panic!("{run}: {} {}", answer.status, answer.text()),
                None => tried = true,
            }
        }
        self.replies.answered.insert(run.to_owned());
    }

    /// Nothing happens if it is not in quarantine.
    fn release(&mut self, run: &str) {
        let _ = self.any().attempt("POST", &format!("/v1/host/baton/runs/{run}/release"), &[], Some(&json!({})));
    }

    fn write(&mut self, count: usize) {
        let text = format!("{}-{count}", self.number);
        let body = json!({"content": text});
        let scope = format!("/v1/host/baton/memory/{SCOPE}");
        match self.rng.below(4) {
            0 if self.replies.entries.len() < MAX_WRITES => {
                let answer = self.any().attempt("POST", &scope, &[], Some(&body));
                self.replies.entries.extend(answer.map(|answer| answer.expect(201)));
            }
            1 if self.replies.keyed_entries.len() < MAX_WRITES => {
                let host = self.any();
                let entry = until_known(host, "POST", &scope, &text, &body).expect(201);
                let [other, _] = self.any_two();
                assert_eq!(until_known(other, "POST", &scope, &text, &body).expect(201), entry, "{text}");
                self.replies.keyed_entries.push(entry);
            }
            _ if self.replies.files.len() < MAX_WRITES => {
                let path = format!("/v1/host/workspace/files/w{}.md", self.number);
                let answer = self.any().attempt("PUT", &path, &[], Some(&body));
                self.replies.files.extend(answer.map(|answer| answer.expect(200)));
            }
            _ => {}
        }
    }
}

/// Asks under a key until there is an answer.
fn until_known(host: &Host, method: &str, path: &str, key: &str, body: &Value) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match host.attempt(method, path, &[("Idempotency-Key", key)], Some(body)) {
            Some(answer) if is_under_way(&answer) => std::thread::sleep(Duration::from_millis(20)),
            Some(answer) => return answer,
            None => {}
        }
        assert!(Instant::now() < deadline, "{method} {path} under {key} has no answer");
    }
}

/// The same request, somewhere else, is not done yet.
fn is_under_way(answer: &Answer) -> bool {
    answer.status == 409 && answer.text().contains("idempotency")
}
