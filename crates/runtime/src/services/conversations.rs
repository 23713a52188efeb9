//! Conversations: runs that follow each other under one name, each told what was said before it.
//!
//! A conversation is a versioned store whose n-th change names the run that is its n-th turn; what was asked and answered stands on
//! that run's own log and nowhere else, so an answer cannot be recorded twice or get lost in between. One turn at a time:
//! while the last one has not ended, the next is refused. A turn whose run never began (its host died first) counts for
//! nothing.
//!
//! ```text
//!  message ─► claim the name ─► last turn over? ─► note the turn ─► begin its run ─► let go
//!                                    └─ no ─► 409, with the run that is in the way
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::InvokeRequest;
use baton_model::{
    AgentCard, Entrance, Event, InvocationSource, Provenance, Record, RunId, RunStatus, Scope, Spoken, TenantId,
    Timestamp, code,
};
use baton_store::{
    Change, CommitError, Item, Meta, Page, ReadView, RunRow, Store, VersionedStoreId, VersionedStoreKind,
    VersionedStoreRow, Write,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::services::versioned::latest;
use crate::services::versioned::service::VersionedStores;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind};

/// What the scopes of these versioned stores begin with. Workspaces have one name, and no slash in it.
const PREFIX: &str = "conversation/";
/// The longest name of a conversation.
pub(crate) const MAX_ID_CHARS: usize = 128;
/// Earlier turns that an agent is told at most: what fits a screen or two is what people refer to.
const WINDOW: u64 = 64;
/// How many are left out at once when there are more. Between two such moments each prompt begins as the one before it,
/// which is what vendors cache.
const STEP: u64 = 16;
/// What all of them may have together, so that a dialogue leaves room for the work.
const WINDOW_CHARS: usize = 200_000;
/// How many records an agent's run has at most from somebody's answer to its end.
const LAST_WORDS: usize = 16;
/// What one question or answer may have.
const MOST_CHARS: usize = 16_000;

/// What a versioned store's change says of a turn.
#[derive(Serialize, Deserialize)]
pub(crate) struct Noted {
    pub(crate) run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
}

/// One turn as callers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnView {
    pub turn: u64,
    pub run: RunId,
    pub agent: Option<String>,
    pub at: Timestamp,
    /// None where its run never began, or is gone.
    pub status: Option<RunStatus>,
    pub asked: Map<String, Value>,
    pub answer: Option<Value>,
}

/// One conversation as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationView {
    pub id: String,
    pub turns: u64,
    pub updated_at: Timestamp,
}

fn versioned_store_of(tenant: &TenantId, id: &str) -> VersionedStoreId {
    VersionedStoreId::workspace(tenant, format!("{PREFIX}{id}"))
}

fn key(turn: u64) -> String {
    format!("turn/{turn:012}")
}

pub(crate) fn check_id(id: &str) -> Result<(), Error> {
    let fits = (1..=MAX_ID_CHARS).contains(&id.chars().count()) && !id.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    let message = format!("A conversation has a name of 1 to {MAX_ID_CHARS} characters, without control characters.");
    Err(Error::invalid(message).with("pointer", "/conversationId"))
}

fn not_found() -> Error {
    let message = "There is no such conversation. GET /v1/host/baton/conversations lists those that are.";
    Error::new(ErrorKind::NotFound, code::NOT_FOUND, message)
}

/// Knows which runs are the turns of a conversation, and what was said in them.
pub(crate) struct Conversations {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl Conversations {
    /// The run of the last turn, if it has not ended.
    pub(crate) async fn open_turn(&self, tenant: &TenantId, id: &str) -> Result<Option<RunRow>, Error> {
        let lens = ReadView { limit: Some(1), ..latest(self.clock.now()) };
        let last = self.versioned.items(&versioned_store_of(tenant, id), &lens).await?;
        let Some(noted) = last.first().and_then(noted) else { return Ok(None) };
        Ok(self.store.run(&noted.run).await?.filter(|row| !row.status.is_terminal()))
    }

    pub(crate) async fn note_turn(&self, tenant: &TenantId, id: &str, noted: Noted) -> Result<u64, Error> {
        let content = serde_json::to_string(&noted).unwrap_or_default();
        let noted = move |room: &VersionedStores, head: &mut crate::services::versioned::VersionedStoreHead| {
            let version = head.version + 1;
            let item = Some(Item { content, expires_at: None, meta: Meta { version: Some(1), ..Meta::default() } });
            let change = Change { version, key: key(version), at: room.clock.now(), run: None, item };
            Ok((Some(change), Vec::new(), version))
        };
        self.versioned.publish(versioned_store_of(tenant, id), noted).await
    }

    /// What an agent is told of its conversation: everything said before its turn, as far as the window reaches.
    pub(crate) async fn dialogue(
        &self,
        tenant: &TenantId,
        card: &AgentCard,
        request: &InvokeRequest,
    ) -> Result<Vec<Spoken>, Error> {
        let Some(here) = &request.conversation else { return Ok(Vec::new()) };
        let wanted = card.memory.conversation || request.source == Some(InvocationSource::ChatMention);
        if !wanted || request.origins.is_none() || !request.may(Scope::RunsRead) {
            return Ok(Vec::new());
        }
        let before = here.turn.saturating_sub(1);
        let begin = window_begin(before);
        let count = usize::try_from(before - begin).unwrap_or(usize::MAX);
        let lens = ReadView { version: before, limit: Some(count), ..ReadView::default() };
        let mut turns = self.versioned.items(&versioned_store_of(tenant, &here.conversation), &lens).await?;
        turns.reverse();
        let mut heard = Vec::with_capacity(turns.len());
        for change in turns {
            heard.extend(self.spoken(tenant, change).await?);
        }
        Ok(within(heard))
    }

    async fn spoken(&self, tenant: &TenantId, change: Change) -> Result<Option<Spoken>, Error> {
        let Some(noted) = noted(&change) else { return Ok(None) };
        let Some((row, first, last)) = self.ends_of(tenant, &noted.run).await? else { return Ok(None) };
        let Some(Event::RunStarted(started)) = first.map(|record| record.event) else { return Ok(None) };
        if !row.status.is_terminal() {
            return Ok(None);
        }
        let origin = match started.private.source {
            Some(InvocationSource::ChatMention) => Provenance::new(Entrance::Chat),
            _ => Provenance::new(Entrance::Input),
        };
        let edited = noted.agent.is_some() && self.was_edited(&row).await?;
        Ok(Some(Spoken {
            turn: change.version,
            edited,
            agent: noted.agent,
            asked: shortened(started.inputs),
            origin,
            answer: last.and_then(|record| answer(record.event)).map(|answer| cut(&text(&answer))),
            outcome: row.status.as_str().to_owned(),
        }))
    }

    /// Whether somebody put other words in the place of those that an agent was not sure of. That ends its run, so it is
    /// among the last records.
    async fn was_edited(&self, row: &RunRow) -> Result<bool, Error> {
        let from = row.next_seq.saturating_sub(LAST_WORDS as u64);
        for record in self.store.records(&row.id, from, LAST_WORDS).await? {
            if let Event::InterruptResolved(closed) = record.decode(&row.id)?.event
                && closed.kind == "low-confidence"
            {
                let value = closed.resume_value.unwrap_or_default();
                let action = value.as_str().or_else(|| value.get("action").and_then(Value::as_str));
                return Ok(action != Some("accept"));
            }
        }
        Ok(false)
    }

    /// The row of a run of this tenant, with its first and its last record; none if it is not there or has no log.
    async fn ends_of(
        &self,
        tenant: &TenantId,
        run: &RunId,
    ) -> Result<Option<(RunRow, Option<Record>, Option<Record>)>, Error> {
        let Some(row) = self.store.run(run).await?.filter(|row| row.tenant == *tenant) else { return Ok(None) };
        let one = async |seq| -> Result<Option<Record>, Error> {
            let found = self.store.records(run, seq, 1).await?;
            found.first().map(|record| record.decode(run)).transpose().map_err(Error::from)
        };
        let (first, last) = (one(0).await?, one(row.next_seq.saturating_sub(1)).await?);
        Ok(Some((row, first, last)))
    }

    /// The conversations of a tenant, by name, after this one.
    pub(crate) async fn conversations(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<ConversationView>, bool), Error> {
        let rows = self.store.ledgers(tenant, VersionedStoreKind::Workspace).await?;
        let view = |row: VersionedStoreRow| {
            let id = row.scope.strip_prefix(PREFIX)?.to_owned();
            Some(ConversationView { id, turns: row.version, updated_at: row.updated_at })
        };
        let mut all: Vec<ConversationView> = rows.into_iter().filter_map(view).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        let rest = all.into_iter().filter(|row| after.is_none_or(|after| row.id.as_str() > after));
        let mut page: Vec<ConversationView> = rest.take(limit.saturating_add(1)).collect();
        let more = page.len() > limit;
        page.truncate(limit);
        Ok((page, more))
    }

    /// The turns of one conversation, newest first.
    pub(crate) async fn turns_of(
        &self,
        tenant: &TenantId,
        id: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<TurnView>, Error> {
        let ledger = versioned_store_of(tenant, id);
        if self.store.versioned_head(&ledger).await? == 0 {
            return Err(not_found());
        }
        let lens = ReadView { before, limit: Some(limit.saturating_add(1)), ..latest(self.clock.now()) };
        let mut found = self.versioned.items(&ledger, &lens).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|change| change.version);
        let mut items = Vec::with_capacity(found.len());
        for change in found {
            items.extend(self.turn_view(tenant, change).await?);
        }
        Ok(Page { items, next })
    }

    async fn turn_view(&self, tenant: &TenantId, change: Change) -> Result<Option<TurnView>, Error> {
        let Some(Noted { run, agent }) = noted(&change) else { return Ok(None) };
        let found = self.ends_of(tenant, &run).await?;
        let (status, asked, answer) = match found {
            None => (None, Map::new(), None),
            Some((row, first, last)) => {
                let asked = match first.map(|record| record.event) {
                    Some(Event::RunStarted(started)) => started.inputs,
                    _ => Map::new(),
                };
                (Some(row.status), asked, last.and_then(|record| answer(record.event)))
            }
        };
        Ok(Some(TurnView { turn: change.version, run, agent, at: change.at, status, asked, answer }))
    }

    /// A conversation that begins with the first turns of another one and goes its own way.
    pub(crate) async fn fork_conversation(
        self: &Arc<Self>,
        tenant: &TenantId,
        id: &str,
        turn: Option<u64>,
        new: String,
    ) -> Result<ConversationView, Error> {
        check_id(&new)?;
        let (base, ledger) = (versioned_store_of(tenant, id), versioned_store_of(tenant, &new));
        let turns = self.store.versioned_head(&base).await?;
        if turns == 0 {
            return Err(not_found());
        }
        let version = turn.unwrap_or(turns);
        if !(1..=turns).contains(&version) {
            let message = format!("The conversation has {turns} turns; `turn` names the last one to keep.");
            return Err(Error::invalid(message).with("pointer", "/turn").with("max", turns));
        }
        let (at, tenant) = (self.clock.now(), tenant.clone());
        self.tasks
            .see_through(self, move |room| async move {
                let writes = vec![Write::ForkVersionedStore { ledger, base, version }];
                let forked = room.storage.write(room.storage.live()?.generation, Lane::Of(&tenant), writes).await;
                match forked {
                    Ok(_) => Ok(()),
                    Err(CommitError::VersionConflict { .. }) => {
                        let message = "There is a conversation of that name already. Choose another `conversationId`.";
                        Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message))
                    }
                    Err(error) => Err(error.into()),
                }
            })
            .await?;
        Ok(ConversationView { id: new, turns: version, updated_at: at })
    }
}

fn noted(change: &Change) -> Option<Noted> {
    serde_json::from_str(&change.item.as_ref()?.content).ok()
}

pub(crate) fn busy(id: &str, active: &RunRow) -> Error {
    let hint = match active.status.is_waiting() {
        true => "It waits for an answer: give it, or cancel the run.",
        false => "Wait for it or cancel it, then say this again.",
    };
    let message = format!("The last turn of this conversation has not ended yet. {hint}");
    Error::new(ErrorKind::Conflict, code::RUN_ALREADY_ACTIVE, message)
        .with("conversationId", id)
        .with("activeRunId", active.id.as_str())
        .with("activeStatus", active.status.as_str())
        .with("retryAfter", 1)
}

/// The first turn that is left out is a multiple of [`STEP`], so that most turns begin with what the one before did.
fn window_begin(before: u64) -> u64 {
    before.saturating_sub(WINDOW).div_ceil(STEP) * STEP
}

/// As many of the last turns as there is room for, whole steps at a time as long as there are any.
fn within(heard: Vec<Spoken>) -> Vec<Spoken> {
    let size = |spoken: &Spoken| {
        spoken.answer.as_ref().map_or(0, |answer| answer.chars().count())
            + Value::Object(spoken.asked.clone()).to_string().len()
    };
    let mut heard: VecDeque<Spoken> = heard.into();
    let mut chars: usize = heard.iter().map(size).sum();
    while chars > WINDOW_CHARS {
        let Some(first) = heard.pop_front() else { break };
        chars -= size(&first);
        while heard.len() as u64 > STEP && heard.front().is_some_and(|next| !(next.turn - 1).is_multiple_of(STEP)) {
            chars -= heard.pop_front().as_ref().map_or(0, size);
        }
    }
    heard.into()
}

/// What a run answered: what it calls its result, else everything it left.
fn answer(last: Event) -> Option<Value> {
    let Event::RunCompleted(completed) = last else { return None };
    let outputs = completed.outputs?;
    Some(outputs.get("result").cloned().unwrap_or(outputs))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n[cut here: {} characters in all]", &text[..end], text.chars().count()),
    }
}

/// A question as it was, unless it is too long to be told again whole.
fn shortened(asked: Map<String, Value>) -> Map<String, Value> {
    let whole = Value::Object(asked);
    match whole {
        Value::Object(asked) if Value::Object(asked.clone()).to_string().len() <= MOST_CHARS => asked,
        Value::Object(asked) => {
            let alone = asked.iter().next().filter(|_| asked.len() == 1);
            let (name, said) = match alone {
                Some((name, Value::String(said))) => (name.clone(), said.clone()),
                _ => ("text".to_owned(), Value::Object(asked.clone()).to_string()),
            };
            Map::from_iter([(name, Value::String(cut(&said)))])
        }
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(turn: u64, chars: usize) -> Spoken {
        Spoken {
            turn,
            agent: None,
            asked: Map::new(),
            origin: Provenance::new(Entrance::Chat),
            answer: Some("x".repeat(chars)),
            edited: false,
            outcome: "completed".to_owned(),
        }
    }

    #[test]
    fn the_window_moves_in_steps_and_never_back() {
        let mut last = 0;
        let mut moves = 0;
        for before in 0..1000 {
            let begin = window_begin(before);
            assert!(begin >= last && before - begin <= WINDOW && begin.is_multiple_of(STEP), "{before}: {begin}");
            moves += u64::from(begin != last);
            last = begin;
        }
        assert_eq!(moves, (1000 - WINDOW).div_ceil(STEP), "one move in {STEP} turns");
    }

    #[test]
    fn long_turns_leave_room_and_the_last_ones_stay() {
        let all = |chars: usize| (1..=64).map(|turn| spoken(turn, chars)).collect::<Vec<_>>();
        assert_eq!(within(all(1000)).len(), 64);
        let kept = within(all(6000));
        assert_eq!(kept.first().map(|spoken| spoken.turn), Some(33), "whole steps");
        assert!(kept.iter().all(|spoken| spoken.turn > 32));
        let huge = within(all(MOST_CHARS + 50));
        assert_eq!(huge.last().map(|spoken| spoken.turn), Some(64));
        assert!(!huge.is_empty() && huge.len() < 16, "{}", huge.len());
    }
}
