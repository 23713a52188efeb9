//! Names under which keyed requests are claimed.

use baton_model::{Digest, RunStatus, Timestamp};
use baton_store::{Reply, Write};

use crate::Idempotent;
use crate::run::live::CommitHook;

pub(crate) fn claim_name(key: &Digest) -> String {
    format!("key:{}", key.as_str())
}

/// How long the reply to an idempotent request is kept.
pub(crate) const REPLY_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// The reply becomes durable with the records of its effect or not at all: whoever asks again finds both or neither.
pub(crate) fn attach_reply<T: 'static>(
    idempotent: Idempotent<T>,
    view: impl FnOnce(RunStatus, Timestamp) -> T + Send + 'static,
) -> CommitHook {
    let Idempotent { key, request, render } = idempotent;
    Box::new(move |status, at| {
        let (status, body) = render(&view(status, at));
        Write::PutReply(Reply { key, request, status, body, expires_at: at.plus_millis(REPLY_TTL_MS) })
    })
}
