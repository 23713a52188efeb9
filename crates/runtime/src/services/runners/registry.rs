//! Which runners there are and what they bring. A runner is kept in the store from when it signs in until it signs off, its
//! token is revoked, or it is not heard of for a day: while it is away for a moment, calls of its tools wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::{Principal, TenantId, code};
use baton_store::{RunnerWrite, Store, Write};
use baton_tool::runner::{RunnerTool, is_pool_name};
use baton_tool::{Tool, ToolSet};

use super::board::Board;
use super::dispatcher::Dispatcher;
use super::names::RunnerOwner;
use super::rows::{DEFAULT_CONCURRENCY, Registration, RunnerTools};
use super::tokens::{RunnerBearer, RunnerTokens};
use super::view::{RunnerRegistration, RunnerView};
use super::{FORGET_RUNNERS_MS, MOST_ROWS, MOST_RUNNERS};
use crate::clock::Clock;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::{Error, ErrorKind, Options};

const MOST_ID_BYTES: usize = 128;
const MOST_TOOLS: usize = 256;
/// How much one runner says of its tools, and all of a tenant together: it is in memory, and a row of the store.
const MOST_LISTED_BYTES: usize = 1024 * 1024;
const MOST_LISTED_BYTES_OF_TENANT: usize = 64 * 1024 * 1024;
/// How many different tools the runners of one subject bring. An agent's tools are looked for among them.
const MOST_TOOLS_OF_SUBJECT: usize = 5_000;
/// How many steps one runner may do at a time.
const MOST_CONCURRENCY: usize = 1_024;
const MOST_VERSION_BYTES: usize = 64;
/// How many words of each kind a registration may have, and how long they may be.
const MOST_CAPABILITIES: usize = 1_000;
const MOST_CAPABILITY_BYTES: usize = 256;

/// Keeps runners, and offers their tools.
pub(crate) struct RunnerRegistry {
    pub(crate) runner_board: Arc<Board>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) runner_tokens: Arc<RunnerTokens>,
    pub(crate) storage: Arc<Storage>,
    /// One change of a runner after the other, by its key.
    pub(crate) changing: LoadLocks,
}

impl RunnerRegistry {
    /// Reads all runners, as they are in the store.
    pub(crate) async fn load(&self) -> Result<(), Error> {
        if !self.options.runner_channel {
            return Ok(());
        }
        let (now, epoch) = (self.clock.now(), self.dispatcher.epoch());
        let mut owners = BTreeSet::new();
        let mut there = BTreeSet::new();
        for row in self.store.runners(MOST_ROWS).await? {
            let Some(registration) = Registration::read(&row).map(Arc::new) else { continue };
            let (owner, id) = (registration.owner(), registration.runner_id.clone());
            there.insert((owner.clone(), id.clone()));
            let known = self.runner_board.runner(&owner, &id);
            let newer = known.as_ref().is_none_or(|known| known.registration.row_version < row.version);
            if newer {
                owners.insert(owner.clone());
                let changes = self.runner_board.attach(Arc::clone(&registration), epoch, now);
                self.dispatcher.carry_out(changes);
                if registration.epoch != epoch {
                    self.runner_board.moved_away(&owner, &id);
                } else if known.is_some_and(|known| known.seen_at < registration.seen_at) {
                    self.runner_board.renew(&owner, &id, registration.seen_at);
                }
            }
        }
        for known in self.runner_board.all() {
            let (owner, id) = (known.registration.owner(), known.registration.runner_id.clone());
            if !there.contains(&(owner.clone(), id.clone())) {
                let changes = self.runner_board.detach(&owner, &id, "The runner is gone.", epoch, now);
                self.dispatcher.carry_out(changes);
                owners.insert(owner);
            }
        }
        owners.iter().for_each(|owner| self.offer(owner));
        Ok(())
    }

    /// A runner signs in. Says whether it is new.
    pub(crate) async fn register(&self, bearer: &RunnerBearer, frame: RunnerRegistration) -> Result<bool, Error> {
        if frame.subject != bearer.owner.subject {
            let message = "A runner signs in for the subject of its token.";
            return Err(Error::new(ErrorKind::Forbidden, code::FORBIDDEN, message));
        }
        let wrong = |pointer: &str, problem: String| Err(Error::invalid(problem).with("pointer", pointer));
        if frame.runner_id.is_empty() || frame.runner_id.len() > MOST_ID_BYTES {
            return wrong("/runnerId", format!("`runnerId` must have 1 to {MOST_ID_BYTES} bytes."));
        }
        let capabilities = &frame.capabilities;
        let lists = [&capabilities.providers, &capabilities.models, &capabilities.tools];
        for (name, list) in ["providers", "models", "tools"].into_iter().zip(lists) {
            let unique: BTreeSet<&String> = list.iter().collect();
            let too_long = list.iter().any(|word| word.is_empty() || word.len() > MOST_CAPABILITY_BYTES);
            if unique.len() != list.len() || list.len() > MOST_CAPABILITIES || too_long {
                let problem = format!(
                    "`{name}` must be at most {MOST_CAPABILITIES} different texts of 1 to {MOST_CAPABILITY_BYTES} bytes."
                );
                return wrong(&format!("/capabilities/{name}"), problem);
            }
        }
        let owner = &bearer.owner;
        let _alone = self.changing.lock(&owner.runner_key(&frame.runner_id)).await;
        let known = self.runner_board.runner(owner, &frame.runner_id);
        if known.is_none() && self.runner_board.runners(owner).len() >= MOST_RUNNERS {
            let message = format!("This subject has {MOST_RUNNERS} runners already. Sign some off.");
            return Err(Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message).with("limit", MOST_RUNNERS));
        }
        let now = self.clock.now();
        let is_new = known.is_none();
        let registration = match known {
            Some(known) => Registration {
                capabilities: frame.capabilities,
                token_id: bearer.token.clone(),
                draining: false,
                seen_at: now,
                row_version: known.registration.row_version + 1,
                ..(*known.registration).clone()
            },
            None => Registration {
                tenant: owner.tenant.clone(),
                subject: owner.subject.clone(),
                runner_id: frame.runner_id,
                token_id: bearer.token.clone(),
                capabilities: frame.capabilities,
                pool: None,
                version: None,
                max_concurrency: DEFAULT_CONCURRENCY,
                tools: Vec::new(),
                listed_bytes: 0,
                draining: false,
                registered_at: now,
                seq_limit: 0,
                row_version: 1,
                epoch: self.dispatcher.epoch(),
                seen_at: now,
            },
        };
        self.keep(registration).await?;
        self.still_good(bearer).await?;
        Ok(is_new)
    }

    /// What a runner brings, in full.
    pub(crate) async fn put_tools(&self, bearer: &RunnerBearer, id: &str, new: RunnerTools) -> Result<(), Error> {
        self.own(bearer, id)?;
        let wrong = |pointer: &str, problem: String| Err(Error::invalid(problem).with("pointer", pointer));
        if !is_pool_name(&new.pool) {
            return wrong("/pool", "`pool` must be 1 to 64 of a-z A-Z 0-9 - _.".to_owned());
        }
        if new.max_concurrency == 0 || new.max_concurrency > MOST_CONCURRENCY {
            return wrong("/maxConcurrency", format!("`maxConcurrency` must be 1 to {MOST_CONCURRENCY}."));
        }
        if new.version.as_ref().is_some_and(|version| version.is_empty() || version.len() > MOST_VERSION_BYTES) {
            return wrong("/version", format!("`version` must have 1 to {MOST_VERSION_BYTES} bytes."));
        }
        if new.tools.len() > MOST_TOOLS {
            return wrong("/tools", format!("A runner has at most {MOST_TOOLS} tools."));
        }
        let _alone = self.changing.lock(&bearer.owner.runner_key(id)).await;
        let known = self.own(bearer, id)?;
        let mut names = BTreeSet::new();
        for (place, tool) in new.tools.iter().enumerate() {
            if let Err(problem) = RunnerTool::new(&new.pool, tool.listed(), None) {
                return wrong(&format!("/tools/{place}"), format!("The tool cannot be offered: {problem}."));
            }
            if !names.insert(&tool.name) {
                return wrong(&format!("/tools/{place}/name"), format!("There are two tools `{}`.", tool.name));
            }
        }
        let listed_bytes = serde_json::to_string(&new.tools).map_or(0, |text| text.len());
        if listed_bytes > MOST_LISTED_BYTES {
            let message = format!(
                "What is said of the tools has {listed_bytes} bytes, more than the {MOST_LISTED_BYTES} that are kept."
            );
            let error = Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message);
            return Err(error.with("limitBytes", MOST_LISTED_BYTES));
        }
        self.check_room(bearer, id, &new, listed_bytes)?;
        let registration = Registration {
            listed_bytes,
            pool: Some(new.pool),
            version: new.version,
            max_concurrency: new.max_concurrency,
            tools: new.tools,
            token_id: bearer.token.clone(),
            seen_at: self.clock.now(),
            row_version: known.row_version + 1,
            ..(*known).clone()
        };
        self.keep(registration).await?;
        self.still_good(bearer).await
    }

    /// Whether its tools fit beside those of the other runners.
    fn check_room(&self, bearer: &RunnerBearer, id: &str, new: &RunnerTools, bytes: usize) -> Result<(), Error> {
        let owner = &bearer.owner;
        let mut tools: BTreeSet<String> = new.tools.iter().map(|tool| format!("{}.{}", new.pool, tool.name)).collect();
        let mut of_tenant = bytes;
        for known in self.runner_board.all() {
            let there = &*known.registration;
            if there.tenant != owner.tenant || (there.subject == owner.subject && there.runner_id == id) {
                continue;
            }
            of_tenant += there.listed_bytes;
            if there.subject == owner.subject {
                tools.extend(there.tool_names());
            }
        }
        let (what, limit) = match (of_tenant > MOST_LISTED_BYTES_OF_TENANT, tools.len() > MOST_TOOLS_OF_SUBJECT) {
            (true, _) => ("bytes about their tools", MOST_LISTED_BYTES_OF_TENANT),
            (_, true) => ("different tools", MOST_TOOLS_OF_SUBJECT),
            _ => return Ok(()),
        };
        let message = format!("The runners that are there would have more than {limit} {what}. Sign some off.");
        Err(Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message).with("limit", limit))
    }

    /// It takes no more steps.
    pub(crate) async fn drain(&self, bearer: &RunnerBearer, id: &str) -> Result<(), Error> {
        let _alone = self.changing.lock(&bearer.owner.runner_key(id)).await;
        let known = self.own(bearer, id)?;
        if known.draining {
            return Ok(());
        }
        let (seen_at, row_version) = (self.clock.now(), known.row_version + 1);
        self.keep(Registration { draining: true, seen_at, row_version, ..(*known).clone() }).await
    }

    /// A runner whose stream is on another host was heard of here.
    pub(crate) async fn touch(&self, bearer: &RunnerBearer, id: &str) -> Result<(), Error> {
        let _alone = self.changing.lock(&bearer.owner.runner_key(id)).await;
        let registration = self.own(bearer, id)?;
        let (seen_at, row_version) = (self.clock.now(), registration.row_version + 1);
        self.keep(Registration { seen_at, row_version, ..(*registration).clone() }).await
    }

    /// A runner goes. What it has is lost.
    pub(crate) async fn sign_off(&self, bearer: &RunnerBearer, id: &str) -> Result<(), Error> {
        let known = self.own(bearer, id)?;
        self.remove(&known, "The runner signed off before it was done.").await
    }

    /// Of a token that was revoked while it was used nothing stays.
    pub(crate) async fn still_good(&self, bearer: &RunnerBearer) -> Result<(), Error> {
        if self.runner_tokens.of(bearer).is_some() {
            return Ok(());
        }
        self.forget_token(&bearer.token).await?;
        let message = "The token was revoked a moment ago.";
        Err(Error::new(ErrorKind::Forbidden, code::FORBIDDEN, message))
    }

    /// The runners of a token are none any more, and streams that it opened end.
    pub(crate) async fn forget_token(&self, token: &str) -> Result<(), Error> {
        self.runner_board.end_streams_of(token);
        for known in self.runner_board.all() {
            if known.registration.token_id == token {
                self.remove(&known.registration, "The runner's token was revoked.").await?;
            }
        }
        Ok(())
    }

    /// Runners that were not heard of for too long are none any more.
    pub(crate) async fn forget_silent(&self) -> Result<(), Error> {
        let now = self.clock.now();
        for known in self.runner_board.all() {
            let silent = !known.connected && known.seen_at.plus_millis(FORGET_RUNNERS_MS) <= now;
            let epoch = known.registration.epoch;
            // Where its host is there, that one says so.
            if silent && (epoch == self.dispatcher.epoch() || !self.dispatcher.is_alive(epoch).await?) {
                self.remove(&known.registration, "The runner was not heard of for too long.").await?;
            }
        }
        Ok(())
    }

    async fn remove(&self, known: &Registration, reason: &str) -> Result<(), Error> {
        let (owner, id) = (known.owner(), known.runner_id.as_str());
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        // Its stream ends at once, whatever the disk says.
        let changes = self.runner_board.detach(&owner, id, reason, epoch, now);
        self.dispatcher.carry_out(changes);
        self.offer(&owner);
        self.write(&owner.tenant, RunnerWrite::DeleteRunner { key: owner.runner_key(id) }).await
    }

    /// The runner of this id that the bearer may speak for.
    pub(crate) fn own(&self, bearer: &RunnerBearer, id: &str) -> Result<Arc<Registration>, Error> {
        let known = self.runner_board.runner(&bearer.owner, id).map(|known| known.registration);
        known.ok_or_else(|| {
            let message = "There is no such runner. POST /v1/host/baton/runners signs one in.";
            Error::new(ErrorKind::NotFound, code::NOT_FOUND, message)
        })
    }

    pub(crate) fn list(&self, who: &Principal) -> Vec<RunnerView> {
        let owner = RunnerOwner { tenant: who.tenant.clone(), subject: who.run_subject() };
        self.runner_board.runners(&owner).iter().map(RunnerView::of).collect()
    }

    /// Durable first: after a restart it is known as it said it was.
    async fn keep(&self, registration: Registration) -> Result<(), Error> {
        let owner = registration.owner();
        self.write(&owner.tenant, RunnerWrite::PutRunner(registration.row())).await?;
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        let known = self.runner_board.runner(&owner, &registration.runner_id);
        let offers_the_same = known.is_some_and(|known| known.registration.offers_like(&registration));
        let changes = self.runner_board.attach(Arc::new(registration), epoch, now);
        self.dispatcher.carry_out(changes);
        if !offers_the_same {
            self.offer(&owner);
        }
        Ok(())
    }

    pub(crate) async fn write(&self, tenant: &TenantId, write: RunnerWrite) -> Result<(), Error> {
        let generation = self.storage.live()?.generation;
        Ok(self.storage.write(generation, Lane::Of(tenant), vec![Write::Runners(write)]).await?)
    }

    /// Offers callers of this subject what its runners bring. Of a tool that several list, the newest registration counts.
    fn offer(&self, owner: &RunnerOwner) {
        let mut runners = self.runner_board.runners(owner);
        runners.sort_by_key(|runner| std::cmp::Reverse(runner.registration.registered_at));
        let mut tools: BTreeMap<String, Arc<RunnerTool>> = BTreeMap::new();
        for runner in &runners {
            for id in runner.registration.tool_names() {
                if tools.contains_key(&id) || tools.len() >= MOST_TOOLS_OF_SUBJECT {
                    continue;
                }
                let Some((pool, name)) = id.split_once('.').filter(|(pool, _)| is_pool_name(pool)) else { continue };
                let listed = runner.registration.listed(name);
                if let Ok(made) = RunnerTool::new(pool, listed, self.options.runners.get(pool)) {
                    tools.insert(id, Arc::new(made));
                }
            }
        }
        let set = ToolSet::of(tools.into_values().map(|tool| tool as Arc<dyn Tool>));
        self.options.tools.give_subject(&owner.tenant, &owner.subject, set);
    }
}
