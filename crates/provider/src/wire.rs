//! What lies between a vendor's translator and the transport: a request without address and key, and a reader for
//! whatever comes back. Translators do no IO.

use baton_model::{ModelReply, ModelRequest, Usage};
use serde_json::{Map, Value};

use crate::draft::ReplyContext;
use crate::{Delta, ProviderFault};

/// A request in a vendor's words, and what is known of its answer before it comes.
type Encoded = Result<(Wire, ReplyContext), ProviderFault>;

/// A vendor's interface, as far as it can be known without a network: what differs from the others.
pub(crate) struct Vendor {
    pub(crate) settings: Settings,
    /// The header that carries the key, and what stands before it.
    pub(crate) auth_header: (&'static str, &'static str),
    /// The most that an answer to this request may take, as it would be sent.
    pub(crate) output_limit: fn(&Settings, &ModelRequest) -> Option<u64>,
    pub(crate) encode: fn(&ModelRequest, &Settings) -> Encoded,
    pub(crate) decoder: fn(ReplyContext) -> Box<dyn Decoder>,
}

impl Vendor {
    /// The request to send and a reader for its answer.
    pub(crate) fn translate(&self, request: &ModelRequest) -> Result<(Wire, Box<dyn Decoder>), ProviderFault> {
        let (wire, frame) = (self.encode)(request, &self.settings)?;
        Ok((wire, (self.decoder)(frame)))
    }
}

/// A `POST` in the vendor's words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wire {
    /// Segments under the base URL.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, &'static str)>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Map<String, Value>,
}

/// Reads one answer.
pub(crate) trait Decoder: Send + Sync {
    /// Takes one event of a streamed answer, and adds what can be heard of it.
    fn event(&mut self, data: &str, heard: &mut Vec<Delta>) -> Result<Progress, ProviderFault>;

    /// Takes an answer that came in one piece.
    fn whole(&mut self, body: &Value) -> Result<(), ProviderFault>;

    /// The reply, if the answer came to its end.
    fn finish(self: Box<Self>) -> Result<ModelReply, ProviderFault>;

    /// What the vendor has said so far that it used. Nobody counts what it has not told.
    fn usage(&self) -> Usage;

    /// Some vendors refuse with a status and not with an answer.
    fn refused(&self, _status: u16, _body: &Value) -> Option<ModelReply> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// The vendor said that this was all.
    Done,
}

/// How a provider is spoken to, whatever is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Where a request does not say.
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) stream: bool,
    /// Whether the vendor holds its model to a schema; otherwise the prompt says what is wanted.
    pub(crate) native_schemas: bool,
    /// For models that want to be told how much they may think.
    pub(crate) thinking_budget: Option<u64>,
    /// Whether the vendor is told which part of a request stays the same from call to call.
    pub(crate) prompt_cache: bool,
    /// The vendor's own service, and not one that is like it.
    pub(crate) official: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_output_tokens: None,
            stream: true,
            native_schemas: true,
            thinking_budget: None,
            prompt_cache: false,
            official: false,
        }
    }
}

impl Settings {
    /// Room for an answer: what the request says, else the operator, and no more than can be paid for.
    pub(crate) fn room(&self, request: &ModelRequest) -> Option<u64> {
        let room = request.semantic.max_output_tokens.or(self.max_output_tokens);
        match request.cap {
            Some(cap) => Some(room.map_or(cap, |room| room.min(cap))),
            None => room,
        }
    }
}

/// One event or body as JSON.
pub(crate) fn parse(data: &str) -> Result<Value, ProviderFault> {
    serde_json::from_str(data).map_err(|_| garbled())
}

pub(crate) fn garbled() -> ProviderFault {
    ProviderFault::Unavailable("its answer could not be read".to_owned())
}

pub(crate) fn broken_off() -> ProviderFault {
    ProviderFault::Unavailable("its answer broke off before it was complete".to_owned())
}
