//! OpenAI's chat completions, as a [`Vendor`].

use super::{decode, encode};
use crate::wire::{Settings, Vendor};

pub(crate) const BASE_URL: &str = "https://api.openai.com/v1";

pub(crate) const fn vendor(settings: Settings) -> Vendor {
    Vendor {
        settings,
        auth_header: ("authorization", "Bearer "),
        output_limit: Settings::room,
        encode: encode::encode,
        decoder: |frame| Box::new(decode::Answer::new(frame)),
    }
}
