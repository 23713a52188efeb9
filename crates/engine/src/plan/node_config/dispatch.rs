//! Settings of a dispatch: how workers are run, joined, given their part and harvested.

use std::collections::BTreeMap;

use baton_model::WorkflowId;
use baton_model::event::JoinMode;
use serde::Deserialize;
use serde_json::Value;

use super::config::Config;
use crate::plan::problem::Problem;

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
    pub(crate) input: Mapping,
    pub(crate) output: Mapping,
}

/// A default mapping and per-worker ones that replace it.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) default: Vec<(String, String)>,
    pub(crate) per_worker: BTreeMap<String, Vec<(String, String)>>,
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
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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

    /// Whether anything of this worker is taken over at all.
    pub(crate) fn harvests(&self, worker: &WorkflowId) -> bool {
        !self.output.of(worker).is_empty()
    }
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

    pub(crate) fn of(&self, worker: &WorkflowId) -> &[(String, String)] {
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

pub(crate) fn read_attest(config: &Config<'_>) -> Result<Attest, Vec<Problem>> {
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
