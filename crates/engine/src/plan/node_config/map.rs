//! Settings of a node that does the same for each item of a list.

use baton_model::WorkflowId;
use serde::Deserialize;
use serde_json::Value;

use super::called_tool::{self, CalledTool, Given, LONGEST_CALL_MS};
use super::config::Config;
use crate::expr::Expression;
use crate::plan::ports::Origin;
use crate::plan::problem::Problem;

/// A list has no more items. Their list, and what came of them, are in memory while the map is under way.
pub(crate) const MOST_ITEMS: usize = 10_000;
/// How many items are worked on at once where nobody says.
const USUAL_CONCURRENCY: u32 = 8;
/// And at most: each holds a call or a child run of this host. A host may allow less (`limits.max_fan_out`).
pub(crate) const MOST_CONCURRENCY: u32 = 64;
/// Names that expressions read otherwise.
const TAKEN: [&str; 10] =
    ["variables", "inputs", "nodes", "children", "iteration", "memory", "workspace", "index", "feedback", "transcript"];

/// What becomes of a map when an item has failed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnItemError {
    /// No further item begins, and the node fails.
    #[default]
    Fail,
    /// The others go on; what failed is listed with the results.
    Collect,
}

/// `vendor.baton.map`: a tool, an agent or a workflow for each item of a list.
#[derive(Debug)]
pub(crate) struct MapStep {
    pub(crate) items: Items,
    /// What an item is called in expressions, besides `item`.
    pub(crate) name: Option<String>,
    pub(crate) work: Work,
    pub(crate) max_concurrency: u32,
    pub(crate) on_item_error: OnItemError,
    pub(crate) item_timeout_ms: Option<u64>,
    pub(crate) into: Option<String>,
}

/// Where the list comes from.
#[derive(Debug)]
pub(crate) enum Items {
    List(Vec<Value>),
    Variable(String),
    Expression(Expression),
    /// The node's input port `items`.
    Port,
}

/// What is done for each item, and what it is given; where nobody says, the item itself.
#[derive(Debug)]
pub(crate) enum Work {
    Tool { tool: CalledTool, arguments: Given },
    Agent { agent_id: String, task: Given },
    Workflow { workflow: WorkflowId, inputs: Given, output: Option<String> },
}

/// The settings of each kind of work, its own name first.
const OF_TOOL: [&str; 6] = called_tool::KEYS;
const OF_AGENT: [&str; 3] = ["agent", "task", "taskExpression"];
const OF_WORKFLOW: [&str; 4] = ["workflow", "inputs", "inputsExpression", "output"];
const GENERAL: [&str; 7] = ["items", "itemsExpression", "as", "maxConcurrency", "onItemError", "itemTimeoutMs", "into"];

impl MapStep {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let kinds: [&[&str]; 3] = [&OF_TOOL, &OF_AGENT, &OF_WORKFLOW];
        let known: Vec<&str> = GENERAL.iter().chain(kinds.into_iter().flatten()).copied().collect();
        config.only(&known)?;
        let mut named = kinds.iter().filter(|keys| config.get(keys[0]).is_some());
        let (Some(own), None) = (named.next(), named.next()) else {
            return Err(config.problem("", "A map has exactly one of `tool`, `agent` and `workflow`."));
        };
        if let Some(stray) = kinds
            .iter()
            .filter(|keys| keys[0] != own[0])
            .flat_map(|keys| keys.iter())
            .find(|key| config.get(key).is_some())
        {
            return Err(config.problem(stray, format!("`{stray}` says nothing about a map of `{}`.", own[0])));
        }
        let work = match own[0] {
            "tool" => Work::Tool { tool: CalledTool::read(config)?, arguments: called_tool::arguments(config)? },
            "agent" => Work::Agent { agent_id: config.required_text("agent")?, task: Given::read(config, "task")? },
            _ => Work::Workflow {
                workflow: WorkflowId::new(config.required_text("workflow")?),
                inputs: inputs(config)?,
                output: config.text("output")?.filter(|name| !name.is_empty()),
            },
        };
        let most = config.whole("maxConcurrency", 1, u64::from(MOST_CONCURRENCY))?;
        Ok(Self {
            items: items(config)?,
            name: name(config)?,
            work,
            max_concurrency: most.and_then(|most| u32::try_from(most).ok()).unwrap_or(USUAL_CONCURRENCY),
            on_item_error: config.choice("onItemError", "fail, collect")?.unwrap_or_default(),
            item_timeout_ms: config.whole("itemTimeoutMs", 1, LONGEST_CALL_MS)?,
            into: config.text("into")?,
        })
    }

    /// Where what it is given for each item comes from.
    pub(crate) fn given(&self) -> &Given {
        match &self.work {
            Work::Tool { arguments, .. } => arguments,
            Work::Agent { task, .. } => task,
            Work::Workflow { inputs, .. } => inputs,
        }
    }

    pub(crate) fn tool(&self) -> Option<&CalledTool> {
        match &self.work {
            Work::Tool { tool, .. } => Some(tool),
            Work::Agent { .. } | Work::Workflow { .. } => None,
        }
    }

    /// Everything that it tells whoever works on an item.
    pub(crate) fn tells(&self) -> Vec<Origin<'_>> {
        let items = match &self.items {
            Items::List(_) => None,
            Items::Variable(name) => Some(Origin::Variable(name)),
            Items::Expression(expression) => Some(Origin::Expression(expression)),
            Items::Port => Some(Origin::Port("items")),
        };
        items.into_iter().chain(self.given().expression().map(Origin::Expression)).collect()
    }

    pub(crate) fn stores(&self) -> Vec<(&str, Origin<'_>)> {
        let Some(into) = self.into.as_deref() else { return Vec::new() };
        self.tells().into_iter().map(|origin| (into, origin)).collect()
    }

    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        self.into.as_deref().map(|into| ("results", into))
    }
}

fn items(config: &Config<'_>) -> Result<Items, Vec<Problem>> {
    match Given::read(config, "items")? {
        Given::Default => Ok(Items::Port),
        Given::Expression(expression) => Ok(Items::Expression(expression)),
        Given::Value(Value::Array(list)) if list.len() <= MOST_ITEMS => Ok(Items::List(list)),
        Given::Value(Value::Array(list)) => {
            let message = format!("There are {} items; at most {MOST_ITEMS} are allowed.", list.len());
            Err(config.problem("items", message))
        }
        Given::Value(Value::String(name)) if is_name(&name) => Ok(Items::Variable(name)),
        // As in `core.loop`. By itself no name of an expression is a list, so a name can only be a variable's.
        Given::Value(Value::String(source)) => config.cel("items", &source).map(Items::Expression),
        Given::Value(_) => {
            Err(config.problem("items", "`items` is a list, the name of a variable, or an expression (CEL)."))
        }
    }
}

fn inputs(config: &Config<'_>) -> Result<Given, Vec<Problem>> {
    match Given::read(config, "inputs")? {
        Given::Value(value) if !value.is_object() => {
            Err(config.problem("inputs", "`inputs` is an object: the workflow's inputs by name."))
        }
        given => Ok(given),
    }
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    begins && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn name(config: &Config<'_>) -> Result<Option<String>, Vec<Problem>> {
    let Some(name) = config.text("as")? else { return Ok(None) };
    if !is_name(&name) {
        return Err(config.problem("as", "`as` is a name of letters, digits and _, such as order."));
    }
    if TAKEN.contains(&name.as_str()) {
        return Err(config.problem("as", format!("`{name}` means something else in expressions.")));
    }
    Ok(Some(name))
}
