//! Webhook subscriptions and what they did not take.

use baton_model::{RunId, Timestamp, WebhookId};
use serde::{Deserialize, Serialize};

/// Unknown members are tolerated: published shapes of this body disagree.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = RegisterWebhook))]
pub struct NewWebhook {
    pub url: String,
    /// Event type names; `*` means all.
    pub events: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Only events of runs that carry one of these tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = WebhookRegistered))]
pub struct WebhookSecret {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub webhook_id: WebhookId,
    /// Shown once; signs every delivery.
    pub secret: String,
    pub secret_fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
    /// Give it back as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = WebhookEntry))]
pub struct Webhook {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub webhook_id: WebhookId,
    /// Without its query, which may hold a token of the subscriber's own.
    pub url: String,
    pub events: Vec<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub tags: Vec<String>,
    /// `active`; `failing`: left alone until `openUntil`, and what there is for it waits; `failed`: not called until it is
    /// resumed, and what there is for it becomes dead letters.
    pub state: String,
    /// The first digits of the secret's digest.
    pub secret_fingerprint: String,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub consecutive_failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = DateTime))]
    pub open_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<WebhookFailure>,
    /// How many events wait to be sent.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub waiting: u64,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub dead_letters: u64,
    /// How many dead letters were let go because there were too many.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub dead_letters_dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = LastFailure))]
pub struct WebhookFailure {
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// What was answered; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DeadLetterList {
    /// Newest first.
    pub dead_letters: Vec<DeadLetter>,
    /// How many were let go because there were too many.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub dropped: u64,
    /// How long one is kept.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub retention_days: u64,
    /// Give it back as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An event that a subscriber did not get. It names the event and holds nothing of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = DeadLetterView))]
pub struct DeadLetter {
    /// The event's `eventId`, which every attempt has in its body.
    pub letter_id: String,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub webhook_id: WebhookId,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run_id: RunId,
    pub sequence: u64,
    /// The event's type; empty if it was gone by then.
    #[serde(rename = "type")]
    pub kind: String,
    /// `retries_exhausted`, `subscription_failed`, `backlog_full` or `event_gone`.
    pub reason: String,
    /// How the last attempt failed, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<u16>,
    pub attempts: u32,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub dead_lettered_at: Timestamp,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Redelivery {
    /// How many letters are on their way again. None that was already.
    pub queued: u64,
}
