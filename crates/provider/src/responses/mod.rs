//! OpenAI's Responses: the same vendor as chat completions, another wire. Nothing is kept at the vendor's: every request
//! carries the whole conversation, with the model's own thoughts sealed where it has any.

mod decode;
mod encode;
mod vendor;

pub(crate) use vendor::vendor;

#[cfg(test)]
mod tests;
