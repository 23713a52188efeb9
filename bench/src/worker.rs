//! A small compiled MCP server on standard streams, with one tool that gives back what it is given. It stands for a user's
//! own process in W10, so that what is measured is the way there and back.

use std::io::{BufRead as _, Write as _};

use anyhow::Result;
use serde_json::{Value, json};

/// The one tool.
pub(crate) const TOOL: &str = "echo";

/// Serves until standard input ends.
pub(crate) fn serve() -> Result<()> {
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let request: Value = serde_json::from_str(&line?)?;
        if let Some(reply) = reply(&request) {
            serde_json::to_writer(&mut output, &reply)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// Nothing for what wants no reply.
fn reply(request: &Value) -> Option<Value> {
    let id = request.get("id")?;
    let params = &request["params"];
    let result = match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "bench", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": TOOL, "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [], "structuredContent": params["arguments"] }),
        "ping" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_answered_and_notes_are_not() {
        let called =
            reply(&json!({ "id": 7, "method": "tools/call", "params": { "name": TOOL, "arguments": { "a": 1 } } }));
        assert_eq!(called.unwrap()["result"]["structuredContent"], json!({ "a": 1 }));
        assert_eq!(reply(&json!({ "method": "notifications/initialized" })), None);
        assert_eq!(reply(&json!({ "id": 8, "method": "other" })).unwrap()["error"]["code"], -32601);
    }
}
