//! The secret that signs interrupt links. Made once and kept with the data, so that links outlive a restart.

use std::fs;
use std::io;
use std::path::Path;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::private_file;

/// The file in the data folder, and the name in a shared database.
pub(crate) const NAME: &str = "link-secret";
const LENGTH: usize = 32;

pub(crate) fn load(data: &Path) -> Result<Vec<u8>, Failure> {
    let path = data.join(NAME);
    match fs::read(&path) {
        Ok(secret) if secret.len() >= LENGTH => Ok(secret),
        Ok(_) => Err(Failure::new(Exit::Failed, format!("{} is too short for a secret", path.display()))
            .hint("remove the file to create a new secret; existing links then stop working")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let secret = fresh()?;
            private_file::replace(&path, &secret)?;
            Ok(secret)
        }
        Err(error) => Err(Failure::new(Exit::Failed, format!("{}: {error}", path.display()))),
    }
}

pub(crate) fn fresh() -> Result<Vec<u8>, Failure> {
    private_file::random(LENGTH)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn is_made_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let secret = load(dir.path()).unwrap();
        assert_eq!(secret.len(), LENGTH);
        assert_eq!(load(dir.path()).unwrap(), secret);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(load(other.path()).unwrap(), secret);
    }

    #[test]
    fn a_truncated_secret_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "short").unwrap();
        assert!(load(dir.path()).is_err());
    }
}
