//! Whether what a model says in a shape of the protocol is taken, and what follows from it.
//!
//! ```text
//!  answer ──recover──► value ──adopt──► envelope ──accept──► outcome ──consequences──► what happens
//! ```

mod accept;
mod adopt;
mod consequence;
mod kinds;
mod limits;
mod outcome;
mod violation;

pub use accept::{Earlier, Host, Offer, Strictness, accept};
pub use adopt::{Place, adopt};
pub use consequence::{Consequence, Level, RefusalMode, consequences};
pub use kinds::{Kinds, UNIVERSAL};
pub use limits::{Counter, Counters, Limit};
pub use outcome::{Judgement, Meta, Outcome};
pub use violation::Violation;
