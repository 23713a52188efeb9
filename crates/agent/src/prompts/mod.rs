//! Prompts: templates and where they are kept, how one is found for a node, and how it is put together.
//!
//! ```text
//!  layers ──resolve──► reference ──find──► template ──compose──► text, hash, what was bound
//! ```

mod chain;
mod compose;
mod error;
mod library;
mod path;
mod reference;
mod render;
mod template;
mod text;
mod variable;

pub use chain::{Agent, AgentPrompts, Layers, PromptSlot, Resolution, Warning, resolve};
// The name of the version before, for callers that still use it.
pub use compose::{Bindings, Composed, MAX_COMPOSED_BYTES, MAX_GAPS, compose, sha256};
pub use error::PromptError;
pub use library::{HOST_LIBRARY, Library};
pub use path::Path;
pub use reference::PromptRef;
pub use render::{Found, Rendered, prompt, prompts, render};
pub use template::{
    CONTEXT_NAMES, MAX_TEMPLATE_BYTES, ModelHints, PromptKind, PromptTemplate, TemplateMeta, TemplateSource,
};
pub use variable::{PromptVariable, VariableSource, VariableType};
