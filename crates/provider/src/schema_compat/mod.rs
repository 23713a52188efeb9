//! Schemas for vendors.
//!
//! A vendor that holds its model to a schema understands only a part of JSON Schema. What a workflow asks for is read
//! into a [`Shape`], which is that part and nothing more: closed objects whose fields are all there, lists, scalars,
//! choices. CallLimits that a vendor would refuse become remarks for the model. The full schema is what answers are checked
//! against, always, by whoever asked; a reduced one only makes it likely that they pass.
//!
//! A field that may be absent cannot be said this way, so it becomes one that may be `null`, and a `null` that only the
//! reduction allowed is taken out of the answer again ([`Shape::without_added_nulls`]).

mod answer;
mod read;
mod render;
mod shape;

pub(crate) use render::Dialect;
pub(crate) use shape::Shape;

#[cfg(test)]
mod tests;
