//! What the runtime needs of a store, by role: one file each says what is asked and what is on disk when it is answered.

mod annotations;
mod checkpoints;
mod definitions;
mod health;
mod interrupts;
mod journal;
mod reader;
mod runners;
mod runs;
mod store;
mod versioned;
mod webhooks;

pub use annotations::AnnotationReads;
pub use checkpoints::CheckpointReads;
pub use definitions::DefinitionReads;
pub use health::HealthReads;
pub use interrupts::InterruptReads;
pub use journal::Journal;
pub use reader::Reader;
pub use runners::RunnerReads;
pub use runs::RunReads;
pub use store::Store;
pub use versioned::VersionedReads;
pub use webhooks::WebhookReads;

/// What has to be in scope for questions to a store whose type is known. Of a `dyn Store` everything can be asked without.
pub mod reads {
    pub use super::{
        AnnotationReads, CheckpointReads, DefinitionReads, HealthReads, InterruptReads, RunReads, RunnerReads,
        VersionedReads, WebhookReads,
    };
}
