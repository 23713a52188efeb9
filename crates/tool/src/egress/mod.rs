//! Where calls may go that somebody else chose the address of: a subscriber, a workflow, a model.
//!
//! Two things are checked, at two moments. The address as it is written is judged by [`Guard::check`]: its scheme, its
//! host, a literal address. What a name resolves to is judged when the connection is made, on the very answer that the
//! connection then uses: a [`Clients`] connects only to addresses that passed, so there is no second lookup that could
//! say something else, and a name that was harmless yesterday may point inwards today without harm.
//!
//! No client here follows a redirect or uses a proxy. Whoever follows one asks the guard about each place.
//!
//! The inside is closed unless the operator opens it: all of it, or single places by `host:port` ([`Place`]).

mod clients;
mod guard;
mod lookup;
mod place;
mod ranges;

pub use clients::{Clients, NoClient};
pub use guard::{Guard, Refused};
pub use lookup::{Lookup, SystemLookup};
pub use place::{NotAPlace, Place};
pub use ranges::is_public;
