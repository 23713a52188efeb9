//! Which steps wait for a runner, which runner has which, and what its stream is still to be told. All of it in memory and
//! under one lock; nobody waits for anything here. Whoever changes something is handed what has to be written.
//!
//! ```text
//!  queued ──► granted ──► its row is durable ──► shown on the stream ──► answered
//!    ▲            │ the row was refused                 │ released              │ its time is up
//!    └────────────┴─────────────────────────────────────┘                       └──► lost
//! ```

mod hosts;
mod lease_of;
mod leases;
mod matching;
mod stream;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use baton_model::{RunId, TenantId, Timestamp};
use baton_store::StepRow;
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) use self::hosts::Held;
pub(crate) use self::lease_of::LeaseOf;
pub(crate) use self::leases::{Abandoned, Answerable, Said, Withdrawn};
pub(crate) use self::matching::Before;
pub(crate) use self::stream::Reader;
pub use self::stream::{DispatchContext, DispatchFrame, Told};
use super::names::RunnerOwner;
use super::rows::{Given, Registration, Step, StepBody};

/// How many steps of one subject may wait for a runner.
pub(crate) const MOST_QUEUED: usize = 1_000;
/// How many numbers are set aside for a runner at a time. Each time costs a row.
const SEQ_BLOCK: u64 = 1 << 20;
/// How long a step that was lost is kept in memory: its row is on disk long before.
const LOST_KEPT_MS: u64 = 10 * 60 * 1000;

/// How it stands with a step, for the run that waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Queued,
    /// A runner has it.
    Given,
    /// Nobody knows what became of it.
    Lost(String),
    /// Too many runners gave it back: it was not made, and is not tried any more.
    GivenBack,
    /// Its result is on its way to the run, or the run wants nothing of it any more.
    Over,
}

#[derive(Default)]
pub(crate) struct Board {
    state: Mutex<State>,
    /// Sign what programs show for the steps they have in hand.
    token_secrets: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(super) struct State {
    owners: HashMap<RunnerOwner, OwnerBoard>,
    /// By key.
    names: HashMap<String, RunnerOwner>,
    steps: HashMap<String, Entry>,
    numbers: u64,
}

#[derive(Default)]
struct OwnerBoard {
    /// Steps that wait, by what a runner must have for them and in which order they came.
    queues: BTreeMap<Demand, BTreeMap<u64, String>>,
    queued: usize,
    /// Steps of this owner wait on other hosts, as far as is known.
    elsewhere: bool,
    runners: BTreeMap<String, Attached>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Demand {
    tool: String,
    version: Option<String>,
}

struct Entry {
    step: Arc<Step>,
    place: Place,
    standing: watch::Sender<Standing>,
    given: Vec<Given>,
    /// Of its row as it was last written; 0 where there is none.
    version: u64,
    /// Nobody waits for it any more.
    abandoned: bool,
    /// Its result is on its way to the run.
    answering: bool,
    /// The run is driven by another host.
    foreign: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Queued {
        order: u64,
    },
    With {
        runner: String,
        seq: u64,
    },
    /// Another host gave it to a runner. Whether that host is there is looked at then.
    Elsewhere {
        look_at: Timestamp,
    },
    /// Nobody knows what became of it. Kept for a while: whoever takes it up again, or answers it late, needs what is known.
    Lost {
        at: Timestamp,
    },
}

struct Attached {
    registration: Arc<Registration>,
    version: Option<semver::Version>,
    leases: BTreeMap<u64, Lease>,
    next_seq: u64,
    /// The stream that is open, if one is.
    stream: Option<OpenStream>,
    /// The last stream that ended because its token opens nothing any more.
    revoked: Option<u64>,
    /// Steps that are the runner's from before, of which the open stream may not have told it.
    late: BTreeSet<u64>,
    /// Changes whenever there may be something to tell the stream.
    changed: watch::Sender<u64>,
    cancels: BTreeSet<(RunId, String)>,
    drain_told: bool,
    /// It let a lease run out, and said nothing since: it is given nothing until it does.
    silent: bool,
    idle_since: Timestamp,
    seen_at: Timestamp,
}

struct OpenStream {
    number: u64,
    /// The one that opened it.
    token: String,
}

struct Lease {
    key: String,
    began: Timestamp,
    until: Timestamp,
    ends_at: Timestamp,
    durable: bool,
    /// It left this host: from here on nobody knows but the runner.
    shown: bool,
    /// The run wants nothing of it any more.
    cancelled: bool,
    /// Before this no progress is told.
    quiet_until: Timestamp,
}

/// A step that was given to a runner, and must be written before the runner sees it.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) key: String,
    pub(crate) owner: RunnerOwner,
    pub(crate) runner: String,
    pub(crate) seq: u64,
    pub(crate) row: StepRow,
    /// The runner's own row, where more numbers had to be set aside.
    pub(crate) registration: Option<Arc<Registration>>,
    /// Other hosts may want it too.
    pub(crate) contested: bool,
}

/// A step that left a runner without a result.
#[derive(Debug)]
pub(crate) struct Ended {
    /// As it is to be written; none where the row is to be forgotten.
    pub(crate) row: Option<StepRow>,
    pub(crate) key: String,
    pub(crate) tenant: TenantId,
}

/// What changed when runners lost steps or had places again.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) ended: Vec<Ended>,
    pub(crate) granted: Vec<Granted>,
}

/// What a caller is shown of a runner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunnerState {
    pub(crate) registration: Arc<Registration>,
    pub(crate) connected: bool,
    pub(crate) in_flight: usize,
    pub(crate) seen_at: Timestamp,
}

impl Board {
    pub(crate) fn new(token_secrets: Vec<Vec<u8>>) -> Self {
        Self { token_secrets, ..Self::default() }
    }

    /// The runners of an owner, by id.
    pub(crate) fn runners(&self, owner: &RunnerOwner) -> Vec<RunnerState> {
        let state = self.state.lock();
        let all = state.owners.get(owner).into_iter().flat_map(|owner| owner.runners.values());
        all.map(Attached::state).collect()
    }

    /// All runners.
    pub(crate) fn all(&self) -> Vec<RunnerState> {
        let state = self.state.lock();
        state.owners.values().flat_map(|owner| owner.runners.values()).map(Attached::state).collect()
    }

    pub(crate) fn runner(&self, owner: &RunnerOwner, id: &str) -> Option<RunnerState> {
        let state = self.state.lock();
        state.owners.get(owner)?.runners.get(id).map(Attached::state)
    }
}

impl Attached {
    fn state(&self) -> RunnerState {
        RunnerState {
            registration: Arc::clone(&self.registration),
            connected: self.stream.is_some(),
            in_flight: self.leases.len(),
            seen_at: self.seen_at,
        }
    }

    fn tell_stream(&self) {
        self.changed.send_modify(|number| *number += 1);
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn body(entry: &Entry, until: Option<Timestamp>, epoch: u64) -> StepBody {
        StepBody { step: (*entry.step).clone(), given: entry.given.clone(), digest: None, until, output: None, epoch }
    }
}
