//! Asking before something is gone for good.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::failure::Failure;

/// Whether a person says yes. Asks on stderr and reads the answer from the terminal. Nobody can be asked in a script: it must say so itself.
pub(crate) fn sure(question: &str) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::usage(format!("cannot ask, because stdin is not a terminal: {question}"))
            .hint("use --yes to confirm, or --dry-run to see what would happen"));
    }
    let mut stderr = anstream::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
