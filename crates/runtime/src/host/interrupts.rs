use baton_engine::{Actor, Command};
use baton_model::event::InterruptResolved;
use baton_model::{Event, InterruptView, NodeId, Record, RunId, TenantId, code};
use baton_store::{InterruptFilter, InterruptRow};
use serde_json::json;

use crate::cluster::Kept;
use crate::inner::Inner;
use crate::run::interrupt_link;
use crate::run::interrupt_link::{DEFAULT_TTL_MS, Intent, LinkClaims};
use crate::{Answer, Error, Host, Idempotent, Kind, Resolved, TokenView, Via};

/// How far back the answer to a settled question is looked for.
const LOOK_BACK: usize = 500;
const LOOK_BACK_PAGES: usize = 20;

impl Inner {
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
    async fn settled(&self, claims: &LinkClaims) -> Error {
        let message = "This question is no longer open.";
        let error = Error::new(Kind::Conflict, code::INTERRUPT_ALREADY_RESOLVED, message);
        self.with_answer(error, &claims.run_id, &claims.node_id, Some(&claims.interrupt_id)).await
    }

    /// Adds who answered and when, as far as the newest part of the log tells. Somebody was faster, and whoever comes
    /// second should not have to guess.
    async fn with_answer(&self, error: Error, run: &RunId, node: &NodeId, interrupt: Option<&str>) -> Error {
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
            let page = self.log(&row, from, usize::try_from(end - from).unwrap_or(LOOK_BACK)).await?;
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

    fn read_token(&self, token: &str) -> Result<LinkClaims, Error> {
        let claims = interrupt_link::verify(&self.options.link_secrets, token).ok_or_else(not_found)?;
        if claims.expires_at <= self.clock.now() {
            let message = "This link has expired. Ask for a new one.";
            return Err(Error::new(Kind::Gone, code::INTERRUPT_EXPIRED, message));
        }
        Ok(claims)
    }
}

fn not_found() -> Error {
    Error::new(Kind::NotFound, code::INTERRUPT_NOT_FOUND, "This link does not lead to an open question.")
}

impl Host {
    /// Answers the interrupt open at `node`.
    pub async fn resolve(
        &self,
        tenant: &TenantId,
        run: &RunId,
        node: &NodeId,
        answer: impl Into<Answer>,
        via: Via,
    ) -> Result<Resolved, Error> {
        self.resolve_once(tenant, run, node, answer, via, None).await
    }

    /// [`Host::resolve`], with the reply to a keyed request kept in the commit of its effect.
    pub async fn resolve_once(
        &self,
        tenant: &TenantId,
        run: &RunId,
        node: &NodeId,
        answer: impl Into<Answer>,
        via: Via,
        idempotent: Option<Idempotent<Resolved>>,
    ) -> Result<Resolved, Error> {
        let subject = match via {
            Via::Bearer { subject } => Some(subject),
            Via::Token => None,
        };
        let Answer { value, interrupt_id: named } = answer.into();
        let command =
            Command::Resolve { node: node.clone(), interrupt: named.clone(), value, actor: Actor { subject } };
        let (run_id, node_id) = (run.clone(), node.clone());
        let kept = idempotent.map(|asked| Kept::new(asked, move |status, _| Resolved { run_id, node_id, status }));
        match self.command(tenant, run, command, kept).await {
            Ok((status, _)) => Ok(Resolved { run_id: run.clone(), node_id: node.clone(), status }),
            Err(error) if error.code == code::INTERRUPT_ALREADY_RESOLVED => {
                Err(self.inner.with_answer(error, run, node, named.as_deref()).await)
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses a link that this host never signed. One that was used or has expired is genuine.
    pub fn check_link(&self, token: &str) -> Result<(), Error> {
        match self.inner.read_token(token) {
            Err(error) if error.kind == Kind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub async fn inspect_token(&self, token: &str) -> Result<TokenView, Error> {
        let claims = self.inner.read_token(token)?;
        let row = self.inner.store.interrupt(&claims.run_id, &claims.node_id).await?;
        let Some(row) = row.filter(|row| row.interrupt_id == claims.interrupt_id) else {
            return Err(self.inner.settled(&claims).await);
        };
        let snapshot = self.snapshot(&row.tenant, &claims.run_id).await?;
        let open = snapshot.interrupt.filter(|open| open.interrupt_id == claims.interrupt_id);
        let timeout_ms = row.expires_at.map(|deadline| deadline.millis_since(row.requested_at));
        Ok(TokenView {
            run_id: row.run,
            node_id: row.node,
            interrupt_id: row.interrupt_id,
            kind: row.kind,
            key: row.key,
            data: row.data,
            resume_schema: open.and_then(|open| open.resume_schema),
            timeout_ms,
            requested_at: row.requested_at,
            expires_at: claims.expires_at,
        })
    }

    pub async fn resolve_token(&self, token: &str, answer: impl Into<Answer>) -> Result<Resolved, Error> {
        self.resolve_token_once(token, answer.into(), None).await
    }

    /// [`Host::resolve_token`], with the reply to a keyed request kept in the commit of its effect.
    pub async fn resolve_token_once(
        &self,
        token: &str,
        answer: Answer,
        idempotent: Option<Idempotent<Resolved>>,
    ) -> Result<Resolved, Error> {
        let claims = self.inner.read_token(token)?;
        if claims.intent != Intent::Resolve {
            return Err(Error::new(Kind::Forbidden, code::FORBIDDEN, "This link may only look, not answer."));
        }
        let row = self.inner.store.interrupt(&claims.run_id, &claims.node_id).await?;
        let Some(row) = row.filter(|row| row.interrupt_id == claims.interrupt_id) else {
            return Err(self.inner.settled(&claims).await);
        };
        let LinkClaims { run_id, node_id, .. } = &claims;
        // The link is for one question. An answer that names another one was meant for that.
        if answer.interrupt_id.as_ref().is_some_and(|named| *named != claims.interrupt_id) {
            let message = "This link leads to another question than the one the answer names.";
            let error = Error::new(Kind::Conflict, code::INTERRUPT_ALREADY_RESOLVED, message);
            return Err(error.with("openInterruptId", claims.interrupt_id.as_str()));
        }
        let answer = Answer::to(claims.interrupt_id.as_str(), answer.value);
        match self.resolve_once(&row.tenant, run_id, node_id, answer, Via::Token, idempotent).await {
            Err(error) if matches!(error.kind, Kind::Gone | Kind::NotFound) => Err(self.inner.settled(&claims).await),
            Err(error) if error.code == code::INTERRUPT_CANCELLED => Err(self.inner.settled(&claims).await),
            other => other,
        }
    }

    pub async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        Ok(self.inner.store.interrupts(filter).await?)
    }
}
