use baton_client::Webhook;
use serde_json::json;

use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the webhook
    webhook: String,
    /// Number of undelivered events to list, newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Continue where the previous page ended
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let webhook = client.webhook(&args.webhook).await?;
    let page = client.dead_letters(&args.webhook, usize::from(args.limit), args.cursor.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({"webhook": webhook, "deadLetters": page}))?;
        return Ok(Exit::Ok);
    }
    for (name, value) in rows(&webhook) {
        output.line(format_args!("{name:<12} {value}"))?;
    }
    if page.dead_letters.is_empty() {
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut letters = table(&["LETTER", "TYPE", "REASON", "ANSWER", "ATTEMPTS", "SINCE", "KEPT UNTIL"]);
    for letter in &page.dead_letters {
        let answer = letter.last_status.map_or_else(|| "none".to_owned(), |status| status.to_string());
        let (attempts, since) = (letter.attempts.to_string(), ago(letter.dead_lettered_at, now));
        let until = letter.expires_at.to_string();
        letters.add_row([&letter.letter_id, &letter.kind, &letter.reason, &answer, &attempts, &since, &until]);
    }
    output.table(&letters)?;
    let id = &webhook.webhook_id;
    if webhook.state == "failed" {
        output.hint(format_args!("`baton webhook resume {id}` turns it on again"));
    }
    output.hint(format_args!("`baton webhook redeliver {id} EVENT` sends one again, `--all` sends all"));
    if let Some(cursor) = &page.next_cursor {
        output.hint(format_args!("there are more; add --cursor {cursor} for the next page"));
    }
    Ok(Exit::Ok)
}

fn rows(webhook: &Webhook) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("webhook", webhook.webhook_id.to_string()),
        ("url", webhook.url.clone()),
        ("events", webhook.events.join(", ")),
    ];
    if !webhook.tags.is_empty() {
        rows.push(("tags", webhook.tags.join(", ")));
    }
    rows.push(("state", webhook.state.clone()));
    rows.extend(webhook.open_until.map(|until| ("called again", until.to_string())));
    if let Some(last) = &webhook.last_failure {
        let answer = last.status.map_or_else(|| "no answer".to_owned(), |status| format!("answered {status}"));
        rows.push(("last failure", format!("{answer}, {}", ago(last.at, now()))));
    }
    rows.push(("fingerprint", webhook.secret_fingerprint.clone()));
    rows.push(("waiting", webhook.waiting.to_string()));
    rows.push(("dead letters", webhook.dead_letters.to_string()));
    if webhook.dead_letters_dropped > 0 {
        rows.push(("dropped", format!("{} (there were too many)", webhook.dead_letters_dropped)));
    }
    rows
}
