//! What the runtime needs of a store, by role: one file each says what is asked and what is on disk when it is answered.

mod definitions;
mod health;
mod journal;
mod questions;
mod reader;
mod remarks;
mod runs;
mod store;
mod versioned;
mod webhooks;

pub use definitions::DefinitionReads;
pub use health::HealthReads;
pub use journal::Journal;
pub use questions::QuestionReads;
pub use reader::Reader;
pub use remarks::RemarkReads;
pub use runs::RunReads;
pub use store::Store;
pub use versioned::VersionedReads;
pub use webhooks::WebhookReads;

/// What has to be in scope for questions to a store whose type is known. Of a `dyn Store` everything can be asked without.
pub mod reads {
    pub use super::{DefinitionReads, HealthReads, QuestionReads, RemarkReads, RunReads, VersionedReads, WebhookReads};
}
