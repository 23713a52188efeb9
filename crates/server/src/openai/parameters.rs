//! The parameters of a request, taken out one by one. What is left at the end nobody here knows.

use serde_json::{Map, Number, Value};

use super::OpenAiError;

/// The longest list of words that end an answer.
const MOST_STOPS: usize = 16;

/// What does not change what is answered.
const PASSED_OVER: &[&str] = &[
    "client_metadata",
    "include",
    "metadata",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "store",
    "stream_options",
    "user",
];

pub(super) struct Parameters(Map<String, Value>);

impl Parameters {
    /// Null says nothing.
    pub(super) fn new(body: Map<String, Value>) -> Self {
        Self(body.into_iter().filter(|(_, value)| !value.is_null()).collect())
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, OpenAiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(OpenAiError::param(name, format!("`{name}` is a text."))),
        }
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, OpenAiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(OpenAiError::param(name, format!("`{name}` is true or false."))),
        }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<Number>, OpenAiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number)),
            Some(_) => Err(OpenAiError::param(name, format!("`{name}` is a number."))),
        }
    }

    pub(super) fn whole(&mut self, name: &str) -> Result<Option<u64>, OpenAiError> {
        let wrong = || OpenAiError::param(name, format!("`{name}` is a whole number, 1 or more."));
        let number = self.number(name)?;
        number.map(|number| number.as_u64().filter(|number| *number > 0).ok_or_else(wrong)).transpose()
    }

    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>, OpenAiError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(OpenAiError::param(name, format!("`{name}` is a list."))),
        }
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, OpenAiError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(_) => Err(OpenAiError::param(name, format!("`{name}` is an object."))),
        }
    }

    /// `provider/model`, and the two parts.
    pub(super) fn model(&mut self) -> Result<(String, String, String), OpenAiError> {
        let model = self.text("model")?.ok_or_else(|| OpenAiError::param("model", "`model` is required."))?;
        let parts = model.split_once('/').filter(|(provider, name)| !provider.is_empty() && !name.is_empty());
        // One without a provider is a model that nobody has.
        let (provider, name) = parts.unwrap_or(("", &model));
        Ok((provider.to_ascii_lowercase(), name.to_owned(), model.clone()))
    }

    pub(super) fn stop(&mut self) -> Result<Option<Vec<String>>, OpenAiError> {
        let wrong = || OpenAiError::param("stop", format!("`stop` is a text, or a list of up to {MOST_STOPS}."));
        match self.take("stop") {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(vec![text])),
            Some(Value::Array(list)) if list.len() <= MOST_STOPS => {
                let text = |value: Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
                list.into_iter().map(text).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(wrong()),
        }
    }

    /// Options that some vendors know. Others are not told.
    pub(super) fn vendor_options(&mut self, options: &mut Map<String, Value>) -> Result<(), OpenAiError> {
        for (name, gemini) in [
            ("frequency_penalty", Some("frequencyPenalty")),
            ("presence_penalty", Some("presencePenalty")),
            ("verbosity", None),
            ("service_tier", None),
            ("prompt_cache_key", None),
            ("reasoning_effort", None),
        ] {
            let Some(value) = self.take(name) else { continue };
            if let Some(gemini) = gemini {
                let all = options.entry("vendor.gemini.generationConfig").or_insert_with(|| Value::Object(Map::new()));
                all[gemini] = value.clone();
            }
            options.insert(format!("vendor.openai.{name}"), value);
        }
        Ok(())
    }

    /// What cannot be passed on, unless it says what is the case anyway.
    pub(super) fn refuse(&mut self, name: &str, usual: &[Value]) -> Result<(), OpenAiError> {
        match self.take(name) {
            Some(value) if !usual.contains(&value) => {
                Err(OpenAiError::param(name, format!("`{name}` cannot be passed on to every model. Leave it out.")))
            }
            _ => Ok(()),
        }
    }

    /// Nobody knows what the rest would mean.
    pub(super) fn finish(self) -> Result<(), OpenAiError> {
        match self.0.keys().find(|name| !PASSED_OVER.contains(&name.as_str())) {
            Some(name) => Err(OpenAiError::param(name, format!("There is no parameter `{name}` here."))),
            None => Ok(()),
        }
    }
}
