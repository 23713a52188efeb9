//! OpenAI's Responses: the same vendor as chat completions, another wire. Nothing is kept at the vendor's: every request
//! carries the whole conversation, with the model's own thoughts sealed where it has any.

mod decode;
mod encode;

use baton_model::ModelRequest;

use crate::ProviderFault;
use crate::wire::{Decoder, Settings, Vendor, Wire};

/// What echoes are kept under: chat completions could not read them.
const ECHO: &str = "openai-responses";

#[derive(Debug)]
pub(crate) struct Responses(pub(crate) Settings);

impl Vendor for Responses {
    fn lock(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn room(&self, request: &ModelRequest) -> Option<u64> {
        self.0.room(request)
    }

    fn translate(&self, request: &ModelRequest) -> Result<(Wire, Box<dyn Decoder>), ProviderFault> {
        let (wire, frame) = encode::encode(request, &self.0)?;
        Ok((wire, Box::new(decode::Answer::new(frame))))
    }
}

#[cfg(test)]
mod tests;
