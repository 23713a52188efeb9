use std::collections::BTreeMap;
use std::time::Duration;

use baton_model::RunStatus;

use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::tree::{change, lines};
use crate::run_ref;
use crate::terminal;
use crate::tree::{Branch, Tree};

/// How often a followed tree is looked at again.
const PACE: Duration = Duration::from_millis(300);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Any run of the tree: its id, or the beginning of it
    run: String,
    /// Keep showing the tree until its first run ends
    #[arg(long)]
    follow: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let output = &context.output;
    let mut tree = Tree::around(&client, &id).await?;
    if !args.follow {
        let root = tree.now(&client).await?;
        if output.is_json() {
            output.json(&root)?;
        } else {
            output.line(lines(&root, now(), terminal::width()).join("\n"))?;
        }
        return Ok(Exit::Ok);
    }
    let mut picture = Picture::default();
    loop {
        let root = tree.now(&client).await?;
        picture.show(output, &root)?;
        if root.status.is_terminal() {
            return Ok(Exit::of_run(root.status, root.error.as_deref()));
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            _ = tokio::signal::ctrl_c() => {
                output.note(format_args!("stopped following; {} continues", root.run_id));
                return Ok(Exit::Ok);
            }
        }
    }
}

/// What was shown last: a terminal is drawn over, a pipe is told what changed.
#[derive(Default)]
struct Picture {
    last: Option<Branch>,
    drawn: usize,
}

impl Picture {
    fn show(&mut self, output: &Output, root: &Branch) -> std::io::Result<()> {
        if self.last.as_ref() == Some(root) {
            return Ok(());
        }
        if output.is_json() {
            output.json_line(root)?;
        } else if terminal::can_draw_over() {
            self.draw(output, root)?;
        } else {
            for line in changes(self.last.as_ref(), root) {
                output.line(line)?;
            }
        }
        self.last = Some(root.clone());
        Ok(())
    }

    fn draw(&mut self, output: &Output, root: &Branch) -> std::io::Result<()> {
        let mut lines = lines(root, now(), terminal::width());
        // What has scrolled away cannot be drawn over.
        let rows = terminal::room().map_or(usize::MAX, |room| room.rows.saturating_sub(1).max(2));
        if lines.len() > rows {
            let hidden = lines.len() - (rows - 1);
            lines.truncate(rows - 1);
            lines.push(format!("… and {hidden} more"));
        }
        let over = if self.drawn > 0 { format!("\u{1b}[{}F\u{1b}[0J", self.drawn) } else { String::new() };
        self.drawn = lines.len();
        output.line(format_args!("{over}{}", lines.join("\n")))
    }
}

/// A line for every run that is new, or stands elsewhere than before.
fn changes(before: Option<&Branch>, after: &Branch) -> Vec<String> {
    let mut known: BTreeMap<&str, RunStatus> = BTreeMap::new();
    if let Some(before) = before {
        before.walk(&mut |branch| {
            known.insert(&branch.run_id, branch.status);
        });
    }
    let mut changes = Vec::new();
    after.walk(&mut |branch| {
        if known.get(branch.run_id.as_str()) != Some(&branch.status) {
            changes.push(change(branch));
        }
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::run;

    #[test]
    fn only_what_changed_is_printed() {
        let before = run("run_1", "team", RunStatus::Running, None);
        assert_eq!(changes(None, &before), ["run_1  team  running"]);
        let mut after = before.clone();
        after.children.push(run("run_2", "research", RunStatus::Running, Some(("go", 1))));
        assert_eq!(changes(Some(&before), &after), ["run_2  research  running  turn 1 at go"]);
        let mut later = after.clone();
        later.status = RunStatus::Completed;
        assert_eq!(changes(Some(&after), &later), ["run_1  team  completed"]);
        assert_eq!(changes(Some(&later), &later), Vec::<String>::new());
    }
}
