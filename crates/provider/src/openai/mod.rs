//! OpenAI's chat completions, and everything that speaks like them: Ollama, vLLM, llama.cpp, OpenRouter, and others.

mod decode;
mod encode;

use baton_model::ModelRequest;

use crate::ProviderFault;
use crate::wire::{Decoder, Settings, Vendor, Wire};

pub(crate) const KIND: &str = "openai";
pub(crate) const BASE_URL: &str = "https://api.openai.com/v1";

#[derive(Debug)]
pub(crate) struct OpenAi(pub(crate) Settings);

impl Vendor for OpenAi {
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
