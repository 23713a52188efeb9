//! A secret is shown once, when it is made.

use baton_client::WebhookSecret;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

pub(super) fn print_secret(made: &WebhookSecret, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    if output.is_json() {
        output.json(made)?;
        return Ok(Exit::Ok);
    }
    for (name, value) in
        [("webhook", made.webhook_id.as_str()), ("secret", &made.secret), ("fingerprint", &made.secret_fingerprint)]
    {
        output.line(format_args!("{name:<11} {value}"))?;
    }
    output.hint(format_args!("store the secret now, it is not shown again; receivers verify signatures with it"));
    Ok(Exit::Ok)
}
