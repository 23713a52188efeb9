//! Thousands of deaths by SIGKILL, one every few hundred milliseconds. Counts what was acknowledged, lost and doubled, and
//! how long the host takes to come back.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `BATON_CYCLES` | how many deaths (8 by default). What is asked for is reached, or the campaign fails |
//! | `BATON_CAMPAIGN_MINUTES` | stop after so many minutes: 10 by default, no limit where `BATON_CYCLES` is given |
//! | `BATON_CAMPAIGN_REPORT` | file for the result as JSON, written after every era |
//! | `BATON_TEST_BINARY` | binary to kill, for example a release build |
//! | `TEST_SEED` | the chance |
//!
//! An era is some deaths on one data folder. At its end everything is compared with what undisturbed runs do, and the
//! next era begins with an empty folder, so a long campaign is as fast as a short one.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::crashes::{Address, Steps, storage_is_sound};
use support::rng::{Rng, seed};
use support::web::{Web, is_terminal, of_type};
use support::{PATIENCE, crashes};

use crate::kill::{WORKFLOWS, answer, register_team, start, undisturbed};

const CLIENTS: u64 = 3;
/// Few enough that a slow machine says something now and then.
const DEATHS_PER_ERA: usize = 25;
/// How many runs a client starts before the first death of an era, and with each: there is load to the end, and the audit
/// stays short.
const FIRST_RUNS: usize = 5;
const RUNS_PER_DEATH: usize = 3;
const REST_MS: u64 = 15;
/// How long a host lives, at most.
const LIFE_MS: u64 = 220;
/// One host in so many is killed while it comes up.
const STILLBORN: u64 = 8;
const BIRTH_MS: u64 = 60;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// How long a campaign may take. One that was asked for a number of deaths goes on until it has them.
fn limit(minutes: Option<u64>, asked: bool) -> Duration {
    match minutes {
        Some(minutes) => Duration::from_secs(60 * minutes),
        None if asked => Duration::MAX,
        None => Duration::from_secs(60 * 10),
    }
}

/// What a client was told in an era.
#[derive(Default)]
struct Replies {
    /// Run → its workflow.
    acknowledged: BTreeMap<String, &'static str>,
    /// Idempotency key → the run it was acknowledged with.
    keyed: BTreeMap<String, String>,
    answered: BTreeSet<String>,
}

#[derive(Default)]
struct Totals {
    deaths: usize,
    stillborn: usize,
    eras: usize,
    runs: usize,
    answers: usize,
    keyed: usize,
    cut_off: usize,
    lost: Vec<String>,
    doubled: Vec<String>,
    /// Innocent runs that were taken for guilty of a death.
    held: Vec<String>,
    restarts: Vec<Duration>,
}

impl Totals {
    fn share(&self, percent: usize) -> u64 {
        let mut times = self.restarts.clone();
        times.sort_unstable();
        times.get((times.len().saturating_sub(1)) * percent / 100).map_or(0, |time| time.as_millis() as u64)
    }

    fn json(&self, began: Instant) -> Value {
        json!({
            "deaths": self.deaths, "whileComingUp": self.stillborn, "eras": self.eras, "acknowledgedRuns": self.runs,
            "acknowledgedAnswers": self.answers, "startsUnderAKey": self.keyed, "requestsCutOff": self.cut_off,
            "lost": self.lost, "doubled": self.doubled, "heldInnocently": self.held,
            "restartMs": {"count": self.restarts.len(), "p50": self.share(50), "p99": self.share(99), "max": self.share(100)},
            "seconds": began.elapsed().as_secs(),
        })
    }

    fn table(&self, began: Instant) -> String {
        let rows = [
            ("deaths", format!("{} in {} eras, {} more while coming up", self.deaths, self.eras, self.stillborn)),
            ("acknowledged", format!("{} runs ({} under a key), {} answers", self.runs, self.keyed, self.answers)),
            ("cut off", format!("{} requests", self.cut_off)),
            ("lost", self.lost.len().to_string()),
            ("doubled", self.doubled.len().to_string()),
            ("held innocently", self.held.len().to_string()),
            ("restart", format!("p50 {} ms, p99 {} ms, max {} ms", self.share(50), self.share(99), self.share(100))),
            ("took", format!("{} s", began.elapsed().as_secs())),
        ];
        rows.iter().map(|(name, value)| format!("{name:<16} {value}\n")).collect()
    }

    fn report(&self, began: Instant) {
        if let Some(path) = std::env::var_os("BATON_CAMPAIGN_REPORT") {
            std::fs::write(path, self.json(began).to_string()).unwrap();
        }
    }
}

/// Starts runs and answers questions until told to stop, then finishes what it began.
fn load(client: u64, seed: u64, address: &Address, deaths: &AtomicUsize, stop: &AtomicBool) -> Replies {
    let mut rng = Rng::new(seed ^ (client + 1));
    let (mut replies, mut open, mut count) = (Replies::default(), Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(rng.below(REST_MS)));
        if count < FIRST_RUNS + RUNS_PER_DEATH * deaths.load(Ordering::Relaxed) {
            count += 1;
            let workflow = WORKFLOWS[rng.below(WORKFLOWS.len() as u64) as usize];
            let key = (rng.below(3) == 0).then(|| format!("key-{seed}-{client}-{count}"));
            if let Some(run) = start(address, workflow, key.as_deref()) {
                replies.acknowledged.insert(run.clone(), workflow);
                open.extend((workflow == "conformance-approval").then(|| run.clone()));
                replies.keyed.extend(key.map(|key| (key, run)));
            }
        }
        if !open.is_empty() && rng.below(3) == 0 {
            let run = open.swap_remove(rng.below(open.len() as u64) as usize);
            answer(address, &run, rng.below(2) == 0, &mut replies.answered);
        }
    }
    for run in open {
        answer(address, &run, true, &mut replies.answered);
    }
    replies
}

/// A data folder and the deaths on it.
fn era(seed: u64, folder: &Path, deaths: usize, totals: &mut Totals) {
    let address = Address::new(&format!("campaign-{}-{seed}", std::process::id()));
    let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut rng = Rng::new(seed);
    let (host, replies) = std::thread::scope(|scope| {
        let mut host = address.start_host(folder);
        register_team(&Web::new(&host.url, Some(&address.key)));
        let (address, stop, count) = (&address, &stop, &count);
        let client = |client| scope.spawn(move || load(client, seed, address, count, stop));
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        for death in 1..=deaths {
            // The random moment; nothing is synchronised by it.
            std::thread::sleep(Duration::from_millis(rng.below(LIFE_MS)));
            host.kill();
            address.set(None);
            count.store(death, Ordering::Relaxed);
            if rng.below(STILLBORN) == 0 {
                address.start_in_vain(folder, Duration::from_millis(rng.below(BIRTH_MS)));
                totals.stillborn += 1;
            }
            let began = Instant::now();
            host = address.start_host(folder);
            totals.restarts.push(began.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        (host, clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>())
    });
    let web = Web::new(&host.url, Some(&address.key));
    let undisturbed = undisturbed(&web);
    let held: BTreeSet<String> = web.get("/v1/host/baton/quarantine?limit=200").expect(200)["trees"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tree| tree["rootRunId"].as_str().unwrap().to_owned())
        .collect();
    for replies in &replies {
        audit(&web, replies, &undisturbed, &held, totals);
    }
    totals.held.extend(held);
    totals.deaths += deaths;
    totals.eras += 1;
    totals.cut_off += address.cut_off();
    assert_eq!(host.stop(), 0);
    storage_is_sound(folder);
}

/// Everything acknowledged is there and went as it goes when nobody dies: no step missing, none twice.
fn audit(
    web: &Web,
    replies: &Replies,
    undisturbed: &BTreeMap<&str, Vec<Steps>>,
    held: &BTreeSet<String>,
    totals: &mut Totals,
) {
    totals.runs += replies.acknowledged.len();
    totals.answers += replies.answered.len();
    totals.keyed += replies.keyed.len();
    for (run, workflow) in replies.acknowledged.iter().filter(|(run, _)| !held.contains(*run)) {
        let expected = &undisturbed[workflow];
        match history(web, run) {
            Ok(found) if found == *expected => {}
            Ok(found) => {
                let (is, should) = (found.iter().flatten().count(), expected.iter().flatten().count());
                let told = format!("{workflow} {run}: {found:?}");
                if is > should { totals.doubled.push(told) } else { totals.lost.push(told) }
            }
            Err(told) => totals.lost.push(format!("{workflow} {run}: {told}")),
        }
    }
    for run in &replies.answered {
        match of_type(&web.events(run), "approval.received").len() {
            1 => {}
            0 => totals.lost.push(format!("the answer to {run}")),
            _ => totals.doubled.push(format!("the answer to {run}")),
        }
    }
    for (key, run) in &replies.keyed {
        let runs = web.get(&format!("/v1/runs?tag={key}")).expect(200)["runs"].clone();
        let ids: Vec<&str> = runs.as_array().unwrap().iter().map(|row| row["runId"].as_str().unwrap()).collect();
        match ids.as_slice() {
            [only] if only == run => {}
            [] => totals.lost.push(format!("{run} of {key}")),
            _ => totals.doubled.push(format!("{run} of {key}: {ids:?}")),
        }
    }
}

/// Like [`crashes::history`], without failing where there is something to be counted.
fn history(web: &Web, run: &str) -> Result<Vec<Steps>, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = web.get(&format!("/v1/runs/{run}"));
        if found.status != 200 {
            return Err(format!("{}: {}", found.status, found.text()));
        }
        let snapshot = found.json();
        match snapshot["status"].as_str().unwrap() {
            "completed" => return Ok(crashes::history(web, run)),
            status if is_terminal(status) || Instant::now() >= deadline => return Err(snapshot.to_string()),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// So few deaths may by chance hit nothing that is under way.
const FEW_DEATHS: usize = 100;

#[test]
fn thousands_of_deaths_lose_nothing_and_double_nothing() {
    let (seed, asked) = (seed(), number("BATON_CYCLES"));
    let (cycles, limit) = (asked.unwrap_or(8) as usize, limit(number("BATON_CAMPAIGN_MINUTES"), asked.is_some()));
    eprintln!("TEST_SEED={seed} BATON_CYCLES={cycles}");
    let (began, mut totals) = (Instant::now(), Totals::default());
    while totals.deaths < cycles && began.elapsed() < limit {
        let folder = tempfile::tempdir().unwrap();
        let deaths = DEATHS_PER_ERA.min(cycles - totals.deaths);
        era(seed.wrapping_add(totals.eras as u64), folder.path(), deaths, &mut totals);
        totals.report(began);
        eprintln!(
            "{} of {cycles} deaths after {} s: {} runs acknowledged, {} lost, {} doubled, {} held",
            totals.deaths,
            began.elapsed().as_secs(),
            totals.runs,
            totals.lost.len(),
            totals.doubled.len(),
            totals.held.len()
        );
    }
    eprint!("{}", totals.table(began));
    eprintln!("{}", totals.json(began));
    assert!(asked.is_none() || totals.deaths == cycles, "{} of the {cycles} deaths that were asked for", totals.deaths);
    // Whether a few deaths cut requests off depends on what else the machine does. Many must.
    let enough = totals.deaths < FEW_DEATHS || (totals.runs > totals.deaths && totals.cut_off > 0);
    assert!(totals.runs > 0 && enough, "the load was too light to prove anything");
    assert_eq!((&totals.lost, &totals.doubled), (&Vec::new(), &Vec::new()));
    assert_eq!(totals.held, Vec::<String>::new(), "nobody is guilty of a SIGKILL");
}

#[test]
fn a_campaign_that_is_asked_for_a_number_is_not_cut_short() {
    assert_eq!(limit(None, false), Duration::from_secs(600));
    assert_eq!(limit(None, true), Duration::MAX);
    assert_eq!(limit(Some(3), true), Duration::from_secs(180));
}
