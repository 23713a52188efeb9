//! Everything that is asked, by whatever role.

use super::annotations::AnnotationReads;
use super::checkpoints::CheckpointReads;
use super::definitions::DefinitionReads;
use super::health::HealthReads;
use super::interrupts::InterruptReads;
use super::runners::RunnerReads;
use super::runs::RunReads;
use super::versioned::VersionedReads;
use super::webhooks::WebhookReads;

/// The read side: committed state only. `tenant` is part of the query wherever a caller's credential is involved, so
/// a foreign id looks exactly like an unknown one.
pub trait Reader:
    RunReads
    + VersionedReads
    + DefinitionReads
    + InterruptReads
    + AnnotationReads
    + CheckpointReads
    + WebhookReads
    + RunnerReads
    + HealthReads
{
}

impl<
    T: RunReads
        + VersionedReads
        + DefinitionReads
        + InterruptReads
        + AnnotationReads
        + CheckpointReads
        + WebhookReads
        + RunnerReads
        + HealthReads
        + ?Sized,
> Reader for T
{
}
