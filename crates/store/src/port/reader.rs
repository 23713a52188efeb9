//! Everything that is asked, by whatever role.

use super::definitions::DefinitionReads;
use super::health::HealthReads;
use super::questions::QuestionReads;
use super::remarks::RemarkReads;
use super::runs::RunReads;
use super::versioned::VersionedReads;
use super::webhooks::WebhookReads;

/// The read side: committed state only. `tenant` is part of the query wherever a caller's credential is involved, so
/// a foreign id looks exactly like an unknown one.
pub trait Reader:
    RunReads + VersionedReads + DefinitionReads + QuestionReads + RemarkReads + WebhookReads + HealthReads
{
}

impl<T: RunReads + VersionedReads + DefinitionReads + QuestionReads + RemarkReads + WebhookReads + HealthReads + ?Sized>
    Reader for T
{
}
