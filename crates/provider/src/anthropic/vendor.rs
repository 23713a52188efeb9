//! Anthropic's messages, as a [`Vendor`].

use super::{decode, encode};
use crate::wire::{Settings, Vendor};

pub(crate) const BASE_URL: &str = "https://api.anthropic.com/v1";

pub(crate) const fn vendor(settings: Settings) -> Vendor {
    Vendor {
        settings,
        auth_header: ("x-api-key", ""),
        output_limit: |settings, request| Some(encode::room(request, settings).0),
        encode: encode::encode,
        decoder: |frame| Box::new(decode::Answer::new(frame)),
    }
}
