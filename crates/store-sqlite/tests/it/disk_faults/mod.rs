//! The store on a disk that fails: what was acknowledged stays, nothing is half there, and it goes on by itself.
//!
//! `BATON_FAULT_SEEDS` sets how many seeds each test tries (a few by default), `TEST_SEED` the first of them.

mod bits;
mod campaign;
mod lies;
mod single;
mod world;
