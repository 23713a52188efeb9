//! Webhook subscriptions and what they did not take.

use baton_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::routes::append;
use crate::{Client, Error};

#[derive(Clone, Debug, Serialize)]
pub struct NewWebhook {
    pub url: String,
    pub events: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// The secret is shown here and never again.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookSecret {
    pub webhook_id: String,
    pub secret: String,
    pub secret_fingerprint: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub webhook_id: String,
    pub url: String,
    pub events: Vec<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// `active`, `failing` or `failed`.
    pub state: String,
    pub secret_fingerprint: String,
    pub created_at: Timestamp,
    #[serde(default)]
    pub consecutive_failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<WebhookFailure>,
    #[serde(default)]
    pub waiting: u64,
    #[serde(default)]
    pub dead_letters: u64,
    #[serde(default)]
    pub dead_letters_dropped: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WebhookFailure {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookList {
    pub webhooks: Vec<Webhook>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    pub letter_id: String,
    pub webhook_id: String,
    pub run_id: String,
    pub sequence: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status: Option<u16>,
    pub attempts: u32,
    pub dead_lettered_at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterList {
    pub dead_letters: Vec<DeadLetter>,
    #[serde(default)]
    pub dropped: u64,
    #[serde(default)]
    pub retention_days: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Redelivery {
    pub queued: u64,
}

impl Client {
    pub async fn register_webhook(&self, webhook: &NewWebhook) -> Result<WebhookSecret, Error> {
        self.post(self.url(&["v1", "webhooks"]), webhook, None).await
    }

    pub async fn webhooks(&self, limit: usize, cursor: Option<&str>) -> Result<WebhookList, Error> {
        let mut url = self.url(&["v1", "webhooks"]);
        append(&mut url, [("limit", Some(limit.to_string())), ("cursor", cursor.map(str::to_owned))]);
        self.get(url).await
    }

    pub async fn webhook(&self, id: &str) -> Result<Webhook, Error> {
        self.get(self.url_of_name(&["v1", "webhooks"], id)?).await
    }

    pub async fn delete_webhook(&self, id: &str) -> Result<(), Error> {
        self.delete(self.url_of_name(&["v1", "webhooks"], id)?, None).await
    }

    /// What a subscriber did not take, newest first.
    pub async fn dead_letters(&self, id: &str, limit: usize, cursor: Option<&str>) -> Result<DeadLetterList, Error> {
        let mut url = self.url(&["v1", "webhooks", id, "dead-letters"]);
        append(&mut url, [("limit", Some(limit.to_string())), ("cursor", cursor.map(str::to_owned))]);
        self.get(url).await
    }

    /// Sends one letter again, or all of them.
    pub async fn redeliver(&self, id: &str, letter: Option<&str>) -> Result<Redelivery, Error> {
        let mut path = vec!["v1", "host", "baton", "webhooks", id, "dead-letters"];
        path.extend(letter);
        path.push("redeliver");
        self.post(self.url(&path), &json!({}), None).await
    }

    pub async fn resume_webhook(&self, id: &str) -> Result<Webhook, Error> {
        self.post(self.url(&["v1", "host", "baton", "webhooks", id, "resume"]), &json!({}), None).await
    }

    pub async fn rotate_webhook_secret(&self, id: &str) -> Result<WebhookSecret, Error> {
        self.post(self.url(&["v1", "host", "baton", "webhooks", id, "rotate-secret"]), &json!({}), None).await
    }
}
