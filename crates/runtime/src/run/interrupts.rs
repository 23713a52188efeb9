//! Questions that runs ask people: the links to them, and the answers that were given.

use std::sync::Arc;

use baton_model::event::InterruptResolved;
use baton_model::{Event, InterruptView, NodeId, Record, RunId, code};
use baton_store::Store;
use serde_json::json;

use crate::clock::Clock;
use crate::history::log::RunLog;
use crate::run::interrupt_link;
use crate::run::interrupt_link::{DEFAULT_TTL_MS, Intent, LinkClaims};
use crate::{Error, ErrorKind, Options};

/// Makes links to questions and finds the answers that were given.
pub(crate) struct Interrupts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) log: Arc<RunLog>,
}

impl Interrupts {
    /// Puts a signed link on an open interrupt. It never outlives the interrupt's own deadline.
    pub(crate) fn add_link(&self, run: &RunId, interrupt: &mut InterruptView) {
        let expires = self.clock.now().plus_millis(DEFAULT_TTL_MS);
        let claims = LinkClaims {
            run_id: run.clone(),
            node_id: interrupt.node_id.clone(),
            interrupt_id: interrupt.interrupt_id.clone(),
            expires_at: interrupt.expires_at.map_or(expires, |deadline| deadline.min(expires)),
            intent: Intent::Resolve,
        };
        if let Some(token) = interrupt_link::sign(&self.options.link_secrets, &claims) {
            let base = self.options.public_url.as_deref().unwrap_or("").trim_end_matches('/').to_owned();
            interrupt.callback_url = Some(format!("{base}/v1/interrupts/{token}"));
            interrupt.interrupt_token = Some(token);
        }
    }

    /// On the token surface, a question that is closed for whatever reason has been settled.
    pub(crate) async fn settled(&self, claims: &LinkClaims) -> Error {
        let message = "This question is no longer open.";
        let error = Error::new(ErrorKind::Conflict, code::INTERRUPT_ALREADY_RESOLVED, message);
        self.with_answer(error, &claims.run_id, &claims.node_id, Some(&claims.interrupt_id)).await
    }

    /// Adds who answered and when, as far as the newest part of the log tells. Somebody was faster, and whoever comes
    /// second should not have to guess.
    pub(crate) async fn with_answer(&self, error: Error, run: &RunId, node: &NodeId, interrupt: Option<&str>) -> Error {
        match self.answer_on_log(run, node, interrupt).await {
            Ok(Some((record, event))) => {
                let error = error.with("resolvedAt", json!(record.at)).with("sequence", record.seq);
                let error = error.with("outcome", json!(event.outcome));
                match event.resolved_by {
                    Some(by) => error.with("resolvedBy", by),
                    None => error,
                }
            }
            Ok(None) => error,
            Err(failed) => {
                tracing::debug!(%run, %failed, "an answer could not be looked up");
                error
            }
        }
    }

    async fn answer_on_log(
        &self,
        run: &RunId,
        node: &NodeId,
        interrupt: Option<&str>,
    ) -> Result<Option<(Record, InterruptResolved)>, Error> {
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let mut end = row.next_seq;
        for _ in 0..LOOK_BACK_PAGES {
            let from = end.saturating_sub(LOOK_BACK as u64);
            let page = self.log.log(&row, from, usize::try_from(end - from).unwrap_or(LOOK_BACK)).await?;
            for stored in page.iter().rev().filter(|stored| stored.kind == "interrupt.resolved") {
                let record = stored.decode(run)?;
                if let Event::InterruptResolved(event) = &record.event
                    && event.node_id == *node
                    && interrupt.is_none_or(|id| event.interrupt_id == id)
                {
                    let event = event.clone();
                    return Ok(Some((record, event)));
                }
            }
            if from == 0 {
                break;
            }
            end = from;
        }
        Ok(None)
    }

    pub(crate) fn read_token(&self, token: &str) -> Result<LinkClaims, Error> {
        let claims = interrupt_link::verify(&self.options.link_secrets, token).ok_or_else(not_found)?;
        if claims.expires_at <= self.clock.now() {
            let message = "This link has expired. Ask for a new one.";
            return Err(Error::new(ErrorKind::Gone, code::INTERRUPT_EXPIRED, message));
        }
        Ok(claims)
    }
}

/// How far back the answer to a settled question is looked for.
pub(crate) const LOOK_BACK: usize = 500;

pub(crate) const LOOK_BACK_PAGES: usize = 20;

pub(crate) fn not_found() -> Error {
    Error::new(ErrorKind::NotFound, code::INTERRUPT_NOT_FOUND, "This link does not lead to an open question.")
}
