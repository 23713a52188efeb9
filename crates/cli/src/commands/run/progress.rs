use crate::output::Output;

const MIB: u64 = 1024 * 1024;
/// How often something is said.
const STEP: u64 = 16 * MIB;

/// Says now and then how far a long transfer has come. Short ones pass in silence.
pub(super) struct Progress {
    output: Output,
    next: u64,
}

impl Progress {
    pub(super) fn new(output: Output) -> Self {
        Self { output, next: STEP }
    }

    pub(super) fn at(&mut self, bytes: u64) {
        if bytes >= self.next {
            self.output.note(format_args!("{} MiB so far", bytes / MIB));
            self.next = (bytes / STEP + 1) * STEP;
        }
    }
}
