//! The question whether a used-up budget is extended: asked, read back, and what a yes comes to.

use baton_model::budget::{Ceilings, Dimension};
use baton_model::{Amount, Draft, Timestamp};
use serde_json::{Value, json};

use super::suspend;
use crate::budget::Shortage;
use crate::command::Refusal;
use crate::nodes::Ask;
use crate::state::{Interrupt, RunState};

/// What a question about a budget says it is about.
const CONTEXT: &str = "budget";

pub(super) fn worded(dimension: Dimension, limit: Amount) -> String {
    let n = limit.as_f64();
    let (one, many) = match dimension {
        Dimension::Tokens => ("token", "tokens"),
        Dimension::Cost => ("US dollar", "US dollars"),
        Dimension::ToolCalls => ("tool call", "tool calls"),
        Dimension::Retries => ("retry", "retries"),
    };
    if limit == Amount::Whole(1) { format!("1 {one}") } else { format!("{n} {many}") }
}

/// A human may extend it.
pub(super) fn ask(state: &RunState, node: usize, short: &Shortage, at: Timestamp) -> Vec<Draft> {
    let [consumed, limit] = [short.consumed, short.limit].map(|units| short.dimension.shown(units));
    let name = short.dimension.as_str();
    let number = json!({"type": "number", "minimum": 0});
    let data = json!({
        "contextType": CONTEXT,
        "artifactId": format!("budget:{name}"),
        "artifactType": CONTEXT,
        "title": format!("The budget of {} is used up. Extend it?", worded(short.dimension, limit)),
        "actions": ["accept", "reject"],
        "dimension": name,
        "consumed": consumed,
        "limit": limit,
        "wanted": short.needed(),
        "effectiveBudget": short.ceilings,
    });
    let resume_schema = json!({
        "type": "object",
        "required": ["action"],
        "properties": {
            "action": {"enum": ["accept", "reject"]},
            "budgetDelta": {
                "type": "object",
                "properties": {"maxTokens": number, "maxCostUsd": number, "maxToolCalls": number, "maxRetries": number},
                "additionalProperties": false,
            },
        },
    });
    let run = &state.nodes[node];
    // A node may come back to the same question, and a key never asks twice.
    let key = suspend::key(&state.plan.nodes[node].id, run.visit, run.attempt);
    let key = format!("{key}:budget:{}", state.next_seq);
    suspend::suspend(state, node, &key, Ask { resume_schema: Some(resume_schema), ..Ask::new("approval", data) }, at)
}

/// Whether an open question is about the budget.
pub(super) fn is_ours(interrupt: &Interrupt) -> bool {
    interrupt.data.get("contextType").is_some_and(|context| context == CONTEXT)
}

/// What was asked, read back, in the units that are counted.
pub(super) struct Question {
    pub(super) dimension: Dimension,
    pub(super) consumed: u64,
    pub(super) limit: u64,
    /// What must be left for the node to go on.
    pub(super) wanted: u64,
    pub(super) ceilings: Ceilings,
}

impl Question {
    pub(super) fn read(interrupt: &Interrupt) -> Option<Self> {
        let of = |key: &str| interrupt.data.get(key).cloned();
        let dimension: Dimension = serde_json::from_value(of("dimension")?).ok()?;
        let ceilings: Ceilings = serde_json::from_value(of("effectiveBudget")?).ok()?;
        let consumed: Amount = serde_json::from_value(of("consumed")?).ok()?;
        let consumed = match (dimension, consumed) {
            (Dimension::Cost, amount) => baton_model::budget::nanos(amount.as_f64()),
            (_, Amount::Whole(n)) => n,
            (_, Amount::Part(_)) => return None,
        };
        let wanted = interrupt.data.get("wanted").and_then(Value::as_u64).unwrap_or(1);
        Some(Self { dimension, consumed, limit: ceilings.get(dimension)?, wanted, ceilings })
    }

    /// The ceilings with this much added, as far as the host allows. Without a word, what was used up is doubled, or as
    /// much is added as the node needs.
    pub(super) fn extended(&self, delta: Option<&Value>, most: &Ceilings) -> Result<Ceilings, Refusal> {
        let wrong = |why: &str| Refusal::invalid(format!("`budgetDelta` {why}.")).with("path", "/budgetDelta");
        let mut more = Ceilings::default();
        match delta {
            None | Some(Value::Null) => more.set(self.dimension, self.limit.max(self.needed() - self.limit)),
            Some(delta) => {
                more = serde_json::from_value(delta.clone()).map_err(|_| {
                    wrong("says how much is added: whole numbers for maxTokens, maxToolCalls and maxRetries, dollars for maxCostUsd")
                })?;
                if more.max_cost_usd.is_some_and(|usd| !(usd >= 0.0 && usd.is_finite())) {
                    return Err(wrong("adds, it does not take away"));
                }
            }
        }
        let mut ceilings = self.ceilings;
        for dimension in Dimension::ALL {
            if let (Some(now), Some(more)) = (ceilings.get(dimension), more.get(dimension)) {
                let allowed = most.get(dimension).unwrap_or(u64::MAX);
                ceilings.set(dimension, now.saturating_add(more).min(allowed).max(now));
            }
        }
        let now = ceilings.get(self.dimension).unwrap_or(0);
        if now < self.needed() {
            let used = self.dimension.shown(self.consumed);
            let name = self.dimension.as_str();
            let why = format!("leaves too little: {} of {name} are used. Add more, or reject", used.as_f64());
            return Err(wrong(&why).with("dimension", name).with("consumed", json!(used)));
        }
        Ok(ceilings)
    }

    /// The least ceiling that lets the node go on.
    fn needed(&self) -> u64 {
        self.consumed.saturating_add(self.wanted).max(self.limit.saturating_add(1))
    }
}
