//! Google's Gemini, as a [`Vendor`].

use super::{decode, encode};
use crate::wire::{Settings, Vendor};

pub(crate) const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

pub(crate) const fn vendor(settings: Settings) -> Vendor {
    Vendor {
        settings,
        auth_header: ("x-goog-api-key", ""),
        output_limit: Settings::room,
        encode: encode::encode,
        decoder: |frame| Box::new(decode::Answer::new(frame)),
    }
}
