//! Anthropic's messages.

mod blocks;
mod decode;
mod encode;
mod marks;
mod vendor;

pub(crate) use vendor::{BASE_URL, vendor};

#[cfg(test)]
mod tests;
