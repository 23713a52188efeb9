//! All rooms of the host, wired together: each is made with the rooms it may use and no other. Nothing is done here.

use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_engine::Features;
use baton_model::Secret;
use baton_store::Store;
use dashmap::DashSet;

use crate::Options;
use crate::canary::{Canary, CanaryWatch};
use crate::clock::{Clock, Ids};
use crate::cluster::balance::Balance;
use crate::cluster::claims::Claims;
use crate::cluster::events::Peers;
use crate::cluster::forward::Forwarding;
use crate::cluster::inbox::Inbox;
use crate::cluster::membership::Membership;
use crate::cluster::ownership::Ownership;
use crate::cluster::state::ClusterState;
use crate::health::{HealthState, HostHealth};
use crate::history::checkpoints::queue::CheckpointQueue;
use crate::history::checkpoints::writer::CheckpointWriter;
use crate::history::compare::RunDiffs;
use crate::history::fork::service::Forks;
use crate::history::log::RunLog;
use crate::history::replay::Replays;
use crate::history::transfer::Importing;
use crate::history::transfer::service::Transfers;
use crate::journal::committed::CommitWatch;
use crate::journal::failed_commit::{Outage, OutageState};
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::ports::{EffectSink, Port, TellRuns, WakeTrees};
use crate::quarantine::service::Quarantines;
use crate::quarantine::suspect_guard::SuspectGuard;
use crate::quarantine::trees::QuarantinedTrees;
use crate::recovery::RunRecovery;
use crate::run::commands::RunCommands;
use crate::run::evict::Evictor;
use crate::run::eviction_queue::EvictionQueue;
use crate::run::interrupts::Interrupts;
use crate::run::load::RunLoader;
use crate::run::reads::RunReads;
use crate::run::requests_read::NodeRequests;
use crate::run::router::Router;
use crate::run::start::RunStarter;
use crate::run::start_barrier::Starts;
use crate::run::stepper::RunStepper;
use crate::services::agents::AgentRegistry;
use crate::services::agents::service::Agents;
use crate::services::annotations::Annotations;
use crate::services::budgets::AllInFlight;
use crate::services::budgets::read::BudgetAccounts;
use crate::services::children::Children;
use crate::services::children::remote::RemoteActions;
use crate::services::children::remote::service::RemoteChildren;
use crate::services::children::tree_sizes::TreeSizes;
use crate::services::connections::{ConnectionLog, LastRequests};
use crate::services::conversations::Conversations;
use crate::services::dispatch::EffectDispatch;
use crate::services::models::service::ModelCalls;
use crate::services::models::turns::ModelTurns;
use crate::services::models::{Calls, Models};
use crate::services::notifications::Notifications;
use crate::services::observers::{ObserverFeed, Observing};
use crate::services::retention::Retention;
use crate::services::retention_pass::RetentionPass;
use crate::services::runners::board::Board;
use crate::services::runners::calls::RunnerCalls;
use crate::services::runners::channel::RunnerChannel;
use crate::services::runners::dispatcher::Dispatcher;
use crate::services::runners::news::RunnerNews;
use crate::services::runners::registry::RunnerRegistry;
use crate::services::runners::tokens::RunnerTokens;
use crate::services::runners::upkeep::RunnerUpkeep;
use crate::services::step_gateway::dispatches::Dispatches;
use crate::services::step_gateway::service::StepGateway;
use crate::services::stored_bytes::StoredBytes;
use crate::services::timers::Timers;
use crate::services::tools::service::ToolCalls;
use crate::services::tree_quotas::TreeQuotas;
use crate::services::versioned::service::VersionedStores;
use crate::services::webhooks::Webhooks;
use crate::services::webhooks::dead_letter_retention::WebhookDelivery;
use crate::services::webhooks::register::WebhookRegistry;
use crate::services::workflows::register::Workflows;
use crate::services::workflows::{PlanLoader, Plans};
use crate::steps::{StepPool, Turns};
use crate::tasks::Tasks;
use crate::watch::Watch;
use crate::watchdog::WatchdogTask;

/// A room with these, cloned, and what else it has.
macro_rules! room {
    ($room:ident { $($given:ident),* $(,)? } $(, $own:ident: $value:expr)* $(,)?) => {
        Arc::new($room { $($given: Clone::clone(&$given),)* $($own: $value,)* })
    };
}

/// How many runs are stepped at a time where there are no step threads.
const INLINE_PLACES: usize = 64;

/// Every service of the host.
pub(crate) struct Rooms {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Arc<Options>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) stored_bytes: Arc<StoredBytes>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) health_state: Arc<HealthState>,
    pub(crate) models: Models,
    pub(crate) plans: Arc<Plans>,
    pub(crate) agent_registry: Arc<ArcSwap<AgentRegistry>>,
    pub(crate) last_requests: Arc<LastRequests>,
    pub(crate) quarantined: Arc<QuarantinedTrees>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) versioned: Arc<VersionedStores>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) log: Arc<RunLog>,
    pub(crate) workflows: Arc<Workflows>,
    pub(crate) observers: Arc<ObserverFeed>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) conversations: Arc<Conversations>,
    pub(crate) stepper: Arc<RunStepper>,
    pub(crate) starter: Arc<RunStarter>,
    pub(crate) forks: Arc<Forks>,
    pub(crate) replays: Arc<Replays>,
    pub(crate) transfers: Arc<Transfers>,
    pub(crate) recovery: Arc<RunRecovery>,
    pub(crate) forwarding: Arc<Forwarding>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) peers: Arc<Peers>,
    pub(crate) subscriptions: Arc<WebhookRegistry>,
    pub(crate) delivery: Arc<WebhookDelivery>,
    pub(crate) evictor: Arc<Evictor>,
    pub(crate) checkpoints: Arc<CheckpointWriter>,
    pub(crate) outage: Arc<Outage>,
    pub(crate) canary_watch: Arc<CanaryWatch>,
    pub(crate) watchdog: Arc<WatchdogTask>,
    pub(crate) health: Arc<HostHealth>,
    pub(crate) annotations: Arc<Annotations>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) retention_pass: Arc<RetentionPass>,
    pub(crate) reads: Arc<RunReads>,
    pub(crate) interrupts: Arc<Interrupts>,
    pub(crate) compare: Arc<RunDiffs>,
    pub(crate) registry: Arc<RunnerRegistry>,
    pub(crate) runner_tokens: Arc<RunnerTokens>,
    pub(crate) runner_channel: Arc<RunnerChannel>,
    pub(crate) runner_upkeep: Arc<RunnerUpkeep>,
    pub(crate) step_gateway: Arc<StepGateway>,
    /// Kept alive for the ports that lead to it.
    _dispatch: Arc<EffectDispatch>,
}

impl Rooms {
    pub(crate) fn new(store: Arc<dyn Store>, options: Options, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Arc<Self> {
        let (options, test_secrets) = options.equipped();
        let options = Arc::new(options);
        let places = options.step_threads.as_ref().map_or(INLINE_PLACES, crate::StepThreads::places);
        let turns = Turns::new(places, places.div_ceil(2), options.step_notes.clone());
        let models = options.all_models();
        let model_turns = ModelTurns::new(&models, options.work_limits.model_calls);
        let hooks = options.test_hooks.clone();
        let features = Features { conformance: hooks.is_some(), live_agents: true, ..Features::default() };

        // State that several rooms share, each for its own purpose.
        let secrets: Arc<[Secret]> = options.secrets.iter().cloned().chain(test_secrets).collect();
        let plans = Arc::new(Plans::new(features, hooks));
        let watch = Arc::new(Watch::new(places));
        let timers = Arc::new(Timers::default());
        let notifications = Arc::new(Notifications::default());
        let webhooks = Arc::new(Webhooks::new(options.allow_private_webhooks));
        let observing = options.observer.clone().map(|observer| Arc::new(Observing::new(observer)));
        let cluster = Arc::new(ClusterState::default());
        let quarantined = Arc::new(QuarantinedTrees::default());
        let health_state = Arc::new(HealthState::new(clock.now()));
        let agent_registry = Arc::new(ArcSwap::from_pointee(options.agent_registry.clone()));
        let eviction_queue = Arc::new(EvictionQueue::default());
        let checkpoint_queue = Arc::new(CheckpointQueue::new(options.checkpoint_every));
        let calls = Arc::new(Calls::default());
        let remote_actions = Arc::new(RemoteActions::default());
        let in_flight = Arc::new(AllInFlight::default());
        let last_requests = Arc::new(LastRequests::default());
        let loading = Arc::new(LoadLocks::default());
        let annotating = Arc::new(LoadLocks::default());
        // Not the one of runs: these are taken while a run is being loaded.
        let loading_stores = Arc::new(LoadLocks::default());
        let exclusive = Arc::new(LoadLocks::default());
        let starting = Arc::new(Starts::default());
        let registering = Arc::new(tokio::sync::Mutex::new(()));
        let replaying = Arc::new(DashSet::new());
        let canary = Arc::new(Canary::default());
        let runner_board = Arc::new(Board::new(options.link_secrets.clone()));
        let runner_news = Arc::new(RunnerNews::default());
        let answering_steps = Arc::new(LoadLocks::default());

        let tasks = Arc::new(Tasks::new(Arc::clone(&clock), Arc::clone(&watch), options.step_threads.clone()));
        let pool = Arc::new(StepPool::new(Arc::clone(&tasks), turns.clone(), Arc::clone(&watch), &options));
        let storage = Arc::new(Storage::new(Arc::clone(&store), clock.now()));
        let dispatcher = room!(Dispatcher { runner_board, clock, store, storage, tasks }, given: Default::default());
        let runner_tokens = room!(RunnerTokens { clock, ids, store, storage }, known: Default::default());
        let registry = room!(RunnerRegistry { runner_board, clock, options, store, dispatcher, runner_tokens, storage }, changing: LoadLocks::default());
        let runner_upkeep = room!(RunnerUpkeep {
            runner_board,
            runner_news,
            clock,
            store,
            dispatcher,
            registry,
            runner_tokens,
            storage,
            tasks
        });
        let trees = Arc::new(TreeSizes::new(Arc::clone(&store), Arc::clone(&options)));
        let written = Arc::clone(&storage.written);
        let stored_bytes =
            room!(StoredBytes { clock, options, store, tasks, written }, known: parking_lot::Mutex::default());
        let tree_quotas =
            room!(TreeQuotas { clock, options, store, stored_bytes }, tenants: parking_lot::Mutex::default());
        let claims = room!(Claims { clock, cluster, ids, options, store, storage, tasks });
        let membership = room!(Membership { clock, cluster, timers, watch, storage, tasks });
        let versioned =
            room!(VersionedStores { clock, loading_stores, options, secrets, store, claims, storage, tasks });
        let quarantine = room!(Quarantines { clock, eviction_queue, loading, options, quarantined, store, timers, webhooks, storage, tasks }, waker: Port::default());
        let suspect_guard = room!(SuspectGuard { options, quarantined, store, storage, tasks });
        let plan_loader = room!(PlanLoader { plans, store, pool });
        let workflows = room!(Workflows {
            clock,
            plans,
            registering,
            agent_registry,
            store,
            stored_bytes,
            claims,
            pool,
            storage,
            tasks
        });
        let conversations = room!(Conversations { clock, store, storage, tasks, versioned });
        let connections = room!(ConnectionLog { clock, last_requests, secrets });
        let evictor = room!(Evictor { checkpoint_queue, clock, eviction_queue, storage, tasks, trees });
        let canary_watch = room!(CanaryWatch { canary, options, store, pool, tasks });
        let watchdog = room!(WatchdogTask { options, turns, watch, quarantine, storage, tasks });
        let health = room!(HostHealth { store, health_state });
        let annotations =
            room!(Annotations { annotating, clock, notifications, ids, secrets, store, claims, storage, stored_bytes });
        let retention = room!(Retention { clock, loading, starting, store, storage, versioned });
        let retention_pass = room!(RetentionPass { clock, options, store, claims, retention, tasks });
        let ownership = room!(Ownership { clock, cluster, store, timers, webhooks, quarantine, storage, tasks }, waker: Port::default());
        let log = room!(RunLog { checkpoint_queue, quarantined, store, plan_loader, pool, storage, suspect_guard });
        let checkpoints = room!(CheckpointWriter { checkpoint_queue, store, log, pool, storage, tasks });
        let budgets =
            room!(BudgetAccounts { clock, in_flight, store, log, pool, quarantine, tasks }, runs: Port::default());
        let observers = room!(ObserverFeed { observing, store, log, storage, tasks });
        let agents = room!(Agents {
            clock,
            models,
            options,
            agent_registry,
            secrets,
            store,
            conversations,
            pool,
            storage,
            versioned
        });
        let loader =
            room!(RunLoader { loading, store, budgets, log, ownership, quarantine, storage, suspect_guard, versioned });
        let requests = room!(NodeRequests { clock, agents, versioned });
        let tools = room!(ToolCalls { options, secrets, store, log });
        let reads = room!(RunReads {
            clock,
            notifications,
            eviction_queue,
            store,
            loader,
            log,
            quarantine,
            retention,
            storage
        });
        let interrupts = room!(Interrupts { clock, options, store, log });
        let compare = room!(RunDiffs { log, pool, versioned });
        let stepper = room!(RunStepper { checkpoint_queue, calls, clock, eviction_queue, remote_actions, options, quarantined, timers, health_state, webhooks, budgets, loader, observers, pool, quarantine, storage, tools, trees, suspect_guard, versioned }, effect_sink: Port::default());
        let children = room!(Children {
            clock,
            eviction_queue,
            options,
            plans,
            store,
            agents,
            loader,
            plan_loader,
            pool,
            quarantine,
            stepper,
            trees,
            suspect_guard,
            versioned,
            workflows
        });
        let router = room!(Router {
            clock,
            eviction_queue,
            store,
            timers,
            agents,
            children,
            loader,
            quarantine,
            requests,
            stepper,
            storage,
            tasks,
            versioned
        });
        let commands = room!(RunCommands { clock, store, pool, quarantine, router, stepper, storage, tasks });
        let runner_calls = room!(RunnerCalls { runner_board, clock, options, store, commands, dispatcher, tasks });
        let model_calls = room!(ModelCalls {
            calls,
            clock,
            models,
            options,
            secrets,
            timers,
            commands,
            connections,
            loader,
            storage,
            tasks,
            tools,
            runner_calls
        }, turns: model_turns);
        let remotes = room!(RemoteChildren {
            clock,
            remote_actions,
            options,
            secrets,
            commands,
            connections,
            loader,
            observers,
            storage,
            tasks,
            tools,
            trees
        });
        let starter = room!(RunStarter {
            clock,
            exclusive,
            ids,
            in_flight,
            loading,
            options,
            plans,
            starting,
            store,
            agents,
            claims,
            conversations,
            log,
            plan_loader,
            pool,
            router,
            stepper,
            storage,
            tree_quotas,
            tasks,
            trees,
            versioned
        });
        let replays = room!(Replays {
            clock,
            loading,
            options,
            quarantined,
            replaying,
            store,
            log,
            plan_loader,
            pool,
            quarantine,
            storage,
            tasks,
            suspect_guard
        });
        let forwarding =
            room!(Forwarding { clock, cluster, ids, options, claims, commands, loader, ownership, storage, tasks });
        let runner_channel = room!(RunnerChannel {
            runner_board,
            runner_news,
            answering_steps,
            clock,
            options,
            secrets,
            store,
            commands,
            dispatcher,
            forwarding,
            registry,
            storage,
            tasks
        });
        let step_gateway = room!(StepGateway {
            runner_board,
            clock,
            options,
            secrets,
            store,
            budgets,
            forwarding,
            loader,
            log,
            model_calls,
            reads,
            storage,
            tasks
        }, dispatches: Arc::new(Dispatches::default()), keeping: LoadLocks::default());
        let subscriptions = room!(WebhookRegistry { clock, store, webhooks, forwarding, storage });
        let delivery = room!(WebhookDelivery {
            clock,
            options,
            store,
            watch,
            webhooks,
            log,
            membership,
            observers,
            storage,
            subscriptions,
            tasks
        });
        let forks = room!(Forks {
            clock,
            ids,
            options,
            store,
            timers,
            agents,
            claims,
            commands,
            loader,
            log,
            plan_loader,
            pool,
            quarantine,
            replays,
            stepper,
            storage,
            tree_quotas,
            tasks
        });
        let recovery = room!(RunRecovery {
            clock,
            cluster,
            options,
            store,
            timers,
            health_state,
            watch,
            webhooks,
            commands,
            forks,
            ownership,
            quarantine,
            storage,
            tasks,
            trees
        });
        let balance = room!(Balance {
            calls,
            clock,
            cluster,
            ids,
            remote_actions,
            options,
            replaying,
            store,
            timers,
            webhooks,
            recovery,
            storage,
            tasks,
            trees
        });
        let inbox =
            room!(Inbox { cluster, watch, webhooks, balance, commands, storage, subscriptions, tasks, versioned });
        let peers = room!(Peers {
            clock,
            cluster,
            notifications,
            options,
            runner_news,
            watch,
            balance,
            membership,
            storage,
            subscriptions,
            tasks,
            versioned
        });

        let transfers = room!(Transfers { log, options, clock, loading_stores, plans, registering, secrets, store, watch, claims, pool, storage, tasks, versioned }, importing: Importing::default());
        let outage = room!(Outage { store, clock, storage, tasks, watch, canary_watch, membership, quarantine, recovery, subscriptions, webhooks, calls, trees }, state: OutageState::default());
        let dispatch = room!(EffectDispatch { model_calls, remotes });

        let waker: Arc<dyn WakeTrees> = Arc::clone(&recovery) as _;
        ownership.waker.connect(&waker);
        quarantine.waker.connect(&waker);
        let teller: Arc<dyn TellRuns> = Arc::clone(&commands) as _;
        budgets.runs.connect(&teller);
        let sink: Arc<dyn EffectSink> = Arc::clone(&dispatch) as _;
        stepper.effect_sink.connect(&sink);
        store.observe(Arc::new(CommitWatch {
            storage: Arc::downgrade(&storage),
            notifications: Arc::clone(&notifications),
            webhooks: Arc::clone(&webhooks),
            observing: observing.clone(),
            eviction_queue: Arc::clone(&eviction_queue),
            outage: Arc::downgrade(&outage),
        }));
        Arc::new(Self {
            store,
            options,
            clock,
            ids,
            stored_bytes,
            notifications,
            webhooks,
            health_state,
            models,
            plans,
            agent_registry,
            last_requests,
            quarantined,
            watch,
            tasks,
            pool,
            storage,
            claims,
            membership,
            versioned,
            quarantine,
            log,
            workflows,
            observers,
            agents,
            conversations,
            stepper,
            starter,
            forks,
            replays,
            transfers,
            recovery,
            forwarding,
            inbox,
            peers,
            subscriptions,
            delivery,
            evictor,
            checkpoints,
            outage,
            canary_watch,
            watchdog,
            health,
            annotations,
            retention,
            retention_pass,
            reads,
            interrupts,
            compare,
            registry,
            runner_tokens,
            runner_channel,
            runner_upkeep,
            step_gateway,
            _dispatch: dispatch,
        })
    }
}
