//! Three hosts on one database. Each has a network of its own to it, and a thread of its own that kills and freezes it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::network::{Line, Upstream};
use crate::support::Running;
use crate::support::crashes::Address;
use crate::support::http::Answer;
use crate::support::rng::Rng;
use crate::support::web::Web;

pub const LEASE: Duration = Duration::from_millis(1000);
/// A host that cannot start for this long, with the database there every now and then, never will.
const START: Duration = Duration::from_secs(30);

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    Kill,
    Freeze,
}

pub struct Host {
    folder: TempDir,
    pub address: Address,
    pub line: Line,
    number: usize,
    database: String,
    running: Mutex<Option<Running>>,
    /// What its lives have said before they were killed.
    said: Mutex<String>,
}

impl Host {
    pub async fn new(number: usize, key: &str, database: &str, upstream: Upstream) -> Self {
        let line = Line::open(upstream).await;
        Self {
            folder: tempfile::tempdir().unwrap(),
            address: Address::new(key),
            database: format!("postgres://baton@127.0.0.1:{}/{database}", line.port),
            line,
            number,
            running: Mutex::new(None),
            said: Mutex::new(String::new()),
        }
    }

    /// Starts it, again and again while the database is not there.
    pub fn start_host(&self) {
        let keys = format!("{}:acme", self.address.key);
        let lease = LEASE.as_millis().to_string();
        let env = [
            ("BATON_API_KEYS", keys.as_str()),
            ("BATON_DATABASE_URL", self.database.as_str()),
            ("BATON_DATABASE_LEASE_MS", lease.as_str()),
            ("OPENWOP_WEBHOOK_ALLOW_PRIVATE", "true"),
        ];
        // One of them is told nothing and has to look.
        let arguments: &[&str] =
            if self.number == 2 { &["serve", "--conformance", "--no-listen"] } else { &["serve", "--conformance"] };
        let deadline = Instant::now() + START;
        loop {
            match Running::try_start(self.folder.path(), arguments, &env) {
                Ok(running) => {
                    self.address.set(Some(&running.url));
                    *self.running.lock().unwrap() = Some(running);
                    return;
                }
                Err(replies) => {
                    assert!(Instant::now() < deadline, "host {} does not start: {replies}", self.number);
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    pub fn take(&self, blow: Blow, rng: &mut Rng) {
        match blow {
            Blow::Kill => {
                let running = self.running.lock().unwrap().take().unwrap();
                self.address.set(None);
                let replies = running.kill();
                self.said.lock().unwrap().push_str(&replies);
                self.start_host();
            }
            Blow::Freeze => {
                let running = self.running.lock().unwrap();
                let running = running.as_ref().unwrap();
                running.signal("-STOP");
                std::thread::sleep(LEASE + Duration::from_millis(200 + rng.below(1000)));
                running.signal("-CONT");
            }
        }
    }

    pub fn web(&self) -> Web {
        Web::new(&self.running.lock().unwrap().as_ref().unwrap().url, Some(&self.address.key))
    }

    /// One request. `None` when its outcome is unknown: nobody was there, or the host could not say.
    pub fn attempt(&self, method: &str, path: &str, more: &[(&str, &str)], body: Option<&Value>) -> Option<Answer> {
        let answer = self.address.attempt(method, path, more, body)?;
        if answer.status >= 500 || answer.status == 429 {
            std::thread::sleep(Duration::from_millis(20));
            return None;
        }
        Some(answer)
    }

    /// Stops it as an operator would, and gives back all that its lives have said.
    pub fn stop(&self) -> String {
        let running = self.running.lock().unwrap().take().unwrap();
        running.ask_to_stop();
        let replies = running.told_until_it_ended(Duration::from_secs(30));
        let mut said = std::mem::take(&mut *self.said.lock().unwrap());
        said.push_str(&replies);
        said
    }

    pub fn dump(&self) {
        let Some(running) = self.running.lock().unwrap().take() else { return };
        let replies = running.kill();
        let path = std::env::temp_dir().join(format!("baton-faults-host-{}.log", self.number));
        let said = format!("{}{replies}", self.said.lock().unwrap());
        let _ = std::fs::write(&path, said);
        eprintln!("what host {} said is in {}", self.number, path.display());
    }
}
