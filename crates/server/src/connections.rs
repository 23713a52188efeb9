//! Connections to the host, and what a client may do with them.
//!
//! Every connection is in a table. It gets a place there when it is accepted, or it is turned away; a look at the table
//! every so often closes those that say nothing, stay idle or do not read ([`place`] has the rules). A few more than the
//! limit are let in to ask how the host is, so that operators are answered whoever else is there ([`reserve`]).

mod accept;
mod drive;
mod io;
mod limits;
mod place;
mod reserve;
mod sent;
mod stream_tasks;
mod table;

pub(crate) use accept::accept;
pub use limits::ConnectionLimits;
pub(crate) use table::Table;
