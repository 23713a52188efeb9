//! What models say and what tools answer, well and badly. A model that was told a secret repeats it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_engine::{Command, Returned, RunState, ToolCall};
use baton_model::tool::ToolStatus;
use baton_model::{Fault, ModelReply, SemanticRequest, StopReason, ToolOutcome, ToolUse};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::agents::{NOT_ALLOWED, cut_off, returned, tool_calls};
use super::models::{Asked, asked, refused, said as text, unreachable};

/// Every value that ever stands in a sensitive variable or channel, in the shape the generators give it.
pub const SECRETS: [&str; 3] = ["first-secret", "channel-secret", "child-secret"];

#[derive(Clone, Debug)]
pub enum Said {
    /// Whatever is asked for, well made.
    Good,
    /// The same, and not sure of it.
    Unsure,
    Decision(Value),
    Text(&'static str),
    /// The good answer in some wrapping.
    Fenced,
    CutOff,
    Refused,
    /// Deeper than the log can hold.
    Deep,
    Tools(Vec<(&'static str, Value)>, bool),
    /// No answer at all.
    Silent,
}

#[derive(Clone, Copy, Debug)]
pub enum Given {
    Fine,
    Broken,
    Forbidden,
    Unknown,
    NotDone,
    Deep,
}

fn tool_use() -> impl Strategy<Value = (&'static str, Value)> {
    select(vec![
        ("mcp:look", json!({"n": 1})),
        ("mcp:store", json!({"n": 2})),
        ("mcp:pay", json!({})),
        ("mcp:mail", json!({"to": "you"})),
        ("mcp:post", json!({})),
        ("mcp:mail", json!({"n": "not a number"})),
        ("mcp:look", json!("no object")),
        (NOT_ALLOWED, json!({})),
        ("mcp:nowhere", json!({})),
        ("", json!(null)),
        ("openwop:memory.put", json!({"content": "sun", "tags": ["sun"]})),
        ("openwop:memory.put", json!({"content": 5})),
        ("openwop:memory.list", json!({"limit": 2})),
        ("openwop:memory.get", json!({"id": "mem_1"})),
        ("openwop:workspace.put", json!({"path": "plan.md", "content": "rain"})),
        ("openwop:workspace.put", json!({"path": "../x", "content": "rain"})),
        ("openwop:workspace.get", json!({"path": "plan.md"})),
        ("openwop:workspace.list", json!({"prefix": "notes/"})),
    ])
}

pub fn said() -> impl Strategy<Value = Said> {
    let decision = select(vec![
        json!({"kind": "next-worker", "nextWorkerIds": ["child"]}),
        json!({"kind": "next-worker", "nextWorkerIds": ["child", "other"], "confidence": 0.2}),
        json!({"kind": "next-worker", "nextWorkerIds": ["child"], "agentConfidence": 0.3}),
        json!({"kind": "next-worker", "nextWorkerIds": ["child"], "agentConfidence": 0.3, "confidence": 0.2}),
        json!({"kind": "ask-user", "prompt": "Which one?"}),
        json!({"kind": "terminate", "reason": "enough"}),
        json!({"kind": "next-worker", "nextWorkerIds": []}),
        json!({"kind": "next-worker", "nextWorkerIds": ["a"], "nextWorkerInputs": [{}, {}]}),
        json!({"kind": "ask-user"}),
    ]);
    let words = select(vec!["", "{", "{}", "null", "Well, I think that it is fine.", "prose"]);
    prop_oneof![
        6 => Just(Said::Good),
        2 => Just(Said::Unsure),
        4 => decision.prop_map(Said::Decision),
        4 => words.prop_map(Said::Text),
        1 => Just(Said::Fenced),
        2 => Just(Said::CutOff),
        1 => Just(Said::Refused),
        1 => Just(Said::Deep),
        8 => (proptest::collection::vec(tool_use(), 1..4), proptest::bool::weighted(0.1))
            .prop_map(|(tools, cut)| Said::Tools(tools, cut)),
        1 => Just(Said::Silent),
    ]
}

pub fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        5 => Just(Given::Fine),
        1 => Just(Given::Broken),
        1 => Just(Given::Forbidden),
        4 => Just(Given::Unknown),
        2 => Just(Given::NotDone),
        1 => Just(Given::Deep),
    ]
}

/// The secret that these words give away, if they do.
fn secret(told: &impl serde::Serialize) -> Option<&'static str> {
    let told = serde_json::to_string(told).unwrap();
    SECRETS.into_iter().find(|secret| told.contains(secret))
}

pub fn deep() -> Value {
    (0..100).fold(json!(1), |inner, _| json!([inner]))
}

impl Said {
    pub fn reply(&self, request: &SemanticRequest) -> Result<ModelReply, Fault> {
        let word = secret(request).unwrap_or("fine");
        let shape = request.response_format.as_ref().map(|format| &format["schema"]["properties"]);
        let answer = |sure: f64| match shape {
            None => json!(word),
            Some(shape) if shape.get("kind").is_some() => {
                json!({"kind": "terminate", "reason": word, "agentConfidence": sure, "confidence": 0.9})
            }
            Some(shape) if shape.get("verdict").is_some() => json!({"verdict": word, "confidence": sure}),
            Some(_) => json!({"valid": true, "echo": word}),
        };
        let plain = |value: Value| match value {
            Value::String(words) => words,
            other => other.to_string(),
        };
        Ok(match self {
            Self::Good => ModelReply { reasoning: Some(format!("I see {word}.")), ..text(&plain(answer(0.9))) },
            Self::Unsure => text(&plain(answer(0.3))),
            Self::Decision(decision) => text(&decision.to_string()),
            Self::Text(words) => text(words),
            Self::Fenced => text(&format!("Here:\n```json\n{}\n```", answer(0.9))),
            Self::CutOff => cut_off("{\"valid\": tr"),
            Self::Refused => refused(),
            Self::Deep => text(&deep().to_string()),
            Self::Tools(tools, cut) => {
                let tools = tools.iter().enumerate().map(|(i, (name, arguments))| {
                    let mut arguments = arguments.clone();
                    // A model may put into its arguments whatever it was told.
                    if word != "fine" && arguments.is_object() {
                        arguments["note"] = word.into();
                    }
                    ToolUse { id: format!("t{i}"), name: (*name).to_owned(), arguments }
                });
                let stop = if *cut { StopReason::MaxTokens } else { StopReason::ToolUse };
                ModelReply { tools: tools.collect(), stop, ..text(word) }
            }
            Self::Silent => return Err(unreachable()),
        })
    }
}

impl Given {
    pub fn returned(self, call: &ToolCall) -> Returned {
        let word = secret(&call.arguments).unwrap_or("fine");
        let outcome = match self {
            Self::Fine => ToolOutcome::ok(json!({"echo": word})).took(3),
            Self::Broken => ToolOutcome::failed("external_call_failed", format!("Cannot do {word}.")),
            Self::Forbidden => ToolOutcome::refused(ToolStatus::Forbidden, "forbidden", "You may not."),
            Self::Deep => ToolOutcome::ok(deep()),
            Self::Unknown => return Returned::Unknown { reason: "The line went dead.".to_owned() },
            Self::NotDone => return Returned::NotDone,
        };
        Returned::Outcome { outcome, written: Vec::new() }
    }
}

/// Everything that models and tools were ever asked for by one run.
#[derive(Default)]
pub struct Desk {
    models: Vec<Asked>,
    tools: Vec<ToolCall>,
}

impl Desk {
    pub fn note(&mut self, state: &RunState) {
        for call in asked(state) {
            if !self.models.iter().any(|known| known.request.key == call.request.key) {
                self.models.push(call);
            }
        }
        for call in tool_calls(state) {
            if !self.tools.iter().any(|known| (&known.key, known.again) == (&call.key, call.again)) {
                self.tools.push(call);
            }
        }
    }

    pub fn think(&self, which: &Index, said: &Said) -> Option<Command> {
        let call = (!self.models.is_empty()).then(|| which.get(&self.models))?;
        Some(call.answered(said.reply(&call.request.semantic)))
    }

    pub fn give(&self, which: &Index, given: Given) -> Option<Command> {
        let call = (!self.tools.is_empty()).then(|| which.get(&self.tools))?;
        Some(returned(call, given.returned(call)))
    }

    /// The next thing that a run waits for from a model or a tool, done well.
    pub fn next(state: &RunState) -> Option<Command> {
        let thought = asked(state).first().map(|call| call.answered(Said::Good.reply(&call.request.semantic)));
        thought.or_else(|| tool_calls(state).first().map(|call| returned(call, Given::Fine.returned(call))))
    }

    /// All of it, done well.
    pub fn everything(&self) -> Vec<Command> {
        let thoughts = self.models.iter().map(|call| call.answered(Said::Good.reply(&call.request.semantic)));
        thoughts.chain(self.tools.iter().map(|call| returned(call, Given::Fine.returned(call)))).collect()
    }
}
