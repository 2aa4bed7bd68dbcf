//! Changes of single places: what each is made of, what it does to a value, how it is done.

use duramen::{
    CommitOptions, Document, ErrorKind, JsonPath, JsonPointer, Outcome, Position, Target,
    Transaction,
};

use crate::json::{Json, Refusal, Segment, Selector, Side, pointer, query, tokens};
use crate::random::Random;
use crate::samples::{Samples, Scale};

/// A change of a single place. Pointers and values are text, as the engine is given them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// A new member takes a place.
    Insert {
        /// The place.
        spot: Spot,
        /// The value.
        value: String,
    },
    /// An array gets a last element.
    Append {
        /// The array.
        array: String,
        /// The element.
        value: String,
    },
    /// Elements of an array make way for others.
    Splice {
        /// The array.
        array: String,
        /// The first one, and how many go.
        range: (u64, u64),
        /// Those that come, in an array.
        values: String,
    },
    /// What is there is replaced.
    Replace {
        /// The pointer.
        at: String,
        /// The value.
        value: String,
    },
    /// A value takes another place.
    Move {
        /// Where it is.
        from: String,
        /// Where it goes.
        spot: Spot,
    },
    /// A value comes to another place too.
    Copy {
        /// Where it is.
        from: String,
        /// Where it comes to.
        spot: Spot,
    },
    /// A field gets another name.
    RenameField {
        /// The field.
        at: String,
        /// The name.
        name: String,
    },
    /// A JSON Merge Patch is applied.
    Merge {
        /// The patch.
        patch: String,
    },
    /// A JSON Patch is applied.
    Patch {
        /// The patch.
        patch: String,
    },
    /// Everything that a JSONPath finds is replaced.
    SetAll {
        /// The path.
        query: Vec<Segment>,
        /// The value.
        value: String,
        /// How many places it finds.
        count: u64,
    },
    /// Everything that a JSONPath finds is removed.
    RemoveAll {
        /// The path.
        query: Vec<Segment>,
        /// How many places it finds.
        count: u64,
    },
}

/// Where a new member goes, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The side of what `at` names.
    pub side: Side,
    /// A member, or an array or object.
    pub at: String,
    /// The name, if it is to have one.
    pub member: Option<String>,
}

/// The kinds of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Insert,
    Append,
    Splice,
    Replace,
    Move,
    Copy,
    RenameField,
    Merge,
    Patch,
    SetAll,
    RemoveAll,
}

const SIDES: [Side; 4] = [Side::Before, Side::After, Side::First, Side::Last];
const PATCH_OPERATIONS_MAX: u64 = 4;

impl Spot {
    fn place(&self) -> (Side, Vec<String>) {
        (self.side, tokens(&self.at))
    }

    fn position(&self) -> duramen::Result<Position> {
        let target = target(&self.at)?;
        Ok(match self.side {
            Side::Before => Position::Before(target),
            Side::After => Position::After(target),
            Side::First => Position::First(target),
            Side::Last => Position::Last(target),
        })
    }

    /// One that mostly fits into a value.
    fn draw(value: &Json, random: &mut Random, scale: Scale) -> Self {
        let mut at = Samples::new(random, scale).any_path(value);
        let side = random.choose(&SIDES);
        let is_inside = matches!(side, Side::First | Side::Last);
        if is_inside && value.at(&at).is_none_or(|there| there.children().is_none()) {
            at.pop();
        }
        let parent = if is_inside { Some(at.as_slice()) } else { at.split_last().map(|at| at.1) };
        let is_object = parent.and_then(|path| value.at(path)).is_some_and(Json::is_object);
        let is_named = is_object != random.one_in(8);
        let member = is_named.then(|| Samples::new(random, scale).name());
        Self { side, at: pointer(&at), member }
    }
}

impl Edit {
    /// Draws one of a kind for a document; it may be one that fails.
    pub(crate) fn draw(shape: Shape, value: &Json, random: &mut Random, scale: Scale) -> Self {
        let place = |random: &mut Random| pointer(&Samples::new(random, scale).any_path(value));
        let small = |random: &mut Random| Samples::new(random, scale).small().to_string();
        match shape {
            Shape::Insert => {
                let spot = Spot::draw(value, random, scale);
                Self::Insert { spot, value: small(random) }
            }
            Shape::Append => {
                let array = pointer(&array(value, random, scale));
                Self::Append { array, value: small(random) }
            }
            Shape::Splice => splice(value, random, scale),
            Shape::Replace => Self::Replace { at: place(random), value: small(random) },
            Shape::Move => {
                let spot = Spot::draw(value, random, scale);
                Self::Move { from: place(random), spot }
            }
            Shape::Copy => {
                let spot = Spot::draw(value, random, scale);
                Self::Copy { from: place(random), spot }
            }
            Shape::RenameField => {
                let name = Samples::new(random, scale).name();
                Self::RenameField { at: pointer(&field(value, random, scale)), name }
            }
            Shape::Merge => Self::Merge { patch: merge(value, random, scale).to_string() },
            Shape::Patch => Self::Patch { patch: patch(value, random, scale) },
            Shape::SetAll => {
                let query = query(random);
                Self::SetAll { count: value.count(&query), query, value: small(random) }
            }
            Shape::RemoveAll => {
                let query = query(random);
                Self::RemoveAll { count: value.count(&query), query }
            }
        }
    }

    /// Does it to a naive value. A patch that fails leaves what it did before.
    pub(crate) fn apply(&self, value: &mut Json) -> Result<(), Refusal> {
        match self {
            Self::Insert { spot, value: new } => {
                let new = Json::parse(new);
                let (side, at) = spot.place();
                value.insert((side, &at), spot.member.as_deref(), new)
            }
            Self::Append { array, value: new } => value.append(&tokens(array), Json::parse(new)),
            Self::Splice { array, range, values } => {
                value.splice(&tokens(array), *range, Json::parse(values))
            }
            Self::Replace { at, value: new } => value.replace(&tokens(at), Json::parse(new)),
            Self::Move { from, spot } => {
                let (side, at) = spot.place();
                value.move_to(&tokens(from), (side, &at), spot.member.as_deref())
            }
            Self::Copy { from, spot } => {
                let (side, at) = spot.place();
                value.copy(&tokens(from), (side, &at), spot.member.as_deref())
            }
            Self::RenameField { at, name } => value.rename(&tokens(at), name),
            Self::Merge { patch } => {
                value.merge(&Json::parse(patch));
                Ok(())
            }
            Self::Patch { patch } => match Json::parse(patch) {
                Json::Array(operations) => {
                    operations.iter().try_for_each(|operation| value.apply_patch(operation))
                }
                other => panic!("{other} is no patch"),
            },
            Self::SetAll { query, value: new, .. } => value.set_all(query, &Json::parse(new)),
            Self::RemoveAll { query, .. } => value.remove_all(query),
        }
    }

    /// What comes of it where there is no value at all: what is asked of the root may make no
    /// sense, and a path finds nothing.
    pub(crate) fn apply_to_nothing(&self) -> Result<(), ErrorKind> {
        match self {
            Self::SetAll { .. } | Self::RemoveAll { .. } => Ok(()),
            Self::Copy { .. } => Err(ErrorKind::NotFound),
            edit => match edit.apply(&mut Json::Null) {
                Err(Refusal::Root) => Err(ErrorKind::Invalid),
                _ => Err(ErrorKind::NotFound),
            },
        }
    }

    /// Does it in a transaction of a database.
    pub(crate) fn stage(&self, name: &str, to: &mut Transaction) -> duramen::Result<()> {
        match self {
            Self::Insert { spot, value } => {
                to.insert(name, &spot.position()?, spot.member.as_deref(), value.as_bytes())
            }
            Self::Append { array, value } => to.append(name, &target(array)?, value.as_bytes()),
            Self::Splice { array, range, values } => {
                to.splice(name, &target(array)?, *range, values.as_bytes())
            }
            Self::Replace { at, value } => to.replace(name, &target(at)?, value.as_bytes()),
            Self::Move { from, spot } => {
                to.move_to(name, &target(from)?, &spot.position()?, spot.member.as_deref())
            }
            Self::Copy { from, spot } => {
                to.copy(name, &target(from)?, &spot.position()?, spot.member.as_deref())
            }
            Self::RenameField { at, name: new } => to.rename_field(name, &target(at)?, new),
            Self::Merge { patch } => to.merge_patch(name, patch.as_bytes()),
            Self::Patch { patch } => to.patch(name, patch.as_bytes()),
            Self::SetAll { query, value, count } => {
                let found = to.set_all(name, &path(query)?, value.as_bytes())?;
                assert_eq!(found, *count, "places set by {self:?} in {name:?}");
                Ok(())
            }
            Self::RemoveAll { query, count } => {
                let found = to.remove_all(name, &path(query)?)?;
                assert_eq!(found, *count, "places removed by {self:?} in {name:?}");
                Ok(())
            }
        }
    }

    /// Does it to a document, as a commit of its own.
    pub(crate) fn call(&self, to: &Document, options: &CommitOptions) -> duramen::Result<Outcome> {
        match self {
            Self::Insert { spot, value } => {
                to.insert(&spot.position()?, spot.member.as_deref(), value, options)
            }
            Self::Append { array, value } => to.append(&target(array)?, value, options),
            Self::Splice { array, range, values } => {
                to.splice(&target(array)?, *range, values, options)
            }
            Self::Replace { at, value } => to.replace(&target(at)?, value, options),
            Self::Move { from, spot } => {
                to.move_to(&target(from)?, &spot.position()?, spot.member.as_deref(), options)
            }
            Self::Copy { from, spot } => {
                to.copy(&target(from)?, &spot.position()?, spot.member.as_deref(), options)
            }
            Self::RenameField { at, name } => to.rename_field(&target(at)?, name, options),
            Self::Merge { patch } => to.merge_patch(patch, options),
            Self::Patch { patch } => to.patch(patch, options),
            Self::SetAll { query, value, count } => {
                let (outcome, found) = to.set_all(&path(query)?, value, options)?;
                assert_eq!(found, *count, "places set by {self:?}");
                Ok(outcome)
            }
            Self::RemoveAll { query, count } => {
                let (outcome, found) = to.remove_all(&path(query)?, options)?;
                assert_eq!(found, *count, "places removed by {self:?}");
                Ok(outcome)
            }
        }
    }
}

fn target(pointer: &str) -> duramen::Result<Target> {
    JsonPointer::parse(pointer).map(Target::from)
}

fn path(query: &[Segment]) -> duramen::Result<JsonPath> {
    JsonPath::parse(&query::text(query))
}

fn query(random: &mut Random) -> Vec<Segment> {
    let names = ["a", "b", "c", "id", "name"];
    (0..=random.below(2))
        .map(|_| Segment {
            is_descendant: random.one_in(3),
            selector: match random.below(4) {
                0 => Selector::All,
                1 | 2 => Selector::Name(random.choose(&names)),
                _ => Selector::Index(random.index(3)),
            },
        })
        .collect()
}

/// A path to what is mostly an array.
fn array(value: &Json, random: &mut Random, scale: Scale) -> Vec<String> {
    let mut path = Samples::new(random, scale).any_path(value);
    while !path.is_empty() && !matches!(value.at(&path), Some(Json::Array(_))) {
        path.pop();
    }
    path
}

/// A path to what is mostly a field.
fn field(value: &Json, random: &mut Random, scale: Scale) -> Vec<String> {
    let mut path = Samples::new(random, scale).any_path(value);
    while path.len() > 1 && !value.at(&path[..path.len() - 1]).is_some_and(Json::is_object) {
        path.pop();
    }
    path
}

fn splice(value: &Json, random: &mut Random, scale: Scale) -> Edit {
    let path = array(value, random, scale);
    let len = value.at(&path).and_then(Json::children).unwrap_or(0) as u64;
    let first = random.below(len + 1);
    let remove = random.below(len - first + 1).min(3) + random.below(12) / 11;
    let mut samples = Samples::new(random, scale);
    let mut values: Vec<Json> = vec![samples.small(), samples.small()];
    values.truncate(random.index(3));
    let values = Json::Array(values).to_string();
    Edit::Splice { array: pointer(&path), range: (first, remove), values }
}

/// A merge patch that follows the members of a value for some levels.
fn merge(value: &Json, random: &mut Random, scale: Scale) -> Json {
    let Json::Object(fields) = value else { return Samples::new(random, scale).small() };
    let mut members: Vec<(String, Json)> = Vec::new();
    for _ in 0..random.below(3) + u64::from(fields.is_empty()) {
        let some = fields.get(random.index(fields.len().max(1)));
        let (name, member) = match some.filter(|_| !random.one_in(4)) {
            Some((name, _)) if random.one_in(4) => (name.clone(), Json::Null),
            Some((name, value)) => (name.clone(), merge(value, random, scale)),
            None => {
                let mut samples = Samples::new(random, scale);
                (samples.name(), samples.small())
            }
        };
        if members.iter().all(|(other, _)| *other != name) {
            members.push((name, member));
        }
    }
    Json::Object(members)
}

/// A JSON Patch. One in some fails in its last operation.
///
/// Every operation but tests changes something: what is replaced by itself may be staged or not.
fn patch(value: &Json, random: &mut Random, scale: Scale) -> String {
    let may_fail = random.one_in(6);
    let mut now = value.clone();
    let mut operations = Vec::new();
    let mut is_changed = false;
    for _ in 0..=random.below(PATCH_OPERATIONS_MAX) {
        let (name, operation) = patch_operation(&now, random, scale);
        let mut next = now.clone();
        match next.apply_patch(&operation) {
            Ok(()) if next == now && name != "test" => {}
            Ok(()) => {
                is_changed |= next != now;
                now = next;
                operations.push(operation);
            }
            // Whether it is half done shows in its value only.
            Err(_) if may_fail && (is_changed || next != now) == (next != *value) => {
                operations.push(operation);
                break;
            }
            Err(_) => {}
        }
    }
    Json::Array(operations).to_string()
}

fn patch_operation(value: &Json, random: &mut Random, scale: Scale) -> (&'static str, Json) {
    let mut samples = Samples::new(random, scale);
    let (path, from) = (samples.any_path(value), samples.path(value));
    let new = samples.small();
    let name = random.choose(&["add", "add", "remove", "replace", "move", "copy", "test"]);
    let text = |text: &str| Json::Text(text.to_owned());
    let mut fields =
        vec![("op".to_owned(), text(name)), ("path".to_owned(), text(&pointer(&path)))];
    match name {
        "add" | "replace" => fields.push(("value".to_owned(), new)),
        "move" | "copy" => fields.push(("from".to_owned(), text(&pointer(&from)))),
        "test" => {
            let there = value.at(&path).cloned().unwrap_or(Json::Null);
            let is_other = random.one_in(8);
            let expected = if is_other { Json::Array(vec![there]) } else { there };
            fields.push(("value".to_owned(), expected));
        }
        _ => {}
    }
    (name, Json::Object(fields))
}
