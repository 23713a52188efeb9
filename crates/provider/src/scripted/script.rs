//! Scripts, as they are written.
//!
//! ```json
//! {
//!   "rules": [
//!     {"when": {"system": "You plan", "call": 1}, "reply": {"tools": [{"name": "openwop:http.fetch", "arguments": {}}]}},
//!     {"when": {"tool": "openwop:http.fetch"}, "reply": {"text": "It says: {{last}}"}},
//!     {"when": {"system": "You plan"}, "reply": {"json": {"kind": "terminate", "confidence": 0.9}}}
//!   ],
//!   "otherwise": {"text": "Nothing to say."}
//! }
//! ```
//!
//! The first rule whose every condition holds gives the reply.
//!
//! | `when` | holds if |
//! |---|---|
//! | `node` | the node that asks has this id |
//! | `model` | this model is asked |
//! | `system` | the system messages contain this text, or each text of a list |
//! | `last` | the last message contains it, or each of a list |
//! | `any` | some message contains it, or each of a list is in some message |
//! | `tool` | the last message is the answer of this tool |
//! | `call` | it is this call of the conversation: one more than the answers in it so far, not counting earlier calls of other conversations |
//!
//! | `reply` | means |
//! |---|---|
//! | `text`, or `json` | the answer; in its texts, `{{last}}` stands for the last message |
//! | `tools` | calls to make first: `{name, arguments?, id?}` |
//! | `reasoning` | what it thinks aloud |
//! | `refusal`, `safetyCategory` | it refuses, with this text |
//! | `stop` | why it stops, e.g. `max_tokens` for an answer that breaks off |
//! | `fault` | there is no answer: `unavailable`, `timed-out`, `exhausted` or `rejected` |
//! | `stall` | `true`: it never answers |
//! | `delayMs` | how long it thinks before it does any of this |
//! | `usage` | `{inputTokens, outputTokens}`, else words are counted |

use std::time::Duration;

use baton_model::{ModelReply, ModelRequest, StopReason, ToolUse, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::condition::{ScriptInput, When};
use super::step::Step;
use crate::ProviderFault;

/// The longest that a scripted answer may take, so that a demonstration ends.
const LONGEST_DELAY_MS: u64 = 60_000;

/// Rules for answers; see the module's page or `docs/guide/providers.md`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    rules: Vec<ScriptRule>,
    otherwise: Option<Reply>,
}

/// Why a script cannot be used, and where the problem is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script is not usable: {0}")]
pub struct ScriptProblem(String);

/// One rule of a script, for whoever decides by itself which one counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRule {
    #[serde(default)]
    when: When,
    reply: Reply,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Reply {
    text: Option<String>,
    json: Option<Value>,
    tools: Vec<Call>,
    reasoning: Option<String>,
    refusal: Option<String>,
    safety_category: Option<String>,
    stop: Option<StopReason>,
    fault: Option<Fault>,
    stall: bool,
    delay_ms: u64,
    usage: Option<Usage>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default = "nothing")]
    arguments: Value,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    Unavailable,
    TimedOut,
    Exhausted,
    Rejected,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

impl Script {
    /// Reads a script and looks for replies that contradict themselves.
    pub fn read(text: &str) -> Result<Self, ScriptProblem> {
        let script: Self = serde_json::from_str(text).map_err(|error| ScriptProblem(error.to_string()))?;
        let replies = script.rules.iter().enumerate().map(|(i, rule)| (format!("rules/{i}/reply"), &rule.reply));
        let otherwise = script.otherwise.iter().map(|reply| ("otherwise".to_owned(), reply));
        for (place, reply) in replies.chain(otherwise) {
            reply.check().map_err(|why| ScriptProblem(format!("`{place}` {why}")))?;
        }
        Ok(script)
    }

    /// What a request comes to, and after how long; nothing if no rule is about it.
    pub(super) fn step(&self, request: &ModelRequest) -> Option<(Step, Duration)> {
        let rule = self.rules.iter().find(|rule| rule.holds(request)).map(|rule| &rule.reply);
        Some(rule.or(self.otherwise.as_ref())?.outcome(request))
    }
}

impl ScriptRule {
    /// What is wrong with its reply, if anything.
    pub fn check(&self) -> Result<(), &'static str> {
        self.reply.check()
    }

    /// Whether it is about this request.
    pub fn holds(&self, request: &ModelRequest) -> bool {
        self.when.holds(&ScriptInput::of(request))
    }

    /// What the request comes to, and after how long.
    pub fn outcome(&self, request: &ModelRequest) -> (Step, Duration) {
        self.reply.outcome(request)
    }

    /// The tools that its reply calls.
    pub fn called_tools(&self) -> impl Iterator<Item = &str> {
        self.reply.tools.iter().map(|call| call.name.as_str())
    }
}

impl Reply {
    fn check(&self) -> Result<(), &'static str> {
        let said = self.text.is_some() || self.json.is_some() || !self.tools.is_empty() || self.refusal.is_some();
        let silent = usize::from(self.fault.is_some()) + usize::from(self.stall);
        if self.text.is_some() && self.json.is_some() {
            return Err("has both `text` and `json`");
        }
        if silent + usize::from(said) > 1 {
            return Err("is an answer, a `fault` or a `stall`, and not two of them");
        }
        if silent == 0 && !said {
            return Err("says nothing: give it `text`, `json`, `tools`, `refusal`, `fault` or `stall`");
        }
        if self.refusal.is_some() && !self.tools.is_empty() {
            return Err("refuses and calls tools");
        }
        if self.delay_ms > LONGEST_DELAY_MS {
            return Err("has a `delayMs` of more than a minute");
        }
        Ok(())
    }

    fn outcome(&self, request: &ModelRequest) -> (Step, Duration) {
        (self.step(&ScriptInput::of(request)), Duration::from_millis(self.delay_ms))
    }

    fn step(&self, input: &ScriptInput<'_>) -> Step {
        if self.stall {
            return Step::Stall;
        }
        match self.fault {
            Some(Fault::Unavailable) => Step::Fault(ProviderFault::Unavailable("the script says so".to_owned())),
            Some(Fault::TimedOut) => Step::Fault(ProviderFault::TimedOut),
            Some(Fault::Exhausted) => Step::Fault(ProviderFault::Exhausted),
            Some(Fault::Rejected) => Step::Fault(ProviderFault::Rejected("the script says so".to_owned())),
            None => Step::Reply(self.reply(input)),
        }
    }

    fn reply(&self, input: &ScriptInput<'_>) -> ModelReply {
        let content = match (&self.text, &self.json) {
            (Some(text), _) => input.fill(text),
            (None, Some(value)) => input.filled(value).to_string(),
            (None, None) => String::new(),
        };
        let call = |(i, call): (usize, &Call)| ToolUse {
            // Different in every round, and the same whenever that round is played again.
            id: call.id.clone().unwrap_or_else(|| format!("call_{}_{i}", input.call())),
            name: call.name.clone(),
            arguments: input.filled(&call.arguments),
        };
        let usual = match (&self.refusal, self.tools.is_empty()) {
            (Some(_), _) => StopReason::Refusal,
            (None, false) => StopReason::ToolUse,
            (None, true) => StopReason::EndTurn,
        };
        let counted = || Usage {
            input_tokens: input.words(),
            output_tokens: content.split_whitespace().count() as u64,
            ..Usage::default()
        };
        let usage = self.usage.unwrap_or_else(counted);
        ModelReply {
            stop: self.stop.unwrap_or(usual),
            tools: self.tools.iter().enumerate().map(call).collect(),
            reasoning: self.reasoning.clone(),
            refusal: self.refusal.clone(),
            safety_category: self.safety_category.clone(),
            ..ModelReply::text(content, usage)
        }
    }
}
