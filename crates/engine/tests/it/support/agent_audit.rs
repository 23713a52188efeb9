//! Reads a whole log and objects to the first record about an agent, its model or its tools that should not be there.
//! Keeps its own books from what the log says; the engine is not asked.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use baton_model::event::{InvocationOutcome, RetryReason};
use baton_model::tool::ToolStatus;
use baton_model::{Event, NodeId, Record};

/// Calls of a model for one answer, before the one that puts prose into shape.
const ATTEMPTS: u32 = 3;

#[derive(Default)]
pub struct Audit {
    nodes: BTreeMap<NodeId, Node>,
    /// Calls that were announced and have not come back: their places, and who announced them.
    open: BTreeMap<String, (u64, String)>,
    /// Where models' answers stand.
    answered: BTreeSet<u64>,
    invocations: BTreeSet<String>,
    answers: BTreeSet<(NodeId, u32, u32, u32)>,
}

/// What one node is doing.
#[derive(Default)]
struct Node {
    /// The bracket that is open, whose it is, and what it may call.
    bracket: Option<(String, String, BTreeSet<String>)>,
    /// Answers since the last one that counted.
    answers: u32,
    coercing: bool,
    /// The latest answer waits to be judged.
    judged: bool,
    /// It was cut off, and that was said.
    truncated: bool,
    exhausted: bool,
    refused: bool,
    decided: bool,
    /// Pieces of a thought that nobody has told the whole of.
    pieces: u32,
    /// It has said what it thought.
    reasoned: bool,
}

impl Audit {
    /// Reads a log that has ended.
    pub fn check(log: &[Record]) {
        let mut audit = Self::default();
        log.iter().for_each(|record| audit.see(record));
        assert!(audit.open.is_empty(), "calls without an end: {:?}", audit.open);
        assert!(audit.nodes.values().all(|node| node.bracket.is_none()), "a bracket is left open");
        let agents: Vec<&str> = log.iter().map(|r| r.event.type_name()).filter(|t| t.starts_with("agent.")).collect();
        let others = log.iter().any(|record| match &record.event {
            Event::NodeStarted(event) => {
                ["core.conformance.mock-agent", "vendor.baton.http", "vendor.baton.tool", "vendor.baton.map"]
                    .contains(&&*event.type_id)
            }
            _ => false,
        });
        if audit.invocations.len() == 1 && !others {
            assert_eq!(agents.first(), Some(&"agent.invocation.started"));
            assert_eq!(agents.last(), Some(&"agent.invocation.completed"));
        }
    }

    fn node(&mut self, record: &Record) -> &mut Node {
        let id = record.event.node_id().expect("the record names a node").clone();
        self.nodes.entry(id).or_default()
    }

    /// The bracket that a record stands in, which must be its own agent's.
    fn inside(&mut self, record: &Record, agent_id: &str) {
        if let Some((_, owner, _)) = &self.node(record).bracket {
            assert_eq!(owner, agent_id, "{record:?} stands in somebody else's bracket");
        }
    }

    fn see(&mut self, record: &Record) {
        match &record.event {
            Event::NodeStarted(_) => *self.node(record) = Node::default(),
            Event::AgentInvocationStarted(event) => {
                assert!(self.invocations.insert(event.invocation_id.clone()), "an invocation's id is its own");
                let brief = event.private.brief.as_ref().unwrap();
                let tools: BTreeSet<String> = brief.tools.iter().map(|tool| tool.id.clone()).collect();
                assert_eq!(event.tool_surface_count, Some(tools.len() as u32));
                let node = self.node(record);
                assert!(node.bracket.is_none(), "a bracket in a bracket");
                node.bracket = Some((event.invocation_id.clone(), event.agent_id.clone(), tools));
            }
            Event::AgentInvocationCompleted(event) => {
                let open: Vec<&String> =
                    self.open.iter().filter(|(_, (_, who))| *who == event.agent_id).map(|(id, _)| id).collect();
                let place = format!("{}:", event.private.node_id);
                assert!(!open.iter().any(|id| id.starts_with(&place)), "calls are open: {open:?}");
                let node = self.node(record);
                assert_eq!(node.pieces, 0, "a thought is left open");
                let (id, agent, _) = node.bracket.take().expect("a bracket is closed once");
                assert_eq!((&id, &agent), (&event.invocation_id, &event.agent_id));
                let answered = matches!(
                    event.outcome,
                    InvocationOutcome::Completed | InvocationOutcome::HandedOff | InvocationOutcome::Escalated
                );
                assert_eq!(answered, node.decided, "who completes has decided");
                assert_eq!(event.outcome == InvocationOutcome::Refused, node.refused);
                assert!(answered || event.schema_validated.is_none());
            }
            Event::AgentPromptResolved(event) => {
                assert!(event.chain.iter().filter(|layer| layer.applied).count() <= 1);
                let applied = event.chain.iter().find(|layer| layer.applied).and_then(|layer| layer.source.clone());
                assert_eq!(applied, event.resolved);
            }
            // It broke off; the answer is still to come.
            Event::ProviderUsage(event) if event.private.reply.is_none() => {}
            Event::ProviderUsage(event) => {
                self.answered.insert(record.seq);
                let facts = &event.private;
                let call = (event.node_id.clone(), facts.visit, facts.attempt, facts.call);
                assert!(self.answers.insert(call), "a call is answered once");
                let node = self.node(record);
                assert!(!node.exhausted && !node.refused, "nobody asks any more");
                assert!(!std::mem::replace(&mut node.judged, true), "an answer before the last one was judged");
                node.answers += 1;
                assert!(node.answers <= ATTEMPTS + u32::from(node.coercing), "asked too often");
            }
            Event::EnvelopeRetryAttempted(event) => {
                let node = self.node(record);
                assert_eq!(std::mem::take(&mut node.truncated), event.reason == RetryReason::Truncation);
                assert!(std::mem::take(&mut node.judged), "an answer is judged once");
                assert_eq!(node.pieces, 0, "a thought is left open");
                assert_eq!(event.attempt, node.answers + 1, "attempts count up");
            }
            Event::EnvelopeTruncated(_) => self.node(record).truncated = true,
            Event::EnvelopeNlToFormat(_) => {
                let node = self.node(record);
                assert!(std::mem::take(&mut node.judged));
                assert_eq!(node.answers, ATTEMPTS, "prose is the last thing that is tried");
                assert!(!std::mem::replace(&mut node.coercing, true), "once");
            }
            Event::EnvelopeRetryExhausted(event) => {
                let node = self.node(record);
                assert_eq!(event.total_attempts, node.answers - u32::from(node.coercing));
                assert!(!std::mem::replace(&mut node.exhausted, true), "exhausted once");
            }
            Event::EnvelopeRefusal(_) => {
                let node = self.node(record);
                assert!(std::mem::take(&mut node.judged));
                node.refused = true;
            }
            Event::AgentReasoningDelta(event) => {
                self.inside(record, &event.agent_id);
                let node = self.node(record);
                assert!(!event.delta.is_empty() && !node.judged, "a piece of nothing, or after the answer");
                assert_eq!(event.sequence, node.pieces, "pieces count up");
                node.pieces += 1;
            }
            Event::AgentReasoned(event) => {
                self.inside(record, &event.agent_id);
                let node = self.node(record);
                let told = std::mem::take(&mut node.pieces) > 0;
                let first = !std::mem::replace(&mut node.reasoned, true);
                assert!(first || told || !event.reasoning.is_empty(), "silence is mentioned once");
            }
            Event::AgentDecided(event) => {
                self.inside(record, &event.agent_id);
                self.node(record).decided = true;
            }
            Event::AgentToolCalled(event) => {
                self.inside(record, &event.agent_id);
                let node = self.node(record);
                if let Some((_, _, tools)) = &node.bracket {
                    assert!(tools.contains(&event.tool_name), "`{}` is not for this agent", event.tool_name);
                    node.heard();
                }
                let known = self.open.insert(event.call_id.clone(), (record.seq, event.agent_id.clone()));
                assert!(known.is_none(), "a call's id is its own");
            }
            Event::AgentToolReturned(event) => {
                self.inside(record, &event.agent_id);
                assert!(event.outcome.is_some() != event.error.is_some(), "either a result or an error");
                match self.open.remove(&event.call_id) {
                    Some((seq, _)) => assert_eq!(record.causation, Some(seq), "a return is caused by its call"),
                    None => {
                        let answer = record.causation.is_some_and(|seq| self.answered.contains(&seq));
                        assert!(answer, "what was never called is caused by the answer that asked for it");
                        assert_eq!(event.status, Some(ToolStatus::Forbidden));
                        self.node(record).heard();
                    }
                }
            }
            Event::EffectUnknown(event) => {
                assert_eq!(record.causation, self.open.get(&event.call_id).map(|(seq, _)| *seq));
            }
            Event::EffectRetried(event) => {
                assert_eq!(record.causation, self.open.get(&event.call_id).map(|(seq, _)| *seq));
            }
            Event::NodeCompleted(_) | Event::NodeFailed(_) | Event::NodeCancelled(_) | Event::NodeRetried(_) => {
                let place = format!("{}:", record.event.node_id().unwrap());
                assert!(!self.open.keys().any(|id| id.starts_with(&place)), "{record:?} while calls are open");
                let node = self.node(record);
                assert!(node.bracket.is_none(), "{record:?} in the middle of an invocation");
                let failed = matches!(record.event, Event::NodeFailed(_));
                assert!(!node.refused || failed, "a refusal is final");
                let retried = matches!(record.event, Event::NodeRetried(_));
                assert!(!node.exhausted || failed || retried, "who is exhausted fails");
                *node = Node::default();
            }
            _ => {}
        }
    }
}

impl Node {
    /// The model wanted tools: its words count, and the next answer is another one.
    fn heard(&mut self) {
        if std::mem::take(&mut self.judged) {
            (self.answers, self.coercing) = (0, false);
        }
    }
}
