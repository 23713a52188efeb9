//! Google's Gemini.

mod decode;
mod encode;
mod parts;
mod vendor;

pub(crate) use vendor::{BASE_URL, vendor};

#[cfg(test)]
mod tests;
