//! From layers or from a reference to the text itself.

use std::collections::BTreeMap;

use baton_model::{Prompted, Trust};
use serde::Serialize;
use serde_json::{Map, Value};

use super::chain::{Candidate, Layers, PromptSlot, Resolution, Warning, resolve};
use super::compose::{Bindings, Composed, compose};
use super::error::PromptError;
use super::reference::PromptRef;
use super::template::PromptKind;
use super::variable::VariableSource;
use super::{Library, PromptTemplate};

/// A prompt that was looked for: what goes on the log, and the text itself if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub prompted: Prompted,
    pub composed: Option<Composed>,
    pub warnings: Vec<Warning>,
}

/// Looks for the prompt of one slot and puts it together.
pub fn prompt(slot: PromptSlot, layers: &Layers<'_>, bindings: &Bindings) -> Result<Found, PromptError> {
    let resolution = resolve(slot, layers)?;
    let composed = match &resolution.candidate {
        None => None,
        Some(candidate) => Some(put_together(candidate, slot.kind, layers.library, bindings)?),
    };
    Ok(found(slot.kind, resolution, composed))
}

/// The prompts of a node in the order of a conversation: always the system prompt, the others where some layer has
/// one.
pub fn prompts(layers: &Layers<'_>, bindings: &Bindings) -> Result<Vec<Found>, PromptError> {
    let mut all = Vec::new();
    for &kind in PromptKind::ALL {
        for index in 0..slots(kind, layers) {
            let found = prompt(PromptSlot { kind, index }, layers, bindings)?;
            if kind == PromptKind::System || found.composed.is_some() {
                all.push(found);
            }
        }
    }
    Ok(all)
}

fn slots(kind: PromptKind, layers: &Layers<'_>) -> usize {
    let listed = layers.node.and_then(|config| config.get("fewShotPromptRefs")?.as_array().map(Vec::len));
    if kind == PromptKind::FewShot { listed.unwrap_or(1).max(1) } else { 1 }
}

fn put_together(
    candidate: &Candidate,
    kind: PromptKind,
    library: &Library,
    bindings: &Bindings,
) -> Result<Composed, PromptError> {
    match candidate {
        Candidate::Intrinsic { text, .. } => Ok(Composed::verbatim(text, &bindings.known)),
        Candidate::Template(reference) => compose(library.find(reference)?, &reference.overrides, bindings),
        Candidate::Text { text, template: Some(reference), .. } => {
            let mut template = PromptTemplate::clone(library.find(reference)?);
            template.text.clone_from(text);
            compose(&template, &reference.overrides, bindings)
        }
        Candidate::Text { text, reference, template: None } => {
            let own = PromptRef::parse(reference)?;
            compose(&PromptTemplate::bare(&own, kind, text), &Map::new(), bindings)
        }
    }
}

fn found(kind: PromptKind, resolution: Resolution, composed: Option<Composed>) -> Found {
    let prompted = Prompted {
        kind: kind.as_str().to_owned(),
        chain: resolution.chain,
        resolved: resolution.resolved,
        text: composed.as_ref().map(|composed| composed.text.clone()),
        variable_hashes: composed.as_ref().map(|composed| composed.variable_hashes.clone()).unwrap_or_default(),
        untrusted: composed.as_ref().is_some_and(|composed| composed.untrusted),
    };
    Found { prompted, composed, warnings: resolution.warnings }
}

/// What `POST /v1/prompts:render` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    pub composed: String,
    pub hash: String,
    pub refs: Vec<String>,
    pub variable_hashes: BTreeMap<String, String>,
    pub content_trust: Trust,
}

/// Puts a template together without running anything: the same text and the same hash that a node would get from the
/// same values. Whatever a caller gives for a secret is ignored; a marker stands in its place.
pub fn render(
    library: &Library,
    reference: &Value,
    variables: &Map<String, Value>,
    trust: Trust,
    context: &Map<String, Value>,
) -> Result<Rendered, PromptError> {
    let reference = PromptRef::read(reference)?;
    let template = library.find(&reference)?;
    let source = |name: &str| template.variable(name).map_or(VariableSource::Input, |variable| variable.source);
    // Whichever source a template names, here it is what the caller gives; secrets are nobody's to give.
    let given: Map<String, Value> = variables
        .iter()
        .filter(|(name, _)| source(name) != VariableSource::Secret)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let secrets = template.variables.iter().filter(|variable| variable.source == VariableSource::Secret);
    let mut context = context.clone();
    context.extend(given.clone());
    let bindings = Bindings {
        secrets: secrets.map(|variable| (variable.name.clone(), variable.name.clone())).collect(),
        inputs: given.clone(),
        variables: given,
        context,
        trust,
        ..Bindings::default()
    };
    let composed = compose(template, &reference.overrides, &bindings)?;
    Ok(Rendered {
        hash: composed.hash.clone(),
        refs: vec![template.reference()],
        variable_hashes: composed.variable_hashes.clone(),
        content_trust: composed.trust(),
        composed: composed.text,
    })
}
