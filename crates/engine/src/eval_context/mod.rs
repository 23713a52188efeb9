//! What a node sees while it runs, and what an expression in it may name. Nothing is copied for an expression to look at:
//! each name is a view of the state, and only the members that are asked for are looked at.

mod context;
mod turn_views;

pub(crate) use context::{EvalContext, ItemView};
