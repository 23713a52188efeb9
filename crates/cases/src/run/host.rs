//! The host of one case: in memory, with the case's model and tools, and nothing that reaches outside.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use baton_model::{ModelChoice, ModelClass, Principal, Scopes, TenantId, Timestamp, locate};
use baton_provider::Prices;
use baton_provider::recording::Player;
use baton_runtime::{Host, ModelTable, Models, Options, Remotes};
use baton_store::MemoryStore;
use serde_json::Value;

use super::clock::CaseClock;
use super::ids::CaseIds;
use super::model::CaseModel;
use super::notes::Notes;
use super::tools::CaseTools;
use crate::case::{Case, Subject};
use crate::project::Project;
use crate::report::Problem;

/// When a case begins that says nothing about it: 2026-01-01T09:00:00Z, so that dates in results stay the same.
const STARTS_AT: Timestamp = Timestamp::from_millis(1_767_258_000_000);
const TENANT: &str = "test";
/// The model where the configuration names none.
const PROVIDER: &str = "scripted";
/// Signs links to questions, which lead nowhere here.
const LINK_SECRET: &[u8; 32] = b"a case in memory, opened by none";

/// A host, and what of it the case holds in its hands.
pub(super) struct CaseHost {
    pub(super) host: Host,
    pub(super) store: Arc<MemoryStore>,
    pub(super) clock: Arc<CaseClock>,
    pub(super) notes: Arc<Notes>,
    pub(super) model: Arc<CaseModel>,
    pub(super) tools: CaseTools,
    pub(super) who: Principal,
    pub(super) started: Timestamp,
    /// The workflow that is started; none for an agent.
    pub(super) workflow: Option<String>,
}

pub(super) async fn open(project: &Project, case: &Case) -> Result<CaseHost, Vec<Problem>> {
    let started = case.starts_at.unwrap_or(STARTS_AT);
    let clock = Arc::new(CaseClock::at(started));
    let notes = Arc::new(Notes::default());
    let tenant = TenantId::new(TENANT);
    let own = own_workflow(case)?;
    let mut definitions: Vec<&Value> = project.workflows.iter().map(|file| &file.definition).collect();
    definitions.extend(own.as_ref().map(|(definition, _)| definition));
    let tools = CaseTools::new(project, case, &definitions, &tenant, &clock, &notes)?;
    let ids: BTreeSet<String> = tools.ids.iter().cloned().collect();
    let model = CaseModel::new(case.model.clone(), recording(case)?, ids, Arc::clone(&clock), Arc::clone(&notes));
    let model = Arc::new(model);
    let mut models = Models::default();
    for name in providers(project, &definitions) {
        models = models.with(&name, Arc::clone(&model) as Arc<dyn baton_provider::Provider>);
    }
    let prices = project.prices.iter().chain(&case.prices).map(|(name, price)| (name.clone(), *price));
    let options = Options {
        models,
        model_table: table(&project.options.model_table),
        prices: Prices::new(prices),
        tools: tools.toolbox.clone(),
        tool_limits: None,
        http: None,
        remotes: Remotes::default(),
        link_secrets: vec![LINK_SECRET.to_vec()],
        test_hooks: None,
        observer: None,
        step_threads: None,
        step_notes: None,
        watchdog: None,
        longest_burst: None,
        ..project.options.clone()
    };
    let store = Arc::new(MemoryStore::new());
    let host = Host::open_with(Arc::clone(&store) as _, options, Arc::clone(&clock) as _, Arc::new(CaseIds::default()))
        .await
        .map_err(|error| vec![Problem::new("case", format!("the host of the case cannot be opened: {error}"))])?;
    let who = Principal { tenant, subject: "case".to_owned(), acts_for: None, scopes: Scopes::all(), test: false };
    for file in &project.workflows {
        host.register_shared_workflow(file.definition.clone())
            .await
            .map_err(|error| vec![Problem::new("workflow", format!("{}: {}", file.path.display(), error.message))])?;
    }
    let workflow = register_own(&host, project, case, own, &who.tenant).await?;
    Ok(CaseHost { host, store, clock, notes, model, tools, who, started, workflow })
}

/// The definition that the case names by its file, and its text.
fn own_workflow(case: &Case) -> Result<Option<(Value, String)>, Vec<Problem>> {
    let Subject::WorkflowFile(path) = &case.subject else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        let problem = Problem::new("workflow", format!("{} cannot be read: {error}", path.display()));
        vec![problem.hint("paths in a case begin in the folder of its file; a workflow of the project has an id")]
    })?;
    let definition = serde_json::from_str(&text)
        .map_err(|error| vec![Problem::new("workflow", format!("{} is not JSON: {error}", path.display()))])?;
    Ok(Some((definition, text)))
}

async fn register_own(
    host: &Host,
    project: &Project,
    case: &Case,
    own: Option<(Value, String)>,
    tenant: &TenantId,
) -> Result<Option<String>, Vec<Problem>> {
    match (&case.subject, own) {
        (Subject::WorkflowFile(path), Some((definition, text))) => {
            let internal = |error: baton_runtime::Error| vec![Problem::new("workflow", error.message)];
            match host.validate_workflow(tenant, definition.clone()).await.map_err(internal)? {
                Err(problems) => {
                    let place = |pointer: &str| locate(&text, pointer);
                    Err(problems
                        .iter()
                        .map(|problem| not_valid(path, &problem.pointer, place(&problem.pointer), &problem.message))
                        .collect())
                }
                Ok((id, _)) => {
                    host.register_workflow(tenant, definition).await.map_err(internal)?;
                    Ok(Some(id.as_str().to_owned()))
                }
            }
        }
        (Subject::Workflow(id), _) => {
            if project.workflows.iter().any(|file| file.id() == Some(id.as_str())) {
                return Ok(Some(id.clone()));
            }
            let broken: Vec<Problem> = project
                .broken
                .iter()
                .filter(|(broken, _)| broken == id)
                .map(|(_, why)| Problem::new("workflow", why.clone()))
                .collect();
            if !broken.is_empty() {
                return Err(broken);
            }
            let known: Vec<&str> = project.workflows.iter().filter_map(|file| file.id()).collect();
            let hint = if known.is_empty() {
                "there is no workflow in the folder `workflows`; --workflows names another".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            Err(vec![Problem::new("workflow", format!("there is no workflow `{id}`")).hint(hint)])
        }
        (Subject::Agent(_) | Subject::WorkflowFile(_), _) => Ok(None),
    }
}

fn not_valid(path: &Path, pointer: &str, at: baton_model::Position, message: &str) -> Problem {
    let pointer = if pointer.is_empty() { "/" } else { pointer };
    Problem::new("workflow", format!("{}:{}:{}: {pointer}: {message}", path.display(), at.line, at.column))
}

fn recording(case: &Case) -> Result<Option<Player>, Vec<Problem>> {
    let Some(path) = &case.recording else { return Ok(None) };
    Player::new(path).map(Some).map_err(|problem| {
        let problem = Problem::new("recording", format!("{}: {problem}", path.display()));
        vec![problem.hint("record one with `recording = { mode = \"record\", path = \"…\" }` of a provider")]
    })
}

/// Every name under which a node could ask for a model. The case answers for all of them.
fn providers(project: &Project, definitions: &[&Value]) -> BTreeSet<String> {
    let nodes = definitions.iter().filter_map(|definition| definition.get("nodes")?.as_array()).flatten();
    let pinned = nodes.filter_map(|node| node.get("config")?.get("provider")?.as_str()).map(str::to_owned);
    pinned.chain(project.providers.iter().cloned()).chain([PROVIDER.to_owned()]).collect()
}

fn table(configured: &ModelTable) -> ModelTable {
    match configured.get(ModelClass::General) {
        Some(_) => configured.clone(),
        None => configured.clone().otherwise(ModelChoice { provider: PROVIDER.to_owned(), model: "test".to_owned() }),
    }
}
