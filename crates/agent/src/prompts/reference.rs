//! References to templates: `prompt:<id>[@<version>]`, or an object that says more.

use semver::Version;
use serde_json::{Map, Value};

use super::error::PromptError;
use crate::names::is_template_id;

/// A reference, whichever way it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptRef {
    pub template_id: String,
    /// Absent means the newest.
    pub version: Option<Version>,
    /// Where to look; absent means everywhere, and then there must be only one of that name.
    pub library_id: Option<String>,
    /// Values that go before every other.
    pub overrides: Map<String, Value>,
}

impl PromptRef {
    pub fn read(value: &Value) -> Result<Self, PromptError> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Object(map) => from_object(map),
            _ => Err(PromptError::RefInvalid("a reference is a text or an object".to_owned())),
        }
    }

    /// Reads `prompt:<id>[@<version>]`.
    pub fn parse(text: &str) -> Result<Self, PromptError> {
        let wrong = |why: &str| PromptError::RefInvalid(format!("`{}` {why}", shortened(text)));
        let rest = text.strip_prefix("prompt:").ok_or_else(|| wrong("does not begin with `prompt:`"))?;
        let (id, version) = match rest.split_once('@') {
            Some((id, version)) => (id, Some(version)),
            None => (rest, None),
        };
        if !is_template_id(id) {
            return Err(wrong("has no template id after `prompt:`"));
        }
        let version = version.map(Version::parse).transpose().map_err(|_| wrong("has no version after its `@`"))?;
        Ok(Self { template_id: id.to_owned(), version, library_id: None, overrides: Map::new() })
    }
}

/// The short form, whichever one it was read from.
impl std::fmt::Display for PromptRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "prompt:{}", self.template_id)?;
        match &self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

fn from_object(map: &Map<String, Value>) -> Result<PromptRef, PromptError> {
    let wrong = |why: &str| PromptError::RefInvalid(why.to_owned());
    if let Some(name) =
        map.keys().find(|name| !matches!(name.as_str(), "templateId" | "libraryId" | "version" | "variableOverrides"))
    {
        return Err(wrong(&format!("a reference has no `{}`", shortened(name))));
    }
    let id = |key: &str| match map.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if is_template_id(text) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(&format!("`{key}` {}", crate::names::TEMPLATE_ID))),
    };
    let template_id = id("templateId")?.ok_or_else(|| wrong("a reference names its `templateId`"))?;
    let library_id = id("libraryId")?;
    let version = match map.get("version") {
        None => None,
        Some(value) => {
            let version = value.as_str().and_then(|text| Version::parse(text).ok());
            Some(version.ok_or_else(|| wrong("`version` is a semantic version"))?)
        }
    };
    let overrides = match map.get("variableOverrides") {
        None => Map::new(),
        Some(Value::Object(overrides)) => overrides.clone(),
        Some(_) => return Err(wrong("`variableOverrides` is an object")),
    };
    Ok(PromptRef { template_id, version, library_id, overrides })
}

/// What somebody wrote, short enough for a message.
fn shortened(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_forms_name_the_same_thing() {
        for (value, text) in [
            (json!("prompt:writer"), "prompt:writer"),
            (json!("prompt:writer@1.2.0-rc.1+b"), "prompt:writer@1.2.0-rc.1+b"),
            (json!({"templateId": "writer"}), "prompt:writer"),
            (
                json!({"templateId": "w", "version": "1.0.0", "libraryId": "l", "variableOverrides": {"a": 1}}),
                "prompt:w@1.0.0",
            ),
        ] {
            assert_eq!(PromptRef::read(&value).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_reference() {
        for bad in [
            json!(null),
            json!(5),
            json!(""),
            json!("writer"),
            json!("prompt:"),
            json!("prompt:Writer"),
            json!("prompt:w@1.0"),
            json!("prompt:w@"),
            json!({}),
            json!({"templateId": "W"}),
            json!({"templateId": "w", "version": 1}),
            json!({"templateId": "w", "libraryId": ""}),
            json!({"templateId": "w", "variableOverrides": []}),
            json!({"templateId": "w", "extra": 1}),
        ] {
            assert!(matches!(PromptRef::read(&bad), Err(PromptError::RefInvalid(_))), "{bad}");
        }
    }
}
