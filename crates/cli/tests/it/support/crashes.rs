//! A host that dies and comes back, and what must hold of it then.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::Answer;
use super::web::Web;
use super::{Running, baton};

const SERVE: [&str; 2] = ["serve", "--conformance"];

/// Where the host listens at the moment, if it is up.
pub struct Address {
    url: Mutex<Option<String>>,
    pub key: String,
    /// Requests whose connection was there and then was not: the ones a death really hit.
    cut_off: AtomicUsize,
}

impl Address {
    pub fn new(key: &str) -> Self {
        Self { url: Mutex::new(None), key: key.to_owned(), cut_off: AtomicUsize::new(0) }
    }

    /// Starts a host and kills it while it comes up.
    pub fn start_in_vain(&self, folder: &Path, after: Duration) {
        let keys = format!("{}:acme", self.key);
        Running::stillborn(folder, &SERVE, &[("BATON_API_KEYS", keys.as_str())], after);
    }

    /// Starts the host over the data in `folder`.
    pub fn start_host(&self, folder: &Path) -> Running {
        let keys = format!("{}:acme", self.key);
        let host = Running::start(folder, &SERVE, &[("BATON_API_KEYS", keys.as_str())]);
        self.set(Some(&host.url));
        host
    }

    pub fn cut_off(&self) -> usize {
        self.cut_off.load(Ordering::Relaxed)
    }

    pub fn set(&self, url: Option<&str>) {
        *self.url.lock().unwrap() = url.map(str::to_owned);
    }

    /// One request. `None` when the outcome is unknown: the host died, or was never reached. A port that went to
    /// another process meanwhile does not know our key.
    pub fn attempt(&self, method: &str, path: &str, more: &[(&str, &str)], body: Option<&Value>) -> Option<Answer> {
        let url = self.url.lock().unwrap().clone();
        let answer = url.and_then(|url| match Web::new(&url, Some(&self.key)).attempt(method, path, more, body) {
            Ok(answer) => Some(answer).filter(|answer| answer.status != 401),
            Err(error) => {
                let cut_off = error.kind() != io::ErrorKind::ConnectionRefused;
                self.cut_off.fetch_add(usize::from(cut_off), Ordering::Relaxed);
                None
            }
        });
        if answer.is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        answer
    }
}

/// What happened, step by step, in a run and then in each of its children.
pub type Steps = Vec<(String, String)>;

pub fn steps(events: &[Value]) -> Steps {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| (text(&event["type"]), text(&event["nodeId"]))).collect()
}

/// Waits for the end of a run and of its children, and tells what happened.
pub fn history(web: &Web, run: &str) -> Vec<Steps> {
    let (snapshot, events) = web.ended(run, "completed");
    let mut all = vec![steps(&events)];
    for child in snapshot["childRuns"].as_array().into_iter().flatten() {
        assert_eq!(web.snapshot(child["runId"].as_str().unwrap())["parentRunId"], run);
        all.push(steps(&web.ended(child["runId"].as_str().unwrap(), "completed").1));
    }
    all
}

/// Every log is whole, says `doctor`.
pub fn storage_is_sound(folder: &Path) {
    // The exit code also judges the configuration and the disk's speed, which are not in question here.
    let findings = baton(folder, &["doctor", "--json"]).json();
    let storage = findings.as_array().unwrap().iter().find(|finding| finding["name"] == "storage").unwrap();
    assert_eq!(storage["state"], "ok", "{storage}");
    assert!(storage["found"].as_str().unwrap().contains("all logs whole"), "{storage}");
}

/// Runs that happened to be stepped at two kills are held back, as they would be if the host had died of them. An operator
/// who knows better lets them go on.
pub fn release_the_innocent(web: &Web) {
    let held = web.get("/v1/host/baton/quarantine?limit=200").expect(200);
    for tree in held["trees"].as_array().unwrap() {
        assert!(tree["cause"].as_str().unwrap().starts_with("process_died"), "{tree}");
        let run = tree["rootRunId"].as_str().unwrap();
        web.post(&format!("/v1/host/baton/runs/{run}/release"), json!({})).expect(200);
    }
}
