//! Logs that are already written: read again, branched off, replayed, compared, exported and imported.

pub(crate) mod checkpoints;
pub(crate) mod compare;
pub(crate) mod fork;
pub(crate) mod log;
pub(crate) mod point_in_time;
pub(crate) mod public_form;
pub(crate) mod replay;
pub(crate) mod segments;
pub(crate) mod transfer;
