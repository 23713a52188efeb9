//! What stands for `conformance` in a build without it: no node is of such a kind, so nothing is ever done for one.

use baton_model::workflow::Node;
use baton_model::{Decision, Draft, Entrance, Fault, Timestamp};

use super::outcome::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::node_request::{Found, Request};
use crate::plan::Problem;
use crate::plan::node_config::{Config, Kind};
use crate::state::RunState;

pub(crate) const AVAILABLE: bool = false;
pub(crate) const TYPES: [&str; 0] = [];

#[derive(Debug)]
pub(crate) enum TestKind {}

impl TestKind {
    pub(crate) fn asks_first(&self) -> bool {
        match *self {}
    }

    pub(crate) fn makes(&self) -> (Entrance, Option<&str>) {
        match *self {}
    }

    pub(crate) fn missing(&self) -> Option<Fault> {
        match *self {}
    }

    pub(crate) fn streams(&self) -> bool {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum Chunks {}

impl Chunks {
    pub(crate) fn delay_ms(&self) -> u64 {
        match *self {}
    }
}

pub(crate) fn read(_: &Config<'_>, _: &Node) -> Result<Option<Kind>, Vec<Problem>> {
    Ok(None)
}

pub(crate) fn read_script(config: &Config<'_>) -> Result<Vec<Decision>, Vec<Problem>> {
    Err(config.problem("", "This build has no scripted supervisors."))
}

pub(crate) fn run(kind: &TestKind, _: &EvalContext<'_>) -> Outcome {
    match *kind {}
}

pub(crate) fn request(kind: &TestKind) -> Result<Request, Fault> {
    match *kind {}
}

pub(crate) fn finish(kind: &TestKind, _: Found) -> Result<Done, Fault> {
    match *kind {}
}

pub(crate) fn begin(_: &RunState, _: usize, kind: &TestKind, _: u32, _: Timestamp) -> Option<Vec<Draft>> {
    match *kind {}
}

pub(crate) fn stream(_: &RunState, _: usize, _: Timestamp) -> Vec<Draft> {
    Vec::new()
}

pub(crate) fn all_chunks(_: &RunState, _: usize, _: u32, chunks: &Chunks, _: Timestamp) -> Vec<Draft> {
    match *chunks {}
}
