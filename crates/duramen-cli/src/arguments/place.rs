//! Where: values of a document, and places for new ones.

use clap::Args;
use duramen::{Document, JsonPath, JsonPointer, KeyKind, Position, Target};

use crate::Result;

/// How places in a document are written: in a collection under the keys of its records, as
/// `records ls` prints them, and not under the texts that the document has for them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keys(KeyKind);

impl From<KeyKind> for Keys {
    fn from(keys: KeyKind) -> Self {
        Self(keys)
    }
}

impl Keys {
    pub(crate) fn of(document: &Document) -> Result<Self> {
        Ok(Self(document.options()?.collection.unwrap_or_default()))
    }

    /// The place that is meant.
    pub(crate) fn stored(self, target: &Target) -> Target {
        self.0.stored_target(target)
    }

    /// The same of a place for a value among others.
    pub(crate) fn stored_position(self, position: &Position) -> Position {
        match position {
            Position::Before(target) => Position::Before(self.stored(target)),
            Position::After(target) => Position::After(self.stored(target)),
            Position::First(target) => Position::First(self.stored(target)),
            Position::Last(target) => Position::Last(self.stored(target)),
        }
    }

    /// A place as people write it.
    pub(crate) fn shown(self, pointer: &JsonPointer) -> JsonPointer {
        self.0.shown_pointer(pointer)
    }

    /// What came of a place, whose error names it as people write it.
    pub(crate) fn told<T>(self, result: duramen::Result<T>) -> duramen::Result<T> {
        result.map_err(|error| self.0.shown_error(error))
    }
}

/// One value of a document.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// A JSON Pointer, such as /players/3/name, # and a value's id, or a JSONPath that finds one
    /// value, such as '$.players[-1]'; '' is the whole document
    #[arg(value_name = "POINTER")]
    place: String,
}

impl Place {
    pub(crate) fn target(&self) -> Result<Target> {
        Ok(Target::parse(&self.place)?)
    }
}

/// One value, or all that a query finds.
#[derive(Debug, Args)]
pub(crate) struct Places {
    /// A JSON Pointer, such as /players/3/name, # and a value's id, or a JSONPath for all values
    /// that it finds, such as '$.players[*].score'; '' is the whole document
    #[arg(value_name = "PLACE")]
    places: String,
}

/// What a text names: one value, or all that a query finds.
pub(crate) enum Named {
    One(Target),
    All(JsonPath),
}

impl Places {
    pub(crate) fn named(&self) -> Result<Named> {
        Named::parse(&self.places)
    }
}

impl Named {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(match Target::parse(text)? {
            Target::Path(path) => Self::All(path),
            target => Self::One(target),
        })
    }
}

/// A place for a value among others.
#[derive(Debug, Args)]
pub(crate) struct Destination {
    #[command(flatten)]
    position: Positions,
    /// The name it gets in an object; a value that had one keeps it
    #[arg(long)]
    name: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Positions {
    /// In front of this element or member
    #[arg(long, value_name = "POINTER")]
    before: Option<String>,
    /// Behind this element or member
    #[arg(long, value_name = "POINTER")]
    after: Option<String>,
    /// The first in this array or object
    #[arg(long, value_name = "POINTER")]
    first: Option<String>,
    /// The last in this array or object
    #[arg(long, value_name = "POINTER")]
    last: Option<String>,
}

impl Destination {
    pub(crate) fn position(&self) -> Result<Position> {
        let Positions { before, after, first, last } = &self.position;
        let given = [
            (before, Position::Before as fn(Target) -> Position),
            (after, Position::After),
            (first, Position::First),
            (last, Position::Last),
        ];
        let given = given.into_iter().find_map(|(text, make)| Some((text.as_deref()?, make)));
        let (text, make) = given.unwrap_or(("", Position::Last));
        Ok(make(Target::parse(text)?))
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}
