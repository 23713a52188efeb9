//! Google's Gemini.

mod decode;
mod encode;
mod parts;

use baton_model::ModelRequest;

use crate::ProviderFault;
use crate::wire::{Decoder, Settings, Vendor, Wire};

pub(crate) const KIND: &str = "gemini";
pub(crate) const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

#[derive(Debug)]
pub(crate) struct Gemini(pub(crate) Settings);

impl Vendor for Gemini {
    fn lock(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
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
