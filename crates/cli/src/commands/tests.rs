use clap::{Arg, Command, CommandFactory as _, Parser as _};
use snapbox::{Data, assert_data_eq};

use super::Cli;

/// Every command with its help, parents first. Left out is what the environment holds at the moment, and, beyond the
/// first page, the flags that every command takes.
fn help(command: Command, path: &str, pages: &mut String) {
    let below = path.contains(' ');
    let common = |argument: &Arg| argument.is_global_set() || matches!(argument.get_id().as_str(), "help" | "version");
    let shown = |argument: Arg| {
        let hidden = argument.is_hide_set() || (below && common(&argument));
        argument.hide_env_values(true).hide(hidden)
    };
    let mut command = command.mut_args(shown).term_width(100);
    pages.push_str(&format!("## {path}\n\n{}\n", command.render_long_help()));
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        help(child.clone(), &format!("{path} {}", child.get_name()), pages);
    }
}

fn built() -> Command {
    let mut command = Cli::command();
    // Global flags and versions reach the subcommands only now.
    command.build();
    command
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

/// After a change on purpose: `SNAPSHOTS=overwrite cargo test -p baton help`.
#[test]
fn help_reads_as_written_down() {
    let mut pages = String::new();
    help(built(), "baton", &mut pages);
    let lines: Vec<&str> = pages.lines().map(str::trim_end).collect();
    let expected = Data::read_from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/help.txt").as_ref(), None);
    assert_data_eq!(lines.join("\n") + "\n", expected.raw());
}

/// The words of a line as a shell would see them, as far as examples go.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            letter => word.push(letter),
        }
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

fn examples(command: &Command, found: &mut Vec<String>) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with("  ") && line.contains("baton "));
    found.extend(lines.map(str::to_owned));
    command.get_subcommands().for_each(|child| examples(child, found));
}

#[test]
fn examples_can_be_typed() {
    let mut found = Vec::new();
    examples(&built(), &mut found);
    assert!(found.len() > 25, "{found:#?}");
    for line in found {
        // Variables before it and other programs beside it are the shell's business.
        let words = words(&line).into_iter().skip_while(|word| word != "baton").take_while(|word| word != "|");
        if let Err(problem) = Cli::try_parse_from(words) {
            panic!("{line}: {problem}");
        }
    }
}
