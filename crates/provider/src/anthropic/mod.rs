//! Anthropic's messages.

mod blocks;
mod decode;
mod encode;
mod marks;

use baton_model::ModelRequest;

use crate::ProviderFault;
use crate::wire::{Decoder, Settings, Vendor, Wire};

pub(crate) const KIND: &str = "anthropic";
pub(crate) const BASE_URL: &str = "https://api.anthropic.com/v1";

#[derive(Debug)]
pub(crate) struct Anthropic(pub(crate) Settings);

impl Vendor for Anthropic {
    fn lock(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn room(&self, request: &ModelRequest) -> Option<u64> {
        Some(encode::room(request, &self.0).0)
    }

    fn translate(&self, request: &ModelRequest) -> Result<(Wire, Box<dyn Decoder>), ProviderFault> {
        let (wire, frame) = encode::encode(request, &self.0)?;
        Ok((wire, Box::new(decode::Answer::new(frame))))
    }
}

#[cfg(test)]
mod tests;
