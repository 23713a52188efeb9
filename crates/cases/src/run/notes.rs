//! What a case notices while it runs: calls, and whatever it has no answer for.

use parking_lot::Mutex;
use serde_json::Value;

use crate::report::Problem;

/// The same problem many times says nothing new.
const MOST_PROBLEMS: usize = 10;
/// How much of a text or of arguments a message repeats.
const SHOWN_CHARS: usize = 200;

#[derive(Default)]
pub(crate) struct Notes {
    problems: Mutex<Vec<Problem>>,
    tool_calls: Mutex<Vec<(String, Value)>>,
    model_calls: Mutex<u64>,
}

impl Notes {
    pub(crate) fn problem(&self, problem: Problem) {
        let mut problems = self.problems.lock();
        if problems.len() < MOST_PROBLEMS && !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    pub(crate) fn tool_called(&self, tool: &str, arguments: &Value) {
        self.tool_calls.lock().push((tool.to_owned(), arguments.clone()));
    }

    /// How many calls of models there were, with this one.
    pub(crate) fn model_called(&self) -> u64 {
        let mut calls = self.model_calls.lock();
        *calls += 1;
        *calls
    }

    pub(crate) fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut *self.problems.lock())
    }

    pub(crate) fn tool_calls(&self) -> Vec<(String, Value)> {
        self.tool_calls.lock().clone()
    }

    pub(crate) fn model_calls(&self) -> u64 {
        *self.model_calls.lock()
    }
}

/// The beginning of a text.
pub(crate) fn brief(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
