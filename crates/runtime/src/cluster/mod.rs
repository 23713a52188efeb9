//! Several hosts on one store. What is in here sleeps where the store has a single owner
//! ([`baton_store::Journal::shared`] is `None`).
//!
//! ```text
//!  session   renews the lease; beside that, ends who fell silent  ── fenced? the generation ends, heal() starts over
//!  adopt     takes over what the dead were at, tree by tree       ── adds no record: the usual recovery goes on
//!  ask       a command for a run another host drives: a message out, the committed answer back
//!  messages   messages in, carried out once: the answer is in the commit of the effect
//!  claims    a name that one host at a time may use: keys, scopes, registrations, retention
//!  versioned stores   memory and workspaces: everybody reads, whoever has the claim writes, and lets go when asked
//!  subscriptions  a webhook that was registered or deleted binds every host before anybody is told so
//!  moving    giving trees that are at rest to somebody who has less to do
//!  news      what the others did: wakes streams and whoever waits; lost news only delay
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
