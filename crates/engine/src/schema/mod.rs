//! JSON Schema behind one small door. References are never fetched: the crate is built without resolvers, and a
//! schema that needs one does not compile.

mod judge;
#[cfg(test)]
mod tests;
mod weight;

pub(crate) use judge::{Judge, Schema, SchemaCache};
