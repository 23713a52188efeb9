//! The team that comes with the binary, from `packs/vendor.baton.team`.

use crate::files::Files;
use crate::pack_reader::{Pack, read_pack};
use crate::problem::Problem;
use crate::signature::Checks;

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../../../packs/vendor.baton.team/", $path)).as_slice())),*]
    };
}

/// Reads it like any other pack.
pub fn bundled() -> Result<Pack, Vec<Problem>> {
    let files = files![
        "pack.json",
        "prompts/researcher.md",
        "prompts/reviewer.md",
        "prompts/supervisor.md",
        "schemas/researcher.return.json",
        "schemas/researcher.task.json",
        "schemas/reviewer.return.json",
        "schemas/reviewer.task.json",
        "schemas/supervisor.return.json",
    ];
    let files = files.into_iter().map(|(path, bytes)| (path.to_owned(), bytes.to_vec())).collect();
    read_pack(&Files::Memory(files), &Checks::default())
}
