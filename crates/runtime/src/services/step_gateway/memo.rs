//! Values that a step keeps. The first value under a key counts; it is on the run's log before anybody is told.

use std::sync::Arc;

use baton_engine::{Command, MOST_MEMO_BYTES};
use baton_model::{Event, code, json, redact_value};
use serde_json::Value;

use super::KeptValue;
use super::service::{LeasedStep, StepGateway, not_leased, work_of};
use crate::services::runners::step_token::StepClaims;
use crate::{Error, ErrorKind};

impl StepGateway {
    /// Keeps a value, or says which one is there.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        claims: &StepClaims,
        key: String,
        value: Value,
    ) -> Result<KeptValue, Error> {
        let leased = self.leased(claims).await?;
        let bytes = json::size(&value);
        if bytes > MOST_MEMO_BYTES as u64 {
            let message = format!("The value has {bytes} bytes, more than the {MOST_MEMO_BYTES} that are kept.");
            return Err(
                Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message).with("limitBytes", MOST_MEMO_BYTES)
            );
        }
        let value = redact_value(&value, &self.secrets);
        self.tasks.see_through(self, move |room| async move { room.keep_leased(&leased, key, value).await }).await
    }

    async fn keep_leased(&self, leased: &LeasedStep, key: String, value: Value) -> Result<KeptValue, Error> {
        // Of two values for one key, the second sees what became of the first.
        let _alone = self.keeping.lock(&(&leased.key, &key)).await;
        if let Some(value) = self.look(leased, &key).await? {
            return Ok(KeptValue { value, created: false });
        }
        let command = Command::StepKept {
            node: leased.step.node.clone(),
            call_id: leased.step.step_id.clone(),
            key: key.clone(),
            value: value.clone(),
        };
        self.forwarding.order(&leased.step.run, command, None).await.map_err(|error| match error.code {
            code::PAYLOAD_TOO_LARGE => Error { kind: ErrorKind::TooLarge, ..error },
            _ => error,
        })?;
        // On another host somebody may have been first.
        let recorded = self.look(leased, &key).await?.ok_or_else(not_leased)?;
        let created = recorded == value;
        Ok(KeptValue { value: recorded, created })
    }

    /// The value under a key of this step.
    pub(crate) async fn kept(&self, claims: &StepClaims, key: &str) -> Result<Value, Error> {
        let leased = self.leased(claims).await?;
        self.look(&leased, key).await?.ok_or_else(|| {
            let message = "This step keeps nothing under this key.";
            Error::new(ErrorKind::NotFound, code::NOT_FOUND, message)
        })
    }

    async fn look(&self, leased: &LeasedStep, key: &str) -> Result<Option<Value>, Error> {
        let (state, row) = self.run_of(leased).await?;
        let Some(seq) = work_of(&state, leased)?.memo(key) else { return Ok(None) };
        match self.record(&row, seq).await?.event {
            Event::StepMemo(event) => Ok(Some(event.private.value)),
            _ => Err(not_leased()),
        }
    }
}
