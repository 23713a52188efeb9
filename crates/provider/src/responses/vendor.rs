//! OpenAI's Responses, as a [`Vendor`].

use super::{decode, encode};
use crate::wire::{Settings, Vendor};

pub(crate) const fn vendor(settings: Settings) -> Vendor {
    Vendor {
        settings,
        auth_header: ("authorization", "Bearer "),
        output_limit: Settings::room,
        encode: encode::encode,
        decoder: |frame| Box::new(decode::Answer::new(frame)),
    }
}
