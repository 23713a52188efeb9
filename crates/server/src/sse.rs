//! Server-sent events: which events a reader wants ([`mode`]), how they look on the wire ([`frame`]), and the loop that
//! follows a run's log ([`feed`]).

mod activity;
mod feed;
mod frame;
mod mode;

pub(crate) use activity::ActivityFeed;
pub(crate) use feed::{Feed, PAGE};
pub(crate) use mode::{Modes, buffer_ms};
