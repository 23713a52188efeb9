//! Files of cases: found, read, and every value in them with its place, so that whatever is wrong is shown where it stands.

mod discover;
mod document;
mod place;
mod problem;
mod yaml;

pub use discover::{Found, discover};
pub use document::Document;
pub(crate) use place::Place;
pub use problem::FileProblem;
