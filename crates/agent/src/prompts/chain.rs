//! Where a node's prompt is looked for, in which order, and what is said about it.

use baton_model::{AgentCard, Digest, PromptLayer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use super::error::PromptError;
use super::library::Library;
use super::reference::PromptRef;
use super::template::PromptKind;

/// Everything that can have a prompt for a node.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// `configurable.promptOverrides` of the run.
    pub run: Option<&'a Map<String, Value>>,
    /// The node's configuration.
    pub node: Option<&'a Map<String, Value>>,
    pub agent: Agent<'a>,
    /// `defaults.promptRefs` of the workflow.
    pub workflow: Option<&'a Map<String, Value>>,
    /// `prompts.defaults` of the host.
    pub host: Option<&'a Map<String, Value>>,
    pub library: &'a Library,
}

/// What a node has to do with an agent.
#[derive(Clone, Copy, Debug)]
pub enum Agent<'a> {
    /// The node names none.
    Absent,
    /// The node names one that is not here.
    Unknown,
    /// This host does not look at agents for prompts.
    Off,
    Known(AgentPrompts<'a>),
}

/// The part of an agent that prompts are looked for in.
#[derive(Clone, Copy, Debug)]
pub struct AgentPrompts<'a> {
    /// Its own text, and the reference that stands for it.
    pub intrinsic: Option<(&'a str, &'a str)>,
    pub overrides: &'a BTreeMap<String, Value>,
    pub library: Option<&'a str>,
}

impl<'a> AgentPrompts<'a> {
    /// Of an installed agent. `reference` is its [`AgentCard::prompt_ref`].
    pub fn of(card: &'a AgentCard, reference: &'a str) -> Self {
        let intrinsic = (!card.system_prompt.is_empty()).then_some((card.system_prompt.as_str(), reference));
        Self { intrinsic, overrides: &card.prompt_overrides, library: card.prompt_library.as_deref() }
    }
}

/// Which prompt of a node is wanted. Only few-shot prompts have more than one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptSlot {
    pub kind: PromptKind,
    pub index: usize,
}

impl PromptSlot {
    pub const fn of(kind: PromptKind) -> Self {
        Self { kind, index: 0 }
    }
}

/// Worth a line in the log, no reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warning {
    AgentBindingUnresolvable,
    AgentLibraryUnresolvable,
    PromptRefSupersedesInline,
}

impl Warning {
    pub const fn code(self) -> &'static str {
        match self {
            Self::AgentBindingUnresolvable => "agent_binding_unresolvable",
            Self::AgentLibraryUnresolvable => "agent_library_unresolvable",
            Self::PromptRefSupersedesInline => "prompt_ref_supersedes_inline",
        }
    }
}

/// What the layers had.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    pub chain: Vec<PromptLayer>,
    /// The reference that applies.
    pub resolved: Option<String>,
    pub warnings: Vec<Warning>,
    pub(crate) candidate: Option<Candidate>,
}

/// What a layer has to offer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Candidate {
    Template(PromptRef),
    /// An agent's own text, taken as it is.
    Intrinsic {
        text: String,
        reference: String,
    },
    /// A text that the run puts in the place of a template's.
    Text {
        text: String,
        reference: String,
        template: Option<PromptRef>,
    },
}

impl Candidate {
    fn source(&self, library: &Library) -> String {
        match self {
            Self::Intrinsic { reference, .. } | Self::Text { reference, .. } => reference.clone(),
            // A reference without a version means another template tomorrow; say which it was.
            Self::Template(reference) => {
                library.find(reference).map_or_else(|_| reference.to_string(), |template| template.reference())
            }
        }
    }
}

/// A layer has a candidate, has none and says why, or has something that cannot be read.
type Tried = Result<Result<Candidate, &'static str>, PromptError>;

/// Looks through the layers; the first that has something applies. Pure: no template needs to exist.
pub fn resolve(slot: PromptSlot, layers: &Layers<'_>) -> Result<Resolution, PromptError> {
    let mut warnings = Vec::new();
    let tried: [(&str, Tried); 6] = [
        ("node", node(slot, layers, &mut warnings)),
        ("agent-intrinsic", intrinsic(slot, layers, &mut warnings)),
        ("agent-overrides", overrides(slot, layers)),
        ("agent-library-default", library_default(slot, layers, &mut warnings)),
        ("workflow-defaults", defaults(slot, layers.workflow)),
        ("host-defaults", defaults(slot, layers.host)),
    ];
    let below = tried.iter().find_map(|(_, tried)| tried.as_ref().ok().and_then(|tried| tried.as_ref().ok()));
    let run = run(slot, layers.run, below);

    let mut chain = Vec::with_capacity(7);
    let mut winner: Option<(Candidate, String)> = None;
    for (layer, tried) in std::iter::once(("run-configurable", run)).chain(tried) {
        let mut entry = PromptLayer { layer: layer.to_owned(), applied: false, source: None, reason: None };
        match tried {
            Err(error) if winner.is_none() => return Err(error),
            Err(_) => entry.reason = Some("not a reference".to_owned()),
            Ok(Err(reason)) => entry.reason = Some(reason.to_owned()),
            Ok(Ok(candidate)) => {
                let source = candidate.source(layers.library);
                entry.source = Some(source.clone());
                entry.applied = winner.is_none();
                match &winner {
                    None => winner = Some((candidate, source)),
                    Some(_) => entry.reason = Some("a layer before it has one".to_owned()),
                }
            }
        }
        chain.push(entry);
    }
    let (candidate, resolved) = winner.unzip();
    Ok(Resolution { chain, resolved, warnings, candidate })
}

const NONE: &str = "nothing for this kind";

/// A run may give a reference or a text for a kind, or a text in the place of a template's.
fn run(slot: PromptSlot, overrides: Option<&Map<String, Value>>, below: Option<&Candidate>) -> Tried {
    let Some(overrides) = overrides else { return Ok(Err("the run overrides no prompts")) };
    let synthetic = |text: &str| {
        let digest = Digest::of_bytes(text);
        format!("prompt:run-override.{}@0.0.0+{}", slot.kind.as_str(), &digest.as_str()[..12])
    };
    if slot.index == 0 {
        match overrides.get(slot.kind.as_str()) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if !text.starts_with("prompt:") => {
                let reference = synthetic(text);
                return Ok(Ok(Candidate::Text { text: text.clone(), reference, template: None }));
            }
            Some(value) => return PromptRef::read(value).map(|reference| Ok(Candidate::Template(reference))),
        }
    }
    let (id, template) = match below {
        Some(Candidate::Template(reference)) => (reference.template_id.clone(), Some(reference.clone())),
        Some(Candidate::Intrinsic { reference, .. }) => (PromptRef::parse(reference)?.template_id, None),
        _ => return Ok(Err(NONE)),
    };
    match overrides.get(&id).and_then(Value::as_str) {
        Some(text) => Ok(Ok(Candidate::Text { text: text.to_owned(), reference: synthetic(text), template })),
        None => Ok(Err(NONE)),
    }
}

fn node(slot: PromptSlot, layers: &Layers<'_>, warnings: &mut Vec<Warning>) -> Tried {
    let Some(config) = layers.node else { return Ok(Err(NONE)) };
    let (key, inline) = match slot.kind {
        PromptKind::System => ("systemPromptRef", Some("systemPrompt")),
        PromptKind::User => ("userPromptRef", Some("userPrompt")),
        PromptKind::SchemaHint => ("schemaHintPromptRef", None),
        PromptKind::FewShot => ("fewShotPromptRefs", None),
    };
    let value = match (slot.kind, config.get(key)) {
        (PromptKind::FewShot, Some(Value::Array(list))) => list.get(slot.index),
        (PromptKind::FewShot, Some(other)) if !other.is_null() => {
            return Err(PromptError::RefInvalid("`fewShotPromptRefs` is a list of references".to_owned()));
        }
        (_, value) => value,
    };
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Err(NONE)) };
    if inline.is_some_and(|inline| config.get(inline).is_some_and(|value| !value.is_null())) {
        warnings.push(Warning::PromptRefSupersedesInline);
    }
    PromptRef::read(value).map(|reference| Ok(Candidate::Template(reference)))
}

fn agent<'a>(layers: &Layers<'a>) -> Result<AgentPrompts<'a>, &'static str> {
    match layers.agent {
        Agent::Absent => Err("the node names no agent"),
        Agent::Unknown => Err("the agent is not known here"),
        Agent::Off => Err("agents are not asked for prompts on this host"),
        Agent::Known(agent) => Ok(agent),
    }
}

fn intrinsic(slot: PromptSlot, layers: &Layers<'_>, warnings: &mut Vec<Warning>) -> Tried {
    if matches!(layers.agent, Agent::Unknown) {
        warnings.push(Warning::AgentBindingUnresolvable);
    }
    let agent = match agent(layers) {
        Ok(agent) => agent,
        Err(reason) => return Ok(Err(reason)),
    };
    match (slot.kind, agent.intrinsic) {
        (PromptKind::System, Some((text, reference))) => {
            Ok(Ok(Candidate::Intrinsic { text: text.to_owned(), reference: reference.to_owned() }))
        }
        (PromptKind::System, None) => Ok(Err("the agent has no prompt of its own")),
        _ => Ok(Err("an agent's own prompt is a system prompt")),
    }
}

fn overrides(slot: PromptSlot, layers: &Layers<'_>) -> Tried {
    let agent = match agent(layers) {
        Ok(agent) => agent,
        Err(reason) => return Ok(Err(reason)),
    };
    if slot.kind == PromptKind::System && agent.intrinsic.is_some() {
        return Ok(Err("the agent has a prompt of its own"));
    }
    reference(slot, agent.overrides.get(slot.kind.as_str()))
}

fn library_default(slot: PromptSlot, layers: &Layers<'_>, warnings: &mut Vec<Warning>) -> Tried {
    let library = match agent(layers) {
        Ok(agent) => agent.library,
        Err(reason) => return Ok(Err(reason)),
    };
    let Some(library) = library else { return Ok(Err("the agent names no library")) };
    if !layers.library.has(library) {
        warnings.push(Warning::AgentLibraryUnresolvable);
        return Ok(Err("the agent's library is not here"));
    }
    if slot.index > 0 {
        return Ok(Err(NONE));
    }
    match layers.library.default_of(library, slot.kind) {
        None => Ok(Err("the agent's library has no default for this kind")),
        Some(template) => Ok(Ok(Candidate::Template(PromptRef {
            template_id: template.template_id.clone(),
            version: Some(template.version.clone()),
            library_id: Some(library.to_owned()),
            overrides: Map::new(),
        }))),
    }
}

fn defaults(slot: PromptSlot, refs: Option<&Map<String, Value>>) -> Tried {
    reference(slot, refs.and_then(|refs| refs.get(slot.kind.as_str())))
}

/// One reference for a kind; it fills the first slot only.
fn reference(slot: PromptSlot, value: Option<&Value>) -> Tried {
    match value.filter(|value| !value.is_null() && slot.index == 0) {
        None => Ok(Err(NONE)),
        Some(value) => PromptRef::read(value).map(|reference| Ok(Candidate::Template(reference))),
    }
}
