//! Calls of models. What was said is private: prompts and answers do not travel with the log.

use serde::{Deserialize, Serialize};

use crate::model_call::ModelReply;
use crate::{Digest, Fault, NodeId, Timestamp};

/// A provider was called and answered. One for each call, before what its node makes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderUsage {
    pub provider: String,
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub total_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_estimate_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    pub node_id: NodeId,
    #[serde(skip)]
    pub private: ProviderUsageFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderUsageFacts {
    pub visit: u32,
    pub attempt: u32,
    /// Which call of this attempt it was, from 0.
    #[serde(default)]
    pub call: u32,
    /// The key of what was asked; see [`crate::cache_key`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<Digest>,
    /// The whole answer; none where it broke off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Box<ModelReply>>,
    /// The most it might take, where a budget said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u64>,
    /// Set where the program that has a step asked, and not the node itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Box<StepAnswer>>,
}

/// A model's answer to the program of a user's own that has a step in hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAnswer {
    /// The tool call that is the step.
    pub call_id: String,
    /// Of what was asked; see [`crate::cache_key`].
    pub request: Digest,
    /// Names the dispatch of the step under which it was asked.
    pub dispatch: Digest,
}

/// A model was asked and gave no answer, or half of one. It is asked the same again: the same call under the same key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRetried {
    pub node_id: NodeId,
    pub provider: String,
    pub model: String,
    /// The how-many-eth time this is, from 2.
    pub attempt: u32,
    /// An answer had begun. Where none had, the provider itself was asked again, as often as its settings say.
    pub begun: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    pub error: Fault,
    #[serde(skip)]
    pub private: ModelRetriedFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRetriedFacts {
    pub visit: u32,
    pub attempt: u32,
    pub call: u32,
    /// Not asked before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
}

/// The chosen model lacks something that the node needs, and another one is asked instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCapabilitySubstituted {
    pub node_id: NodeId,
    pub original_provider: String,
    pub original_model: String,
    pub fallback_provider: String,
    pub fallback_model: String,
    pub missing_capabilities: Vec<String>,
}

/// The chosen model lacks something that the node needs, and nobody can be asked instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCapabilityInsufficient {
    pub node_id: NodeId,
    pub provider: String,
    pub model: String,
    pub missing_capabilities: Vec<String>,
    /// Another model was named, and would not do either.
    #[serde(default)]
    pub fallback_attempted: bool,
}

/// The model would not answer. The text it gave instead may repeat the prompt and stays private.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeRefusal {
    pub node_id: NodeId,
    pub provider: String,
    pub model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_category: Option<String>,
}
