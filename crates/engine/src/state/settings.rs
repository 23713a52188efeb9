//! What a run was started with, and what it follows.

use baton_model::event::{Escalation, Verbosity};
use baton_model::{
    AgentCard, Budget, ContextBounds, Limits, SemanticRequest, TurnBounds, ValueBounds, provider_options,
};
use serde_json::{Map, Value};

use super::parts::Started;
use super::run_state::RunState;
use crate::invocation::Invocation;
use crate::run_options::{MAX_TOKENS, TEMPERATURE, setting};

impl RunState {
    /// The numbered behaviour that the log was begun under.
    pub(crate) fn rule(&self) -> u32 {
        self.start.as_ref().map_or(crate::ENGINE_RULE, |start| start.event.private.engine_rule)
    }

    pub(crate) fn configurable(&self) -> Map<String, Value> {
        self.start.as_ref().map(|start| start.event.private.configurable.clone()).unwrap_or_default()
    }

    /// The rules for what is not sure enough.
    pub(crate) fn escalation(&self) -> Escalation {
        self.start.as_ref().map(|start| (*start.event.private.escalation).clone()).unwrap_or_default()
    }

    /// How sure an agent has to be in this run: what the run says, else its manifest, else the rule for all.
    pub(crate) fn threshold(&self, card: Option<&AgentCard>) -> f64 {
        let rule = self.escalation();
        let says = |start: &Started| start.event.private.configurable.contains_key("escalationThreshold");
        match card.and_then(|card| card.threshold) {
            Some(threshold) if !self.start.as_deref().is_some_and(says) => threshold,
            _ => rule.agent_threshold,
        }
    }

    pub(crate) fn verbosity(&self) -> Verbosity {
        let configurable = self.start.as_ref().map(|start| &start.event.private.configurable);
        let word = configurable.and_then(|map| map.get("reasoningVerbosity")).and_then(Value::as_str);
        match word {
            Some("full") => Verbosity::Full,
            Some("off") => Verbosity::Off,
            _ => Verbosity::Summary,
        }
    }

    /// The bounds on this run's values; those of a run that began before there were any are the usual ones.
    pub(crate) fn bounds(&self) -> ValueBounds {
        self.start.as_ref().and_then(|start| start.event.private.values.as_deref().copied()).unwrap_or_default()
    }

    /// What the tree of this run may spend, as it was settled when the tree began.
    pub fn budget(&self) -> Option<&Budget> {
        self.start.as_ref()?.event.private.budget.as_deref()
    }

    /// How much supervisors of this run are told; none where the log was begun before they were told anything.
    pub(crate) fn context(&self) -> Option<ContextBounds> {
        self.start.as_ref()?.event.private.context.filter(|_| self.rule() >= 4)
    }

    /// The memory scope the run reads and writes: what its creator named, else its tree's own.
    pub fn memory_scope(&self) -> &str {
        let facts = self.start.as_ref().map(|start| &start.event.private);
        facts
            .and_then(|facts| {
                let root = facts.parent.as_ref().map(|parent| parent.root.as_str());
                facts.memory_scope.as_deref().or(facts.scope_id.as_deref()).or(root)
            })
            .unwrap_or(self.run.as_str())
    }

    /// How many rounds of tool calls an agent has: as its node says, else as its run says, else what was settled when it
    /// began.
    pub(crate) fn most_rounds(&self, node: usize, invocation: &Invocation) -> u32 {
        let wished = self.configurable().get("maxToolRounds").and_then(Value::as_u64).filter(|_| self.rule() >= 4);
        let wished = wished.map(|rounds| u32::try_from(rounds).unwrap_or(u32::MAX).min(Limits::MOST_TOOL_ROUNDS));
        let own = self.agent_options(node).and_then(|options| options.max_rounds);
        let settled = match self.rule() {
            ..4 => TurnBounds::default(),
            _ => invocation.brief.bounds,
        };
        own.or(wished).unwrap_or(settled.tool_rounds)
    }

    /// The request with what the run says laid under it. Runs that began earlier were asked without.
    pub(crate) fn with_run_options(&self, request: SemanticRequest) -> SemanticRequest {
        let Some(start) = self.start.as_ref().filter(|_| self.rule() >= 3) else { return request };
        let configurable = &start.event.private.configurable;
        // What a parent or a source that began earlier may have said was never judged: out of bounds is unsaid.
        let temperature = || match setting(configurable, "temperature") {
            Some(Value::Number(number)) if number.as_f64().is_some_and(|number| TEMPERATURE.contains(&number)) => {
                Some(number.clone())
            }
            _ => None,
        };
        // What the node says of an option goes before what the run says of it.
        let options = setting(configurable, "providerOptions").filter(|_| self.rule() >= 4);
        let options = options.and_then(|options| provider_options::check(options).ok());
        let provider_options = match (options, request.provider_options.clone()) {
            (None, said) => said,
            (Some(run), said) => Some(run.clone().into_iter().chain(said.into_iter().flatten()).collect()),
        };
        SemanticRequest {
            provider_options,
            temperature: request.temperature.clone().or_else(temperature),
            max_output_tokens: request.max_output_tokens.or_else(|| self.run_max_tokens()),
            ..request
        }
    }

    /// How long the run says that answers may be.
    pub(crate) fn run_max_tokens(&self) -> Option<u64> {
        let start = self.start.as_ref().filter(|_| self.rule() >= 3)?;
        let said = setting(&start.event.private.configurable, "maxTokens")?;
        said.as_u64().filter(|number| MAX_TOKENS.contains(number))
    }
}
