//! From source to steps. The parser and the tree it makes recurse, so what reaches them is bounded by a scan of the
//! tokens first.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::parser::PrattParser;

use super::code::{Binary, Code, Fold, Function, Literal, Step};
use super::reading::{self, PARSED_BYTE};
use super::scan::Found;

/// The accumulator of a macro. No expression can name it: it is not an identifier.
const ACCUMULATOR: &str = "@result";
/// What is told of a mistake in an expression.
const MAX_ERROR_BYTES: usize = 500;
/// The scan bounds how deep the parser goes; this is above what it lets through.
pub(super) const MAX_PARSER_DEPTH: u16 = 2_048;
/// Comprehensions in each other.
const MAX_NESTING: usize = 3;

pub(super) enum Refused {
    /// It never was an expression.
    Invalid(String),
    /// It is one, but over a bound.
    OverBound(String),
}

pub(super) fn compile(source: &str) -> Result<Code, Refused> {
    super::scan::check(source).map_err(|found| match found {
        Found::OverBound(bound) => Refused::OverBound(bound),
        Found::BrokenText(what) => Refused::Invalid(what),
    })?;
    reading::spend(PARSED_BYTE.saturating_mul(source.len() as u64)).map_err(Refused::OverBound)?;
    // The parser recurses deeper than a caller's stack may be, and a panic of it is about this expression only.
    let parsed = if reading::has_room() {
        std::panic::catch_unwind(|| parse(source)).ok()
    } else {
        reading::with_room(|| parse(source))
    };
    // Neither a lack of threads nor a panic says that it never was an expression.
    parsed.unwrap_or_else(|| Err(Refused::OverBound("the parser gave up".to_owned())))
}

fn parse(source: &str) -> Result<Code, Refused> {
    // Written by hand, unlike the crate's other parser, whose tables and runtime are more than a megabyte of the program.
    // `tests/parsers.rs` compares them.
    let parsed = PrattParser::new().max_recursion_depth(MAX_PARSER_DEPTH).parse(source);
    let tree = parsed.map_err(|errors| Refused::Invalid(first_error(&errors)))?;
    let mut compiler = Compiler { code: Code::default(), loops: Vec::new() };
    compiler.expression(&tree)?;
    Ok(compiler.code)
}

/// What the parser stumbled over first. The rest mostly follows from that, and each would repeat the source.
fn first_error(errors: &cel::parser::ParseErrors) -> String {
    let Some(first) = errors.errors.first() else { return "it is no expression".to_owned() };
    let (line, column) = first.pos;
    let mut words = format!("line {line}, column {column}: ");
    for letter in first.msg.chars() {
        if words.len() + letter.len_utf8() > MAX_ERROR_BYTES {
            words.push('…');
            break;
        }
        words.push(if letter.is_whitespace() { ' ' } else { letter });
    }
    words
}

/// What is patched once it is known.
const LATER: usize = usize::MAX;

struct Compiler<'t> {
    code: Code,
    /// The variables of the loops around the place that is being compiled.
    loops: Vec<&'t str>,
}

impl<'t> Compiler<'t> {
    fn push(&mut self, step: Step) -> usize {
        self.code.steps.push(step);
        self.code.steps.len() - 1
    }

    fn here(&self) -> usize {
        self.code.steps.len()
    }

    fn word(&mut self, word: &str) -> usize {
        if let Some(known) = self.code.words.iter().position(|known| known == word) {
            return known;
        }
        self.code.words.push(word.to_owned());
        self.code.words.len() - 1
    }

    fn literal(&mut self, literal: Literal) {
        self.code.literals.push(literal);
        let position = self.code.literals.len() - 1;
        self.push(Step::Literal(position));
    }

    fn expression(&mut self, expression: &'t IdedExpr) -> Result<(), Refused> {
        match &expression.expr {
            Expr::Unspecified => drop(self.push(Step::Unsupported)),
            Expr::Literal(value) => self.literal(match value {
                LiteralValue::Null => Literal::Null,
                LiteralValue::Boolean(bool) => Literal::Bool(*bool.inner()),
                LiteralValue::Int(int) => Literal::Int(*int.inner()),
                LiteralValue::UInt(uint) => Literal::Uint(*uint.inner()),
                LiteralValue::Double(float) => Literal::Double(*float.inner()),
                LiteralValue::String(text) => Literal::Text(text.inner().to_owned()),
                LiteralValue::Bytes(bytes) => Literal::Bytes(bytes.inner().to_vec()),
            }),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                self.expression(&select.operand)?;
                let field = self.word(&select.field);
                self.push(if select.test { Step::Has(field) } else { Step::Select(field) });
            }
            Expr::List(list) => {
                for element in &list.elements {
                    self.expression(element)?;
                }
                let optional = !list.optional_indices.is_empty();
                self.push(if optional { Step::Unsupported } else { Step::List(list.elements.len()) });
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            self.expression(&entry.key)?;
                            self.expression(&entry.value)?;
                        }
                        EntryExpr::StructField(_) => return Err(Refused::Invalid("it is no map".to_owned())),
                    }
                }
                self.push(Step::Map(map.entries.len()));
            }
            Expr::Struct(literal) => {
                let name = self.word(&literal.type_name);
                self.push(Step::Struct(name));
            }
            Expr::Call(call) => self.call(call)?,
            Expr::Comprehension(comprehension) => self.comprehension(comprehension)?,
        }
        Ok(())
    }

    fn name(&mut self, name: &str) {
        // The innermost loop's variable of that name, unless the name begins with a dot.
        if let Some(depth) = self.loops.iter().rposition(|variable| *variable == name) {
            self.push(Step::Local(depth));
            return;
        }
        let word = self.word(name);
        let known = self.code.roots.iter().position(|root| *root == word);
        let root = known.unwrap_or_else(|| {
            self.code.roots.push(word);
            self.code.roots.len() - 1
        });
        self.push(Step::Root(root));
    }

    fn call(&mut self, call: &'t CallExpr) -> Result<(), Refused> {
        let name = call.func_name.as_str();
        if call.target.is_none() {
            match (name, call.args.as_slice()) {
                (operators::CONDITIONAL, [condition, then, otherwise]) => {
                    return self.conditional(condition, then, otherwise);
                }
                (operators::LOGICAL_AND, [left, right]) => return self.logical(false, left, right),
                (operators::LOGICAL_OR, [left, right]) => return self.logical(true, left, right),
                (operators::INDEX, [operand, index]) => {
                    self.expression(operand)?;
                    self.expression(index)?;
                    self.push(Step::Index);
                    return Ok(());
                }
                (operators::LOGICAL_NOT, [operand]) => {
                    self.expression(operand)?;
                    self.push(Step::Not);
                    return Ok(());
                }
                (operators::NEGATE, [operand]) => {
                    self.expression(operand)?;
                    self.push(Step::Negate);
                    return Ok(());
                }
                (_, [left, right]) => {
                    if let Some(operator) = binary(name) {
                        self.expression(left)?;
                        self.expression(right)?;
                        self.push(Step::Binary(operator));
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        for argument in &call.args {
            self.expression(argument)?;
        }
        let arguments = call.args.len();
        let Some(target) = call.target.as_deref() else {
            self.function(name, Function::GLOBAL, arguments, false);
            return Ok(());
        };
        // `optional.of(x)` is the function of that name, whatever `optional` is.
        if let Expr::Ident(namespace) = &target.expr
            && let Some(function) = Function::find(Function::GLOBAL, &format!("{namespace}.{name}"))
        {
            self.push(Step::Call { function, arguments, member: false });
            return Ok(());
        }
        self.expression(target)?;
        self.function(name, Function::MEMBER, arguments + 1, true);
        Ok(())
    }

    fn function(&mut self, name: &str, table: &[(&str, Function)], arguments: usize, member: bool) {
        let step = match Function::find(table, name) {
            Some(function) => Step::Call { function, arguments, member },
            None => Step::Unknown { word: self.word(name), arguments, member },
        };
        self.push(step);
    }

    fn conditional(
        &mut self,
        condition: &'t IdedExpr,
        then: &'t IdedExpr,
        otherwise: &'t IdedExpr,
    ) -> Result<(), Refused> {
        self.expression(condition)?;
        let branch = self.push(Step::Jump(LATER));
        self.expression(then)?;
        let jump = self.push(Step::Jump(LATER));
        let second = self.here();
        self.expression(otherwise)?;
        let end = self.here();
        self.code.steps[branch] = Step::Branch { otherwise: second, end };
        self.code.steps[jump] = Step::Jump(end);
        Ok(())
    }

    fn logical(&mut self, decisive: bool, left: &'t IdedExpr, right: &'t IdedExpr) -> Result<(), Refused> {
        self.expression(left)?;
        let shortcut = self.push(Step::Jump(LATER));
        self.expression(right)?;
        self.push(Step::Join { decisive });
        let end = self.here();
        self.code.steps[shortcut] = Step::Shortcut { decisive, end };
        Ok(())
    }

    /// The macros are the only source of comprehensions, and each has its own shape.
    fn comprehension(&mut self, comprehension: &'t ComprehensionExpr) -> Result<(), Refused> {
        let Some((fold, guard, item)) = shape(comprehension) else {
            return Err(Refused::Invalid("a comprehension of a kind that this host does not know".to_owned()));
        };
        self.expression(&comprehension.iter_range)?;
        let begin = self.push(Step::Jump(LATER));
        if self.loops.len() == MAX_NESTING {
            return Err(Refused::OverBound(format!("more than {MAX_NESTING} nested comprehensions")));
        }
        self.loops.push(&comprehension.iter_var);
        let next = self.push(Step::Jump(LATER));
        let mut guarded = None;
        if let Some(guard) = guard {
            self.expression(guard)?;
            guarded = Some(self.push(Step::Jump(LATER)));
        }
        self.expression(item)?;
        let folded = self.push(Step::Jump(LATER));
        self.loops.pop();
        let exit = self.here();
        self.code.steps[begin] = Step::Begin { fold, exit };
        self.code.steps[next] = Step::Next { exit };
        if let Some(guarded) = guarded {
            self.code.steps[guarded] = Step::Guard { next, exit };
        }
        self.code.steps[folded] = Step::Fold { next, exit };
        Ok(())
    }
}

/// What a macro's comprehension does with an item: how results are folded, a condition on items, and the result.
fn shape(comprehension: &ComprehensionExpr) -> Option<(Fold, Option<&IdedExpr>, &IdedExpr)> {
    let is_accumulator = |e: &IdedExpr| matches!(&e.expr, Expr::Ident(name) if name == ACCUMULATOR);
    let step = parts(&comprehension.loop_step)?;
    match step {
        (operators::LOGICAL_AND, [left, item]) if is_accumulator(left) => Some((Fold::All, None, item)),
        (operators::LOGICAL_OR, [left, item]) if is_accumulator(left) => Some((Fold::Exists, None, item)),
        (operators::ADD, [left, item]) if is_accumulator(left) => Some((Fold::Collect, None, only(item)?)),
        (operators::CONDITIONAL, [guard, then, _]) => match parts(then)? {
            (operators::ADD, [left, item]) if is_accumulator(left) => match only(item) {
                Some(item) => Some((Fold::Collect, Some(guard), item)),
                None => Some((Fold::ExistsOne, None, guard)),
            },
            _ => None,
        },
        _ => None,
    }
}

fn parts(expression: &IdedExpr) -> Option<(&str, &[IdedExpr])> {
    match &expression.expr {
        Expr::Call(call) if call.target.is_none() => Some((call.func_name.as_str(), call.args.as_slice())),
        _ => None,
    }
}

fn only(expression: &IdedExpr) -> Option<&IdedExpr> {
    match &expression.expr {
        Expr::List(list) if list.elements.len() == 1 => list.elements.first(),
        _ => None,
    }
}

fn binary(name: &str) -> Option<Binary> {
    Some(match name {
        operators::ADD => Binary::Add,
        operators::SUBSTRACT => Binary::Subtract,
        operators::MULTIPLY => Binary::Multiply,
        operators::DIVIDE => Binary::Divide,
        operators::MODULO => Binary::Remainder,
        operators::EQUALS => Binary::Equal,
        operators::NOT_EQUALS => Binary::NotEqual,
        operators::LESS => Binary::Less,
        operators::LESS_EQUALS => Binary::LessOrEqual,
        operators::GREATER => Binary::Greater,
        operators::GREATER_EQUALS => Binary::GreaterOrEqual,
        operators::IN => Binary::In,
        _ => return None,
    })
}
