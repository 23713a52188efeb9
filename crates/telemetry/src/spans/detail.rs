/// How much is told.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// A span for every record. Many.
    pub events: bool,
    /// What its caller called the run: tags and scope.
    pub labels: bool,
}

impl Default for Detail {
    fn default() -> Self {
        Self { events: false, labels: true }
    }
}
