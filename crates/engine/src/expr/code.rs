//! An expression as a flat list of steps for a machine with a stack. Nothing in it nests, so neither evaluating nor
//! dropping it needs more stack for a longer expression.

#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    pub(super) literals: Vec<Literal>,
    /// Fields, functions and names as they are written.
    pub(super) words: Vec<String>,
    /// The top-level names that it reads, as positions in `words`.
    pub(super) roots: Vec<usize>,
}

#[derive(Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// One step. A target is the position of another step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Literal(usize),
    /// A top-level name: a position in `roots`.
    Root(usize),
    /// The variable of the n-th loop around this place.
    Local(usize),
    Select(usize),
    /// `has(operand.field)`.
    Has(usize),
    Index,
    Not,
    Negate,
    Binary(Binary),
    /// `? :`: takes the condition; goes on, or to one of the two.
    Branch {
        otherwise: usize,
        end: usize,
    },
    Jump(usize),
    /// `&&` and `||` after their left side: it may decide alone.
    Shortcut {
        decisive: bool,
        end: usize,
    },
    /// `&&` and `||` after both sides.
    Join {
        decisive: bool,
    },
    List(usize),
    Map(usize),
    /// A function over so many arguments; a member's target counts, and comes last.
    Call {
        function: Function,
        arguments: usize,
        member: bool,
    },
    /// A function that there is not.
    Unknown {
        word: usize,
        arguments: usize,
        member: bool,
    },
    /// A literal of a type that there is not.
    Struct(usize),
    Unsupported,
    /// A loop over the value on the stack; `exit` is where its result is used.
    Begin {
        fold: Fold,
        exit: usize,
    },
    /// The next item, or the end.
    Next {
        exit: usize,
    },
    /// Takes a condition of a loop's item, and leaves it out if that does not hold.
    Guard {
        next: usize,
        exit: usize,
    },
    /// Takes what became of an item.
    Fold {
        next: usize,
        exit: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    All,
    Exists,
    ExistsOne,
    Collect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    ToString,
    ToInt,
    ToUint,
    ToDouble,
    ToBool,
    ToBytes,
    Type,
    Dyn,
    OptionalNone,
    OptionalOf,
    OptionalOfNonZero,
    Value,
    HasValue,
    Or,
    OrValue,
}

impl Function {
    pub(super) const GLOBAL: &'static [(&'static str, Self)] = &[
        ("size", Self::Size),
        ("matches", Self::Matches),
        ("string", Self::ToString),
        ("int", Self::ToInt),
        ("uint", Self::ToUint),
        ("double", Self::ToDouble),
        ("bool", Self::ToBool),
        ("bytes", Self::ToBytes),
        ("type", Self::Type),
        ("dyn", Self::Dyn),
        ("optional.none", Self::OptionalNone),
        ("optional.of", Self::OptionalOf),
        ("optional.ofNonZeroValue", Self::OptionalOfNonZero),
    ];
    pub(super) const MEMBER: &'static [(&'static str, Self)] = &[
        ("size", Self::Size),
        ("contains", Self::Contains),
        ("startsWith", Self::StartsWith),
        ("endsWith", Self::EndsWith),
        ("matches", Self::Matches),
        ("value", Self::Value),
        ("hasValue", Self::HasValue),
        ("or", Self::Or),
        ("orValue", Self::OrValue),
    ];

    pub(super) fn find(table: &[(&str, Self)], name: &str) -> Option<Self> {
        table.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
    }

    pub(super) fn name(self) -> &'static str {
        let both = Self::GLOBAL.iter().chain(Self::MEMBER);
        both.into_iter().find(|(_, function)| *function == self).map_or("", |(name, _)| *name)
    }
}
