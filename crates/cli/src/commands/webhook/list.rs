use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// At most this many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Continue where the previous page ended
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let page = context.client()?.webhooks(usize::from(args.limit), args.cursor.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&page)?;
        return Ok(Exit::Ok);
    }
    if page.webhooks.is_empty() {
        output.note("no webhooks; `baton webhook add URL` adds one");
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["WEBHOOK", "STATE", "WAITING", "DEAD", "LAST FAILURE", "URL"]);
    for webhook in &page.webhooks {
        let failed = webhook.last_failure.as_ref().map_or_else(String::new, |last| ago(last.at, now));
        let (waiting, dead) = (webhook.waiting.to_string(), webhook.dead_letters.to_string());
        rows.add_row([webhook.webhook_id.as_str(), &webhook.state, &waiting, &dead, &failed, &webhook.url]);
    }
    output.table(&rows)?;
    if let Some(webhook) = page.webhooks.iter().find(|webhook| webhook.dead_letters > 0) {
        output.hint(format_args!("`baton webhook show {}` lists the undelivered events", webhook.webhook_id));
    }
    if let Some(cursor) = &page.next_cursor {
        output.hint(format_args!("there are more; add --cursor {cursor} for the next page"));
    }
    Ok(Exit::Ok)
}
