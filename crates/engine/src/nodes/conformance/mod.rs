//! Everything that only test workflows have, from reading a definition to deciding what happens: a definition may use it
//! where [`crate::Features::conformance`] is on and its id says that it is a test.

mod chunks;
mod kind;
mod mock_agent;
mod mock_visit;
mod read;
mod script;
mod stream;
mod visit;

pub(crate) use chunks::Chunks;
pub(crate) use kind::TestKind;
pub(crate) use mock_visit::begin;
pub(crate) use read::{AVAILABLE, TYPES, read};
pub(crate) use script::read_script;
pub(crate) use stream::{all_chunks, stream};
pub(crate) use visit::{finish, request, run};
