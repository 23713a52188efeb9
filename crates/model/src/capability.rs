//! What a node needs of its model, and what is done where the model that was chosen lacks some of it.
//!
//! ```text
//!  nothing is missing ─────────────────────────────► dispatch
//!  something is ──► another model is named ──► it is here and lacks nothing ──► substitute
//!        │                    └──────────────► otherwise ──► refuse; nobody looks for a third
//!        └────────► none is ────────────────────────────► refuse
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{ModelChoice, ModelClass};

/// The words for what models can do that everybody shares. Hosts have more, as `x-host-<host>-<key>`.
pub const MODEL_CAPABILITIES: [&str; 9] = [
    "structured-output",
    "discriminator-enum",
    "long-context",
    "reasoning",
    "function-calling",
    "vision-input",
    "audio-input",
    "audio-output",
    "image-output",
];

/// How many one node may ask for.
pub const MOST_NEEDS: usize = 32;

/// Whether this could be the name of a capability: small letters, digits and hyphens, a letter first.
pub fn is_capability(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// What a node needs of its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelNeeds {
    pub required: Vec<String>,
    /// Who is asked instead where the chosen model lacks something. There is no third.
    pub fallback: Option<ModelChoice>,
}

/// Who is asked in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateRoute {
    Dispatch,
    Substitute { fallback: ModelChoice, missing: Vec<String> },
    Refuse { missing: Vec<String>, fallback_attempted: bool },
}

impl ModelNeeds {
    /// `offers` says what a model can do, and nothing of one that cannot be reached.
    pub fn route<'a>(
        &self,
        active: &ModelChoice,
        offers: impl Fn(&ModelChoice) -> Option<&'a BTreeSet<String>>,
    ) -> GateRoute {
        let lacking = |model: &ModelChoice| -> Option<Vec<String>> {
            let offered = offers(model)?;
            Some(self.required.iter().filter(|need| !offered.contains(*need)).cloned().collect())
        };
        let missing = lacking(active).unwrap_or_else(|| self.required.clone());
        if missing.is_empty() {
            return GateRoute::Dispatch;
        }
        match &self.fallback {
            Some(fallback) if lacking(fallback).is_some_and(|missing| missing.is_empty()) => {
                GateRoute::Substitute { fallback: fallback.clone(), missing }
            }
            fallback => GateRoute::Refuse { missing, fallback_attempted: fallback.is_some() },
        }
    }
}

/// What the host's configuration says about models, as far as a run needs it: settled when the run starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelPins {
    /// The model of each class that a node asks by itself; agents have pins of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<ModelClass, ModelChoice>,
    /// What models can do, by `provider/model`: those that are asked, or could be instead, by a node that needs something.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<String, BTreeSet<String>>,
}

impl ModelPins {
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.offers.is_empty()
    }

    /// The same with these laid over it.
    #[must_use]
    pub fn overlaid(mut self, other: &Self) -> Self {
        self.classes.extend(other.classes.clone());
        self.offers.extend(other.offers.clone());
        self
    }

    /// What this model can do, if it was there when the run started.
    pub fn offered(&self, model: &ModelChoice) -> Option<&BTreeSet<String>> {
        self.offers.get(&model.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> ModelChoice {
        ModelChoice { provider: "p".to_owned(), model: name.to_owned() }
    }

    fn needs(required: &[&str], fallback: Option<&str>) -> ModelNeeds {
        let required = required.iter().map(|need| (*need).to_owned()).collect();
        ModelNeeds { required, fallback: fallback.map(model) }
    }

    #[test]
    fn a_model_that_lacks_something_is_replaced_once_or_not_at_all() {
        let offers: BTreeMap<String, BTreeSet<String>> = [
            ("p/plain", vec!["reasoning"]),
            ("p/able", vec!["reasoning", "structured-output"]),
            ("p/blind", vec!["structured-output"]),
        ]
        .into_iter()
        .map(|(name, list)| (name.to_owned(), list.into_iter().map(str::to_owned).collect()))
        .collect();
        let pins = ModelPins { offers, ..ModelPins::default() };
        let both = ["reasoning", "structured-output"];
        let missing = vec!["structured-output".to_owned()];
        let refuse = |missing: &[&str], fallback_attempted| GateRoute::Refuse {
            missing: missing.iter().map(|need| (*need).to_owned()).collect(),
            fallback_attempted,
        };
        for (asked, required, fallback, expected) in [
            ("plain", &both[..0], Some("able"), GateRoute::Dispatch),
            ("able", &both[..], Some("plain"), GateRoute::Dispatch),
            ("plain", &both[..], None, refuse(&["structured-output"], false)),
            ("plain", &both[..], Some("able"), GateRoute::Substitute { fallback: model("able"), missing }),
            ("plain", &both[..], Some("blind"), refuse(&["structured-output"], true)),
            ("plain", &both[..], Some("nobody"), refuse(&["structured-output"], true)),
            ("nobody", &both[..], None, refuse(&both, false)),
        ] {
            let found = needs(required, fallback).route(&model(asked), |model| pins.offered(model));
            assert_eq!(found, expected, "{asked} {required:?} {fallback:?}");
        }
    }

    #[test]
    fn names_of_capabilities_are_plain_words() {
        assert!(MODEL_CAPABILITIES.iter().all(|name| is_capability(name)));
        assert!(is_capability("x-host-baton-poetry2"));
        assert!(["", "Vision", "-a", "2d", "a b", "a_b"].iter().all(|name| !is_capability(name)));
    }
}
