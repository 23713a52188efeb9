//! One seed, from the first host that opens to the last run that ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use baton_model::RunId;
use baton_store::{Cluster, MemoryStore};

use crate::checks;
use crate::clients::{Acknowledged, Ask, Asked, Told};
use crate::disk::Observer;
use crate::host::{Ground, Life};
use crate::line::MoodyCourier;
use crate::panics;
use crate::peers::Outside;
use crate::prepared::prepared_disk;
use crate::rng::Rng;
use crate::time::SimTime;
use crate::trace::Trace;

const LEASE: Duration = Duration::from_secs(9);
const SECOND: i64 = 1_000_000;
/// How long clients and faults are at it, in seconds: at least, at most. Short seeds are many, and easier to understand.
const CHAOS_S: (u64, u64) = (5, 24);
/// Within this after the last fault every run has ended and every caller has an answer.
const DRAINED_WITHIN_US: i64 = 3_600 * SECOND;
/// More than any host needs to do what is to be done at one instant: past this, something goes in circles.
const MOST_STEPS_AT_ONCE: u64 = 20_000;
/// Time moves by at most this where nobody waits for anything nearer: timers of tokio's own are due then.
const LONGEST_ADVANCE_US: i64 = SECOND;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub seed: u64,
    pub hosts: usize,
    pub faults: bool,
}

impl Setup {
    /// Every third seed has three hosts, every tenth no faults.
    pub fn of_seed(seed: u64) -> Self {
        Self { seed, hosts: if seed % 3 == 2 { 3 } else { 1 }, faults: seed % 10 != 9 }
    }
}

/// What a seed came to.
#[derive(Debug)]
pub struct Report {
    /// Every row and record, in the order of the runs.
    pub journal: String,
    pub trace: Vec<String>,
    /// What did not hold, by the invariant.
    pub violations: Vec<String>,
    pub counts: BTreeMap<&'static str, u64>,
}

/// A host of the simulation: running, or down until it is started again.
pub(crate) enum Place {
    Up(Box<Life>),
    Down { until: i64 },
}

pub struct Simulation {
    pub(crate) setup: Setup,
    pub(crate) ground: Ground,
    pub(crate) places: Vec<Place>,
    pub(crate) lives: u64,
    pub(crate) news: Option<Arc<MoodyCourier>>,
    pub(crate) trace: Trace,
    /// Who goes next.
    pub(crate) turns: Rng,
    /// What clients do.
    pub(crate) wishes: Rng,
    /// What goes wrong.
    pub(crate) trouble: Rng,
    pub(crate) asked: Vec<Asked>,
    pub(crate) asked_so_far: u64,
    /// How many idempotency keys, texts and names clients have thought of.
    pub(crate) named_so_far: u64,
    pub(crate) lost: Vec<Ask>,
    pub(crate) known: Acknowledged,
    /// A host is killed after it has been polled this often.
    pub(crate) kills: BTreeMap<usize, u64>,
    pub(crate) next_wish: i64,
    pub(crate) next_fault: i64,
    pub(crate) refused: BTreeMap<RunId, i64>,
    pub(crate) moody_until: Option<i64>,
    pub(crate) in_chaos: bool,
    pub(crate) steps: u64,
    /// Before time last moved.
    steps_before: u64,
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) verified: BTreeMap<RunId, Option<String>>,
}

impl Simulation {
    fn new(setup: Setup) -> Self {
        let seed = setup.seed;
        let time = Arc::new(SimTime::default());
        let trace = Trace::new(Arc::clone(&time));
        let cluster = (setup.hosts > 1).then(|| {
            let clock = Arc::clone(&time);
            Cluster::from_disk(prepared_disk(), LEASE, move || clock.timestamp())
        });
        let observer = match &cluster {
            Some(cluster) => Observer::new(cluster.observe()),
            None => Observer::new(MemoryStore::from_disk(prepared_disk())),
        };
        let news = cluster.as_ref().map(|cluster| {
            let news = Arc::new(MoodyCourier::new(Rng::stream(seed, "news")));
            cluster.send_by(Arc::clone(&news) as _);
            news
        });
        let outside = Arc::new(Outside::new(Rng::stream(seed, "peers"), observer.clone()));
        let turns = Rng::stream(seed, "turns");
        let ahead = *turns.pick(&[1, 3, 512]).unwrap_or(&512);
        let now = time.now();
        Self {
            setup,
            ground: Ground { seed, time, observer, cluster, outside, ahead },
            places: (0..setup.hosts).map(|_| Place::Down { until: now }).collect(),
            lives: 0,
            news,
            trace,
            turns,
            wishes: Rng::stream(seed, "wishes"),
            trouble: Rng::stream(seed, "trouble"),
            asked: Vec::new(),
            asked_so_far: 0,
            named_so_far: 0,
            lost: Vec::new(),
            known: Acknowledged::default(),
            kills: BTreeMap::new(),
            next_wish: now,
            next_fault: now + SECOND / 2,
            refused: BTreeMap::new(),
            moody_until: None,
            in_chaos: true,
            steps: 0,
            steps_before: 0,
            counts: BTreeMap::new(),
            verified: BTreeMap::new(),
        }
    }

    /// Runs a seed to its end.
    pub fn run(setup: Setup) -> Report {
        panics::listen();
        let mut simulation = Self::new(setup);
        let mut violations = simulation.go();
        violations.extend(panics::heard().iter().map(|why| format!("nothing panics: {why}")));
        violations.extend(simulation.known.objections.iter().map(|why| format!("acknowledged: {why}")));
        violations.extend(simulation.ground.outside.objections().iter().map(|why| format!("effects: {why}")));
        let observer = simulation.ground.observer.clone();
        violations.extend(checks::all(&observer, &simulation.known, &simulation.ground.outside));
        simulation.note("runs", observer.runs().len() as u64);
        simulation.note("records", observer.runs().iter().map(|row| row.next_seq).sum());
        simulation.note("calls", simulation.ground.outside.calls());
        simulation.note("late deliveries", simulation.ground.outside.late());
        simulation.note("steps", simulation.steps);
        Report {
            journal: observer.journal(),
            trace: simulation.trace.lines(),
            violations,
            counts: std::mem::take(&mut simulation.counts),
        }
    }

    pub(crate) fn now(&self) -> i64 {
        self.ground.time.now()
    }

    pub(crate) fn note(&mut self, what: &'static str, times: u64) {
        *self.counts.entry(what).or_default() += times;
    }

    fn go(&mut self) -> Vec<String> {
        let end = self.now() + i64::try_from(self.trouble.between(CHAOS_S.0, CHAOS_S.1)).unwrap_or(0) * SECOND;
        while self.now() < end {
            if let Err(why) = self.step(true) {
                return vec![why];
            }
        }
        self.heal();
        let end = self.now() + DRAINED_WITHIN_US;
        loop {
            let now = self.now();
            if let Err(why) = self.step(false) {
                return vec![why];
            }
            if self.now() == now {
                continue;
            }
            if self.drained() {
                break;
            }
            if now >= end {
                return vec![format!("no waiter hangs: after an hour of peace {}", self.what_is_left())];
            }
        }
        self.go_through_again()
    }

    /// Whatever comes next: a host runs for a while, a disk takes something in, or time moves.
    pub(crate) fn step(&mut self, chaos: bool) -> Result<(), String> {
        self.steps += 1;
        if self.steps - self.steps_before > MOST_STEPS_AT_ONCE {
            return Err(format!("no waiter hangs: going in circles; {}", self.what_is_left()));
        }
        self.take_answers();
        let mut actors = Vec::new();
        for (index, place) in self.places.iter().enumerate() {
            if let Place::Up(life) = place
                && life.frozen_until.is_none()
            {
                if !life.quiet {
                    actors.push((index, false));
                }
                if life.store.waiting() > 0 {
                    actors.push((index, true));
                }
            }
        }
        match self.turns.pick(&actors).copied() {
            Some((index, false)) => self.run_host(index),
            Some((index, true)) => self.run_disk(index),
            None => {
                self.steps_before = self.steps;
                self.pass_time(chaos);
            }
        }
        Ok(())
    }

    fn run_host(&mut self, index: usize) {
        let mut polls = if self.turns.percent(20) { 1 } else { self.turns.between(1, 60) };
        let left = self.kills.get(&index).copied();
        polls = left.map_or(polls, |left| polls.min(left)).max(1);
        let Some(Place::Up(life)) = self.places.get_mut(index) else { return };
        let ran = life.executor.run(polls);
        life.quiet = ran.idle;
        if let Some(left) = left {
            let left = left.saturating_sub(ran.polls);
            if left == 0 {
                return self.kill(index, "in the middle of its work");
            }
            self.kills.insert(index, left);
        }
        if ran.polls > 0 && self.places.len() > 1 {
            self.wake_all_but(index);
        }
    }

    fn run_disk(&mut self, index: usize) {
        let Some(Place::Up(life)) = self.places.get_mut(index) else { return };
        let most = self.turns.between(1, life.store.waiting() as u64);
        life.store.release_some(usize::try_from(most).unwrap_or(1));
        life.quiet = false;
        self.wake_all_but(index);
    }

    pub(crate) fn wake_all_but(&mut self, index: usize) {
        for (other, place) in self.places.iter_mut().enumerate() {
            if let Place::Up(life) = place
                && other != index
            {
                life.quiet = false;
            }
        }
    }

    /// Nobody has anything to do: the next moment at which somebody has.
    fn pass_time(&mut self, chaos: bool) {
        let now = self.now();
        let mut next = now + LONGEST_ADVANCE_US;
        for place in &self.places {
            match place {
                Place::Down { until } => next = next.min(*until),
                Place::Up(life) => {
                    if life.frozen_until.is_none() {
                        next = life.clock.next_due().map_or(next, |due| next.min(due));
                    }
                    for until in [life.frozen_until, life.trouble_until].into_iter().flatten() {
                        next = next.min(until);
                    }
                }
            }
        }
        next = next.min(self.next_wish);
        if chaos && self.setup.faults {
            next = next.min(self.next_fault);
        }
        let next = next.max(now + 1);
        self.ground.time.advance_to(next);
        for place in &mut self.places {
            if let Place::Up(life) = place {
                life.behind += next - now;
                if life.frozen_until.is_none() {
                    life.executor.advance(std::mem::take(&mut life.behind));
                    life.clock.wake_due();
                    life.quiet = false;
                }
            }
        }
        self.end_troubles();
        self.start_hosts();
        if self.now() >= self.next_wish {
            self.wish(chaos);
        }
        if chaos && self.setup.faults && self.now() >= self.next_fault {
            self.break_something();
        }
    }

    fn start_hosts(&mut self) {
        let now = self.now();
        for index in 0..self.places.len() {
            if matches!(self.places.get(index), Some(Place::Down { until }) if *until <= now) {
                self.lives += 1;
                let life = Life::begin(&self.ground, index, self.lives, &self.trouble);
                self.trace.add(format!(
                    "host {index} starts (life {}, clock {}us ahead)",
                    self.lives,
                    life.clock.offset()
                ));
                self.places[index] = Place::Up(Box::new(life));
                // Some die while they open.
                if self.in_chaos && self.setup.faults && self.trouble.percent(8) {
                    self.kills.insert(index, self.trouble.between(1, 400));
                }
            }
        }
    }

    pub(crate) fn kill(&mut self, index: usize, why: &str) {
        self.kills.remove(&index);
        let longest = if self.trouble.percent(25) { 15_000 } else { 1_500 };
        let until = self.now() + i64::try_from(self.trouble.between(0, longest)).unwrap_or(0) * 1000;
        if let Some(place) = self.places.get_mut(index)
            && let Place::Up(life) = std::mem::replace(place, Place::Down { until })
        {
            self.trace.add(format!("host {index} is killed {why}; {} commits lost", life.store.waiting()));
            life.kill();
            self.note("kills", 1);
        }
        // Whoever asked it does not know what came of that.
        for asked in std::mem::take(&mut self.asked) {
            if asked.host == index {
                if matches!(asked.ask, Ask::Start { .. }) {
                    self.lost.push(asked.ask);
                }
            } else {
                self.asked.push(asked);
            }
        }
        self.wake_all_but(index);
    }

    fn take_answers(&mut self) {
        let mut waiting = Vec::new();
        for asked in std::mem::take(&mut self.asked) {
            match asked.take() {
                None => waiting.push(asked),
                Some(Ok(told)) => {
                    self.note("acknowledged", 1);
                    self.trace.add(format!("#{} {} -> {told:?}", asked.number, asked.ask));
                    if let (Ask::Verify { run, .. }, Told::Verified(difference)) = (&asked.ask, &told) {
                        self.verified.insert(run.clone(), difference.clone());
                    }
                    self.known.note(&asked.ask, told);
                }
                Some(Err(error)) => {
                    self.note("refused", 1);
                    self.trace.add(format!("#{} {} -> {} ({})", asked.number, asked.ask, error.code, error.message));
                    // Asked again under the same key, later.
                    if matches!(asked.ask, Ask::Start { .. })
                        && error.kind == baton_runtime::ErrorKind::Unavailable
                        && self.in_chaos
                    {
                        self.lost.push(asked.ask);
                    }
                }
            }
        }
        self.asked = waiting;
    }

    /// Asks a host, if it is there. It is woken.
    pub(crate) fn ask(&mut self, index: usize, ask: Ask) -> bool {
        let Some(Place::Up(life)) = self.places.get_mut(index) else { return false };
        let Some(host) = life.host() else { return false };
        self.asked_so_far += 1;
        self.trace.add(format!("#{} {ask} (host {index})", self.asked_so_far));
        self.known.pruned |= matches!(ask, Ask::Prune { .. });
        let asked = Asked::new(ask, self.asked_so_far, index);
        life.executor.spawn(asked.begin(host, Arc::clone(&life.keys)));
        life.quiet = false;
        self.asked.push(asked);
        true
    }

    /// Peers and lines are well from now on.
    fn heal(&mut self) {
        self.trace.add("peace");
        self.in_chaos = false;
        self.kills.clear();
        self.ground.outside.well.store(true, Ordering::Relaxed);
        for place in &mut self.places {
            if let Place::Up(life) = place {
                life.frozen_until = None;
                life.trouble_until = None;
                life.make_well();
            }
        }
        if let Some(news) = &self.news {
            news.moody.store(false, Ordering::Relaxed);
        }
        for (run, _) in std::mem::take(&mut self.refused) {
            self.ground.observer.store().accept_run(&run);
        }
        self.wake_all_but(usize::MAX);
        self.next_wish = self.now();
    }
}
