//! One host of a simulation: a process that can be killed, frozen, cut off and started again.

use std::sync::Arc;

use baton_model::{ModelChoice, OutcomePolicy};
use baton_runtime::{AgentRegistry, BeforeStep, Host, ModelTable, Options};
use baton_store::{Cluster, Journal as _, MemoryStore};
use baton_testkit::SeededIds;
use baton_tool::{ToolSet, Toolbox};
use parking_lot::Mutex;

use crate::clients::KeysInFlight;
use crate::disk::Observer;
use crate::executor::Executor;
use crate::line::HostLine;
use crate::panics::POISONED;
use crate::peers::{LOOK, Models, Outside, SEND, ScriptedTool, Subscribers};
use crate::rng::Rng;
use crate::time::{HostClock, SimTime};
use crate::workflows::{POISON, card};

/// What all lives of all hosts have in common.
pub(crate) struct Ground {
    pub(crate) seed: u64,
    pub(crate) time: Arc<SimTime>,
    pub(crate) observer: Observer,
    /// None: the disk belongs to one host.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) outside: Arc<Outside>,
    /// How many records a run may be ahead of the disk.
    pub(crate) ahead: usize,
}

/// One life of a host.
pub(crate) struct Life {
    pub(crate) executor: Executor,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<HostClock>,
    pub(crate) line: Arc<HostLine>,
    opened: Arc<Mutex<Option<Host>>>,
    pub(crate) keys: Arc<KeysInFlight>,
    /// Until when it is frozen, by the time that passes.
    pub(crate) frozen_until: Option<i64>,
    /// Until when its disk takes no writes, or cannot be reached.
    pub(crate) trouble_until: Option<i64>,
    /// How much time has passed that its scheduler has not heard of.
    pub(crate) behind: i64,
    /// Not to be polled before something happened.
    pub(crate) quiet: bool,
}

impl Life {
    pub(crate) fn begin(ground: &Ground, index: usize, life: u64, rng: &Rng) -> Self {
        let store = match &ground.cluster {
            Some(cluster) => cluster.join(&format!("host-{index}")),
            None => ground.observer.store().reopen(),
        };
        let store = Arc::new(store);
        // Clocks of several machines do not agree.
        let offset = i64::try_from(rng.below(400_000)).unwrap_or(0);
        // Somebody sets one while the process is down.
        let offset = if rng.percent(8) { offset * 150 - 30_000_000 } else { offset };
        let clock = Arc::new(HostClock::new(Arc::clone(&ground.time), offset));
        let line = Arc::new(HostLine::new(Rng::new(rng.next()), Arc::clone(&clock)));
        store.put_on_line(Arc::clone(&line) as _);
        store.hold();
        let executor = Executor::new();
        let opened = Arc::new(Mutex::new(None));
        let options = options(ground, &clock, index);
        let ids = Arc::new(SeededIds::new(ground.seed.wrapping_mul(1_000_003) + (index as u64) * 1_000 + life));
        let (slot, journal, time) = (Arc::clone(&opened), Arc::clone(&store), Arc::clone(&clock));
        executor.spawn(async move {
            loop {
                let opening = Host::open_with(
                    Arc::clone(&journal) as _,
                    options.clone(),
                    Arc::clone(&time) as _,
                    Arc::clone(&ids) as _,
                );
                match opening.await {
                    Ok(host) => {
                        *slot.lock() = Some(host);
                        return;
                    }
                    // As a supervisor would.
                    Err(_) => time.sleep(500_000).await,
                }
            }
        });
        Self {
            executor,
            store,
            clock,
            line,
            opened,
            keys: Arc::default(),
            frozen_until: None,
            trouble_until: None,
            behind: 0,
            quiet: false,
        }
    }

    /// The host, once it is open.
    pub(crate) fn host(&self) -> Option<Host> {
        self.opened.lock().clone()
    }

    /// Its disk takes writes, answers at once, and is in reach.
    pub(crate) fn make_well(&self) {
        self.line.set_cut(false);
        self.line.lose(0);
        self.line.slow.store(false, std::sync::atomic::Ordering::Relaxed);
        self.store.heal();
        self.store.lose_answers(0);
    }

    /// The process is killed: nothing that it still says reaches the disk.
    pub(crate) fn kill(self) {
        self.store.die();
        let Self { executor, store, opened, .. } = self;
        drop(executor);
        drop(opened.lock().take());
        // What observes the store may own what owns it.
        let _ = futures_util::FutureExt::now_or_never(store.close());
    }
}

fn options(ground: &Ground, clock: &Arc<HostClock>, index: usize) -> Options {
    let tool = |id, policy| {
        Arc::new(ScriptedTool::new(id, policy, Arc::clone(&ground.outside), Arc::clone(clock)))
            as Arc<dyn baton_tool::Tool>
    };
    let tools = [tool(SEND, OutcomePolicy::Retry), tool(LOOK, OutcomePolicy::Ask)];
    let tools = tools.into_iter().fold(ToolSet::default(), |tools, tool| tools.tool(tool).expect("names differ"));
    let models = Models { outside: Arc::clone(&ground.outside), clock: Arc::clone(clock) };
    let subscribers = Subscribers { outside: Arc::clone(&ground.outside), clock: Arc::clone(clock) };
    Options {
        records_ahead: ground.ahead,
        link_secrets: vec![vec![7; 32]],
        host_id: format!("host-{index}"),
        models: baton_runtime::Models::default().with("brain", Arc::new(models)),
        model_table: ModelTable::default()
            .otherwise(ModelChoice { provider: "brain".to_owned(), model: "big".to_owned() }),
        agent_registry: AgentRegistry::default().with(None, card()),
        tools: Toolbox::new(tools),
        webhook_carrier: Some(Arc::new(subscribers)),
        before_step: Some(BeforeStep(Arc::new(|row, goes_on| {
            assert!(!(goes_on && row.workflow.as_str() == POISON), "{POISONED}");
        }))),
        ..Options::default()
    }
}
