//! A step asks a model. The answer is on the run's log before the step hears it; where it is there already, nobody is asked.

use std::sync::Arc;

use baton_engine::{Command, StepAsked, bounded_reply};
use baton_model::event::ProviderUsage;
use baton_model::{Event, Fault, ModelRequest, Timestamp, Usage, code};
use baton_provider::NoSink;
use baton_store::RunRow;
use serde_json::json;

use super::dispatches::Source;
use super::service::{LeasedStep, StepGateway, not_leased, work_of};
use super::{LONGEST_CALL_MS, StepQuestion, StepReply};
use crate::clock::RETRY_MS;
use crate::services::budgets::cost;
use crate::services::models::capped;
use crate::services::models::fault::NoAnswer;
use crate::services::runners::step_token::StepClaims;
use crate::{Error, ErrorKind};

impl StepGateway {
    /// The answer to what a step asks. Whoever hangs up does not stop it: the answer is paid for, and kept for the next
    /// time.
    pub(crate) async fn ask(self: &Arc<Self>, claims: &StepClaims, question: StepQuestion) -> Result<StepReply, Error> {
        let leased = self.leased(claims).await?;
        if self.model_calls.models.get(&question.semantic.provider).is_none() {
            return Err(no_such_model(&question.semantic.provider, &question.semantic.model));
        }
        let open = self.dispatches.enter(&leased.key)?;
        self.tasks
            .see_through(self, move |room| async move {
                let _open = open;
                let until = room.clock.now().plus_millis(LONGEST_CALL_MS).min(leased.ends_at);
                tokio::select! {
                    biased;
                    answer = room.answer(&leased, question, until) => answer,
                    () = room.clock.until(until) => Err(Error::unavailable("The model did not answer in time.")),
                    () = room.tasks.stop.cancelled() => Err(Error::stopping()),
                }
            })
            .await
    }

    async fn answer(
        self: &Arc<Self>,
        leased: &LeasedStep,
        question: StepQuestion,
        until: Timestamp,
    ) -> Result<StepReply, Error> {
        let StepQuestion { semantic, retried } = question;
        let (request, dispatch) = (semantic.cache_key(), &leased.dispatch);
        if retried {
            self.dispatches.settled(dispatch, &request).await;
        }
        let (state, row) = self.run_of(leased).await?;
        let work = work_of(&state, leased)?;
        let (earlier, own) = work.answers(&request, dispatch);
        let (source, asking) = self.dispatches.next(dispatch, &request, (&earlier, &own), retried);
        let place = match source {
            Source::Log(seq) => {
                let place = earlier.iter().chain(&own).position(|known| *known == seq).unwrap_or(0);
                return self.read_answer(&row, seq, name_of(leased, request.as_str(), place)).await;
            }
            Source::Model(place) => place,
        };
        if work.is_full() {
            let message = "This step has asked as many models as one step may.";
            return Err(Error::new(ErrorKind::Unprocessable, code::CAP_BREACHED, message));
        }
        let name = name_of(leased, request.as_str(), place);
        let asked = ModelRequest {
            key: format!("{}/{}/{name}", leased.step.run, leased.step.step_id),
            node: leased.step.node.clone(),
            semantic: Arc::new(semantic),
            timeout_ms: Some(until.millis_since(self.clock.now())),
            trace: leased.step.trace.clone(),
            reasoning: false,
            cap: None,
        };
        let hold = self.reserve(leased, &asked, (&state, &row)).await?;
        // A run that goes on meanwhile need not be copied for whoever only looked at it.
        drop((state, row));
        let cap = hold.as_ref().and_then(|hold| hold.cap());
        let limited = capped(&asked, cap).unwrap_or(asked);
        let turn = self.model_calls.turns.turn(&limited.semantic.provider, &leased.step.tenant).await?;
        let answer = self.model_calls.call_model(&limited, &NoSink).await;
        drop(turn);
        let made = |reply, usage: Usage, cost_usd| StepAsked {
            request: request.clone(),
            dispatch: dispatch.clone(),
            provider: limited.semantic.provider.clone(),
            model: limited.semantic.model.clone(),
            reply,
            usage,
            cost_usd,
            cap,
        };
        match answer {
            Ok(reply) => {
                let reply = bounded_reply(&reply);
                let cost_usd = self.model_calls.cost(&limited, &reply);
                let at = self.note(leased, made(Some(reply.clone()), reply.usage, cost_usd), until).await?;
                if let Some(asking) = asking {
                    asking.answered();
                }
                Ok(StepReply { reply, id: name, at, recorded: false })
            }
            Err(no_answer) => {
                if let Some(usage) = no_answer.used().filter(|usage| usage.total() > 0) {
                    let semantic = &limited.semantic;
                    let cost_usd = cost(&self.options.prices, &semantic.provider, &semantic.model, &usage);
                    self.note(leased, made(None, usage, cost_usd), until).await?;
                }
                Err(failed(no_answer, &limited))
            }
        }
    }

    /// Puts it on the run's log, wherever the run is driven. It has been paid for, so a disk in trouble is waited for. A
    /// message to another host is sent once: it may still be carried out.
    async fn note(&self, leased: &LeasedStep, asked: StepAsked, until: Timestamp) -> Result<Timestamp, Error> {
        let (run, node, call_id) = (&leased.step.run, leased.step.node.clone(), leased.step.step_id.clone());
        let command = Command::StepAsked { node, call_id, asked: Box::new(asked) };
        loop {
            let noted = self.forwarding.order(run, command.clone(), None).await;
            match noted {
                Ok((_, at)) => return Ok(at),
                Err(error) if error.kind != ErrorKind::Unavailable || self.storage.shared().is_some() => {
                    return Err(error);
                }
                Err(error) if self.clock.now() >= until => return Err(error),
                Err(_) => self.clock.until(self.clock.now().plus_millis(RETRY_MS)).await,
            }
        }
    }

    async fn read_answer(&self, row: &RunRow, seq: u64, id: String) -> Result<StepReply, Error> {
        let record = self.record(row, seq).await?;
        let Event::ProviderUsage(ProviderUsage { private, .. }) = record.event else { return Err(not_leased()) };
        let reply = private.reply.ok_or_else(not_leased)?;
        metrics::counter!("baton_step_answers_from_log_total").increment(1);
        Ok(StepReply { reply: *reply, id, at: record.at, recorded: true })
    }
}

/// The name of an answer: the same request at the same place has the same one, whoever gives it.
fn name_of(leased: &LeasedStep, request: &str, place: usize) -> String {
    let digest = baton_model::Digest::of_json(&json!([leased.step.run, leased.step.step_id, request, place]));
    digest.as_str()[..32].to_owned()
}

fn no_such_model(provider: &str, model: &str) -> Error {
    let name = if provider.is_empty() { model.to_owned() } else { format!("{provider}/{model}") };
    let message = format!("There is no model `{name}` here. Models are called `provider/model`.");
    Error::new(ErrorKind::NotFound, code::MODEL_NOT_FOUND, message)
}

/// There is no answer, and this is what a caller can do about it.
fn failed(no_answer: NoAnswer, request: &ModelRequest) -> Error {
    let Fault { code: said, message, details } = no_answer.fault;
    let known = code::known(&said).unwrap_or(code::PROVIDER_UNAVAILABLE);
    let kind = match known {
        code::MODEL_NOT_SUPPORTED | code::CAPABILITY_NOT_PROVIDED => {
            return no_such_model(&request.semantic.provider, &request.semantic.model);
        }
        code::PROVIDER_QUOTA_EXHAUSTED => ErrorKind::TooMany,
        code::CONTENT_TOO_LONG | code::VALIDATION_ERROR => ErrorKind::Invalid,
        _ => ErrorKind::Unavailable,
    };
    Error { details: details.unwrap_or_default(), ..Error::new(kind, known, message) }
}
