//! Templates: named, versioned texts with typed gaps.

use std::sync::Arc;

use baton_model::code;
use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reference::PromptRef;
use super::text;
use super::variable::{self, PromptVariable};
use crate::names;
use crate::problem::Problem;
use crate::shape::{self, Fields, Text};

/// The most bytes a template's text may have.
pub const MAX_TEMPLATE_BYTES: usize = 65_536;

/// Names of the values a host knows without being told.
pub const CONTEXT_NAMES: &[&str] =
    &["currentUserId", "runId", "workflowId", "workflowName", "tenantId", "nodeId", "now"];

/// What a prompt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptKind {
    System,
    SchemaHint,
    FewShot,
    User,
}

impl PromptKind {
    /// In the order in which a conversation is put together.
    pub const ALL: &'static [Self] = &[Self::System, Self::SchemaHint, Self::FewShot, Self::User];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::SchemaHint => "schema-hint",
            Self::FewShot => "few-shot",
            Self::User => "user",
        }
    }

    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }

    /// What a `prompt.composed` event calls a prompt of this kind that was put together alone.
    pub const fn composed(self) -> &'static str {
        match self {
            Self::System => "system-only",
            Self::User => "user-only",
            Self::SchemaHint | Self::FewShot => "agent-reasoning",
        }
    }
}

/// A template in the shape that the library serves.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptTemplate {
    pub template_id: String,
    #[serde(serialize_with = "as_text")]
    pub version: Version,
    pub kind: PromptKind,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<PromptVariable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_hints: Option<ModelHints>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<TemplateMeta>,
}

/// What an author suggests. Nothing is chosen by it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelHints {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_type: Option<String>,
}

/// Where a template came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<TemplateSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack_version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateSource {
    Host,
    Pack,
    User,
}

impl PromptTemplate {
    /// Reads a template, or says what keeps it from being one.
    pub fn read(value: &Value, at: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let template = shape::object(value, at, code::PROMPT_TEMPLATE_INVALID, &mut problems, read).flatten();
        match template {
            Some(template) if problems.is_empty() => Ok(template),
            _ => Err(problems),
        }
    }

    /// Names in the text that are neither declared nor known to every host.
    pub fn undeclared(&self) -> Vec<&str> {
        let known = |name: &str| self.variable(name).is_some() || CONTEXT_NAMES.contains(&name);
        text::names(&self.text).into_iter().filter(|name| !known(name)).collect()
    }

    pub fn variable(&self, name: &str) -> Option<&PromptVariable> {
        self.variables.iter().find(|variable| variable.name == name)
    }

    /// `prompt:<id>@<version>`.
    pub fn reference(&self) -> String {
        format!("prompt:{}@{}", self.template_id, self.version)
    }

    /// A text and nothing else.
    pub(crate) fn bare(own: &PromptRef, kind: PromptKind, text: &str) -> Self {
        Self {
            template_id: own.template_id.clone(),
            version: own.version.clone().unwrap_or(Version::new(0, 0, 0)),
            kind,
            text: text.to_owned(),
            name: None,
            description: None,
            variables: Vec::new(),
            model_hints: None,
            tags: Vec::new(),
            meta: None,
        }
    }

    /// The same template, said to come from somewhere.
    pub(crate) fn from(mut self, source: TemplateSource, pack: Option<(&str, &Version)>) -> Arc<Self> {
        let meta = self.meta.get_or_insert_default();
        meta.source = Some(source);
        meta.pack_name = pack.map(|(name, _)| name.to_owned());
        meta.pack_version = pack.map(|(_, version)| version.to_string());
        Arc::new(self)
    }
}

fn read(fields: &mut Fields<'_, '_>) -> Option<PromptTemplate> {
    let template_id = fields.required_text("templateId", Text::ANY.which(names::is_template_id, names::TEMPLATE_ID));
    let version = fields.required_text("version", Text::ANY.which(names::is_version, names::VERSION));
    fields.required("kind");
    let words: Vec<&str> = PromptKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let kind = fields.word("kind", &words).and_then(|word| PromptKind::read(&word));
    let text = fields.required_text("text", Text::ANY);
    if text.as_ref().is_some_and(|text| text.len() > MAX_TEMPLATE_BYTES) {
        fields.problem("text", format!("`text` has at most {MAX_TEMPLATE_BYTES} bytes; split it or shorten it."));
    }
    let name = fields.text("name", Text::up_to(200));
    let description = fields.text("description", Text::up_to(2000));
    let variables = variable::read_all(fields);
    let model_hints = fields.nested("modelHints", |hints| ModelHints {
        model_class: hints.text("modelClass", Text::ANY),
        temperature: hints.number("temperature", 0.0, 2.0),
        max_tokens: max_tokens(hints),
        envelope_type: hints.text("envelopeType", Text::ANY),
    });
    let tags = fields.texts("tags", 32, Text::between(1, 64)).unwrap_or_default();
    let meta = fields.nested("meta", meta);
    Some(PromptTemplate {
        template_id: template_id?,
        version: Version::parse(&version?).ok()?,
        kind: kind?,
        text: text?,
        name,
        description,
        variables,
        model_hints,
        tags,
        meta,
    })
}

fn max_tokens(hints: &mut Fields<'_, '_>) -> Option<u64> {
    let value = hints.value("maxTokens")?;
    let tokens = value.as_u64().filter(|tokens| *tokens >= 1);
    if tokens.is_none() {
        hints.problem("maxTokens", "`maxTokens` is a whole number, 1 or more.");
    }
    tokens
}

fn meta(fields: &mut Fields<'_, '_>) -> TemplateMeta {
    let instant = Text::ANY.which(|text| baton_model::Timestamp::parse(text).is_some(), "is an ISO 8601 instant");
    let meta = TemplateMeta {
        author: fields.text("author", Text::ANY),
        created_at: fields.text("createdAt", instant),
        updated_at: fields.text("updatedAt", instant),
        source: fields.word("source", &["host", "pack", "user"]).map(|word| match word.as_str() {
            "pack" => TemplateSource::Pack,
            "user" => TemplateSource::User,
            _ => TemplateSource::Host,
        }),
        pack_name: fields.text("packName", Text::ANY.which(names::is_pack_name, names::PACK_NAME)),
        pack_version: fields.text("packVersion", Text::ANY.which(names::is_version, names::VERSION)),
    };
    if meta.source == Some(TemplateSource::Pack) && (meta.pack_name.is_none() || meta.pack_version.is_none()) {
        fields.problem("", "A template of a pack names it: `packName` and `packVersion`.");
    }
    meta
}

/// A version is a text on the wire.
fn as_text<S: serde::Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}
