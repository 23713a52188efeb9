//! What a checksum of a row tells of.

/// A checksum of some columns of a row.
#[derive(Debug)]
pub struct Sum {
    /// Where it is kept: an integer.
    pub column: &'static str,
    /// The columns that it tells of.
    pub of: &'static [&'static str],
}
