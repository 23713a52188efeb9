//! Model providers: the port every vendor is reached through, and the providers there are.
//!
//! A provider translates one [`ModelRequest`] into one call and its outcome into one [`ModelReply`]. It keeps nothing and
//! decides nothing: whether an answer is good, whether to ask for another and what is written down is the business of
//! others. Below the level of answers it may try again, where no answer had begun.
//!
//! ```text
//!  ModelRequest ─► openai ─┐                         ┌─► Delta … ─► DeltaSink
//!                  anthropic ─► transport ─► decoder ─┤
//!                  gemini ─┘                         └─► ModelReply │ ProviderFault
//! ```
//!
//! * [`build`] makes a provider from [`ProviderSettings`].
//! * [`ScriptedProvider`] and [`MockProvider`] live in the process; [`recording`] records others and plays them back.
//! * [`Prices`] says what a call cost.

mod address;
mod anthropic;
mod build;
mod capabilities;
mod conversation;
mod draft;
mod error_response;
mod estimate_tokens;
mod fault;
mod format;
mod gemini;
mod mock;
mod openai;
mod options;
mod prices;
mod provider;
pub mod recording;
mod responses;
mod sample;
mod schema_compat;
mod scripted;
mod settings;
mod stream_reply;
#[cfg(test)]
mod testing;
mod think;
mod tool_names;
mod transport;
mod vendor_names;
mod wire;

pub use build::build;
pub use capabilities::vendor_capabilities;
pub use estimate_tokens::{estimated_input, upper_bound_input};
pub use fault::{Broken, ProviderFault};
pub use mock::MockProvider;
pub use prices::{Price, Prices};
pub use provider::{Delta, DeltaSink, NoSink, Provider};
pub use scripted::{Script, ScriptProblem, ScriptRule, ScriptedProvider, Step};
pub use settings::{ConfigProblem, ProviderKind, ProviderSettings, RecordingMode, RecordingSettings, WireFormat};
pub use stream_reply::stream_reply;

// Names of the version before, for callers that still use them.
