//! OpenAI's chat completions, and everything that speaks like them: Ollama, vLLM, llama.cpp, OpenRouter, and others.

mod decode;
mod encode;
mod vendor;

pub(crate) use vendor::{BASE_URL, vendor};

#[cfg(test)]
mod tests;
