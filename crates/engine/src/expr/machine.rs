//! The machine that runs an expression's steps. It does not recurse: a longer expression takes more steps, not more
//! stack. Every step costs a unit, and what a step moves costs more.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::code::{Code, Fold, Literal, Step};
use super::errors::{error, first_error};
use super::functions::Patterns;
use super::meter::{Bound, Gauge, length, members};
use super::operators;
use super::scope::Scope;
use super::trouble::Trouble;
use super::value::{Bytes, Key, List, Text, Val};

pub(super) struct Machine<'a, 'g> {
    code: &'a Code,
    scope: &'a dyn Scope,
    gauge: &'g mut Gauge,
    stack: Vec<Val<'a>>,
    loops: Vec<Loop<'a>>,
    /// Top-level names that were looked up already.
    roots: Vec<Option<Val<'a>>>,
    patterns: Patterns,
}

struct Loop<'a> {
    fold: Fold,
    items: Range<'a>,
    next: usize,
    /// The loop's variable.
    item: Val<'a>,
    collected: Vec<Val<'a>>,
    found: u64,
    /// For `all` and `exists`: an item has decided.
    decided: bool,
    /// For `all` and `exists`: an error that a later item may still make irrelevant.
    pending: Option<Rc<Trouble>>,
}

enum Range<'a> {
    List(List<'a>),
    Keys(Vec<Key<'a>>),
}

impl<'a> Range<'a> {
    fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::List(list) => list.get(index),
            Self::Keys(keys) => keys.get(index).cloned().map(Val::from),
        }
    }
}

impl<'a, 'g> Machine<'a, 'g> {
    pub(super) fn new(code: &'a Code, scope: &'a dyn Scope, gauge: &'g mut Gauge) -> Self {
        let roots = code.roots.iter().map(|_| None).collect();
        Self { code, scope, gauge, stack: Vec::new(), loops: Vec::new(), roots, patterns: Patterns::default() }
    }

    /// The value of the expression; an error may be it.
    pub(super) fn run(mut self) -> Result<Val<'a>, Bound> {
        let mut at = 0;
        while let Some(&step) = self.code.steps.get(at) {
            self.gauge.charge(1)?;
            at = self.step(step, at + 1)?;
        }
        Ok(self.pop())
    }

    fn pop(&mut self) -> Val<'a> {
        self.stack.pop().unwrap_or_else(|| error(Trouble::unknown()))
    }

    /// The last `count` values, in order.
    fn take(&mut self, count: usize) -> Vec<Val<'a>> {
        self.stack.split_off(self.stack.len().saturating_sub(count))
    }

    fn word(&self, word: usize) -> &'a str {
        self.code.words.get(word).map_or("", String::as_str)
    }

    /// Takes one step, and says which is next.
    fn step(&mut self, step: Step, next: usize) -> Result<usize, Bound> {
        let value = match step {
            Step::Literal(literal) => self.code.literals.get(literal).map_or(Val::Null, lend),
            Step::Root(root) => self.root(root),
            Step::Local(depth) => self.loops.get(depth).map_or(Val::Null, |around| around.item.clone()),
            Step::Select(field) => {
                let operand = self.pop();
                operators::select(&operand, self.word(field), self.gauge)?
            }
            Step::Has(field) => {
                let operand = self.pop();
                operators::has(&operand, self.word(field), self.gauge)?
            }
            Step::Index => {
                let (index, operand) = (self.pop(), self.pop());
                operators::index(&operand, &index, self.gauge)?
            }
            Step::Not => operators::not(self.pop()),
            Step::Negate => operators::negate(self.pop()),
            Step::Binary(operator) => {
                let (right, left) = (self.pop(), self.pop());
                operators::binary(operator, &left, &right, self.gauge)?
            }
            Step::Branch { otherwise, end } => match self.pop() {
                Val::Bool(true) => return Ok(next),
                Val::Bool(false) => return Ok(otherwise),
                other => {
                    self.stack.push(Val::Error(not_bool(&other)));
                    return Ok(end);
                }
            },
            Step::Jump(target) => return Ok(target),
            Step::Shortcut { decisive, end } => {
                let decided = matches!(self.stack.last(), Some(Val::Bool(left)) if *left == decisive);
                return Ok(if decided { end } else { next });
            }
            Step::Join { decisive } => {
                let (right, left) = (self.pop(), self.pop());
                join(decisive, &left, &right)
            }
            Step::List(count) => self.list(count)?,
            Step::Map(count) => self.map(count)?,
            Step::Call { function, arguments, member } => {
                let arguments = self.arguments(arguments, member);
                match first_error(&arguments) {
                    Some(error) => error,
                    None => super::functions::call(function, arguments, member, self.gauge, &mut self.patterns)?,
                }
            }
            Step::Unknown { word, arguments, member } => {
                let arguments = self.arguments(arguments, member);
                self.gauge.bytes(length(self.word(word).len()))?;
                first_error(&arguments).unwrap_or_else(|| error(Trouble::undeclared(self.word(word))))
            }
            Step::Struct(name) => {
                self.gauge.bytes(length(self.word(name).len()))?;
                error(Trouble::unexpected(self.word(name), "known struct"))
            }
            Step::Unsupported => error(Trouble::unknown()),
            Step::Begin { fold, exit } => return self.begin(fold, next, exit),
            Step::Next { exit } => return self.next(next, exit),
            Step::Guard { next: again, exit } => {
                return Ok(match self.pop() {
                    Val::Bool(true) => next,
                    Val::Bool(false) => again,
                    other => self.abandon(not_bool(&other), exit),
                });
            }
            Step::Fold { next: again, exit } => return self.fold(again, exit),
        };
        self.stack.push(value);
        Ok(next)
    }

    fn root(&mut self, root: usize) -> Val<'a> {
        if let Some(Some(known)) = self.roots.get(root) {
            return known.clone();
        }
        let written = self.code.roots.get(root).map_or("", |word| self.word(*word));
        // A leading dot says that no loop's variable is meant; here none is.
        let name = written.strip_prefix('.').unwrap_or(written);
        let found = self.scope.lookup(name).or_else(|| type_named(name).map(Val::Type));
        let value = found.unwrap_or_else(|| error(Trouble::undeclared(written)));
        if let Some(place) = self.roots.get_mut(root) {
            *place = Some(value.clone());
        }
        value
    }

    /// A call's arguments with a member's target first; errors are told in the order of evaluation.
    fn arguments(&mut self, count: usize, member: bool) -> Vec<Val<'a>> {
        let mut values = self.take(count);
        let in_order = values.iter().any(|value| matches!(value, Val::Error(_)));
        if member && !in_order {
            values.rotate_right(1);
        }
        values
    }

    fn list(&mut self, count: usize) -> Result<Val<'a>, Bound> {
        let items = self.take(count);
        match first_error(&items) {
            Some(error) => Ok(error),
            None => Val::list(items),
        }
    }

    fn map(&mut self, count: usize) -> Result<Val<'a>, Bound> {
        self.gauge.bytes(members(count))?;
        let mut entries = BTreeMap::new();
        let mut given = self.take(count * 2).into_iter();
        while let (Some(key), Some(value)) = (given.next(), given.next()) {
            let key = match key {
                Val::Error(error) => return Ok(Val::Error(error)),
                Val::Int(int) => Key::Int(int),
                Val::Uint(uint) => Key::Uint(uint),
                Val::Bool(bool) => Key::Bool(bool),
                Val::Text(text) => Key::Text(text),
                other => return Ok(error(Trouble::not_a_key(other.kind()))),
            };
            if let Val::Error(error) = value {
                return Ok(Val::Error(error));
            }
            // The same number is the same key, whichever kind of whole number it is.
            let twin = match &key {
                Key::Int(int) => u64::try_from(*int).ok().map(Key::Uint),
                Key::Uint(uint) => i64::try_from(*uint).ok().map(Key::Int),
                Key::Bool(_) | Key::Text(_) => None,
            };
            if let Key::Text(text) = &key {
                self.gauge.bytes(length(text.as_str().len()))?;
            }
            if entries.contains_key(&key) || twin.is_some_and(|twin| entries.contains_key(&twin)) {
                return Ok(error(Trouble::same_key_twice()));
            }
            entries.insert(key, value);
        }
        Val::map(entries)
    }

    fn begin(&mut self, fold: Fold, next: usize, exit: usize) -> Result<usize, Bound> {
        let items = match self.pop() {
            Val::List(list) => Range::List(list),
            Val::Map(map) => Range::Keys(map.keys(self.gauge)?),
            Val::Error(error) => {
                self.stack.push(Val::Error(error));
                return Ok(exit);
            }
            other => {
                self.stack.push(error(Trouble::unexpected(other.type_name(), "iterable")));
                return Ok(exit);
            }
        };
        let (item, collected) = (Val::Null, Vec::new());
        self.loops.push(Loop { fold, items, next: 0, item, collected, found: 0, decided: false, pending: None });
        Ok(next)
    }

    fn next(&mut self, next: usize, exit: usize) -> Result<usize, Bound> {
        let Some(around) = self.loops.last_mut() else { return Ok(exit) };
        if !around.decided
            && let Some(item) = around.items.get(around.next)
        {
            around.item = item;
            around.next += 1;
            return Ok(next);
        }
        let Some(done) = self.loops.pop() else { return Ok(exit) };
        let value = match (done.fold, done.pending) {
            (Fold::All | Fold::Exists, Some(error)) => Val::Error(error),
            (Fold::All, None) => Val::Bool(!done.decided),
            (Fold::Exists, None) => Val::Bool(done.decided),
            (Fold::ExistsOne, _) => Val::Bool(done.found == 1),
            (Fold::Collect, _) => Val::list(done.collected)?,
        };
        self.stack.push(value);
        Ok(exit)
    }

    fn fold(&mut self, again: usize, exit: usize) -> Result<usize, Bound> {
        let result = self.pop();
        let Some(around) = self.loops.last_mut() else { return Ok(exit) };
        match (around.fold, result) {
            (Fold::All, Val::Bool(held)) | (Fold::Exists, Val::Bool(held)) => {
                // A decisive item counts, whatever the others are.
                if held == (around.fold == Fold::Exists) {
                    around.decided = true;
                    around.pending = None;
                }
            }
            (Fold::All | Fold::Exists, Val::Error(error)) => around.pending = Some(error),
            (Fold::All | Fold::Exists, other) => {
                let operator = if around.fold == Fold::All { "_&&_" } else { "_||_" };
                let types = ["bool", other.type_name()];
                around.pending = Some(Rc::new(Trouble::no_overload_of(operator, &types, false)));
            }
            (Fold::ExistsOne, Val::Bool(held)) => around.found += u64::from(held),
            (Fold::ExistsOne, other) => return Ok(self.abandon(not_bool(&other), exit)),
            (Fold::Collect, Val::Error(error)) => return Ok(self.abandon(error, exit)),
            (Fold::Collect, item) => around.collected.push(item),
        }
        Ok(again)
    }

    /// Ends a loop with an error.
    fn abandon(&mut self, error: Rc<Trouble>, exit: usize) -> usize {
        self.loops.pop();
        self.stack.push(Val::Error(error));
        exit
    }
}

fn lend(literal: &Literal) -> Val<'_> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(bool) => Val::Bool(*bool),
        Literal::Int(int) => Val::Int(*int),
        Literal::Uint(uint) => Val::Uint(*uint),
        Literal::Double(float) => Val::Double(*float),
        Literal::Text(text) => Val::Text(Text::Lent(text)),
        Literal::Bytes(bytes) => Val::Bytes(Bytes::Lent(bytes)),
    }
}

fn not_bool(value: &Val<'_>) -> Rc<Trouble> {
    match value {
        Val::Error(error) => Rc::clone(error),
        other => Rc::new(Trouble::NotBool(other.type_name())),
    }
}

/// `&&` and `||` of two sides of which the left did not decide alone. The right one may decide against an error.
fn join<'a>(decisive: bool, left: &Val<'a>, right: &Val<'a>) -> Val<'a> {
    let operator = if decisive { "_||_" } else { "_&&_" };
    let left_type = match (left, right) {
        (_, Val::Error(error)) => return Val::Error(Rc::clone(error)),
        (Val::Bool(_), Val::Bool(right)) => return Val::Bool(*right),
        (_, Val::Bool(right)) if *right == decisive => return Val::Bool(decisive),
        (Val::Error(trouble), _) => match trouble.as_ref() {
            Trouble::NotBool(got) => *got,
            _ => return left.clone(),
        },
        (other, _) => other.type_name(),
    };
    error(Trouble::no_overload_of(operator, &[left_type, right.type_name()], false))
}

/// Types that an expression can name, as in `type(x) == int`.
fn type_named(name: &str) -> Option<&'static str> {
    const TYPES: [&str; 11] =
        ["bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];
    TYPES.into_iter().find(|known| *known == name)
}
