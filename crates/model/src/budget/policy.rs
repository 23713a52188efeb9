//! A budget as somebody asks for it, and what is wrong with one that cannot be read.

use serde_json::{Map, Value};

use super::ceilings::{Ceilings, OnExhaustion};

/// A budget as somebody asks for it: `configurable.budget` of a run, `settings.budget` of a workflow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetPolicy {
    pub ceilings: Ceilings,
    /// `None` allows all; an empty list allows none.
    pub model_allow: Option<Vec<String>>,
    pub model_deny: Vec<String>,
    pub threshold_percent: Option<f64>,
    pub on_exhaustion: Option<OnExhaustion>,
}

const MEMBERS: [&str; 8] = [
    "maxTokens",
    "maxCostUsd",
    "maxToolCalls",
    "maxRetries",
    "modelAllow",
    "modelDeny",
    "thresholdPercent",
    "onExhaustion",
];

impl BudgetPolicy {
    /// Reads one, or says where it is wrong (a JSON pointer) and why.
    pub fn read(value: &Value) -> Result<Self, (String, String)> {
        let Value::Object(map) = value else {
            return Err((String::new(), "A budget is an object.".to_owned()));
        };
        if let Some(unknown) = map.keys().find(|key| !MEMBERS.contains(&key.as_str())) {
            let message = format!("A budget has no `{unknown}`; it has {}.", MEMBERS.join(", "));
            return Err((format!("/{}", unknown.replace('~', "~0").replace('/', "~1")), message));
        }
        Ok(Self {
            ceilings: Ceilings {
                max_tokens: whole(map, "maxTokens", 1)?,
                max_cost_usd: number(map, "maxCostUsd", f64::MAX)?,
                max_tool_calls: whole(map, "maxToolCalls", 1)?,
                max_retries: whole(map, "maxRetries", 0)?,
            },
            model_allow: patterns(map, "modelAllow")?,
            model_deny: patterns(map, "modelDeny")?.unwrap_or_default(),
            threshold_percent: number(map, "thresholdPercent", 100.0)?,
            on_exhaustion: match map.get("onExhaustion").map(Value::as_str) {
                None => None,
                Some(Some("fail")) => Some(OnExhaustion::Fail),
                Some(Some("interrupt")) => Some(OnExhaustion::Interrupt),
                Some(_) => return Err(wrong("onExhaustion", "is \"fail\" or \"interrupt\"")),
            },
        })
    }
}

fn wrong(key: &str, what: &str) -> (String, String) {
    (format!("/{key}"), format!("`{key}` {what}."))
}

fn whole(map: &Map<String, Value>, key: &str, least: u64) -> Result<Option<u64>, (String, String)> {
    let Some(value) = map.get(key) else { return Ok(None) };
    let n = value.as_u64().filter(|n| *n >= least);
    n.map(Some).ok_or_else(|| wrong(key, &format!("is a whole number, at least {least}")))
}

fn number(map: &Map<String, Value>, key: &str, most: f64) -> Result<Option<f64>, (String, String)> {
    let Some(value) = map.get(key) else { return Ok(None) };
    let n = value.as_f64().filter(|n| (0.0..=most).contains(n));
    let bound = if most < f64::MAX { format!(" and at most {most}") } else { String::new() };
    n.map(Some).ok_or_else(|| wrong(key, &format!("is a number, at least 0{bound}")))
}

fn patterns(map: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, (String, String)> {
    let Some(value) = map.get(key) else { return Ok(None) };
    let what = "lists names of models; `*` stands for any text, as in \"claude-*\"";
    let Value::Array(items) = value else { return Err(wrong(key, what)) };
    let mut all: Vec<String> = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let at = |what: &str| (format!("/{key}/{place}"), format!("`{key}` {what}."));
        let pattern = item.as_str().ok_or_else(|| at(what))?;
        if all.iter().any(|known| known == pattern) {
            return Err(at("names nothing twice"));
        }
        all.push(pattern.to_owned());
    }
    Ok(Some(all))
}
