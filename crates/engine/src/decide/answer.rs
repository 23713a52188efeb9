//! What an agent's model said, judged: a refusal ends it, tools are called, an answer that does not count is asked for
//! again, and one that does is the agent's result, unless the agent is not sure of it.

use baton_model::event::RetryReason;
use baton_model::event::{AgentDecided, EnvelopeRecoveryApplied, InvocationOutcome, Outcome, REDACTED};
use baton_model::{Draft, Event, Fault, ModelReply, Timestamp, code};
use serde_json::{Value, json};

use super::bracket::close;
use super::human_answer::Answer;
use super::low_confidence::{Unsure, low_confidence};
use super::node_records::spoken;
use super::votes::{EDIT, EDIT_ACCEPT};
use super::{finish, handoff, suspend, thought, tool, turn};
use crate::command::Refusal;
use crate::conversation::model_request;
use crate::envelope::{self, Answered, Unfit, Verdict};
use crate::invocation::Invocation;
use crate::nodes::{Done, read_agent_decision};
use crate::plan::Kind;
use crate::schema::SchemaCache;
use crate::state::RunState;

/// What becomes of a model's answer.
pub(super) fn judged(state: &RunState, node: usize, invocation: &Invocation, at: Timestamp) -> Vec<Draft> {
    let run = &state.nodes[node];
    let (Some(reply), Some(request)) = (&run.reply, model_request(state, node)) else { return Vec::new() };
    let plan = &state.plan.nodes[node];
    let shape = shape(invocation, &plan.kind);
    let answered =
        Answered { node: &plan.id, request: &request, reply, asked: &run.asked, shape: &shape, rule: state.rule() };
    match verdict(invocation, &plan.kind, reply, &state.schemas) {
        Err(fault) => finish::fail(state, node, fault, at),
        Ok(Verdict::Refused) => {
            let (refusal, fault) = answered.refused();
            let mut drafts: Vec<Draft> = thought::closed(state, node, Some(reply)).into_iter().collect();
            drafts.push(refusal);
            drafts.extend(close(state, node, InvocationOutcome::Refused, None));
            drafts.extend(finish::failed_for_good(state, node, run.attempt, fault));
            drafts
        }
        Ok(Verdict::Unfit(unfit)) => {
            let promised = matches!(plan.kind, Kind::Agent(_)) && invocation.card().return_schema.is_some();
            asked_again(state, node, &answered, &unfit, promised && unfit.reason != RetryReason::Truncation, at)
        }
        Ok(Verdict::Fits { .. }) if !reply.tools.is_empty() => {
            let mut drafts: Vec<Draft> = thought::reasoned(state, node, invocation, reply, None).into_iter().collect();
            let next = drafts.len() as u64;
            match tool::call_all(state, node, invocation, reply, next) {
                Ok(calls) => drafts.extend(calls),
                Err(fault) => drafts.extend(given_up(state, node, fault, at)),
            }
            drafts
        }
        Ok(Verdict::Fits { value, recovered }) => {
            let recovered = recovered.map(|path| EnvelopeRecoveryApplied { node_id: plan.id.clone(), path });
            let mut drafts: Vec<Draft> = recovered.map(|event| Event::from(event).into()).into_iter().collect();
            match &plan.kind {
                Kind::Supervisor(supervisor) => match read_agent_decision(&value, state.rule()) {
                    Ok(found) => {
                        let decision = json!(found.decision);
                        match own_objection(state, invocation, &value, &decision) {
                            Err(fault) => return finish::fail(state, node, fault, at),
                            Ok(Some(unfit)) => {
                                return asked_again(state, node, &answered, &unfit, true, at);
                            }
                            Ok(None) => {}
                        }
                        let sure = (decision, found.agent_confidence);
                        let unsure = decided(state, node, invocation, reply, &value, sure, &mut drafts);
                        drafts.extend(close(state, node, outcome(unsure.as_ref()), found.agent_confidence));
                        drafts.extend(turn::take(state, node, supervisor, found.decision, unsure, at));
                    }
                    Err(why) => {
                        return asked_again(state, node, &answered, &Unfit::misshapen(why), false, at);
                    }
                },
                _ => {
                    if let Some(unfit) = unreadable_confidence(invocation, &value) {
                        return asked_again(state, node, &answered, &unfit, false, at);
                    }
                    let confidence = confidence(&value);
                    let sure = (value.clone(), confidence);
                    let unsure = decided(state, node, invocation, reply, &value, sure, &mut drafts);
                    let mut end: Vec<Draft> =
                        close(state, node, outcome(unsure.as_ref()), confidence).into_iter().collect();
                    match unsure {
                        Some(unsure) => end.extend(hold(state, node, value, unsure, at)),
                        None => {
                            let stopped = state.rule() >= 4
                                && invocation.rounds.len() > state.most_rounds(node, invocation) as usize;
                            let mut done = done(value);
                            if stopped {
                                done.outputs.insert("stoppedBy".to_owned(), "tool-rounds".into());
                            }
                            end.extend(finish::complete(state, node, done, at));
                            let handoffs = handoff::handed_over(state, node, &end, at);
                            if !handoffs.is_empty() {
                                end.splice(..1, close(state, node, InvocationOutcome::HandedOff, confidence));
                                drafts.extend(handoffs);
                            }
                        }
                    }
                    drafts.extend(end);
                }
            }
            drafts
        }
    }
}

/// What the answer counts as. Words without a shape are a text; a call that was cut off is nobody's wish.
pub(crate) fn verdict(
    invocation: &Invocation,
    kind: &Kind,
    reply: &ModelReply,
    schemas: &SchemaCache,
) -> Result<Verdict, Fault> {
    if reply.is_refusal() {
        return Ok(Verdict::Refused);
    }
    let text = || Verdict::Fits { value: Value::String(reply.content.clone()), recovered: None };
    match invocation.answer_shape(kind, schemas) {
        _ if !reply.tools.is_empty() && reply.is_cut_off() => Ok(Verdict::Unfit(Unfit::cut_off())),
        _ if !reply.tools.is_empty() => Ok(text()),
        None if reply.is_cut_off() => Ok(Verdict::Unfit(Unfit::cut_off())),
        None => Ok(text()),
        // A decision is acted upon, so nothing is picked out of what its model said.
        Some(Ok(schema)) if matches!(kind, Kind::Supervisor(_)) && invocation.rule >= 4 => {
            Ok(envelope::judge_sole(reply, &schema))
        }
        Some(Ok(schema)) => Ok(envelope::judge(reply, &schema, invocation.rule)),
        Some(Err(error)) => Err(broken_schema(&error)),
    }
}

fn broken_schema(error: &str) -> Fault {
    Fault::new(code::VALIDATION_ERROR, format!("The agent's return schema is broken: {error}."))
}

/// What a supervisor's own manifest has against what is a decision otherwise.
fn own_objection(
    state: &RunState,
    invocation: &Invocation,
    answer: &Value,
    decision: &Value,
) -> Result<Option<Unfit>, Fault> {
    if state.rule() < 3 {
        return Ok(None);
    }
    let rule = invocation.objection(answer, decision, &state.schemas).map_err(|error| broken_schema(&error))?;
    Ok(rule.map(|rule| {
        let unfit = Unfit::misshapen(format!("The decision breaks the rule {rule} of the agent's own schema."));
        Unfit { rule: Some(rule), ..unfit }
    }))
}

/// What an answer of this shape is called.
fn shape(invocation: &Invocation, kind: &Kind) -> String {
    let titled = || invocation.answer_schema(kind)?.get("title")?.as_str().filter(|title| !title.is_empty());
    match kind {
        Kind::Supervisor(_) => "orchestrator-decision".to_owned(),
        _ => titled().unwrap_or("agent-result").to_owned(),
    }
}

/// How sure a structured answer says it is; what is no number between 0 and 1 says nothing.
fn confidence(value: &Value) -> Option<f64> {
    value.get("confidence").and_then(Value::as_f64).filter(|confidence| (0.0..=1.0).contains(confidence))
}

/// An answer that says how sure it is in a way that nobody can compare with anything. Where a manifest means something
/// else by the word, a text say, or allows none, that is its own business.
fn unreadable_confidence(invocation: &Invocation, value: &Value) -> Option<Unfit> {
    let said = value.get("confidence").filter(|_| invocation.rule >= 4 && confidence(value).is_none())?;
    let declared = invocation.card().return_schema.as_ref().and_then(|schema| schema.pointer("/properties/confidence"));
    let kinds = declared.and_then(|declared| declared.get("type"));
    let may_be = |word: &str| match kinds {
        Some(Value::String(kind)) => kind == word,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == word),
        _ => false,
    };
    let own = match said {
        Value::Number(_) => false,
        Value::Null => may_be("null"),
        Value::String(_) => may_be("string"),
        Value::Bool(_) => may_be("boolean"),
        Value::Array(_) => may_be("array"),
        Value::Object(_) => may_be("object"),
    };
    (!own).then(|| Unfit::misshapen("`confidence` is a number from 0 to 1, or absent."))
}

fn done(result: Value) -> Done {
    let variables = vec![("result".to_owned(), result.clone())];
    Done { variables, ..Done::with([("result".to_owned(), result)].into_iter().collect()) }
}

/// The answer does not count: the model is asked again, or the invocation fails with what was tried. `promised` says
/// that it is the manifest's word which was broken.
fn asked_again(
    state: &RunState,
    node: usize,
    answered: &Answered<'_>,
    unfit: &Unfit,
    promised: bool,
    at: Timestamp,
) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = thought::closed(state, node, Some(answered.reply)).into_iter().collect();
    let (again, fault) = answered.again(unfit);
    drafts.extend(again);
    if let Some(fault) = fault {
        let fault = match promised {
            true => Fault { code: code::HANDOFF_RETURN_SCHEMA_VIOLATION.to_owned(), ..fault },
            false => fault,
        };
        drafts.extend(given_up(state, node, fault, at));
    }
    drafts
}

/// The answer is the end of the attempt. What the model thought has been said; only the bracket is left to close.
fn given_up(state: &RunState, node: usize, fault: Fault, at: Timestamp) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = close(state, node, InvocationOutcome::Failed, None).into_iter().collect();
    drafts.extend(finish::failed(state, node, state.nodes[node].attempt, fault, at));
    drafts
}

/// How a bracket closes after an answer that counts.
fn outcome(unsure: Option<&Unsure>) -> InvocationOutcome {
    if unsure.is_some() { InvocationOutcome::Escalated } else { InvocationOutcome::Completed }
}

/// What the agent thought and decided. Says how unsure it is, where that is too unsure.
fn decided(
    state: &RunState,
    node: usize,
    invocation: &Invocation,
    reply: &ModelReply,
    value: &Value,
    (said, confidence): (Value, Option<f64>),
    drafts: &mut Vec<Draft>,
) -> Option<Unsure> {
    drafts.extend(thought::reasoned(state, node, invocation, reply, Some(value)));
    let event = AgentDecided {
        agent_id: invocation.card().agent_id.clone(),
        decision: if state.plan.nodes[node].sensitive { REDACTED.into() } else { said },
        confidence,
        private: spoken(state, node),
    };
    drafts.push(Event::from(event).into());
    let threshold = state.threshold(Some(invocation.card()));
    let unsure = confidence.filter(|confidence| *confidence < threshold);
    unsure.map(|observed| Unsure { observed, threshold })
}

/// A doubtful answer waits for a human.
fn hold(state: &RunState, node: usize, value: Value, unsure: Unsure, at: Timestamp) -> Vec<Draft> {
    let (plan, run) = (&state.plan.nodes[node], &state.nodes[node]);
    let timeout_ms = state.agent_options(node).and_then(|options| options.hold_timeout_ms);
    let agent_id = plan.kind.live_agent().map(|agent| agent.id).unwrap_or_default();
    let mut ask = low_confidence(agent_id, &value, unsure, timeout_ms);
    if plan.sensitive {
        ask.data["decision"] = REDACTED.into();
        ask.hidden = Some(value);
    }
    suspend::suspend(state, node, &suspend::key(&plan.id, run.visit, run.attempt), ask, at)
}

/// A human says what an agent that was not sure should have said: its own words, others, or nothing.
pub(super) fn ratified(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, at } = answer;
    let by = actor.subject.as_deref();
    let held = interrupt.hidden.clone().or_else(|| interrupt.data.get("decision").cloned()).unwrap_or(Value::Null);
    let action = value.as_str().or_else(|| value.get("action").and_then(Value::as_str));
    let result = match action {
        Some("accept") => held,
        Some("reject") => {
            let mut drafts = answer.closes(by, Outcome::Rejected);
            let fault = Fault::new(code::APPROVAL_REJECTED, "The agent's answer was rejected.");
            drafts.extend(finish::fail(state, node, fault, at));
            return Ok(drafts);
        }
        Some(EDIT_ACCEPT | EDIT) => match value.get("editedArtifactData") {
            Some(edited) => edited.clone(),
            None => return Err(Refusal::invalid("`edit-accept` needs `editedArtifactData`.")),
        },
        // An answer of the agent's own may have an `action`; anything else that has one is a word we do not know.
        Some(_) if value.is_object() && held.get("action").is_none() => {
            return Err(Refusal::invalid("`action` must be one of accept, reject, edit-accept."));
        }
        _ => value.clone(),
    };
    let done = match &state.plan.nodes[node].kind {
        Kind::Test(_) => Done::default(),
        kind => {
            let shape =
                state.nodes[node].invocation.as_deref().and_then(|agent| agent.answer_shape(kind, &state.schemas));
            if let Some(Ok(schema)) = shape
                && let Some(broken) = schema.broken(&result)
            {
                let message =
                    format!("That is no answer of this agent: {} breaks the rule {}.", broken.place(), broken.rule);
                return Err(Refusal::invalid(message).with("path", broken.path));
            }
            done(result)
        }
    };
    let mut drafts = answer.closes(by, Outcome::Accepted);
    drafts.extend(finish::complete(state, node, done, at));
    Ok(drafts)
}

/// The answer, kept within what can be read back: what nests too deeply is left out, and the model is told when it
/// matters.
pub fn bounded(reply: &ModelReply) -> ModelReply {
    let mut reply = reply.clone();
    for tool in &mut reply.tools {
        if crate::depth::check("arguments", &tool.arguments).is_err() {
            tool.arguments = "[nested too deeply]".into();
        }
    }
    reply.echo = reply.echo.filter(|echo| crate::depth::check("echo", echo).is_ok());
    reply
}
