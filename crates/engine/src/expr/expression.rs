//! One expression of a definition: compiled when the definition is, evaluated when a node needs it.

use baton_model::{Fault, code as codes};
use serde_json::Value;

use super::code::Code;
use super::compile::{self, Refused};
use super::machine::Machine;
use super::meter;
use super::scope::Scope;
use super::trouble::Failure;
use super::value::Val;

/// Whether a definition is new, or was accepted before and must be read whatever the bounds are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    New,
    Recorded,
}

/// A compiled expression that knows which names it reads.
pub(crate) struct Expression {
    source: String,
    /// Where it stands, in words.
    place: String,
    /// What it does; or, of one that is over a bound that did not apply when it was accepted, which bound.
    code: Result<Code, String>,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expression({})", self.source)
    }
}

impl Expression {
    pub(crate) fn compile(source: &str, place: &str, strictness: Strictness) -> Result<Self, String> {
        if source.trim().is_empty() {
            return Err("the expression is empty".to_owned());
        }
        let code = match (compile::compile(source), strictness) {
            (Ok(code), _) => Ok(code),
            (Err(Refused::OverBound(bound)), Strictness::Recorded) => Err(bound),
            (Err(Refused::OverBound(why) | Refused::Invalid(why)), _) => return Err(why),
        };
        Ok(Self { source: source.to_owned(), place: place.to_owned(), code })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression mentions this top-level name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        let Ok(code) = &self.code else { return false };
        code.roots.iter().filter_map(|root| code.words.get(*root)).any(|read| read.trim_start_matches('.') == name)
    }

    /// Evaluates to JSON, or says why not.
    pub(crate) fn evaluate(&self, scope: &dyn Scope) -> Result<Value, Failure> {
        self.run(scope, |value, gauge| {
            let json = value.to_json(gauge)?;
            json.ok_or_else(|| Failure::Wrong("the result is not JSON".to_owned()))
        })
    }

    pub(crate) fn evaluate_bool(&self, scope: &dyn Scope) -> Result<bool, Failure> {
        self.run(scope, |value, _| match value {
            Val::Bool(answer) => Ok(*answer),
            Val::List(_) => Err(Failure::expected("true or false, got an array")),
            Val::Map(_) => Err(Failure::expected("true or false, got an object")),
            Val::Bytes(_) | Val::Optional(_) => Err(Failure::Wrong("the result is not JSON".to_owned())),
            other => Err(Failure::expected(&format!("true or false, got {}", other.kind()))),
        })
    }

    /// One item of the list that the expression evaluates to; only that is copied. `None` beyond its end.
    pub(crate) fn evaluate_item(&self, scope: &dyn Scope, index: usize) -> Result<Option<Value>, Failure> {
        self.run(scope, |value, gauge| {
            let Val::List(list) = value else { return Err(Failure::expected("a list")) };
            let Some(item) = list.get(index) else { return Ok(None) };
            let json = item.to_json(gauge)?;
            json.map(Some).ok_or_else(|| Failure::Wrong("the result is not JSON".to_owned()))
        })
    }

    pub(super) fn run<T>(
        &self,
        scope: &dyn Scope,
        take: impl FnOnce(&Val<'_>, &mut meter::Gauge) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let code = self.code.as_ref().map_err(|bound| Failure::TooCostly(bound.clone()))?;
        let mut gauge = scope.meter().gauge(scope.bounds());
        let result = match Machine::new(code, scope, &mut gauge).run() {
            Ok(Val::Error(trouble)) => Err(Failure::wrong(&self.source, &trouble)),
            Ok(value) => take(&value, &mut gauge),
            Err(bound) => Err(bound.into()),
        };
        scope.meter().settle(&gauge);
        result
    }

    /// What becomes of a node whose expression fails.
    pub(crate) fn fault(&self, failure: &Failure) -> Fault {
        fault(&self.source, &self.place, failure)
    }
}

/// How much of an expression a message repeats.
const SHOWN_CHARS: usize = 120;

/// What becomes of a node when something at this place cannot be evaluated.
pub(crate) fn fault(source: &str, place: &str, failure: &Failure) -> Fault {
    let fault = match failure {
        Failure::Wrong(why) => Fault::new(codes::EXPRESSION_ERROR, format!("The expression `{source}` failed: {why}")),
        Failure::TooCostly(bound) => {
            // An expression that costs too much is often long; whoever needs all of it finds it in the details.
            let mut shown: String = source.chars().take(SHOWN_CHARS).collect();
            if shown.len() < source.len() {
                shown.push('…');
            }
            let message = format!("The expression `{shown}` ({place}) is too costly: {bound}.");
            Fault::new(codes::EXPRESSION_TOO_COSTLY, message).with("place", place).with("bound", bound.as_str())
        }
    };
    fault.with("expression", source)
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
