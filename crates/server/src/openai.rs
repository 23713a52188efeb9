//! The interfaces that clients of OpenAI speak, translated: what is asked into our words, and answers into theirs. Nothing is
//! decided here.
//!
//! What would change the meaning of a request and cannot be passed on is refused with the name of the parameter.

mod chat_reply;
mod chat_request;
mod choice;
mod content;
mod error;
mod parameters;
mod responses_reply;
mod responses_request;
mod stream;

use baton_model::SemanticRequest;

pub(crate) use self::chat_reply::{chat_chunks, chat_reply};
pub(crate) use self::chat_request::read_chat;
pub(crate) use self::error::OpenAiError;
pub(crate) use self::responses_reply::{response_events, response_reply};
pub(crate) use self::responses_request::read_responses;
pub(crate) use self::stream::AnswerFeed;

/// What a client asks, and how it wants the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenAiQuestion {
    pub(crate) semantic: SemanticRequest,
    /// As the client named it.
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}
