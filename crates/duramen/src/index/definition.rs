//! What indexes a collection has, as its options say.

use std::collections::{BTreeMap, BTreeSet};

use crate::collection::RecordPath;
use crate::engine::catalogue::check_name;
use crate::error::{Error, ErrorKind, Result};
use crate::json::escape::quoted;
use crate::json::{Item, Tape, TapeIndex};
use crate::limits::{INDEX_PATHS_MAX, INDEXES_MAX};

/// An index of a collection: by the values at one path of its records, or at several.
///
/// ```
/// use duramen::IndexDefinition;
///
/// let by_city = IndexDefinition::new("by-city", &["address.city", "name"])?;
/// let by_mail = IndexDefinition::new("by-mail", &["mails[*]"])?.unique();
/// assert!(by_mail.is_unique && !by_city.is_unique);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Its name among the indexes of the collection.
    pub name: String,
    /// Where the values are, those that count first in front.
    pub paths: Vec<RecordPath>,
    /// Whether no two records may have the same values. Missing values and nulls are never the
    /// same.
    pub is_unique: bool,
}

impl IndexDefinition {
    /// An index by the values at paths; `Invalid` where one is no path, or is named twice.
    pub fn new(name: &str, paths: &[&str]) -> Result<Self> {
        let paths = paths.iter().map(|path| path.parse()).collect::<Result<Vec<RecordPath>>>()?;
        // Not where indexes are read or made again: older ones may have a path twice.
        let mut seen = BTreeSet::new();
        if let Some(twice) = paths.iter().find(|path| !seen.insert(*path)) {
            let message = format!("the index {name:?} has the path {twice} twice: name it once");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(Self { name: name.to_owned(), paths, is_unique: false })
    }

    /// The same, unique.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.is_unique = true;
        self
    }

    /// Refuses what no index can be.
    pub(crate) fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        let several = self.paths.iter().filter(|path| path.has_elements()).count();
        let why = match self.paths.len() {
            0 => "has no path: give at least one".to_owned(),
            many if many > INDEX_PATHS_MAX => {
                format!("has {many} paths: at most {INDEX_PATHS_MAX} can be")
            }
            _ if several > 1 => {
                "has several paths with [*]: make an index for each of them".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Invalid, format!("the index {:?} {why}", self.name)))
    }
}

/// An index as the options keep it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    /// The number in the keys of its cells.
    pub(crate) id: u32,
    pub(crate) paths: Vec<RecordPath>,
    pub(crate) is_unique: bool,
    /// It is being made: nobody reads it yet.
    pub(crate) is_building: bool,
}

impl Declared {
    /// The same, as who declares it gives it.
    pub(crate) fn definition(&self, name: &str) -> IndexDefinition {
        let Self { paths, is_unique, .. } = self;
        IndexDefinition { name: name.to_owned(), paths: paths.clone(), is_unique: *is_unique }
    }
}

/// The indexes of a collection: they are made and dropped with
/// [`Collection::create_index`](crate::Collection::create_index) and
/// [`Collection::drop_index`](crate::Collection::drop_index), and stay when other options are set.
///
/// Two of them are equal if they define the same indexes.
#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    /// The greatest id that an index has had: none is used twice.
    last_id: u32,
    named: BTreeMap<String, Declared>,
}

impl PartialEq for IndexOptions {
    fn eq(&self, other: &Self) -> bool {
        self.definitions().eq(other.definitions())
    }
}

impl Eq for IndexOptions {}

impl FromIterator<IndexDefinition> for IndexOptions {
    /// Those of a collection that is to be made anew; its records are indexed when they are there.
    fn from_iter<T: IntoIterator<Item = IndexDefinition>>(definitions: T) -> Self {
        let mut options = Self::default();
        for IndexDefinition { name, paths, is_unique } in definitions {
            options.last_id += 1;
            let declared = Declared { id: options.last_id, paths, is_unique, is_building: false };
            options.named.insert(name, declared);
        }
        options
    }
}

impl IndexOptions {
    /// The indexes, sorted by name; those that are being made left out.
    pub fn definitions(&self) -> impl Iterator<Item = IndexDefinition> {
        self.ready().map(|(name, declared)| declared.definition(name))
    }

    /// Those that are being made, or whose making was interrupted, sorted by name.
    pub fn unfinished(&self) -> impl Iterator<Item = IndexDefinition> {
        let unfinished = self.iter().filter(|(_, declared)| declared.is_building);
        unfinished.map(|(name, declared)| declared.definition(name))
    }

    /// Those that are made, as the options keep them.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (&str, &Declared)> {
        self.iter().filter(|(_, declared)| !declared.is_building)
    }

    /// Refuses what no collection can have.
    pub(crate) fn check(&self) -> Result<()> {
        if self.named.len() > INDEXES_MAX {
            let message =
                format!("{} indexes are declared: at most {INDEXES_MAX} can be", self.named.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        self.definitions().try_for_each(|definition| definition.check())
    }

    /// Whether an index is unique, made or being made.
    pub(crate) fn has_unique(&self) -> bool {
        self.named.values().any(|declared| declared.is_unique)
    }

    /// Whether the index with an id was dropped; not so of one that is declared later.
    pub(crate) fn has_dropped(&self, id: u32) -> bool {
        id <= self.last_id && self.named.values().all(|declared| declared.id != id)
    }

    /// Whether no index was ever made.
    pub(crate) fn is_empty(&self) -> bool {
        self.last_id == 0
    }

    /// The indexes by name, those that are being made too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Declared)> {
        self.named.iter().map(|(name, declared)| (name.as_str(), declared))
    }

    /// An index that is not being made.
    pub(crate) fn get(&self, name: &str) -> Option<&Declared> {
        self.named.get(name).filter(|declared| !declared.is_building)
    }

    /// Begins to make an index, or goes on with one of which the making was interrupted.
    pub(crate) fn begin(&mut self, definition: &IndexDefinition) -> Result<Declared> {
        let IndexDefinition { name, paths, is_unique } = definition;
        match self.named.get(name) {
            Some(found) if !found.is_building => {
                let message = format!(
                    "there is an index {name:?} already: drop it first, or choose another name"
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            Some(found) if found.paths == *paths && found.is_unique == *is_unique => {
                return Ok(found.clone());
            }
            None if self.named.len() >= INDEXES_MAX => {
                let message =
                    format!("the collection has {INDEXES_MAX} indexes: drop one of them first");
                return Err(Error::new(ErrorKind::Full, message));
            }
            _ => {}
        }
        self.last_id += 1;
        let (id, paths, is_unique) = (self.last_id, paths.clone(), *is_unique);
        let declared = Declared { id, paths, is_unique, is_building: true };
        self.named.insert(name.clone(), declared.clone());
        Ok(declared)
    }

    /// Says that an index is made; false if somebody dropped it meanwhile.
    pub(crate) fn finish(&mut self, name: &str, id: u32) -> bool {
        let found = self.named.get_mut(name).filter(|declared| declared.id == id);
        found.map(|declared| declared.is_building = false).is_some()
    }

    /// Drops an index, made or being made; none if there is none of that name.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Declared> {
        self.named.remove(name)
    }

    /// The options as the catalogue keeps them.
    pub(crate) fn to_json(&self) -> String {
        let index = |(name, declared): (&String, &Declared)| {
            let Declared { id, paths, is_unique, is_building } = declared;
            let paths: Vec<String> = paths.iter().map(|path| quoted(&path.to_string())).collect();
            let unique = if *is_unique { ",\"unique\":true" } else { "" };
            let building = if *is_building { ",\"building\":true" } else { "" };
            let paths = paths.join(",");
            format!("{}:{{\"id\":{id},\"paths\":[{paths}]{unique}{building}}}", quoted(name))
        };
        let named: Vec<String> = self.named.iter().map(index).collect();
        format!("{{\"last\":{},\"named\":{{{}}}}}", self.last_id, named.join(","))
    }

    /// The options that [`Self::to_json`] gave.
    pub(crate) fn from_json(tape: &Tape<'_>, at: TapeIndex) -> Result<Self> {
        let last_id = number(tape, member(tape, at, "last"))?;
        let mut options = Self { last_id, named: BTreeMap::new() };
        let named = member(tape, at, "named");
        for (name, index) in named.into_iter().flat_map(|named| tape.fields(named)) {
            let name = name.text().ok_or_else(wrong)?;
            let paths = member(tape, index, "paths");
            let paths = paths.into_iter().flat_map(|paths| tape.elements(paths));
            let path = |at| tape.item(at).text().ok_or_else(wrong)?.parse::<RecordPath>();
            let paths = paths.map(path).collect::<Result<Vec<_>>>()?;
            let is_set = |name: &str| {
                member(tape, index, name)
                    .is_some_and(|at| matches!(tape.item(at), Item::Bool(true)))
            };
            let (is_unique, is_building) = (is_set("unique"), is_set("building"));
            IndexDefinition { name: name.to_owned(), paths: paths.clone(), is_unique }.check()?;
            let id = number(tape, member(tape, index, "id"))?;
            if id == 0 || id > last_id || options.named.values().any(|other| other.id == id) {
                return Err(wrong());
            }
            let declared = Declared { id, paths, is_unique, is_building };
            options.named.insert(name.to_owned(), declared);
        }
        Ok(options)
    }
}

/// There is no index of a name.
pub(crate) fn no_index(name: &str) -> Error {
    let message = format!("there is no index {name:?}: \"duramen index ls\" lists those there are");
    Error::new(ErrorKind::NotFound, message)
}

fn member(tape: &Tape<'_>, at: TapeIndex, name: &str) -> Option<TapeIndex> {
    let mut fields = tape.fields(at);
    fields.find(|(found, _)| found.text() == Some(name)).map(|(_, value)| value)
}

fn number(tape: &Tape<'_>, at: Option<TapeIndex>) -> Result<u32> {
    match at.map(|at| tape.item(at)) {
        Some(Item::Number(text)) => {
            std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
        }
        _ => None,
    }
    .ok_or_else(wrong)
}

fn wrong() -> Error {
    Error::new(ErrorKind::Invalid, "the options of the indexes are not of their form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::ParseOptions;

    fn read(text: &str) -> Result<IndexOptions> {
        let tape = Tape::parse(text.as_bytes(), ParseOptions::default())?;
        IndexOptions::from_json(&tape, tape.root())
    }

    #[test]
    fn indexes_are_kept_as_they_were_made_and_ids_are_never_used_twice() {
        let mut options = IndexOptions::default();
        let one = IndexDefinition::new("a \"b\"", &[r#"["x.y"].z[*]"#, "n"]).unwrap().unique();
        let id = options.begin(&one).unwrap().id;
        assert!(options.get(&one.name).is_none(), "it is being made");
        assert_eq!(options.begin(&one).unwrap().id, id, "the making goes on");
        assert_eq!(read(&options.to_json()).unwrap().to_json(), options.to_json());
        assert!(options.finish(&one.name, id));
        assert!(options.get(&one.name).is_some());
        assert_eq!(options.begin(&one).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(read(&options.to_json()).unwrap().to_json(), options.to_json());
        options.remove(&one.name);
        assert_eq!(read(&options.to_json()).unwrap().to_json(), options.to_json());
        assert!(options.begin(&one).unwrap().id > id);
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for (name, paths) in [("a", &[][..]), ("", &["x"][..]), ("a", &["x[*]", "y[*]"][..])] {
            let refused = IndexDefinition::new(name, paths).unwrap().check().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{name} {paths:?}");
        }
        assert!(IndexDefinition::new("a", &["x..y"]).is_err());
        for text in [
            "{}",
            r#"{"last":1,"named":{"a":{"id":2,"paths":["x"]}}}"#,
            r#"{"last":1,"named":{"a":{"id":1,"paths":["x"]},"b":{"id":1,"paths":["x"]}}}"#,
            r#"{"last":1,"named":{"a":{"id":1,"paths":[]}}}"#,
            r#"{"last":1,"named":{"a":{"id":1,"paths":[7]}}}"#,
            r#"{"last":-1,"named":{}}"#,
        ] {
            assert_eq!(read(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
        }
    }
}
