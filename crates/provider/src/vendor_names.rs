//! The protocol's words for the vendors. They are in settings, in requests and in what is kept of a conversation.

pub(crate) const OPENAI: &str = "openai";
pub(crate) const ANTHROPIC: &str = "anthropic";
pub(crate) const GEMINI: &str = "gemini";
pub(crate) const MOCK: &str = "mock";
/// What a conversation keeps for OpenAI's Responses; chat completions could not read it.
pub(crate) const OPENAI_RESPONSES: &str = "openai-responses";
