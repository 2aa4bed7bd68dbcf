//! What is declared of a document: the id fields of its arrays, and which of its objects are maps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::PathId;
use crate::collection::KeyKind;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{IndexDefinition, IndexOptions};
use crate::json::escape::quoted;
use crate::json::{Item, ParseOptions, Tape, TapeIndex};
use crate::label_path::LabelPath;
use crate::limits::DECLARED_PATHS_MAX;
use crate::retention::Retention;
use crate::sync::Mutex;
use crate::tree::compare::check_member_name;
use crate::tree::schema::{ROOT, Schema};

/// What is declared of a document, when it is made or later.
///
/// It says how values are taken in from then on; nothing that is stored is converted.
///
/// ```
/// use duramen::{CommitOptions, Database, DocumentOptions, JsonPointer};
///
/// let db = Database::memory()?;
/// let options = DocumentOptions {
///     ids: [("$.list".parse()?, "id".to_owned())].into(),
///     ..DocumentOptions::default()
/// };
/// let list = db.create_document_with("list", &options)?;
/// list.put(r#"{"list":[{"id":1,"n":"a"},{"id":2,"n":"b"}]}"#, &CommitOptions::default())?;
/// let a = list.head()?.node(&JsonPointer::parse("/list/0")?)?.id;
/// list.put(r#"{"list":[{"id":2,"n":"b"},{"id":1,"n":"A"}]}"#, &CommitOptions::default())?;
/// assert_eq!(list.head()?.pointer(a)?.to_string(), "/list/1");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentOptions {
    /// Arrays whose elements are told apart by a field, and its name: an element of a new value is
    /// the element that had its id, wherever it stood, whatever else changed in it. Elements
    /// without the field, or with an id that another one has too, are compared as in any array.
    pub ids: BTreeMap<LabelPath, String>,
    /// Objects whose members are entries of a map from the first on: for names that are data.
    /// Where an object had fields before, these stay, and new names become entries.
    pub maps: BTreeSet<LabelPath>,
    /// How much of its history is kept.
    pub keep: Retention,
    /// The keys of its records, if the document is a [collection](crate::Collection): then its
    /// value is an object of objects. It is said when the document is made.
    pub collection: Option<KeyKind>,
    /// The indexes of a collection.
    pub indexes: IndexOptions,
}

/// What was declared of a document at the committed revision of the catalogue that was asked for
/// last, so that commits do not read it each time.
#[derive(Debug, Default)]
pub(crate) struct LastOptions(Mutex<Option<(u32, Option<Arc<DocumentOptions>>)>>);

impl LastOptions {
    /// What is declared at a revision; `read` if another one was asked for last.
    pub(crate) fn at(
        &self,
        revision: u32,
        read: impl FnOnce() -> Result<Option<DocumentOptions>>,
    ) -> Result<Option<Arc<DocumentOptions>>> {
        if let Some((last, options)) = &*self.0.lock()
            && *last == revision
        {
            return Ok(options.clone());
        }
        let options = read()?.map(Arc::new);
        *self.0.lock() = Some((revision, options.clone()));
        Ok(options)
    }
}

impl DocumentOptions {
    /// Whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
            && self.maps.is_empty()
            && self.keep == Retention::All
            && self.collection.is_none()
            && self.indexes.is_empty()
    }

    /// Without the unique indexes, and these: a bulk load compares no records.
    pub(crate) fn without_unique(mut self) -> (Self, Vec<IndexDefinition>) {
        let indexes = self.indexes.definitions();
        let (unique, others) = indexes.partition::<Vec<_>, _>(|index| index.is_unique);
        if !unique.is_empty() {
            self.indexes = others.into_iter().collect();
        }
        (self, unique)
    }

    /// The same while a history is taken over: unique indexes are made at its end, and all is kept
    /// until then, as its tags come last and it may have to be begun again.
    pub(crate) fn while_imported(self) -> Self {
        Self { keep: Retention::All, ..self.without_unique().0 }
    }

    /// Refuses more paths than can be looked at with every value, and names no field can have.
    pub(crate) fn check(&self) -> Result<()> {
        let declared = self.ids.len() + self.maps.len();
        if declared > DECLARED_PATHS_MAX {
            let message =
                format!("{declared} paths are declared: at most {DECLARED_PATHS_MAX} can be");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if self.collection.is_none() && !self.indexes.is_empty() {
            let message = "only collections have indexes: this document is none";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        self.indexes.check()?;
        self.keep.check()?;
        self.ids.values().try_for_each(|field| check_member_name(field.as_bytes()))
    }

    /// The field that tells the elements of the arrays at a path apart.
    pub(crate) fn id_field(&self, schema: &Schema, path: PathId) -> Option<&str> {
        let found = self.ids.iter().find(|(array, _)| array.is_at(schema, path));
        found.map(|(_, field)| field.as_str())
    }

    /// False if objects at a path are surely not declared to be maps.
    pub(crate) fn has_maps(&self, path: PathId) -> bool {
        path == ROOT || !self.maps.is_empty()
    }

    /// Whether objects at a path are maps from their first field.
    pub(crate) fn is_map(&self, schema: &Schema, path: PathId) -> bool {
        (path == ROOT && self.collection.is_some())
            || self.maps.iter().any(|map| map.is_at(schema, path))
    }

    /// The options as the catalogue keeps them.
    pub(crate) fn to_json(&self) -> String {
        let pair = |(path, field): (&LabelPath, &String)| {
            format!("{}:{}", quoted(&path.to_string()), quoted(field))
        };
        let ids: Vec<String> = self.ids.iter().map(pair).collect();
        let maps: Vec<String> = self.maps.iter().map(|path| quoted(&path.to_string())).collect();
        let keep = self.keep.to_json().map_or(String::new(), |keep| format!(",\"keep\":{keep}"));
        let keys = self.collection.map(|keys| format!(",\"collection\":\"{keys}\""));
        let keys = keys.unwrap_or_default();
        let indexes = (!self.indexes.is_empty()).then(|| self.indexes.to_json());
        let indexes = indexes.map(|json| format!(",\"indexes\":{json}")).unwrap_or_default();
        let (ids, maps) = (ids.join(","), maps.join(","));
        format!("{{\"ids\":{{{ids}}},\"maps\":[{maps}]{keep}{keys}{indexes}}}")
    }

    /// The options that [`Self::to_json`] gave.
    pub(crate) fn from_json(text: &[u8]) -> Result<Self> {
        let tape = Tape::parse(text, ParseOptions::default())?;
        let member = |name: &str| {
            let found = tape.fields(tape.root()).find(|(found, _)| found.text() == Some(name));
            found.map(|(_, value)| value)
        };
        let text_at = |at: TapeIndex| -> Result<String> {
            let text = tape.item(at).text().map(str::to_owned);
            text.ok_or_else(|| Error::new(ErrorKind::Invalid, "an option is no string"))
        };
        let mut options = Self::default();
        for (path, field) in member("ids").into_iter().flat_map(|ids| tape.fields(ids)) {
            let path = path.text().unwrap_or_default().parse()?;
            options.ids.insert(path, text_at(field)?);
        }
        for path in member("maps").into_iter().flat_map(|maps| tape.elements(maps)) {
            options.maps.insert(text_at(path)?.parse()?);
        }
        if let Some(keep) = member("keep") {
            let named = tape.fields(keep).next().map(|(name, value)| (name.text(), value));
            let named = named.and_then(|(name, value)| match tape.item(value) {
                Item::Number(text) => Some((name?, std::str::from_utf8(text).ok()?.parse().ok()?)),
                _ => None,
            });
            options.keep = Retention::from_json(tape.item(keep).text(), named)?;
        }
        if let Some(keys) = member("collection") {
            options.collection = Some(text_at(keys)?.parse()?);
        }
        if let Some(indexes) = member("indexes") {
            options.indexes = IndexOptions::from_json(&tape, indexes)?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_retention_of_nothing_or_of_another_form_is_refused() {
        for keep in ["null", "\"all\"", "{}", r#"{"last":0}"#, r#"{"last":-1}"#, r#"{"days":3}"#] {
            let text = format!(r#"{{"ids":{{}},"maps":[],"keep":{keep}}}"#);
            let error = DocumentOptions::from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{keep}");
        }
        let keep = Retention::For(Duration::MAX);
        assert!(DocumentOptions { keep, ..DocumentOptions::default() }.check().is_err());
    }

    #[test]
    fn options_are_kept_as_they_were_given() {
        let options = DocumentOptions {
            ids: [
                (r#"$["a.b"][*]"#.parse().unwrap(), "\"id\"".to_owned()),
                ("$".parse().unwrap(), String::new()),
            ]
            .into(),
            maps: ["$.players{*}".parse().unwrap(), "$".parse().unwrap()].into(),
            keep: Retention::Last(7),
            collection: Some(KeyKind::Uuid),
            indexes: IndexOptions::default(),
        };
        let second = Duration::from_secs(1);
        for keep in [Retention::All, Retention::Last(7), Retention::For(second), Retention::Head] {
            let options = DocumentOptions { keep, ..options.clone() };
            assert_eq!(DocumentOptions::from_json(options.to_json().as_bytes()).unwrap(), options);
        }
        let none = DocumentOptions::default();
        assert_eq!(DocumentOptions::from_json(none.to_json().as_bytes()).unwrap(), none);
    }
}
