//! A provider that says what it was told to say: for tests, demonstrations, and development without a key.
//!
//! It is fed in two ways. A test gives a node a queue of [`Step`]s, and each call of that node takes the next one. A
//! [`Script`] is a list of rules read from JSON; the reply depends on the request alone, so that the same call made
//! again after a crash gets the same answer. A queue goes before the script; where neither has anything to say, the
//! answer is the smallest one that fits what is asked for.

mod condition;
mod provider;
mod script;
mod step;

pub use provider::ScriptedProvider;
pub use script::{Script, ScriptProblem, ScriptRule};
pub use step::Step;

#[cfg(test)]
mod tests;
