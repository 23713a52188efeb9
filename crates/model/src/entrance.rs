//! The ways by which others' words get to a model. Each has a name that the fence around them says.
//!
//! The list is closed on purpose: whoever adds a way in names it here, and the test that plants a marker at every one of
//! them does not compile until it has a marker, too.

macro_rules! entrances {
    ($($(#[$about:meta])+ $name:ident => $word:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Entrance {
            $($(#[$about])+ $name,)+
        }

        impl Entrance {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What a fence says.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

entrances! {
    /// Whoever started the run gave it.
    Input => "input",
    /// The same, in a message.
    Chat => "chat",
    /// The run that started this one gave it.
    Parent => "parent",
    /// The same, from another host.
    Remote => "remote",
    /// Another agent said it.
    Agent => "agent",
    /// A run answered in a conversation that is no agent's.
    Workflow => "workflow",
    /// A model said it to a node that is no agent.
    Model => "model",
    /// A run that this one started came to it.
    Child => "child",
    /// Somebody remembered it.
    Memory => "memory",
    /// It stands in a file.
    Workspace => "workspace",
    /// Somebody's server answered it.
    Http => "http",
    /// A tool that a node called answered it.
    Tool => "tool",
    /// Somebody answered it to a question.
    Answer => "answer",
    /// It stands in a channel.
    Channel => "channel",
    /// Somebody put it into a branch by hand.
    Change => "change",
    /// A node made it of things that are no longer told apart.
    Node => "node",
    /// So did an expression that names none of them.
    Expression => "expression",
    /// What happened in a supervisor's earlier turns.
    Transcript => "transcript",
    /// What it decided in them.
    Decisions => "decisions",
    /// Which workers it had.
    Children => "children",
    /// What somebody wants changed about a decision.
    Feedback => "feedback",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_way_in_has_a_word_of_its_own() {
        let words: BTreeSet<&str> = Entrance::ALL.iter().map(|entrance| entrance.as_str()).collect();
        assert_eq!(words.len(), Entrance::ALL.len());
    }
}
