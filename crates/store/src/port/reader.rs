//! Everything that is asked, by whatever role.

use super::annotations::AnnotationReads;
use super::definitions::DefinitionReads;
use super::health::HealthReads;
use super::interrupts::InterruptReads;
use super::runs::RunReads;
use super::versioned::VersionedReads;
use super::webhooks::WebhookReads;

/// The read side: committed state only. `tenant` is part of the query wherever a caller's credential is involved, so
/// a foreign id looks exactly like an unknown one.
pub trait Reader:
    RunReads + VersionedReads + DefinitionReads + InterruptReads + AnnotationReads + WebhookReads + HealthReads
{
}

impl<
    T: RunReads
        + VersionedReads
        + DefinitionReads
        + InterruptReads
        + AnnotationReads
        + WebhookReads
        + HealthReads
        + ?Sized,
> Reader for T
{
}
