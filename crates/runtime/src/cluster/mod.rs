//! Several hosts on one store. What is in here sleeps where the store has a single owner
//! ([`baton_store::Journal::shared`] is `None`).
//!
//! ```text
//!  membership   renews this host's lease; a host that is fenced starts over with a new session
//!  events       hears what others did, ends sessions that fell silent, asks for work when idle; lost events only delay
//!  takeover     takes over what dead hosts drove, tree by tree; adds no record: the usual recovery goes on
//!  ownership    makes sure that a run is loaded only where its tree is driven
//!  forward      a command for a run that another host drives: sent, carried out once there, its committed answer returned
//!  inbox        forwarded commands that came in: the answer is in the commit of the effect
//!  claims       names that one host at a time may use: keys, scopes, registrations, retention
//!  balance      gives trees that are at rest to a host that has less to do
//! ```

pub(crate) mod balance;
pub(crate) mod claims;
pub(crate) mod elsewhere;
pub(crate) mod events;
pub(crate) mod forward;
pub(crate) mod in_progress;
pub(crate) mod inbox;
pub(crate) mod membership;
pub(crate) mod messages;
pub(crate) mod ownership;
pub(crate) mod sharing;
pub(crate) mod state;
pub(crate) mod takeover;
pub(crate) mod waiters;

pub(crate) use crate::services::versioned::write_rights::Hold;
pub(crate) use forward::StoredReply;
pub use messages::{forwarded_matters, key_of_forwarded};
