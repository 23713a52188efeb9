//! Subscriptions and their dead letters as their owners see them. Never with a secret.

use baton_model::{Digest, Timestamp, WebhookId};
use baton_store::{DeadLetter, LastFailure, Webhook, WebhookLoad, WebhookStatus};
use reqwest::Url;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookState {
    Active,
    /// It failed several times in a row and is left alone until an instant; what there is for it waits.
    Failing,
    /// It failed for too long and is called again once somebody resumes it; what there is for it becomes dead letters.
    Failed,
}

impl WebhookState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Failing => "failing",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct WebhookView {
    pub id: WebhookId,
    /// Without its query, which may hold a token of the subscriber's own.
    pub url: String,
    pub events: Vec<String>,
    pub tags: Vec<String>,
    pub state: WebhookState,
    pub fingerprint: String,
    pub created_at: Timestamp,
    pub consecutive_failures: u32,
    /// Until when it is left alone.
    pub open_until: Option<Timestamp>,
    pub last_failure: Option<LastFailure>,
    pub waiting: u64,
    pub dead_letters: u64,
    /// How many were let go because there were too many.
    pub dead_letters_dropped: u64,
}

impl WebhookView {
    pub(crate) fn new(webhook: Webhook, load: Option<&WebhookLoad>) -> Self {
        Self {
            url: shown(&webhook.url),
            fingerprint: fingerprint(&webhook.secret),
            state: match webhook.status {
                WebhookStatus::Active => WebhookState::Active,
                WebhookStatus::Open => WebhookState::Failing,
                WebhookStatus::Failed => WebhookState::Failed,
            },
            id: webhook.id,
            events: webhook.events,
            tags: webhook.tags,
            created_at: webhook.created_at,
            consecutive_failures: webhook.consecutive_failures,
            open_until: webhook.open_until,
            last_failure: webhook.last_failure,
            waiting: load.map_or(0, |load| load.waiting),
            dead_letters: load.map_or(0, |load| load.letters),
            dead_letters_dropped: webhook.letters_dropped,
        }
    }
}

/// What a secret is known by.
pub(crate) fn fingerprint(secret: &str) -> String {
    Digest::of_bytes(secret).as_str()[..8].to_owned()
}

fn shown(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else { return String::new() };
    if url.query().is_some() {
        url.set_query(Some("..."));
    }
    url.set_fragment(None);
    url.to_string()
}

#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetterView {
    pub letter: DeadLetter,
    pub expires_at: Timestamp,
}
