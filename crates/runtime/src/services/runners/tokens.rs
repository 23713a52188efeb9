//! Tokens that open the channel of runners, and nothing else. A token is shown once; the store has its hash. Tokens are
//! looked up by that hash, of which nothing can be guessed by how long it takes.

use std::collections::HashMap;
use std::sync::Arc;

use baton_model::{Principal, Scope, TenantId, Timestamp, code};
use baton_store::{RunnerWrite, Store, TokenRow, Write};
use parking_lot::RwLock;
use sha2::{Digest as _, Sha256};

use super::names::RunnerOwner;
use super::{MOST_ROWS, MOST_TOKENS};
use crate::clock::{Clock, Ids};
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::{Error, ErrorKind};

/// What tokens begin with.
pub(crate) const TOKEN_PREFIX: &str = "br_";
const KIND: &str = "runner";
const MOST_NAME_BYTES: usize = 200;
const MOST_SUBJECT_BYTES: usize = 256;
const SECRET_BYTES: usize = 32;

/// A token that somebody wants.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    /// `None`: the subject of the caller's own key.
    pub subject: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// A token as its owner is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerToken {
    pub id: String,
    pub name: String,
    pub subject: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// Whoever holds a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerBearer {
    pub owner: RunnerOwner,
    pub token: String,
}

/// Gives out tokens and knows them again.
pub(crate) struct RunnerTokens {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Arc<Storage>,
    /// By hash.
    pub(crate) known: RwLock<HashMap<String, Arc<TokenRow>>>,
}

impl RunnerTokens {
    /// Reads all tokens. Says which of those that were known are gone.
    pub(crate) async fn load(&self) -> Result<Vec<Arc<TokenRow>>, Error> {
        let rows = self.store.tokens(MOST_ROWS).await?;
        let fresh: HashMap<_, _> = rows.into_iter().map(|row| (row.hash.clone(), Arc::new(row))).collect();
        let before = std::mem::replace(&mut *self.known.write(), fresh);
        let known = self.known.read();
        Ok(before.into_values().filter(|row| !known.contains_key(&row.hash)).collect())
    }

    /// A new token, and what it is shown as this once.
    pub(crate) async fn mint(&self, who: &Principal, new: NewToken) -> Result<(RunnerToken, String), Error> {
        let own = who.run_subject();
        let subject = new.subject.unwrap_or_else(|| own.clone());
        if subject != own && !who.scopes.allow(Scope::RunnersManageAny) {
            let message = "A token for another subject needs the scope `runners:manage:any`.";
            return Err(Error::new(ErrorKind::Forbidden, code::FORBIDDEN, message)
                .with("scopeRequired", Scope::RunnersManageAny.as_str()));
        }
        let wrong = |pointer: &str, problem: String| Err(Error::invalid(problem).with("pointer", pointer));
        if new.name.trim().is_empty() || new.name.len() > MOST_NAME_BYTES {
            return wrong("/name", format!("`name` must have 1 to {MOST_NAME_BYTES} bytes."));
        }
        if subject.trim().is_empty() || subject.len() > MOST_SUBJECT_BYTES {
            return wrong("/subject", format!("`subject` must have 1 to {MOST_SUBJECT_BYTES} bytes."));
        }
        let now = self.clock.now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return wrong("/expiresAt", "`expiresAt` must be in the future.".to_owned());
        }
        if self.of_tenant(who).len() >= MOST_TOKENS {
            let message = format!("There are {MOST_TOKENS} tokens already. Revoke some that nobody uses.");
            return Err(Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message).with("limit", MOST_TOKENS));
        }
        let token = format!("{TOKEN_PREFIX}{}", self.ids.secret(SECRET_BYTES));
        let row = TokenRow {
            id: self.ids.run().as_str().replacen("run_", "tok_", 1),
            kind: KIND.to_owned(),
            tenant: who.tenant.clone(),
            subject,
            name: new.name,
            hash: hash(&token),
            scopes: String::new(),
            created_at: now,
            expires_at: new.expires_at,
        };
        self.write(&row.tenant, RunnerWrite::PutToken(row.clone())).await?;
        tracing::info!(token = row.id, subject = row.subject, tenant = %row.tenant, by = who.subject, "a runner token was made");
        let shown = view(&row);
        self.known.write().insert(row.hash.clone(), Arc::new(row));
        Ok((shown, token))
    }

    /// The tokens that the caller may know of, by id.
    pub(crate) fn list(&self, who: &Principal) -> Vec<RunnerToken> {
        let mut all: Vec<RunnerToken> = self.visible(who).iter().map(|row| view(row)).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Forgets a token of the caller's. One that it may not know of is none.
    pub(crate) async fn revoke(&self, who: &Principal, id: &str) -> Result<Arc<TokenRow>, Error> {
        let found = self.visible(who).into_iter().find(|row| row.id == id);
        let row = found.ok_or_else(|| {
            let message = "There is no such token. GET /v1/host/baton/runner-tokens lists those that are.";
            Error::new(ErrorKind::NotFound, code::NOT_FOUND, message)
        })?;
        self.forget(&row).await?;
        tracing::info!(token = row.id, subject = row.subject, tenant = %row.tenant, by = who.subject, "a runner token was revoked");
        Ok(row)
    }

    /// It opens nothing from here on, whatever the disk says.
    pub(crate) async fn forget(&self, row: &TokenRow) -> Result<(), Error> {
        self.known.write().remove(&row.hash);
        let forgotten = self.write(&row.tenant, RunnerWrite::DeleteToken { id: row.id.clone() }).await;
        if forgotten.is_err() {
            self.known.write().insert(row.hash.clone(), Arc::new(row.clone()));
        }
        forgotten
    }

    /// Whose token this is. One that was made on another host a moment ago is looked up.
    pub(crate) async fn bearer(&self, token: &str) -> Result<Option<RunnerBearer>, Error> {
        if !token.starts_with(TOKEN_PREFIX) {
            return Ok(None);
        }
        let hash = hash(token);
        let known = self.known.read().get(&hash).cloned();
        let found = match known {
            Some(row) => Some(row),
            None if self.storage.shared().is_some() => {
                let row = self.store.token(&hash).await?.map(Arc::new);
                if let Some(row) = &row {
                    self.known.write().insert(hash, Arc::clone(row));
                }
                row
            }
            None => None,
        };
        let now = self.clock.now();
        let good = |row: &Arc<TokenRow>| row.kind == KIND && row.expires_at.is_none_or(|at| at > now);
        Ok(found.filter(good).map(|row| RunnerBearer {
            owner: RunnerOwner { tenant: row.tenant.clone(), subject: row.subject.clone() },
            token: row.id.clone(),
        }))
    }

    /// The token that somebody shows.
    pub(crate) fn of(&self, bearer: &RunnerBearer) -> Option<RunnerToken> {
        self.known.read().values().find(|row| row.id == bearer.token).map(|row| view(row))
    }

    /// The tenant of a token that is known here.
    pub(crate) fn tenant(&self, token: &str) -> Option<TenantId> {
        let is_token = token.starts_with(TOKEN_PREFIX);
        is_token.then(|| self.known.read().get(&hash(token)).map(|row| row.tenant.clone())).flatten()
    }

    /// Those whose time is up.
    pub(crate) fn expired(&self) -> Vec<Arc<TokenRow>> {
        let now = self.clock.now();
        let known = self.known.read();
        known.values().filter(|row| row.expires_at.is_some_and(|at| at <= now)).cloned().collect()
    }

    fn of_tenant(&self, who: &Principal) -> Vec<Arc<TokenRow>> {
        self.known.read().values().filter(|row| row.tenant == who.tenant).cloned().collect()
    }

    fn visible(&self, who: &Principal) -> Vec<Arc<TokenRow>> {
        let (own, any) = (who.run_subject(), who.scopes.allow(Scope::RunnersManageAny));
        self.of_tenant(who).into_iter().filter(|row| any || row.subject == own).collect()
    }

    async fn write(&self, tenant: &TenantId, write: RunnerWrite) -> Result<(), Error> {
        let generation = self.storage.live()?.generation;
        Ok(self.storage.write(generation, Lane::Of(tenant), vec![Write::Runners(write)]).await?)
    }
}

fn hash(token: &str) -> String {
    baton_model::json::hex(&Sha256::digest(token.as_bytes()))
}

fn view(row: &TokenRow) -> RunnerToken {
    let TokenRow { id, name, subject, created_at, expires_at, .. } = row.clone();
    RunnerToken { id, name, subject, created_at, expires_at }
}
