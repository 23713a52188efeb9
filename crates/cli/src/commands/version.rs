use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({
            "name": "baton",
            "version": VERSION,
            "protocolVersion": "1.0",
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
        }))?;
    } else {
        output.line(format_args!("baton {VERSION}"))?;
    }
    Ok(Exit::Ok)
}
