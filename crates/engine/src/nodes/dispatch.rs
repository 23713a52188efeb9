use std::collections::BTreeMap;

use baton_model::event::JoinMode;
use baton_model::{Fault, ValueBounds, WorkflowId, json};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::config::Config;
use crate::plan::Problem;
use crate::size::Copies;
use crate::state::RunState;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FanOutPolicy {
    #[default]
    Sequential,
    Reject,
    Parallel,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnWorkerFailure {
    #[default]
    Collect,
    FailFast,
    Absorb,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JoinPolicy {
    pub(crate) mode: JoinMode,
    pub(crate) quorum: u32,
    pub(crate) on_failure: OnWorkerFailure,
}

/// A child's outputs are attested, and perhaps approved, before they are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attest {
    pub(crate) checksum: bool,
    pub(crate) approval: bool,
}

/// `core.dispatch`: acts on the newest decision of its run.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) policy: FanOutPolicy,
    pub(crate) join: JoinPolicy,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) iteration_cap: Option<u64>,
    pub(crate) attest: Attest,
    pub(crate) isolated_memory: bool,
    input: Mapping,
    output: Mapping,
}

/// A default mapping and per-worker ones that replace it.
#[derive(Debug)]
struct Mapping {
    default: Vec<(String, String)>,
    per_worker: BTreeMap<String, Vec<(String, String)>>,
}

const KEYS: &[&str] = &[
    "askUserRouting",
    "workerDispatchModel",
    "fanOutPolicy",
    "iterationCap",
    "inputMapping",
    "outputMapping",
    "perWorkerInputMappings",
    "perWorkerOutputMappings",
    "joinPolicy",
    "maxConcurrency",
    "memoryScopeIsolation",
    "outputAttestation",
];

impl Dispatch {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(KEYS)?;
        match config.text("askUserRouting")?.as_deref() {
            None | Some("auto" | "clarification") => {}
            Some(_) => {
                return Err(
                    config.problem("askUserRouting", "This host routes questions by `clarification` or `auto`.")
                );
            }
        }
        if config.text("workerDispatchModel")?.is_some_and(|model| model != "child-run") {
            return Err(config.problem("workerDispatchModel", "The only dispatch model is `child-run`."));
        }
        let isolation = config.text("memoryScopeIsolation")?;
        if isolation.as_deref().is_some_and(|word| word != "isolated" && word != "shared") {
            return Err(config.problem("memoryScopeIsolation", "`memoryScopeIsolation` is `isolated` or `shared`."));
        }
        let policy = config.choice("fanOutPolicy", "sequential, reject, parallel")?.unwrap_or_default();
        let join = match config.get("joinPolicy") {
            None => JoinPolicy::default(),
            Some(_) if policy != FanOutPolicy::Parallel => {
                return Err(config.problem("joinPolicy", "A join policy needs fanOutPolicy `parallel`."));
            }
            Some(join) => read_join(config, join)?,
        };
        Ok(Self {
            policy,
            join,
            max_concurrency: config.whole("maxConcurrency", 1, 100_000)?.and_then(|n| u32::try_from(n).ok()),
            iteration_cap: config.whole("iterationCap", 1, u64::MAX >> 1)?,
            attest: read_attest(config)?,
            isolated_memory: isolation.as_deref() == Some("isolated"),
            input: Mapping::read(config, "inputMapping", "perWorkerInputMappings")?,
            output: Mapping::read(config, "outputMapping", "perWorkerOutputMappings")?,
        })
    }

    /// What a worker is given: child key ← parent variable. Unset variables are left out, never null.
    pub(crate) fn project(&self, state: &RunState, worker: &WorkflowId) -> Result<Map<String, Value>, Fault> {
        let mapping = self.input.of(worker).iter();
        let mapped = mapping.map(|(child, parent)| (child.as_str(), parent.as_str()));
        state.copy_all("What the worker is given would", mapped)
    }

    /// Whether anything of this worker is taken over at all.
    pub(crate) fn harvests(&self, worker: &WorkflowId) -> bool {
        !self.output.of(worker).is_empty()
    }

    /// What is taken over from a completed worker: parent variable ← child variable, in mapping order.
    pub(crate) fn harvest(
        &self,
        worker: &WorkflowId,
        child: &Map<String, Value>,
        bounds: ValueBounds,
    ) -> Result<Harvest, Fault> {
        harvest(self.output.of(worker), child, bounds)
    }

    /// The part of a child's variables that a harvest could need.
    pub(crate) fn kept(
        &self,
        worker: &WorkflowId,
        child: &Map<String, Value>,
        bounds: ValueBounds,
    ) -> Result<Map<String, Value>, Fault> {
        kept(self.output.of(worker), child, bounds)
    }
}

/// Variables of the parent with the values they get, in mapping order.
pub(crate) type Harvest = Vec<(String, Value)>;

/// What a mapping of parent variable ← child variable takes over. It is added up before it is copied: one value of the
/// child may go to many variables.
pub(super) fn harvest(
    mapping: &[(String, String)],
    child: &Map<String, Value>,
    bounds: ValueBounds,
) -> Result<Harvest, Fault> {
    let mut copies = Copies::new("What is taken over from the child would", bounds);
    let found = mapping.iter().filter_map(|(parent, key)| Some((parent, child.get(key)?)));
    let copied = found.map(|(parent, value)| {
        copies.add(parent, json::size(value))?;
        Ok((parent.clone(), value.clone()))
    });
    copied.collect()
}

/// The part of a child's variables that such a mapping reads.
pub(super) fn kept(
    mapping: &[(String, String)],
    child: &Map<String, Value>,
    bounds: ValueBounds,
) -> Result<Map<String, Value>, Fault> {
    let mut copies = Copies::new("What is taken over from the child would", bounds);
    let mut kept = Map::new();
    for (_, key) in mapping {
        if let Some(value) = child.get(key).filter(|_| !kept.contains_key(key)) {
            copies.add(key, json::size(value))?;
            kept.insert(key.clone(), value.clone());
        }
    }
    Ok(kept)
}

impl Mapping {
    fn read(config: &Config<'_>, default: &str, per_worker: &str) -> Result<Self, Vec<Problem>> {
        let wrong = || config.problem(per_worker, format!("`{per_worker}` maps worker ids to name maps."));
        let mut workers = BTreeMap::new();
        if let Some(map) = config.get(per_worker) {
            for (worker, mapping) in map.as_object().ok_or_else(wrong)? {
                let mapping = mapping.as_object().ok_or_else(wrong)?;
                let pairs = mapping
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), value.as_str().ok_or_else(wrong)?.to_owned())))
                    .collect::<Result<_, Vec<Problem>>>()?;
                workers.insert(worker.clone(), pairs);
            }
        }
        Ok(Self { default: config.text_map(default)?, per_worker: workers })
    }

    fn of(&self, worker: &WorkflowId) -> &[(String, String)] {
        self.per_worker.get(worker.as_str()).unwrap_or(&self.default)
    }
}

fn read_join(config: &Config<'_>, join: &Value) -> Result<JoinPolicy, Vec<Problem>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Raw {
        #[serde(default)]
        mode: JoinMode,
        quorum: Option<u32>,
        #[serde(default)]
        on_child_failure: OnWorkerFailure,
    }
    let raw: Raw = serde_json::from_value(join.clone())
        .map_err(|error| config.problem("joinPolicy", format!("Not a join policy: {error}.")))?;
    let quorum = match (raw.mode, raw.quorum) {
        (JoinMode::Quorum, Some(quorum)) if quorum >= 1 => quorum,
        (JoinMode::Quorum, _) => {
            return Err(config.problem("joinPolicy/quorum", "Mode `quorum` needs `quorum`, at least 1."));
        }
        _ => 0,
    };
    Ok(JoinPolicy { mode: raw.mode, quorum, on_failure: raw.on_child_failure })
}

pub(super) fn read_attest(config: &Config<'_>) -> Result<Attest, Vec<Problem>> {
    let Some(value) = config.get("outputAttestation") else { return Ok(Attest::default()) };
    let Value::Object(map) = value else {
        return Err(config.problem("outputAttestation", "`outputAttestation` is an object."));
    };
    if map.get("algorithm").is_some_and(|algorithm| algorithm != "sha256") {
        return Err(config.problem("outputAttestation/algorithm", "The only algorithm is `sha256`."));
    }
    let flag = |key: &str| match map.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(config.problem(&format!("outputAttestation/{key}"), format!("`{key}` is true or false."))),
    };
    let (checksum, approval) = (flag("checksum")?, flag("requireApproval")?);
    Ok(Attest { checksum: checksum || approval, approval })
}
