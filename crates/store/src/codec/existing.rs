//! What becomes of a row that is there already.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It must not be.
    Refuse,
    Keep,
    Replace,
    /// It stays if its version is the same or greater.
    Newer,
}

/// The statements that write rows of one table, put together once and prepared once.
#[derive(Debug)]
pub struct Inserts {
    pub refuse: String,
    pub keep: String,
    pub replace: String,
    /// For tables whose rows have versions.
    pub newer: String,
}

impl Inserts {
    pub fn sql(&self, existing: Existing) -> &str {
        match existing {
            Existing::Refuse => &self.refuse,
            Existing::Keep => &self.keep,
            Existing::Replace => &self.replace,
            Existing::Newer => &self.newer,
        }
    }
}
