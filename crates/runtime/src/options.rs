use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use baton_model::event::Escalation;
use baton_model::{ContextBounds, Limits, ModelChoice, ModelReply, ModelRequest, Secret};
use baton_provider::Prices;
use baton_tool::Toolbox;
use baton_tool::hooks::ToolLimits;
use baton_tool::http::HttpEffect;
use baton_tool::runner::PoolSettings;

use crate::cluster::sharing::Sharing;
use crate::retention_rules::RetentionPolicy;
use crate::services::observer::Observer;
use crate::services::webhooks::bounds::DeadLetterBounds;
use crate::services::webhooks::carrier::WebhookCarrier;
use crate::test_hooks::TEST_PROVIDER;
use crate::tree_limits::TreeLimits;
use crate::work_limits::WorkLimits;
use crate::{
    AgentRegistry, BeforeStep, BeforeWork, ModelTable, Models, Remotes, StepNotes, StepThreads, TestHooks, Watchdog,
};

/// What a run may hold in memory that is not on disk yet, and a disk takes in a fraction of a second.
const BYTES_AHEAD: usize = 8 * 1024 * 1024;
/// Half of what a commit may have, so that everything around the records fits too. What a run's variables may have, with
/// every character escaped, is less.
const MAX_STEP_BYTES: usize = baton_store::COMMIT_BYTES / 2;

/// Folding this many records takes about as long as reading a state back, and writing one costs what a few of them cost.
const CHECKPOINT_EVERY: u64 = 256;

/// How a host behaves. Everything that could differ between two hosts on the same data is here.
#[derive(Clone, Debug)]
pub struct Options {
    pub limits: Limits,
    /// What a test mode brings along: workflows, agents, a model provider, a look at what leaves the host.
    pub test_hooks: Option<Arc<dyn TestHooks>>,
    /// Signs interrupt links. The first signs, all verify, so that secrets can be rotated.
    pub link_secrets: Vec<Vec<u8>>,
    /// Lets webhooks reach private addresses and plain HTTP. For tests on one machine.
    pub allow_private_webhooks: bool,
    /// Who takes deliveries to subscribers. Without one, they go out over HTTP.
    pub webhook_carrier: Option<Arc<dyn WebhookCarrier>>,
    /// How many dead letters of webhooks are kept, and how long.
    pub dead_letters: DeadLetterBounds,
    /// How many trees of runs one tenant may have.
    pub tree_limits: TreeLimits,
    /// What may be pruned without anybody asking; nothing unless somebody says so.
    pub retention: RetentionPolicy,
    /// Shown in callback links; relative links when absent.
    pub public_url: Option<String>,
    /// How sure a supervisor must be, and how a human is asked when it is not.
    pub escalation: Escalation,
    /// How much of what happened before a supervisor's turn is told.
    pub context: ContextBounds,
    /// The log shows the texts of agents' prompts, not only their digests.
    pub show_prompts: bool,
    /// How many records one run, and the outbox, may be ahead of the disk. 1 makes every step its own commit.
    pub records_ahead: usize,
    /// The same in bytes: records may be large. A run that is this far ahead waits for the disk.
    pub bytes_ahead: usize,
    /// How long a run is stepped before others get their turn, beside the bounds above: what it computes may take long
    /// though it writes little. None where what is committed when must not depend on the machine.
    pub longest_burst: Option<Duration>,
    /// After how many records a run's state is written beside its log; 0 for never. Without it, long logs take longer to
    /// load, and nothing else changes.
    pub checkpoint_every: u64,
    /// How many bytes one step may write. One that wants more is refused before anybody else shares its commit.
    pub max_step_bytes: usize,
    /// Values that must never be stored: taken out of memory and workspace on their way in.
    pub secrets: Vec<Secret>,
    /// Where models are reached. A test mode adds `mock`.
    pub models: Models,
    /// How much of what all share one tenant may use at once.
    pub work_limits: WorkLimits,
    /// Other hosts that runs may have workers on.
    pub remotes: Remotes,
    /// Which of their models stands for which class of an agent.
    pub model_table: ModelTable,
    /// The agents there are when the host opens.
    pub agent_registry: AgentRegistry,
    /// What agents may call, and how often.
    pub tools: Toolbox,
    pub tool_limits: Option<Arc<ToolLimits>>,
    /// Whether runners may sign in, and calls wait for them.
    pub runner_channel: bool,
    /// What the operator says about pools of runners.
    pub runners: BTreeMap<String, PoolSettings>,
    /// Looks up HTTP calls of unknown outcome.
    pub http: Option<HttpEffect>,
    /// What models cost; a run whose cost is bounded calls no model without a price.
    pub prices: Prices,
    /// This host's name among others, the same for as long as its data lives.
    pub host_id: String,
    /// Who is told what runs do, once it is durable.
    pub observer: Option<Arc<dyn Observer>>,
    /// How this host lives with others on the same store, if the store is one that hosts share. The lease is the store's.
    pub sharing: Sharing,
    /// Where runs are stepped. Without them, where they are asked to: for tests that hold time still.
    pub step_threads: Option<StepThreads>,
    /// What survives of a step that ends the process. For stores that one host has for itself.
    pub step_notes: Option<Arc<StepNotes>>,
    /// Who ends a process that does not get on. Without one nobody looks, and no canary is sent.
    pub watchdog: Option<Watchdog>,
    /// For tests that need a run to misbehave.
    pub before_step: Option<BeforeStep>,
    /// The same for everything else that step threads do.
    pub before_work: Option<BeforeWork>,
}

impl Options {
    /// What every model can do that stands for a class here: what nodes may need without naming a model of their own.
    pub fn offered_by_all(&self) -> BTreeSet<String> {
        let models = self.all_models();
        let offers = |choice: &ModelChoice| match models.get(&choice.provider) {
            Some(provider) => provider.capabilities(&choice.model),
            None => BTreeSet::new(),
        };
        let all = self.model_table.choices().map(offers).reduce(|all, one| &all & &one);
        let of_the_test =
            || self.test_hooks.as_ref().map(|hooks| hooks.provider().capabilities("")).unwrap_or_default();
        all.unwrap_or_else(of_the_test)
    }

    /// Where models are reached, that of a test mode among them.
    pub(crate) fn all_models(&self) -> Models {
        let models = self.models.clone();
        match &self.test_hooks {
            Some(hooks) => models.or(TEST_PROVIDER, hooks.provider()),
            None => models,
        }
    }

    /// Asks the provider of a test mode, if that is who goes by its name here. Nobody outside is ever asked.
    pub(crate) async fn ask_test_provider(&self, request: &ModelRequest) -> Option<ModelReply> {
        let someone_else = self.models.get(&request.semantic.provider).is_some();
        let hooks = self.test_hooks.as_ref().filter(|_| !someone_else)?;
        hooks.provider().call(request, &baton_provider::NoSink).await.ok()
    }

    /// With everything that a test mode promises beside what was configured, and the secrets that it knows by name.
    pub(crate) fn equipped(mut self) -> (Self, Vec<Secret>) {
        let Some(equipment) = self.test_hooks.as_ref().map(|hooks| hooks.equipment()) else {
            return (self, Vec::new());
        };
        for card in equipment.agents {
            self.agent_registry = self.agent_registry.with(None, card);
        }
        self.agent_registry = self.agent_registry.with_prompts(&equipment.prompts);
        self.show_prompts = true;
        self.model_table = self.model_table.or_otherwise(equipment.model);
        (self, equipment.secrets)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            test_hooks: None,
            link_secrets: Vec::new(),
            allow_private_webhooks: false,
            webhook_carrier: None,
            dead_letters: DeadLetterBounds::default(),
            tree_limits: TreeLimits::default(),
            work_limits: WorkLimits::default(),
            retention: RetentionPolicy::default(),
            public_url: None,
            escalation: Escalation::default(),
            context: ContextBounds::default(),
            show_prompts: false,
            records_ahead: 512,
            bytes_ahead: BYTES_AHEAD,
            longest_burst: None,
            checkpoint_every: CHECKPOINT_EVERY,
            max_step_bytes: MAX_STEP_BYTES,
            secrets: Vec::new(),
            models: Models::default(),
            remotes: Remotes::default(),
            model_table: ModelTable::default(),
            agent_registry: AgentRegistry::default(),
            tools: Toolbox::default(),
            tool_limits: None,
            runner_channel: true,
            runners: BTreeMap::new(),
            http: None,
            prices: Prices::default(),
            host_id: "baton.local".to_owned(),
            observer: None,
            sharing: Sharing::default(),
            step_threads: None,
            step_notes: None,
            watchdog: None,
            before_step: None,
            before_work: None,
        }
    }
}
