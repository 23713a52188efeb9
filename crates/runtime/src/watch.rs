//! Finding out that something does not move.
//!
//! Whatever may stick says when it begins and when it is done. A thread of its own looks at that once in a while; it
//! counts its looks, not the time, so a machine that slept finds nothing amiss. Something that does not end makes the
//! host unready, by name. A step that still does not end, or async workers that do not run, end the process: then its
//! supervisor, or another host, takes over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use baton_model::{RunId, TenantId};
use parking_lot::Mutex;

/// How patient the watchdog is. All of it in looks.
#[derive(Clone)]
pub struct Watchdog {
    /// How far apart looks are.
    pub every: Duration,
    /// After this many looks something counts as stuck. No step takes a second: what it may compute is metered.
    pub stuck_after: u64,
    /// After this many the process is ended.
    pub end_after: u64,
    /// Ends the process, and is told why.
    pub end: Arc<dyn Fn(&str) + Send + Sync>,
}

impl std::fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watchdog({:?}, {}, {})", self.every, self.stuck_after, self.end_after)
    }
}

impl Watchdog {
    /// Often enough that a bound of one second is not half of one: what began just before a look is one look old at
    /// once.
    pub const LOOKS_PER_SECOND: u64 = 4;

    /// Half a minute until something is stuck, and as long again until the process ends.
    pub fn new(end: Arc<dyn Fn(&str) + Send + Sync>) -> Self {
        let every = Duration::from_millis(1000 / Self::LOOKS_PER_SECOND);
        let stuck_after = 30 * Self::LOOKS_PER_SECOND;
        Self { every, stuck_after, end_after: 2 * stuck_after, end }
    }
}

/// What is under way.
pub(crate) struct Watch {
    /// How often the watchdog has looked.
    looks: AtomicU64,
    /// One for each place that runs are stepped in.
    steps: Box<[Mutex<Option<Stepping>>]>,
    works: Mutex<Works>,
    /// At which look the async workers last ran.
    heartbeat: AtomicU64,
    /// Tasks that ended though they should not have, and why.
    down: Mutex<BTreeMap<&'static str, String>>,
    stuck: Mutex<Option<Trouble>>,
    /// The watchdog looks for as long as this is there.
    pub(crate) watching: Mutex<Option<mpsc::SyncSender<()>>>,
}

/// Why the host is not getting on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// For everybody: it names nothing that belongs to a tenant.
    pub(crate) reason: String,
    /// For whoever operates the host.
    pub(crate) detail: String,
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Self { detail: reason.clone(), reason }
    }
}

#[derive(Clone)]
struct Stepping {
    root: RunId,
    run: RunId,
    tenant: TenantId,
    since: u64,
    /// The tree has been put in quarantine for it.
    told: bool,
}

#[derive(Default)]
struct Works {
    next: u64,
    under_way: BTreeMap<u64, (&'static str, u64)>,
}

/// Says that something is done when it is dropped.
pub(crate) struct Watched<'a> {
    watch: &'a Watch,
    what: What,
}

enum What {
    Step(usize),
    Work(u64),
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        match self.what {
            What::Step(place) => {
                if let Some(step) = self.watch.steps.get(place) {
                    *step.lock() = None;
                }
            }
            What::Work(number) => drop(self.watch.works.lock().under_way.remove(&number)),
        }
    }
}

impl Watch {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            looks: AtomicU64::new(0),
            steps: (0..places.max(1)).map(|_| Mutex::new(None)).collect(),
            works: Mutex::default(),
            heartbeat: AtomicU64::new(0),
            down: Mutex::default(),
            stuck: Mutex::new(None),
            watching: Mutex::new(None),
        }
    }

    /// What has begun and not ended, for whoever operates the host.
    pub(crate) fn under_way(&self) -> Vec<String> {
        let steps =
            self.steps.iter().filter_map(|step| step.lock().as_ref().map(|step| format!("a step of {}", step.run)));
        let mut names: Vec<String> = steps.collect();
        names.extend(self.works.lock().under_way.values().map(|(name, _)| (*name).to_owned()));
        names
    }

    /// Nobody looks any more.
    pub(crate) fn over(&self) {
        *self.watching.lock() = None;
    }

    /// A run is being stepped in this place.
    pub(crate) fn step(&self, place: usize, root: &RunId, run: &RunId, tenant: &TenantId) -> Watched<'_> {
        if let Some(step) = self.steps.get(place) {
            let (root, run, tenant) = (root.clone(), run.clone(), tenant.clone());
            *step.lock() = Some(Stepping { root, run, tenant, since: self.looks(), told: false });
        }
        Watched { watch: self, what: What::Step(place) }
    }

    /// A task is at a piece of work that should end before long.
    pub(crate) fn work(&self, name: &'static str) -> Watched<'_> {
        let mut works = self.works.lock();
        works.next += 1;
        let (number, since) = (works.next, self.looks());
        works.under_way.insert(number, (name, since));
        Watched { watch: self, what: What::Work(number) }
    }

    pub(crate) fn task_down(&self, name: &'static str, why: String) {
        self.down.lock().insert(name, why);
    }

    pub(crate) fn task_up(&self, name: &'static str) {
        self.down.lock().remove(name);
    }

    pub(crate) fn beat(&self) {
        self.heartbeat.store(self.looks(), Ordering::Release);
    }

    /// Why the host is not getting on, if it is not.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let down = self.down.lock().iter().next().map(|(name, why)| {
            let reason = format!("the task `{name}` has stopped");
            Trouble { detail: format!("{reason}: {why}"), reason }
        });
        down.or_else(|| self.stuck.lock().clone())
    }

    fn looks(&self) -> u64 {
        self.looks.load(Ordering::Acquire)
    }

    /// One look. Says which steps have just been found stuck, and why the process must end, if it must.
    pub(crate) fn look(&self, dog: &Watchdog) -> Found {
        let now = self.looks.fetch_add(1, Ordering::AcqRel) + 1;
        let mut found = Found::default();
        let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
        for (place, step) in self.steps.iter().enumerate() {
            let mut step = step.lock();
            let Some(stepping) = step.as_mut() else { continue };
            let age = now - stepping.since;
            if age >= dog.stuck_after {
                names.push(format!("a step of {}", stepping.run));
                kinds.insert("a step of a run");
                if !stepping.told {
                    stepping.told = true;
                    let Stepping { root, run, tenant, .. } = stepping.clone();
                    found.stuck.push(StuckStep { place, root, run, tenant });
                }
            }
            if age >= dog.end_after {
                found.end = Some(format!("a step of {} (tenant {}) does not end", stepping.run, stepping.tenant));
            }
        }
        let works = self.works.lock();
        let slow = works.under_way.values().filter(|(_, since)| now - since >= dog.stuck_after);
        for (name, _) in slow {
            names.push((*name).to_owned());
            kinds.insert(name);
        }
        drop(works);
        let silent = now.saturating_sub(self.heartbeat.load(Ordering::Acquire));
        if silent >= dog.stuck_after {
            names.push("the async workers".to_owned());
            kinds.insert("the async workers");
        }
        if silent >= dog.end_after {
            found.end = Some("the async workers do not run".to_owned());
        }
        let stuck = (!names.is_empty()).then(|| Trouble {
            reason: format!("stuck: {}", kinds.into_iter().collect::<Vec<_>>().join(", ")),
            detail: format!("stuck: {}", names.join(", ")),
        });
        let mut known = self.stuck.lock();
        if *known != stuck {
            match &stuck {
                Some(found) => tracing::error!(names = %found.detail, "work does not get on"),
                None => tracing::info!("work gets on again"),
            }
            *known = stuck;
        }
        found
    }
}

/// A step that has just been found not to end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StuckStep {
    pub(crate) place: usize,
    pub(crate) root: RunId,
    pub(crate) run: RunId,
    pub(crate) tenant: TenantId,
}

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) stuck: Vec<StuckStep>,
    pub(crate) end: Option<String>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn dog() -> Watchdog {
        Watchdog { every: Duration::ZERO, stuck_after: 3, end_after: 5, end: Arc::new(|_| {}) }
    }

    fn ids() -> (RunId, TenantId) {
        (RunId::new("run_a"), TenantId::new("acme"))
    }

    #[test]
    fn a_step_without_end_is_named_then_ends_the_process() {
        let (watch, (run, tenant)) = (Watch::new(2), ids());
        let step = watch.step(1, &run, &run, &tenant);
        let mut stuck = Vec::new();
        let mut end = None;
        for look in 1..=5 {
            watch.beat();
            let found = watch.look(&dog());
            assert_eq!(watch.trouble().is_some(), look >= 3, "look {look}");
            stuck.extend(found.stuck);
            end = found.end;
        }
        assert_eq!(stuck, [StuckStep { place: 1, root: run.clone(), run, tenant }], "told once");
        let told = watch.trouble().unwrap();
        assert!(told.detail.contains("run_a"), "{told:?}");
        assert_eq!(told.reason, "stuck: a step of a run", "anybody may read this");
        assert!(end.is_some_and(|why| why.contains("run_a")));
        drop(step);
        watch.beat();
        assert!(watch.look(&dog()).end.is_none() && watch.trouble().is_none(), "over as soon as it ends");
    }

    #[test]
    fn many_short_steps_are_not_one_long_one() {
        let (watch, (run, tenant)) = (Watch::new(1), ids());
        for _ in 0..20 {
            drop(watch.step(0, &run, &run, &tenant));
            let _step = watch.step(0, &run, &run, &tenant);
            watch.beat();
            let found = watch.look(&dog());
            assert!(found.end.is_none() && found.stuck.is_empty() && watch.trouble().is_none());
        }
    }

    #[test]
    fn silent_workers_and_slow_tasks_are_noticed_and_only_the_former_are_fatal() {
        let watch = Watch::new(1);
        let work = watch.work("reading deliveries");
        let ends: Vec<bool> = (0..8)
            .map(|_| {
                watch.beat();
                watch.look(&dog()).end.is_some()
            })
            .collect();
        assert_eq!(ends, [false; 8]);
        assert!(watch.trouble().is_some_and(|why| why.reason.contains("reading deliveries")));
        drop(work);
        let ends: Vec<bool> = (0..8).map(|_| watch.look(&dog()).end.is_some()).collect();
        assert!(ends[7] && watch.trouble().is_some_and(|why| why.reason.contains("async workers")));
    }

    #[test]
    fn a_task_that_stopped_shows_until_it_runs_again() {
        let watch = Watch::new(1);
        watch.task_down("timers", "panicked".to_owned());
        assert!(watch.trouble().is_some_and(|why| why.reason.contains("timers") && why.detail.contains("panicked")));
        watch.task_up("timers");
        assert!(watch.trouble().is_none());
    }
}
