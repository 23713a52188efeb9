//! A caller with a key: the requests every scenario makes, each answer audited on the way.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::audit;
use super::http::{self, Answer, PATIENCE};
use super::sse::Stream;

const JSON: (&str, &str) = ("Accept", "application/json");
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub struct Web {
    pub address: String,
    authorization: Option<String>,
}

impl Web {
    pub fn new(url: &str, key: Option<&str>) -> Self {
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Self { address, authorization: key.map(|key| format!("Bearer {key}")) }
    }

    fn headers<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let mine = self.authorization.iter().map(|value| ("Authorization", value.as_str()));
        mine.chain(more.iter().copied()).collect()
    }

    /// For a host that may die meanwhile.
    pub fn attempt(&self, method: &str, path: &str, more: &[(&str, &str)], body: Option<&Value>) -> io::Result<Answer> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let mut headers = self.headers(more);
        if !more.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
            headers.push(JSON);
        }
        http::exchange(&self.address, method, path, &headers, &body)
    }

    #[track_caller]
    pub fn send(&self, method: &str, path: &str, more: &[(&str, &str)], body: Option<&Value>) -> Answer {
        self.attempt(method, path, more, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[], Some(&body))
    }

    #[track_caller]
    pub fn keyed(&self, key: &str, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[("Idempotency-Key", key)], Some(&body))
    }

    #[track_caller]
    pub fn start(&self, workflow: &str) -> String {
        self.start_with(json!({"workflowId": workflow}))
    }

    /// Starts a run and checks what every 201 promises.
    #[track_caller]
    pub fn start_with(&self, body: Value) -> String {
        let created = self.post("/v1/runs", body).expect(201);
        let run = created["runId"].as_str().unwrap().to_owned();
        let live = ["pending", "running", "waiting-approval", "waiting-input", "waiting-external"];
        assert!(live.contains(&created["status"].as_str().unwrap()), "{created}");
        assert_eq!(created["eventsUrl"], format!("/v1/runs/{run}/events"));
        assert_eq!(created["statusUrl"], format!("/v1/runs/{run}"));
        run
    }

    #[track_caller]
    pub fn snapshot(&self, run: &str) -> Value {
        let snapshot = self.get(&format!("/v1/runs/{run}")).expect(200);
        assert_eq!(snapshot["runId"], run);
        audit::snapshot(&snapshot);
        snapshot
    }

    /// Asks until the run looks as wanted.
    #[track_caller]
    pub fn until(&self, run: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let snapshot = self.snapshot(run);
            if wanted(&snapshot) {
                return snapshot;
            }
            assert!(Instant::now() < deadline, "never as wanted: {snapshot}");
            std::thread::sleep(PAUSE);
        }
    }

    #[track_caller]
    pub fn until_status(&self, run: &str, status: &str) -> Value {
        self.until(run, |snapshot| {
            let now = snapshot["status"].as_str().unwrap();
            assert!(now == status || !is_terminal(now), "wanted {status}: {snapshot}");
            now == status
        })
    }

    /// Waits for the end of a run and audits its whole log.
    #[track_caller]
    pub fn ended(&self, run: &str, status: &str) -> (Value, Vec<Value>) {
        let snapshot = self.until_status(run, status);
        let events = self.events(run);
        audit::ended(run, &events);
        assert_eq!(events.last().unwrap()["type"], format!("run.{status}"));
        (snapshot, events)
    }

    /// The log as it is now.
    #[track_caller]
    pub fn events(&self, run: &str) -> Vec<Value> {
        let page = self.get(&format!("/v1/runs/{run}/events")).expect(200);
        let events = page["events"].as_array().unwrap().clone();
        audit::log(run, &events);
        events
    }

    #[track_caller]
    pub fn resolve(&self, run: &str, node: &str, value: Value) -> Answer {
        self.post(&format!("/v1/runs/{run}/interrupts/{node}"), json!({"resumeValue": value}))
    }

    /// Answers what the run asks now, by its name.
    #[track_caller]
    pub fn resolve_open(&self, run: &str, node: &str, value: Value) -> Answer {
        let id = self.snapshot(run)["interrupt"]["interruptId"].clone();
        self.post(&format!("/v1/runs/{run}/interrupts/{node}"), json!({"interruptId": id, "resumeValue": value}))
    }

    #[track_caller]
    pub fn cancel(&self, run: &str) -> Value {
        let body = self.post(&format!("/v1/runs/{run}/cancel"), json!({})).expect(200);
        assert_eq!(body["runId"], run);
        body
    }

    /// Opens an event stream; `query` starts with `?` or is empty.
    #[track_caller]
    pub fn stream(&self, run: &str, query: &str, after: Option<u64>) -> Stream {
        self.try_stream(run, query, after).unwrap()
    }

    pub fn try_stream(&self, run: &str, query: &str, after: Option<u64>) -> io::Result<Stream> {
        http::open(&self.address, &self.stream_request(run, query, after)).map(Stream::new)
    }

    /// The same where the host may have no room for one more just now.
    pub fn stream_if_there_is_room(&self, run: &str) -> Option<Stream> {
        let response = http::open(&self.address, &self.stream_request(run, "", None)).unwrap();
        (response.status != 429).then(|| Stream::new(response))
    }

    pub fn stream_request(&self, run: &str, query: &str, after: Option<u64>) -> Vec<u8> {
        let after = after.map(|after| after.to_string());
        let mut more = vec![("Accept", "text/event-stream")];
        more.extend(after.iter().map(|after| ("Last-Event-ID", after.as_str())));
        let path = format!("/v1/runs/{run}/events{query}");
        http::head("GET", &path, &self.address, &self.headers(&more), &[])
    }
}

pub fn is_terminal(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "cancelled")
}

/// The events of one type.
pub fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The nodes of the events of one type, in order.
pub fn nodes_of(events: &[Value], kind: &str) -> Vec<String> {
    of_type(events, kind).iter().map(|event| event["nodeId"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Where the first event of a type is.
#[track_caller]
pub fn place(events: &[Value], kind: &str) -> usize {
    events.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}
