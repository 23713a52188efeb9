//! What becomes of a row that is there already.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It must not be.
    Refuse,
    Keep,
    Replace,
}

/// The statements that write rows of one table, put together once and prepared once.
#[derive(Debug)]
pub struct Inserts {
    pub refuse: String,
    pub keep: String,
    pub replace: String,
}

impl Inserts {
    pub fn sql(&self, existing: Existing) -> &str {
        match existing {
            Existing::Refuse => &self.refuse,
            Existing::Keep => &self.keep,
            Existing::Replace => &self.replace,
        }
    }
}
