//! Webhook subscriptions and what they did not take.

use baton_api::{DeadLetterList, NewWebhook, Redelivery, Webhook, WebhookList, WebhookSecret};
use serde_json::json;

use crate::routes::append;
use crate::{Client, Error};

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
