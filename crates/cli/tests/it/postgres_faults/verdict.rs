//! What must hold when all is quiet again, by what lies in the database and by what the hosts say.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use baton_testkit::postgres::rows;
use serde_json::Value;

use super::hosts::Host;
use super::load::{APPROVAL, Replies, SCOPE};
use super::receiver::Received;
use crate::support::crashes::Steps;

const TERMINAL: [&str; 3] = ["run.completed", "run.failed", "run.cancelled"];
const QUIET: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Record {
    seq: u64,
    kind: String,
    body: Value,
    epoch: u64,
    /// When its transaction was committed, by the database: microseconds.
    committed: u64,
}

/// Everything that is in the database.
pub struct Evidence {
    records: BTreeMap<String, Vec<Record>>,
    /// Run → its children, in the order they were made.
    children: BTreeMap<String, Vec<String>>,
    runs: BTreeMap<String, (String, String)>,
    /// Epoch → when its end was committed, if it has ended.
    sessions: BTreeMap<u64, Option<u64>>,
}

/// Waits until nothing is left to do, which includes letters and deliveries.
pub async fn quiet(url: &str) {
    let left = format!(
        "SELECT 'run ' || id || ' of ' || workflow || ' is ' || status || ', owner ' || owner FROM runs
             WHERE status NOT IN ('completed', 'failed', 'cancelled')
             AND NOT (workflow = '{APPROVAL}' AND status = 'waiting-approval')
         UNION ALL SELECT 'letter ' || id FROM inbox WHERE answered_at IS NULL AND run IS NOT NULL
         UNION ALL SELECT 'delivery of ' || run || ' due in ' || (due_at / 1000000 - extract(epoch FROM now()))::INT
             FROM deliveries"
    );
    let deadline = Instant::now() + QUIET;
    loop {
        let waiting = rows(url, &left).await;
        if waiting.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "not done: {waiting:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Evidence {
    pub async fn gather(url: &str) -> Self {
        let number = |text: &str| text.parse::<u64>().unwrap();
        let mut records: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        let events = "SELECT run, seq, kind, body, epoch,
            (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::BIGINT FROM events ORDER BY run, seq";
        for row in rows(url, events).await {
            let record = Record {
                seq: number(&row[1]),
                kind: row[2].clone(),
                body: serde_json::from_str(&row[3]).unwrap(),
                epoch: number(&row[4]),
                committed: number(&row[5]),
            };
            records.entry(row[0].clone()).or_default().push(record);
        }
        let (mut children, mut runs) = (BTreeMap::<String, Vec<String>>::new(), BTreeMap::new());
        for row in rows(url, "SELECT id, parent, workflow, status FROM runs ORDER BY position").await {
            if !row[1].is_empty() {
                children.entry(row[1].clone()).or_default().push(row[0].clone());
            }
            runs.insert(row[0].clone(), (row[2].clone(), row[3].clone()));
        }
        let ended = "SELECT epoch, CASE WHEN ended THEN
            (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::BIGINT END FROM sessions";
        let sessions = rows(url, ended).await;
        let sessions = sessions.iter().map(|row| (number(&row[0]), row[1].parse().ok())).collect();
        Self { records, children, runs, sessions }
    }

    fn steps(&self, run: &str) -> Steps {
        let node = |record: &Record| record.body["nodeId"].as_str().unwrap_or_default().to_owned();
        self.records[run].iter().map(|record| (record.kind.clone(), node(record))).collect()
    }

    /// What happened in a run and then in each of its children.
    pub fn history(&self, run: &str) -> Vec<Steps> {
        let children = self.children.get(run).into_iter().flatten();
        std::iter::once(self.steps(run)).chain(children.map(|child| self.steps(child))).collect()
    }

    /// Logs without gaps and with one end, of every run there is, acknowledged or not.
    pub fn logs_are_whole(&self) {
        for (run, (workflow, status)) in &self.runs {
            let log = &self.records[run];
            for (index, record) in log.iter().enumerate() {
                assert_eq!(record.seq, index as u64, "{workflow} {run} has a gap");
                assert_eq!(record.body["sequence"], record.seq, "{run}");
                let ends = TERMINAL.contains(&record.kind.as_str());
                let last = index + 1 == log.len();
                assert!(!ends || last, "{run}: something follows {}", record.kind);
                assert!(ends || !last || status.starts_with("waiting-"), "{run} is {status} and has no end");
            }
        }
        assert_eq!(self.records.len(), self.runs.len(), "there are records of runs that do not exist");
    }

    /// Each record was written by a session that existed and had not ended: nobody who was taken for dead wrote another
    /// word. Returns how often runs went from one session to another, and how often from one that lived: handed over.
    pub fn one_owner_each(&self) -> (usize, usize) {
        let (mut moved, mut handed_over) = (0, 0);
        for (run, log) in &self.records {
            for record in log {
                let ended = self.sessions.get(&record.epoch);
                let ended = ended.unwrap_or_else(|| panic!("{run}: {record:?} is of a session that never was"));
                let late = ended.is_some_and(|ended| record.committed > ended);
                assert!(!late, "{run}: {record:?} was written after its session had ended at {ended:?}");
            }
            for pair in log.windows(2) {
                assert!(pair[0].committed <= pair[1].committed, "{run}: {pair:?} were committed the wrong way round");
                if pair[0].epoch != pair[1].epoch {
                    moved += 1;
                    let dead = self.sessions[&pair[0].epoch].is_some_and(|ended| ended <= pair[1].committed);
                    handed_over += usize::from(!dead);
                }
            }
        }
        (moved, handed_over)
    }

    /// Everything acknowledged went exactly as it goes when nobody interferes: no step, child or answer is missing or
    /// comes twice.
    pub fn kept_its_word(&self, replies: &Replies, undisturbed: &BTreeMap<&str, Vec<Steps>>) {
        for (run, workflow) in &replies.acknowledged {
            assert!(self.runs.contains_key(run), "{workflow} {run} was acknowledged and is gone");
            assert_eq!(self.history(run), undisturbed[workflow.as_str()], "{workflow} {run}");
        }
        for run in &replies.answered {
            let answers = self.records[run].iter().filter(|record| record.kind == "approval.received").count();
            assert_eq!(answers, 1, "{run}");
        }
    }

    /// Runs that nobody was told of went as far as they go, too.
    pub fn the_others_are_whole(&self, undisturbed: &BTreeMap<&str, Vec<Steps>>) {
        for (run, (workflow, status)) in &self.runs {
            if let Some(expected) = undisturbed.get(workflow.as_str())
                && status == "completed"
            {
                assert_eq!(&self.history(run), expected, "{workflow} {run}");
            }
        }
    }

    /// What subscribers heard is what is in the log, and they heard of every end. Returns how often they heard it again.
    pub fn was_told(&self, received: &Received) -> usize {
        for ((run, seq), (event, _)) in received {
            let record = self.records.get(run).and_then(|log| log.get(*seq as usize));
            let record = record.unwrap_or_else(|| panic!("{event} was told and is not in the log"));
            assert_eq!(&record.body, event);
        }
        for (run, log) in &self.records {
            if let Some(last) = log.last().filter(|record| record.kind == "run.completed") {
                assert!(received.contains_key(&(run.clone(), last.seq)), "nobody was told that {run} has ended");
            }
        }
        received.values().map(|(_, times)| times - 1).sum()
    }

    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }
}

/// One run for each key.
pub async fn keys_made_one_run(url: &str, replies: &Replies) {
    for (key, run) in &replies.keyed {
        let made = rows(url, &format!("SELECT id FROM runs WHERE '{key}' = ANY(tags)")).await;
        assert_eq!(made, [[run.clone()]], "{key}");
    }
}

/// Versions 1, 2, 3, … of every memory and workspace.
pub async fn versioned_stores_have_no_gaps(url: &str) {
    let gaps = "SELECT ledgers.kind, ledgers.scope, ledgers.version, count(changes.version), min(changes.version),
            max(changes.version) FROM ledgers LEFT JOIN changes USING (ledger)
        GROUP BY ledgers.kind, ledgers.scope, ledgers.version, ledgers.forgotten
        HAVING ledgers.forgotten = 0 AND ledgers.version > 0 AND (count(changes.version) <> ledgers.version
            OR min(changes.version) <> 1 OR max(changes.version) <> ledgers.version)";
    assert_eq!(rows(url, gaps).await, Vec::<Vec<String>>::new());
}

/// Acknowledged entries and files are there, word for word, on every host; a keyed one once.
pub fn writes_are_there(hosts: &[Host], replies: &Replies) {
    let web = |at: usize| hosts[at % hosts.len()].web();
    for (at, entry) in replies.entries.iter().chain(&replies.keyed_entries).enumerate() {
        let path = format!("/v1/host/baton/memory/{SCOPE}/{}", entry["id"].as_str().unwrap());
        assert_eq!(web(at).get(&path).expect(200), *entry);
    }
    let mut last = 0;
    for (at, file) in replies.files.iter().enumerate() {
        let version = file["version"].as_u64().unwrap();
        assert!(version > last, "version {version} was given twice: {file}");
        last = version;
        let path = format!("/v1/host/workspace/files/{}?version={version}", file["path"].as_str().unwrap());
        assert_eq!(web(at).get(&path).expect(200), *file);
    }
}

pub async fn keyed_entries_are_there_once(url: &str, replies: &Replies) {
    for entry in &replies.keyed_entries {
        let content = entry["content"].as_str().unwrap();
        let all = format!(
            "SELECT count(*) FROM changes JOIN ledgers USING (ledger)
             WHERE kind = 'memory' AND scope = '{SCOPE}' AND content = '{content}'"
        );
        assert_eq!(rows(url, &all).await, [["1"]], "{entry}");
    }
}
