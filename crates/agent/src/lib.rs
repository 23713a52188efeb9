//! What agents are made of: packs and their manifests, and prompts.
//!
//! Nothing here runs an agent. Packs are read from disk or from the binary itself, everything else is a function of
//! its arguments: no clock, no network, no log.

pub mod archive;
mod bundled;
mod capabilities;
mod card;
mod files;
mod install;
mod inventory;
mod load;
mod manifest;
mod names;
mod pack;
mod pack_reader;
mod problem;
pub mod prompts;
mod range;
mod registry;
mod schema;
mod shape;
mod signature;

pub use bundled::bundled;
pub use capabilities::Capabilities;
pub use card::PackAgent;
pub use files::MAX_FILE_BYTES;
pub use install::{Installed, inspect_archive, install, tenant_folder};
pub use inventory::{Inventory, InventoryEntry};
pub use load::{Sources, load};
pub use manifest::{AgentManifest, Handoff, PromptSource, Role};
pub use pack::{MANIFEST, PackManifest, Peer};
pub use pack_reader::{Pack, inspect};
pub use problem::Problem;
pub use registry::{Agent, PackInfo, Registry};
pub use signature::{Checks, Provenance, TrustedKey};
