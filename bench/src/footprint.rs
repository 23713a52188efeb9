//! What things cost on disk.

use std::path::Path;

use anyhow::{Context, Result};

use crate::server::{Baton, Server};

/// Ends the server in an orderly way, takes the size of its files, and starts it again over them.
pub(crate) async fn at_rest(server: Server, baton: &Baton, data: &Path) -> Result<(Server, u64)> {
    server.stop().await?;
    let size = bytes_under(data)?;
    Ok((baton.start(data).await?, size))
}

fn bytes_under(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { bytes_under(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_in_folders_count() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("deeper")).unwrap();
        std::fs::write(folder.path().join("a"), [0; 3]).unwrap();
        std::fs::write(folder.path().join("deeper/b"), [0; 4]).unwrap();
        assert_eq!(bytes_under(folder.path()).unwrap(), 7);
    }
}
