//! The tools of a case. Stubs answer what the case says; a tool that the project names and the case does not stub is
//! there, too, so that whoever calls it is told what to add.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolOutcome, ToolRequest, Transport};
use baton_model::{TenantId, ToolSpec, code};
use baton_runtime::AgentRegistry;
use baton_tool::egress::Guard;
use baton_tool::http::{HttpClient, HttpFetch, HttpOptions, HttpRequest};
use baton_tool::runner::{self, RunnerToolSettings};
use baton_tool::{About, Called, NoSecrets, Tool, ToolSet, Toolbox, native};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::clock::CaseClock;
use super::notes::{Notes, brief};
use crate::case::{Case, StubAnswer, ToolDef};
use crate::compare;
use crate::project::Project;
use crate::report::Problem;

/// The tools of a case, and the ids of those that can be called.
pub(super) struct CaseTools {
    pub(super) toolbox: Toolbox,
    pub(super) ids: Vec<String>,
    stubs: Vec<Arc<Stub>>,
}

impl CaseTools {
    pub(super) fn new(
        project: &Project,
        case: &Case,
        definitions: &[&Value],
        tenant: &TenantId,
        clock: &Arc<CaseClock>,
        notes: &Arc<Notes>,
    ) -> Result<Self, Vec<Problem>> {
        let http = http_specs();
        let mut defs: BTreeMap<String, (ToolDef, bool)> = BTreeMap::new();
        for id in named(definitions, &project.options.agent_registry, tenant).into_iter().chain(http.keys().cloned()) {
            defs.insert(id, (ToolDef::default(), false));
        }
        for (id, def) in &case.tools {
            defs.insert(id.clone(), (def.clone(), true));
        }
        let refused = |error: baton_tool::ToolSetError| vec![Problem::new("tools", error.to_string())];
        let mut set = ToolSet::default();
        let mut ids = Vec::new();
        for tool in native::tools() {
            ids.push(tool.spec().id.clone());
            set = set.tool(tool).map_err(refused)?;
        }
        let mut stubs = Vec::new();
        for (id, (def, is_stubbed)) in defs {
            // One that answers nothing is found out when it is called.
            ids.push(id.clone());
            let stub = Arc::new(Stub {
                spec: spec(&id, &def, http.get(&id), of_operator(project, &id)),
                used: Mutex::new(vec![0; def.calls.len()]),
                def,
                is_stubbed,
                clock: Arc::clone(clock),
                notes: Arc::clone(notes),
            });
            stubs.push(Arc::clone(&stub));
            set = set.tool(stub).map_err(refused)?;
        }
        let toolbox = Toolbox::new(set);
        toolbox.rename(project.aliases.clone());
        Ok(Self { toolbox, ids, stubs })
    }

    /// Answers that no call took.
    pub(super) fn leftovers(&self) -> Vec<Problem> {
        let mut left = Vec::new();
        for stub in &self.stubs {
            let used = stub.used.lock();
            for (call, used) in stub.def.calls.iter().zip(used.iter()) {
                if let Some(times) = call.times.filter(|times| used < times) {
                    let message =
                        format!("`{}` was called {used} times, not {times}, with {}", stub.spec.id, json!(call.when));
                    left.push(Problem::new("tools", message));
                }
            }
        }
        left
    }
}

/// The tools that workflows and agents name by their full ids.
fn named(definitions: &[&Value], agents: &AgentRegistry, tenant: &TenantId) -> Vec<String> {
    let nodes = definitions.iter().filter_map(|definition| definition.get("nodes")?.as_array()).flatten();
    let of_nodes = nodes.flat_map(|node| {
        let config = node.get("config");
        let one = config.and_then(|config| config.get("tool")?.as_str());
        let list =
            config.and_then(|config| config.get("tools")?.as_array()).into_iter().flatten().filter_map(Value::as_str);
        one.into_iter().chain(list).map(str::to_owned).collect::<Vec<_>>()
    });
    let cards = agents.visible(tenant);
    let of_agents = cards.iter().flat_map(|card| card.tools.iter().cloned());
    of_nodes.chain(of_agents).filter(|id| is_stubbable(id)).collect()
}

/// What is not part of the host, and one tool, not all of a server's.
fn is_stubbable(id: &str) -> bool {
    ["mcp:", "runner:"].iter().any(|scope| id.strip_prefix(scope).is_some_and(|rest| rest.contains('.')))
}

/// The tools that reach the web are described as they are. The client below them is never used.
fn http_specs() -> BTreeMap<String, ToolSpec> {
    let client = HttpClient::new(HttpOptions::new(Guard::new(false), Arc::new(NoSecrets)));
    let all = [HttpFetch::new(client.clone()).spec().clone(), HttpRequest::new(client).spec().clone()];
    all.into_iter().map(|spec| (spec.id.clone(), spec)).collect()
}

/// What the configuration says of a tool of runners.
fn of_operator<'a>(project: &'a Project, id: &str) -> Option<&'a RunnerToolSettings> {
    let (pool, tool) = runner::parts_of(id)?;
    project.options.runners.get(pool)?.tools.get(tool)
}

/// What is known of a tool: the case's word counts before the operator's.
fn spec(id: &str, def: &ToolDef, real: Option<&ToolSpec>, said: Option<&RunnerToolSettings>) -> ToolSpec {
    let policy_of = |tier| if tier < SafetyTier::Write { OutcomePolicy::Retry } else { OutcomePolicy::Ask };
    let mut spec = real.cloned().unwrap_or_else(|| ToolSpec {
        id: id.to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object"}),
        transport: Transport::Mcp,
        tier: SafetyTier::Write,
        outcome_policy: OutcomePolicy::Ask,
        scopes: Vec::new(),
        stub: None,
    });
    if let Some(said) = said {
        spec.tier = said.tier.unwrap_or(spec.tier);
        spec.outcome_policy = said.outcome_policy.unwrap_or_else(|| policy_of(spec.tier));
        spec.scopes.clone_from(&said.scopes);
        spec.stub.clone_from(&said.stub);
    }
    if let Some(tier) = def.tier {
        spec.tier = tier;
        spec.outcome_policy = policy_of(tier);
    }
    if let Some(schema) = &def.input_schema {
        spec.input_schema = schema.clone();
    }
    if let Some(description) = &def.description {
        spec.description.clone_from(description);
    }
    spec
}

struct Stub {
    spec: ToolSpec,
    def: ToolDef,
    is_stubbed: bool,
    /// How often each of its calls has answered.
    used: Mutex<Vec<u32>>,
    clock: Arc<CaseClock>,
    notes: Arc<Notes>,
}

impl Stub {
    /// The answer to a call with these arguments, and how long it takes.
    fn answer(&self, arguments: &Value) -> Option<(StubAnswer, u64)> {
        let mut used = self.used.lock();
        for (call, used) in self.def.calls.iter().zip(used.iter_mut()) {
            let is_for = call
                .when
                .iter()
                .all(|(name, value)| arguments.get(name).is_some_and(|given| compare::holds(value, given)));
            if is_for && call.times.is_none_or(|times| *used < times) {
                *used += 1;
                return Some((StubAnswer::of(call.returns.as_ref(), call.fails.as_ref())?, call.takes_ms));
            }
        }
        Some((StubAnswer::of(self.def.returns.as_ref(), self.def.fails.as_ref())?, self.def.takes_ms))
    }

    fn unanswered(&self, arguments: &Value) -> Called {
        let (id, shown) = (&self.spec.id, brief(&arguments.to_string()));
        let problem = if self.is_stubbed {
            let hint =
                format!("add to its `calls`: `- when: {{…}}` with `returns: …`, or give `{id}` a `returns` for all");
            Problem::new("tools", format!("`{id}` was called with {shown}, and has no answer for that")).hint(hint)
        } else {
            let hint = format!("add to `tools`: `{id}: {{returns: …}}`");
            Problem::new("tools", format!("`{id}` was called with {shown}, and is not stubbed")).hint(hint)
        };
        self.notes.problem(problem);
        Called::Done(ToolOutcome::failed(
            code::EXTERNAL_CALL_FAILED,
            format!("The case does not say what {id} answers."),
        ))
    }
}

#[async_trait]
impl Tool for Stub {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        About { output_schema: self.def.output_schema.clone(), ..About::default() }
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        self.notes.tool_called(&self.spec.id, &request.arguments);
        let Some((answer, takes)) = self.answer(&request.arguments) else { return self.unanswered(&request.arguments) };
        if let Some(bound) = request.timeout_ms.filter(|bound| *bound < takes) {
            self.clock.pass(bound).await;
            return Called::Unknown { reason: "The tool did not answer in time.".to_owned() };
        }
        self.clock.pass(takes).await;
        match answer {
            StubAnswer::Returns(value) => Called::Done(ToolOutcome::ok(value).took(takes)),
            StubAnswer::Fails { code, message } => {
                let code = code.as_deref().unwrap_or(code::MCP_TOOL_INVOCATION_FAILED);
                Called::Done(ToolOutcome::failed(code, message).took(takes))
            }
            StubAnswer::Unknown { reason } => Called::Unknown { reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_of_a_runners_tool_is_as_harmless_as_the_operator_says() {
        let id = "runner:shop.stock";
        let plain = spec(id, &ToolDef::default(), None, None);
        assert_eq!((plain.tier, plain.outcome_policy), (SafetyTier::Write, OutcomePolicy::Ask));
        let said = RunnerToolSettings { tier: Some(SafetyTier::Read), ..RunnerToolSettings::default() };
        let read = spec(id, &ToolDef::default(), None, Some(&said));
        assert_eq!((read.tier, read.outcome_policy), (SafetyTier::Read, OutcomePolicy::Retry));
        let fails = RunnerToolSettings { outcome_policy: Some(OutcomePolicy::Fail), ..said };
        assert_eq!(spec(id, &ToolDef::default(), None, Some(&fails)).outcome_policy, OutcomePolicy::Fail);
        let def = ToolDef { tier: Some(SafetyTier::Write), ..ToolDef::default() };
        assert_eq!(spec(id, &def, None, Some(&fails)).outcome_policy, OutcomePolicy::Ask, "the case's word counts");
    }
}
