//! Everything at once: several tenants at work, runs that kill, panic and freeze the process, subscribers and tool servers
//! that are dead, and a host that is killed again and again. What was acknowledged is there and happened once; whoever is in
//! quarantine deserved it; everybody else got on.
//!
//! `BATON_CYCLES` sets how often the host dies by our hand (8 by default), `TEST_SEED` the chance.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::crashes::{Address, Steps, history, storage_is_sound};
use support::flow::{chain, hand_to, node, team};
use support::rng::{Rng, seed};
use support::web::{Web, of_type};
use support::{NOBODY, PATIENCE, Running};

const TENANTS: [&str; 3] = ["acme", "beta", "gamma"];
const CLIENTS_PER_TENANT: u64 = 2;
/// How many runs a client starts before the first death, and how many more with each: there is load to the end, and the
/// audit stays short.
const FIRST_RUNS: usize = 20;
const RUNS_PER_CYCLE: usize = 2;
const REST_MS: u64 = 40;
/// In how many cycles there is one bad run, once there are [`FIRST_BAD`]: each costs the host a few of its lives.
const CYCLES_PER_BAD: usize = 20;
const FIRST_BAD: usize = 12;
const BAD: [&str; 3] = ["fault:abort", "fault:panic", "fault:spin"];
const FLOWS: [&str; 4] = ["plain", "waits", "asks", "team"];

fn cycles() -> usize {
    std::env::var("BATON_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(8)
}

fn flows() -> Vec<Value> {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let set = |id: &str, expression: &str| node(id, "core.setVariable", json!({"name": "n", "expression": expression}));
    let wait = |ms: u64| node("wait", "core.delay", json!({"ms": ms}));
    let rules = json!([{"when": "size(children) < 2", "decide": hand_to("worker")}]);
    vec![
        chain("plain", vec![set("a", "1"), set("b", "variables.n + 1"), noop("c")]),
        chain("waits", vec![noop("a"), wait(250), noop("b")]),
        chain("asks", vec![node("gate", "core.approvalGate", json!({"title": "Go on?"})), noop("after")]),
        chain("worker", vec![noop("a"), wait(40), noop("b")]),
        team("team", rules, json!({"kind": "terminate"}), json!({})),
        chain("bad", vec![noop("a"), wait(100), noop("b")]),
    ]
}

/// What everybody was told, and by whom it was chosen to be bad.
#[derive(Default)]
struct Replies {
    /// Run → its workflow.
    acknowledged: BTreeMap<String, String>,
    answered: BTreeSet<String>,
    bad: BTreeMap<String, String>,
}

/// A tenant's client: starts runs, answers questions, and now and then starts what it should not.
fn load(client: u64, seed: u64, address: &Address, cycle: &AtomicUsize, stop: &AtomicBool) -> Replies {
    let mut rng = Rng::new(seed ^ (0x5eed + client));
    let (mut replies, mut open, mut count) = (Replies::default(), Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(rng.below(REST_MS)));
        let cycle = cycle.load(Ordering::Relaxed);
        let most_bad = (cycles() / 2).min(FIRST_BAD + cycle / CYCLES_PER_BAD);
        if count < FIRST_RUNS + RUNS_PER_CYCLE * cycle {
            count += 1;
            let flow = FLOWS[rng.below(FLOWS.len() as u64) as usize];
            if let Some(run) = start(address, json!({"workflowId": flow})) {
                replies.acknowledged.insert(run.clone(), flow.to_owned());
                open.extend((flow == "asks").then_some(run));
            }
        }
        // Only clients of the first tenant are bad.
        let another = replies.bad.is_empty() || (rng.below(8) == 0 && replies.bad.len() < most_bad);
        if client == 0 && another {
            let tag = BAD[replies.bad.len() % BAD.len()];
            if let Some(run) = start(address, json!({"workflowId": "bad", "tags": ["bad", tag]})) {
                replies.bad.insert(run, tag.to_owned());
            }
        }
        if !open.is_empty() && rng.below(3) == 0 {
            let run = open.swap_remove(rng.below(open.len() as u64) as usize);
            answer(address, &run, &mut replies.answered);
        }
    }
    for run in open {
        answer(address, &run, &mut replies.answered);
    }
    // However short the campaign was, there is one.
    while client == 0 && replies.bad.is_empty() {
        let bad = start(address, json!({"workflowId": "bad", "tags": ["bad", BAD[0]]}));
        replies.bad.extend(bad.map(|run| (run, BAD[0].to_owned())));
    }
    replies
}

fn start(address: &Address, body: Value) -> Option<String> {
    let answer = address.attempt("POST", "/v1/runs", &[], Some(&body))?;
    // While a host starts or stops it says so.
    (answer.status != 503).then(|| answer.expect(201)["runId"].as_str().unwrap().to_owned())
}

/// Answers a question until it is known to be answered. Nobody else answers it.
fn answer(address: &Address, run: &str, answered: &mut BTreeSet<String>) {
    let key = format!("answer-{run}");
    loop {
        let body = json!({"resumeValue": {"action": "accept"}});
        let sent = address.attempt(
            "POST",
            &format!("/v1/runs/{run}/interrupts/gate"),
            &[("Idempotency-Key", &key)],
            Some(&body),
        );
        match sent {
            Some(answer) if answer.status == 200 => {
                answered.insert(run.to_owned());
                return;
            }
            Some(answer) => assert!([404, 409, 503].contains(&answer.status), "{run}: {}", answer.text()),
            None => {}
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The host, its lives and what they cost.
struct Host<'a> {
    folder: &'a Path,
    config: String,
    addresses: &'a [Address],
    own_deaths: &'a AtomicUsize,
    restarts: &'a Mutex<Vec<Duration>>,
}

impl Host<'_> {
    /// Starts hosts until one listens: what the last one died of may be due at once.
    fn start_host(&self) -> Running {
        let keys: Vec<String> =
            self.addresses.iter().zip(TENANTS).map(|(address, tenant)| format!("{}:{tenant}", address.key)).collect();
        let keys = keys.join(",");
        let env = [
            ("BATON_API_KEYS", keys.as_str()),
            ("BATON_STUCK_AFTER_SECONDS", "2"),
            ("TEST_FAULTS_BY_TAG", "1"),
            ("OPENWOP_WEBHOOK_ALLOW_PRIVATE", "true"),
        ];
        let deadline = Instant::now() + PATIENCE;
        loop {
            let began = Instant::now();
            if let Ok(host) =
                Running::try_start(self.folder, &["serve", "--conformance", "--config", &self.config], &env)
            {
                self.restarts.lock().unwrap().push(began.elapsed());
                self.addresses.iter().for_each(|address| address.set(Some(&host.url)));
                return host;
            }
            self.own_deaths.fetch_add(1, Ordering::Relaxed);
            assert!(Instant::now() < deadline, "the host does not come up");
        }
    }

    /// Lets it live for a while; whatever it dies of, it is raised again.
    fn live(&self, mut host: Running, time: Duration) -> Running {
        let until = Instant::now() + time;
        while Instant::now() < until {
            if host.ends_within(Duration::from_millis(20)).is_some() {
                self.own_deaths.fetch_add(1, Ordering::Relaxed);
                self.addresses.iter().for_each(|address| address.set(None));
                host = self.start_host();
            }
        }
        host
    }
}

#[test]
fn tenants_get_on_beside_poison_crashes_and_dead_peers() {
    let seed = seed();
    let cycles = cycles();
    eprintln!("TEST_SEED={seed} BATON_CYCLES={cycles}");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("campaign.toml");
    // A tool server that ends at once, one that never says a word, and a host that is not there.
    let peers = format!(
        "[mcp.ends]\ncommand = \"false\"\n[mcp.mute]\ncommand = \"sleep\"\nargs = [\"600\"]\n[mcp.away]\nurl = \"http://{NOBODY}/mcp\"\n"
    );
    std::fs::write(&config, peers).unwrap();
    let addresses: Vec<Address> = TENANTS
        .iter()
        .map(|tenant| Address::new(&format!("campaign-{tenant}-{}-{seed}", std::process::id())))
        .collect();
    let (own_deaths, restarts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let host = Host {
        folder: folder.path(),
        config: config.display().to_string(),
        addresses: &addresses,
        own_deaths: &own_deaths,
        restarts: &restarts,
    };
    let (stop, cycle) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (running, replies) = std::thread::scope(|scope| {
        let mut running = host.start_host();
        for address in &addresses {
            let web = Web::new(&running.url, Some(&address.key));
            flows().into_iter().for_each(|flow| drop(web.post("/v1/workflows", flow).expect(201)));
            for number in 0..20 {
                let url = format!("http://{NOBODY}/{number}");
                web.post("/v1/webhooks", json!({"url": url, "events": ["*"]})).expect(201);
            }
        }
        let (stop, cycle) = (&stop, &cycle);
        let clients: Vec<_> = addresses
            .iter()
            .enumerate()
            .flat_map(|(tenant, address)| {
                (0..CLIENTS_PER_TENANT).map(move |number| (tenant as u64 * 10 + number, address))
            })
            .map(|(client, address)| {
                let load = move || (client / 10, load(client, seed, address, cycle, stop));
                scope.spawn(load)
            })
            .collect();
        let mut rng = Rng::new(seed);
        for number in 0..cycles {
            cycle.store(number, Ordering::Relaxed);
            running = host.live(running, Duration::from_millis(rng.below(700)));
            running.kill();
            addresses.iter().for_each(|address| address.set(None));
            running = host.start_host();
        }
        stop.store(true, Ordering::Relaxed);
        // Whoever is bad has two deaths more to come.
        while clients.iter().any(|client| !client.is_finished()) {
            running = host.live(running, Duration::from_millis(200));
        }
        let replies: Vec<(u64, Replies)> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let deadline = Instant::now() + 4 * PATIENCE;
        while let Some(trouble) = trouble(&addresses[0]) {
            assert!(Instant::now() < deadline, "{trouble}");
            running = host.live(running, Duration::from_millis(200));
        }
        (running, replies)
    });

    let webs: Vec<Web> = addresses.iter().map(|address| Web::new(&running.url, Some(&address.key))).collect();
    let (mut acknowledged, mut answered, mut bad) = (0, 0, 0);
    for (tenant, replies) in &replies {
        let web = &webs[*tenant as usize];
        let undisturbed = undisturbed(web);
        acknowledged += replies.acknowledged.len();
        answered += replies.answered.len();
        bad += replies.bad.len();
        for (run, flow) in &replies.acknowledged {
            assert_eq!(history(web, run), undisturbed[flow.as_str()], "{flow} {run}");
        }
        for run in &replies.answered {
            assert_eq!(of_type(&web.events(run), "approval.received").len(), 1, "{run}");
        }
    }
    // Nobody else is held, and whoever is can be ended.
    let guilty: BTreeSet<&String> = replies.iter().flat_map(|(_, replies)| replies.bad.keys()).collect();
    let mut held = 0;
    for web in &webs {
        for tree in web.get("/v1/host/baton/quarantine?limit=200").expect(200)["trees"].as_array().unwrap() {
            let run = tree["rootRunId"].as_str().unwrap().to_owned();
            // One whose acknowledgement was lost is bad all the same.
            let tags = web.snapshot(&run)["tags"].clone();
            let is_bad = tags.as_array().is_some_and(|tags| tags.iter().any(|tag| tag == "bad"));
            assert!(guilty.contains(&run) || is_bad, "{run} is innocent: {tree}");
            held += 1;
            web.cancel(&run);
            web.ended(&run, "cancelled");
        }
    }
    assert!(held >= bad, "{held} of {bad} bad runs were held");
    let mut times = std::mem::take(&mut *restarts.lock().unwrap());
    times.sort_unstable();
    let millis = |share: usize| times[(times.len() - 1) * share / 100].as_millis();
    eprintln!(
        "{cycles} kills, {} crashes of its own, {acknowledged} runs and {answered} answers acknowledged, 0 lost, 0 doubled, \
         {held} in quarantine of {bad} bad ones, {} starts: p50 {} ms, p99 {} ms",
        own_deaths.load(Ordering::Relaxed),
        times.len(),
        millis(50),
        millis(99)
    );
    assert!(bad > 0 && acknowledged > cycles, "the load was too light to prove anything");
    assert_eq!(running.stop(), 0);
    storage_is_sound(folder.path());
}

/// What may still end the process: a bad run that goes free, whether or not its start was acknowledged, or a thread that
/// one has frozen.
fn trouble(address: &Address) -> Option<String> {
    let get = |path: &str| address.attempt("GET", path, &[], None);
    let Some(bad) = get("/v1/runs?tag=bad&limit=200").filter(|answer| answer.status == 200) else {
        return Some("the host does not answer".to_owned());
    };
    let bad = bad.json();
    let runs: Vec<&str> = bad["runs"].as_array().unwrap().iter().filter_map(|run| run["runId"].as_str()).collect();
    let held = |run: &str| get(&format!("/v1/runs/{run}")).is_some_and(|run| run.json()["quarantine"].is_object());
    if let Some(free) = runs.into_iter().find(|run| !held(run)) {
        return Some(format!("{free} was never put in quarantine"));
    }
    let ready = get("/readiness").is_some_and(|answer| answer.status == 200);
    (!ready).then(|| "the host is not ready".to_owned())
}

/// One run of each workflow that nobody disturbed.
fn undisturbed(web: &Web) -> BTreeMap<&'static str, Vec<Steps>> {
    let history = |flow: &'static str| {
        let run = web.start(flow);
        if flow == "asks" {
            web.until_status(&run, "waiting-approval");
            web.resolve(&run, "gate", json!({"action": "accept"})).expect(200);
        }
        (flow, history(web, &run))
    };
    FLOWS.into_iter().map(history).collect()
}
