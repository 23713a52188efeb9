//! What happened because of a command. Pure: the state, the command and one reading of the clock in, drafts out.
//!
//! From the bottom up: records that many decisions share (`*_records`, `writes`), how an attempt, a visit and a run end
//! (`bracket`, `finish`, `ending`, `caps`), what an agent, a supervisor and its workers do, and on top whatever picks
//! among these (`visit`, `resolve`, `node_request`, `advance`, `command`).

mod advance;
mod answer;
mod approval;
mod bracket;
mod budget;
mod budget_question;
mod caps;
mod child_records;
mod children;
mod command;
mod ending;
mod envelope_calls;
pub(crate) mod finish;
mod handoff;
mod harvest;
mod held_decision;
mod human_answer;
mod inputs;
mod invocation;
mod lifecycle;
pub(crate) mod low_confidence;
mod map;
mod map_children;
mod map_item;
mod map_records;
mod merge_gate;
mod model_call;
pub(crate) mod node_records;
mod node_request;
mod open_calls;
mod output_size;
mod ratify;
mod request;
mod resolve;
mod start;
mod step_work;
pub(crate) mod suspend;
mod thought;
mod tool;
mod tool_call;
mod tool_progress;
pub(crate) mod tool_records;
mod tool_step;
mod transcript;
mod turn;
mod unknown_outcome;
mod visit;
mod votes;
mod worker_batch;
mod worker_report;
mod writes;

pub use answer::bounded as bounded_reply;
pub(crate) use answer::verdict;
pub use command::decide;
pub(crate) use ending::{give_up, give_up_at};
pub use node_request::wanted;
pub use start::check_overlay;
pub use unknown_outcome::UNKNOWN_EFFECT;
pub(crate) use worker_batch::losers_must_end;
