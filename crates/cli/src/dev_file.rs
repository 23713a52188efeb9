//! `.baton/dev.json`: where the dev server of this folder listens and the key it takes. Readable by its owner only.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::private_file;

pub(crate) const NAME: &str = "dev.json";
/// Where `baton dev` keeps its data unless told otherwise.
pub(crate) const DEV_DATA: &str = ".baton";

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct DevFile {
    pub(crate) url: String,
    pub(crate) key: String,
}

impl DevFile {
    /// `None` when there is none or it does not read: other sources decide then.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(data.join(NAME)).ok()?).ok()
    }

    pub(crate) fn write(&self, data: &Path) -> io::Result<()> {
        private_file::replace(&data.join(NAME), &serde_json::to_vec_pretty(self)?)
    }
}
