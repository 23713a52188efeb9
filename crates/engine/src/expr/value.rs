//! Values while an expression runs. Data of the run is looked at where it lies: only what an expression makes is owned,
//! and a copy of a value is a copy of a reference.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::meter::{Bound, Gauge, MAX_DEPTH, NODE_BYTES, length, members};
use super::trouble::Trouble;

#[derive(Clone)]
pub(crate) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Bytes<'a>),
    List(List<'a>),
    Map(Object<'a>),
    Type(&'static str),
    Optional(Option<Rc<Val<'a>>>),
    /// An error is a value until something needs the value: `&&`, `||`, `all` and `exists` may not.
    Error(Rc<Trouble>),
}

#[derive(Clone)]
pub(crate) enum Text<'a> {
    Lent(&'a str),
    Made(Rc<str>),
}

#[derive(Clone)]
pub(crate) enum Bytes<'a> {
    Lent(&'a [u8]),
    Made(Rc<[u8]>),
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

#[derive(Clone)]
pub(crate) enum List<'a> {
    Json(&'a [Value]),
    Made(Rc<Items<'a>>),
    View(Rc<dyn Sequence<'a> + 'a>),
}

#[derive(Clone)]
pub(crate) enum Object<'a> {
    Json(&'a Map<String, Value>),
    Made(Rc<Entries<'a>>),
    View(Rc<dyn Fields<'a> + 'a>),
}

/// A list that is read in place, whatever it is made of.
pub(crate) trait Sequence<'a> {
    fn len(&self) -> usize;
    fn get(&self, index: usize) -> Option<Val<'a>>;
}

/// An object that is read in place; only the members that are asked for are looked at.
pub(crate) trait Fields<'a> {
    fn get(&self, name: &str) -> Option<Val<'a>>;
    /// How many members there are.
    fn len(&self) -> usize;
    /// The most names that counting or listing them looks at; known without looking at any.
    fn most(&self) -> usize;
    /// The names of all members, in order.
    fn names(&self) -> Vec<&'a str>;
}

/// A list that an expression made.
pub(crate) struct Items<'a> {
    pub(super) items: Vec<Val<'a>>,
    depth: u32,
}

/// A map that an expression made.
pub(crate) struct Entries<'a> {
    pub(super) entries: BTreeMap<Key<'a>, Val<'a>>,
    depth: u32,
}

#[derive(Clone)]
pub(crate) enum Key<'a> {
    Int(i64),
    Uint(u64),
    Bool(bool),
    Text(Text<'a>),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Lent(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl Key<'_> {
    fn rank(&self) -> u8 {
        match self {
            Self::Int(_) => 0,
            Self::Uint(_) => 1,
            Self::Bool(_) => 2,
            Self::Text(_) => 3,
        }
    }

    /// Bytes of its name, or about as many.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Int(_) | Self::Uint(_) => 20,
            Self::Bool(_) => 5,
            Self::Text(text) => text.as_str().len(),
        }
    }

    fn to_name(&self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Uint(uint) => uint.to_string(),
            Self::Bool(bool) => bool.to_string(),
            Self::Text(text) => text.as_str().to_owned(),
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Uint(a), Self::Uint(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.as_str().cmp(b.as_str()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl<'a> From<Key<'a>> for Val<'a> {
    fn from(key: Key<'a>) -> Self {
        match key {
            Key::Int(int) => Self::Int(int),
            Key::Uint(uint) => Self::Uint(uint),
            Key::Bool(bool) => Self::Bool(bool),
            Key::Text(text) => Self::Text(text),
        }
    }
}

impl<'a> From<&'a str> for Val<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Text::Lent(text))
    }
}

impl<'a> From<&'a Value> for Val<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Number(number) => number.into(),
            Value::String(text) => Self::Text(Text::Lent(text)),
            Value::Array(items) => Self::List(List::Json(items)),
            Value::Object(map) => Self::Map(Object::Json(map)),
        }
    }
}

/// A number without a fraction is an int, however it was written; everything else is a double.
impl From<&Number> for Val<'_> {
    fn from(number: &Number) -> Self {
        if let Some(int) = number.as_i64() {
            return Self::Int(int);
        }
        let float = number.as_f64().unwrap_or(f64::NAN);
        #[expect(clippy::cast_possible_truncation, reason = "guarded by the range check")]
        if float.fract() == 0.0 && float.abs() < 9.0e15 { Self::Int(float as i64) } else { Self::Double(float) }
    }
}

impl<'a> Val<'a> {
    pub(crate) fn made(text: String) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    pub(crate) fn object(map: &'a Map<String, Value>) -> Self {
        Self::Map(Object::Json(map))
    }

    pub(crate) fn view(fields: impl Fields<'a> + 'a) -> Self {
        Self::Map(Object::View(Rc::new(fields)))
    }

    pub(crate) fn sequence(items: impl Sequence<'a> + 'a) -> Self {
        Self::List(List::View(Rc::new(items)))
    }

    /// A list that an expression made; its items are paid for.
    pub(super) fn list(items: Vec<Val<'a>>) -> Result<Self, Bound> {
        let depth = deeper(items.iter())?;
        Ok(Self::List(List::Made(Rc::new(Items { items, depth }))))
    }

    pub(super) fn map(entries: BTreeMap<Key<'a>, Val<'a>>) -> Result<Self, Bound> {
        let depth = deeper(entries.values())?;
        Ok(Self::Map(Object::Made(Rc::new(Entries { entries, depth }))))
    }

    fn depth(&self) -> u32 {
        match self {
            Self::List(List::Made(made)) => made.depth,
            Self::Map(Object::Made(made)) => made.depth,
            Self::Optional(Some(inner)) => inner.depth(),
            // Data of the run: bounded where it was let in, and borrowed here.
            _ => 0,
        }
    }

    /// The type as CEL names it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Error(_) => "error",
        }
    }

    /// The kind in plain words, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Uint(_) | Self::Double(_) => "a number",
            Self::Text(_) | Self::Type(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            _ => "this value",
        }
    }

    /// A copy of data of the run, of so many bytes at most.
    pub(crate) fn plain(&self, most: u64) -> Result<Option<Value>, Bound> {
        self.to_json(&mut Gauge::open(most))
    }

    /// The value as JSON; `None` for what JSON has no word for.
    pub(crate) fn to_json(&self, gauge: &mut Gauge) -> Result<Option<Value>, Bound> {
        let mut size = 0;
        self.copy(gauge, &mut size)
    }

    fn copy(&self, gauge: &mut Gauge, size: &mut u64) -> Result<Option<Value>, Bound> {
        let mut note = |gauge: &mut Gauge, bytes: u64| {
            *size = size.saturating_add(bytes);
            gauge.fits(*size)?;
            gauge.bytes(bytes.max(NODE_BYTES))
        };
        Ok(Some(match self {
            Self::Null => {
                note(gauge, 4)?;
                Value::Null
            }
            Self::Bool(bool) => {
                note(gauge, 4)?;
                Value::Bool(*bool)
            }
            Self::Int(int) => {
                note(gauge, 8)?;
                Value::from(*int)
            }
            Self::Uint(uint) => {
                note(gauge, 8)?;
                Value::from(*uint)
            }
            Self::Double(float) => {
                note(gauge, 8)?;
                let Some(number) = Number::from_f64(*float) else { return Ok(None) };
                Value::Number(number)
            }
            Self::Text(text) => {
                note(gauge, length(text.as_str().len()) + 2)?;
                Value::String(text.as_str().to_owned())
            }
            Self::List(list) => {
                note(gauge, 2)?;
                // Each item is noted once more below: it has a place in the list, and what it is.
                gauge.fits(length(list.len()))?;
                gauge.bytes(length(list.len()).saturating_mul(NODE_BYTES))?;
                let mut items = Vec::with_capacity(list.len());
                for index in 0..list.len() {
                    let item = list.get(index).unwrap_or(Val::Null);
                    *size = size.saturating_add(1);
                    let Some(item) = item.copy(gauge, size)? else { return Ok(None) };
                    items.push(item);
                }
                Value::Array(items)
            }
            Self::Map(map) => {
                note(gauge, 2)?;
                let mut object = Map::new();
                let keys = map.keys(gauge)?;
                gauge.bytes(members(keys.len()))?;
                for key in keys {
                    let bytes = length(key.len()) + 4;
                    *size = size.saturating_add(bytes);
                    gauge.fits(*size)?;
                    // Looked up, and copied.
                    gauge.bytes(bytes.saturating_mul(2))?;
                    let name = key.to_name();
                    let Some(value) = map.find(&key).unwrap_or(Val::Null).copy(gauge, size)? else { return Ok(None) };
                    object.insert(name, value);
                }
                Value::Object(object)
            }
            Self::Type(name) => {
                note(gauge, length(name.len()) + 2)?;
                Value::from(*name)
            }
            Self::Bytes(_) | Self::Optional(_) | Self::Error(_) => return Ok(None),
        }))
    }
}

fn deeper<'v, 'a: 'v>(values: impl Iterator<Item = &'v Val<'a>>) -> Result<u32, Bound> {
    let depth = values.map(Val::depth).max().unwrap_or(0) + 1;
    if depth > MAX_DEPTH { Err(Bound::Depth) } else { Ok(depth) }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Made(made) => made.items.len(),
            Self::View(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Val<'a>> {
        match self {
            Self::Json(items) => items.get(index).map(Val::from),
            Self::Made(made) => made.items.get(index).cloned(),
            Self::View(items) => items.get(index),
        }
    }
}

impl<'a> Object<'a> {
    /// How many members there are. A view has to count them.
    pub(super) fn len(&self, gauge: &mut Gauge) -> Result<usize, Bound> {
        Ok(match self {
            Self::Json(map) => map.len(),
            Self::Made(made) => made.entries.len(),
            Self::View(fields) => {
                gauge.charge(length(fields.most()))?;
                fields.len()
            }
        })
    }

    /// The most members there may be, without counting them.
    fn most(&self) -> usize {
        match self {
            Self::Json(map) => map.len(),
            Self::Made(made) => made.entries.len(),
            Self::View(fields) => fields.most(),
        }
    }

    /// The keys in order. Hash tables would give them in another order each time.
    pub(super) fn keys(&self, gauge: &mut Gauge) -> Result<Vec<Key<'a>>, Bound> {
        let most = length(self.most());
        gauge.bytes(most.saturating_mul(NODE_BYTES))?;
        if let Self::View(_) = self {
            // They are brought into order.
            gauge.charge(most)?;
        }
        let text = |name: &'a str| Key::Text(Text::Lent(name));
        let keys: Vec<Key<'a>> = match self {
            Self::Json(map) => map.keys().map(|name| text(name)).collect(),
            Self::Made(made) => made.entries.keys().cloned().collect(),
            Self::View(fields) => fields.names().into_iter().map(text).collect(),
        };
        Ok(keys)
    }

    pub(crate) fn field(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Self::Json(map) => map.get(name).map(Val::from),
            Self::Made(made) => made.entries.get(&Key::Text(Text::Lent(name))).cloned(),
            Self::View(fields) => fields.get(name),
        }
    }

    pub(super) fn find(&self, key: &Key<'_>) -> Option<Val<'a>> {
        match (self, key) {
            (_, Key::Text(name)) => self.field(name.as_str()),
            (Self::Made(made), key) => made.entries.get(key).cloned(),
            _ => None,
        }
    }

    /// The value at a key, where a number is found however its key was written: `{1u: 'a'}[1]`. `None` in the outer
    /// option means that this can be no key.
    pub(super) fn lookup(&self, key: &Val<'_>) -> Option<Option<Val<'a>>> {
        let probe = |keys: [Option<Key<'static>>; 2]| keys.into_iter().flatten().find_map(|key| self.find(&key));
        Some(match key {
            Val::Text(text) => self.field(text.as_str()),
            Val::Bool(bool) => self.find(&Key::Bool(*bool)),
            Val::Int(int) => probe([Some(Key::Int(*int)), u64::try_from(*int).ok().map(Key::Uint)]),
            Val::Uint(uint) => probe([Some(Key::Uint(*uint)), i64::try_from(*uint).ok().map(Key::Int)]),
            Val::Double(float) => probe([whole(*float).map(Key::Int), whole_unsigned(*float).map(Key::Uint)]),
            _ => return None,
        })
    }
}

/// A double as an int, if nothing is lost; the smallest int is left out, as the language's other hosts do.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "guarded by the range check")]
pub(super) fn whole(float: f64) -> Option<i64> {
    let fits = float > i64::MIN as f64 && float < i64::MAX as f64;
    fits.then_some(float as i64).filter(|int| *int as f64 == float)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "guarded by the range check"
)]
fn whole_unsigned(float: f64) -> Option<u64> {
    let fits = float >= 0.0 && float < u64::MAX as f64;
    fits.then_some(float as u64).filter(|int| *int as f64 == float)
}
