//! Clients of a simulation: they start runs, answer, cancel, pause, fork, prune and remember, through any host, and note
//! what they were told. What was acknowledged must be there afterwards, whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::event::DrainPolicy;
use baton_model::{Digest, ForkMode, NodeId, Principal, RunId, Scopes, SideEffects, TenantId};
use baton_runtime::{
    Answer, Error, ForkRun, Host, Idempotent, KeyLookup, NewFile, NewMemory, NewWebhook, PauseRun, StartRun, Via,
};
use baton_store::InterruptRow;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// What a client asks a host for.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// Under an idempotency key, so that it may be asked again.
    Start {
        tenant: TenantId,
        key: String,
        workflow: String,
        /// What the tree may spend in tokens.
        budget: Option<u64>,
    },
    Answer {
        tenant: TenantId,
        run: RunId,
        node: NodeId,
        interrupt: String,
        value: Value,
    },
    Cancel {
        tenant: TenantId,
        run: RunId,
    },
    Pause {
        tenant: TenantId,
        run: RunId,
    },
    Resume {
        tenant: TenantId,
        run: RunId,
    },
    Fork {
        tenant: TenantId,
        run: RunId,
        from: u64,
        replay: bool,
    },
    Prune {
        tenant: TenantId,
        run: RunId,
        log: bool,
    },
    Remember {
        tenant: TenantId,
        content: String,
    },
    WriteFile {
        tenant: TenantId,
        path: String,
        content: String,
    },
    Subscribe {
        tenant: TenantId,
    },
    Verify {
        tenant: TenantId,
        run: RunId,
    },
    Look {
        tenant: TenantId,
        run: RunId,
    },
    Release {
        tenant: TenantId,
        run: RunId,
    },
    Register {
        tenant: TenantId,
        definition: Value,
    },
}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start { key, workflow, budget, .. } => write!(f, "start {workflow} under {key} (budget: {budget:?})"),
            Self::Answer { run, node, interrupt, value, .. } => write!(f, "answer {run} {node} {interrupt} {value}"),
            Self::Cancel { run, .. } => write!(f, "cancel {run}"),
            Self::Pause { run, .. } => write!(f, "pause {run}"),
            Self::Resume { run, .. } => write!(f, "resume {run}"),
            Self::Fork { run, from, replay, .. } => write!(f, "fork {run} at {from} (replay: {replay})"),
            Self::Prune { run, log, .. } => write!(f, "prune {run} (log: {log})"),
            Self::Remember { content, .. } => write!(f, "remember {content}"),
            Self::WriteFile { path, content, .. } => write!(f, "write {content} to {path}"),
            Self::Subscribe { tenant } => write!(f, "subscribe for {tenant}"),
            Self::Verify { run, .. } => write!(f, "verify {run}"),
            Self::Look { run, .. } => write!(f, "look at {run}"),
            Self::Release { run, .. } => write!(f, "release {run}"),
            Self::Register { tenant, definition } => write!(f, "register {} for {tenant}", definition["id"]),
        }
    }
}

/// What a client was told was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Started(RunId),
    Forked(RunId),
    Verified(Option<String>),
    Wrote(u64),
    Done,
}

/// A question that is on its way, or answered.
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) number: u64,
    pub(crate) host: usize,
    answer: Arc<Mutex<Option<Result<Told, Error>>>>,
}

impl Asked {
    pub(crate) fn new(ask: Ask, number: u64, host: usize) -> Self {
        Self { ask, number, host, answer: Arc::default() }
    }

    /// What was answered, if it was.
    pub(crate) fn take(&self) -> Option<Result<Told, Error>> {
        self.answer.lock().take()
    }

    /// Asks it. Ends with the process that was asked.
    pub(crate) fn begin(&self, host: Host, keys: Arc<KeysInFlight>) -> impl Future<Output = ()> + Send + 'static {
        let (ask, answer) = (self.ask.clone(), Arc::clone(&self.answer));
        async move {
            let told = carry_out(&host, &keys, ask).await;
            *answer.lock() = Some(told);
        }
    }
}

pub(crate) fn who(tenant: &TenantId) -> Principal {
    Principal {
        tenant: tenant.clone(),
        subject: "key-1".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: false,
    }
}

/// Requests under one key go one after the other within a host, as the edge sees to.
#[derive(Debug, Default)]
pub(crate) struct KeysInFlight(Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl KeysInFlight {
    fn of(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.0.lock().entry(key.to_owned()).or_default())
    }
}

/// A start as the edge handles it: known already, or done once and its claim let go.
async fn start(
    host: &Host,
    keys: &KeysInFlight,
    tenant: &TenantId,
    key: &str,
    request: StartRun,
) -> Result<Told, Error> {
    let of_key = keys.of(key);
    let _alone = of_key.lock().await;
    let (digest, asked) = (Digest::of_bytes(key), Digest::of_bytes(&request.workflow_id));
    match host.recall(tenant, &digest, &asked).await? {
        KeyLookup::Replay { body, .. } => Ok(Told::Started(RunId::new(body))),
        KeyLookup::Mismatch => panic!("{key}: the same key names another request"),
        KeyLookup::New => {
            let render = Box::new(|started: &baton_runtime::StartedRun| (201, started.run_id.to_string()));
            let kept = Idempotent { key: digest.clone(), request: asked, render };
            let started = host.start_run(&who(tenant), request, Some(kept)).await;
            host.done_with(tenant, &digest);
            Ok(Told::Started(started?.run_id))
        }
    }
}

async fn carry_out(host: &Host, keys: &KeysInFlight, ask: Ask) -> Result<Told, Error> {
    match ask {
        Ask::Start { tenant, key, workflow, budget } => {
            let configurable = budget.map_or(json!({}), |most| json!({"budget": {"maxTokens": most}}));
            let configurable = configurable.as_object().cloned().unwrap_or_default();
            start(host, keys, &tenant, &key, StartRun { workflow_id: workflow, configurable, ..StartRun::default() })
                .await
        }
        Ask::Answer { tenant, run, node, interrupt, value } => {
            let via = Via::Bearer { subject: "key-1".to_owned() };
            let answer = Answer { value, interrupt_id: Some(interrupt) };
            host.resolve(&tenant, &run, &node, answer, via).await.map(|_| Told::Done)
        }
        Ask::Cancel { tenant, run } => host.cancel(&who(&tenant), &run, None).await.map(|_| Told::Done),
        Ask::Pause { tenant, run } => {
            let request = PauseRun { reason: None, drain: DrainPolicy::default() };
            host.pause(&who(&tenant), &run, request).await.map(|_| Told::Done)
        }
        Ask::Resume { tenant, run } => host.resume(&who(&tenant), &run, None).await.map(|_| Told::Done),
        Ask::Fork { tenant, run, from, replay } => {
            let mode = if replay { ForkMode::Replay } else { ForkMode::Branch };
            let request = ForkRun {
                mode,
                from_seq: from,
                inputs: Map::new(),
                variables: Map::new(),
                configurable: Map::new(),
                side_effects: SideEffects::default(),
            };
            host.fork(&who(&tenant), &run, request, None).await.map(|forked| Told::Forked(forked.run_id))
        }
        Ask::Prune { tenant, run, log } => host.prune(&tenant, &run, log).await.map(|_| Told::Done),
        Ask::Remember { tenant, content } => {
            let new = NewMemory { content, tags: Vec::new(), ttl_ms: None };
            host.put_memory(&tenant, "shared", new, None).await.map(|_| Told::Done)
        }
        Ask::WriteFile { tenant, path, content } => {
            let new = NewFile { path, content, content_type: None, if_match: None };
            let file = host.put_file(&tenant, baton_model::workspace::DEFAULT_WORKSPACE, new).await?;
            Ok(Told::Wrote(file.meta.version))
        }
        Ask::Subscribe { tenant } => {
            let url = "https://hooks.example.com/in".to_owned();
            let events = ["run.completed", "run.failed", "run.cancelled", "node.completed"];
            let request = NewWebhook { url, events: events.map(str::to_owned).to_vec(), tags: Vec::new() };
            host.register_webhook(&who(&tenant), request).await.map(|_| Told::Done)
        }
        Ask::Verify { tenant, run } => {
            let verified = host.verify(&tenant, &run).await?;
            Ok(Told::Verified(verified.difference.map(|difference| format!("{difference:?}"))))
        }
        Ask::Look { tenant, run } => host.snapshot(&tenant, &run).await.map(|_| Told::Done),
        Ask::Release { tenant, run } => host.release(&who(&tenant), &run).await.map(|_| Told::Done),
        Ask::Register { tenant, definition } => host.register_workflow(&tenant, definition).await.map(|_| Told::Done),
    }
}

/// The answer that lets a run go on, whatever it asks.
pub(crate) fn go_on(question: &InterruptRow) -> Value {
    match question.kind.as_str() {
        "clarification" => json!({"answers": {"answer": "left"}}),
        "x-host-baton-effect-unknown" => json!({"action": "done", "result": {"did": "a human says"}}),
        _ => json!({"action": "accept"}),
    }
}

/// What clients were told, for ever.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    /// Key of a start, and the run that it made.
    pub(crate) started: BTreeMap<String, RunId>,
    /// What their trees may spend.
    pub(crate) budgets: BTreeMap<RunId, u64>,
    /// Whether somebody asked to forget anything.
    pub(crate) pruned: bool,
    pub(crate) forked: BTreeSet<RunId>,
    pub(crate) cancelled: BTreeSet<RunId>,
    /// Run and question.
    pub(crate) answered: BTreeMap<(RunId, String), Value>,
    pub(crate) remembered: BTreeSet<(TenantId, String)>,
    pub(crate) wrote: BTreeSet<(TenantId, String, String)>,
    /// What should not have been told.
    pub(crate) objections: Vec<String>,
}

impl Acknowledged {
    pub(crate) fn note(&mut self, ask: &Ask, told: Told) {
        match (ask, told) {
            (Ask::Start { key, budget, .. }, Told::Started(run)) => {
                if let Some(most) = budget {
                    self.budgets.insert(run.clone(), *most);
                }
                let known = self.started.entry(key.clone()).or_insert_with(|| run.clone());
                if *known != run {
                    self.objections.push(format!("{key}: two runs under one key, {known} and {run}"));
                }
            }
            (Ask::Fork { .. }, Told::Forked(run)) => {
                let _ = self.forked.insert(run);
            }
            (Ask::Cancel { run, .. }, _) => {
                let _ = self.cancelled.insert(run.clone());
            }
            (Ask::Answer { run, interrupt, value, .. }, _) => {
                let key = (run.clone(), interrupt.clone());
                if self.answered.insert(key, value.clone()).is_some() {
                    self.objections.push(format!("{run}: the question {interrupt} took two answers"));
                }
            }
            (Ask::Remember { tenant, content }, _) => {
                let _ = self.remembered.insert((tenant.clone(), content.clone()));
            }
            (Ask::WriteFile { tenant, path, content }, _) => {
                {
                    let _ = self.wrote.insert((tenant.clone(), path.clone(), content.clone()));
                };
            }
            (Ask::Verify { run, .. }, Told::Verified(Some(difference))) => {
                self.objections.push(format!("{run}: gone through again, it differs: {difference}"));
            }
            _ => {}
        }
    }
}
