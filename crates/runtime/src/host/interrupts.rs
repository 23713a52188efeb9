use baton_engine::{Actor, Command};
use baton_model::{NodeId, RunId, TenantId, code};
use baton_store::{InterruptFilter, InterruptRow};

use crate::cluster::StoredReply;
use crate::run::interrupt_link::{Intent, LinkClaims};
use crate::{Answer, Error, ErrorKind, Host, Idempotent, Resolved, TokenView, Via};

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
        let kept =
            idempotent.map(|asked| StoredReply::new(asked, move |status, _| Resolved { run_id, node_id, status }));
        match self.command(tenant, run, command, kept).await {
            Ok((status, _)) => Ok(Resolved { run_id: run.clone(), node_id: node.clone(), status }),
            Err(error) if error.code == code::INTERRUPT_ALREADY_RESOLVED => {
                Err(self.rooms.interrupts.with_answer(error, run, node, named.as_deref()).await)
            }
            Err(error) => Err(error),
        }
    }

    /// Refuses a link that this host never signed. One that was used or has expired is genuine.
    pub fn check_link(&self, token: &str) -> Result<(), Error> {
        match self.rooms.interrupts.read_token(token) {
            Err(error) if error.kind == ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    pub async fn inspect_token(&self, token: &str) -> Result<TokenView, Error> {
        let claims = self.rooms.interrupts.read_token(token)?;
        let row = self.rooms.store.interrupt(&claims.run_id, &claims.node_id).await?;
        let Some(row) = row.filter(|row| row.interrupt_id == claims.interrupt_id) else {
            return Err(self.rooms.interrupts.settled(&claims).await);
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
        let claims = self.rooms.interrupts.read_token(token)?;
        if claims.intent != Intent::Resolve {
            return Err(Error::new(ErrorKind::Forbidden, code::FORBIDDEN, "This link may only look, not answer."));
        }
        let row = self.rooms.store.interrupt(&claims.run_id, &claims.node_id).await?;
        let Some(row) = row.filter(|row| row.interrupt_id == claims.interrupt_id) else {
            return Err(self.rooms.interrupts.settled(&claims).await);
        };
        let LinkClaims { run_id, node_id, .. } = &claims;
        // The link is for one question. An answer that names another one was meant for that.
        if answer.interrupt_id.as_ref().is_some_and(|named| *named != claims.interrupt_id) {
            let message = "This link leads to another question than the one the answer names.";
            let error = Error::new(ErrorKind::Conflict, code::INTERRUPT_ALREADY_RESOLVED, message);
            return Err(error.with("openInterruptId", claims.interrupt_id.as_str()));
        }
        let answer = Answer::to(claims.interrupt_id.as_str(), answer.value);
        match self.resolve_once(&row.tenant, run_id, node_id, answer, Via::Token, idempotent).await {
            Err(error) if matches!(error.kind, ErrorKind::Gone | ErrorKind::NotFound) => {
                Err(self.rooms.interrupts.settled(&claims).await)
            }
            Err(error) if error.code == code::INTERRUPT_CANCELLED => Err(self.rooms.interrupts.settled(&claims).await),
            other => other,
        }
    }

    pub async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        Ok(self.rooms.store.interrupts(filter).await?)
    }
}
