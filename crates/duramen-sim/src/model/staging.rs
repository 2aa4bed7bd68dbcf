//! What a transaction sees: the model under its own changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use duramen::{DocumentOptions, ErrorKind, Retention, Revision};

use super::{Document, Facts, Model, Version};
use crate::json::{Json, Refusal};

/// The model under the changes of a transaction.
#[derive(Debug)]
pub(crate) struct Staging<'m> {
    model: &'m Model,
    /// The documents that it changes, by the names that they have now.
    changed: BTreeMap<String, Staged>,
    /// Whether a change failed half done: then there is no commit.
    is_broken: bool,
}

/// A document that a transaction changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Staged {
    /// The name that it is committed under; none if it is made here.
    pub(crate) origin: Option<String>,
    /// Its value; none where there is none yet, or no more.
    pub(crate) value: Option<Json>,
    pub(crate) facts: Facts,
    /// What its nodes depend on.
    pub(crate) traits: Traits,
    /// Whether its value was changed, perhaps back.
    is_touched: bool,
    /// Whether its value differed at some moment.
    had_other_value: bool,
    /// Whether its name or what is said of it differed at some moment.
    had_other_facts: bool,
}

impl Staged {
    /// Whether a reader would find something else in `other`.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        self.origin != other.origin || self.value != other.value || self.facts != other.facts
    }
}

/// What a document went through in a transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// An object in it was a map at some moment.
    pub(crate) has_map: bool,
    /// Its value was changed more than once.
    pub(crate) is_compound: bool,
    /// Elements that look alike may be others: by several changes, or by a return.
    pub(crate) is_rebuilt: bool,
}

impl<'m> Staging<'m> {
    /// A transaction that has changed nothing.
    pub(crate) fn new(model: &'m Model) -> Self {
        Self { model, changed: BTreeMap::new(), is_broken: false }
    }

    /// What is committed.
    pub(crate) fn model(&self) -> &'m Model {
        self.model
    }

    /// What is committed of the document that has a name now.
    fn committed(&self, name: &str) -> Option<&'m Document> {
        let origin = match self.changed.get(name) {
            Some(staged) => staged.origin.as_deref()?,
            None if self.is_given_away(name) => return None,
            None => name,
        };
        self.model.documents.get(origin)
    }

    /// Whether the document of a name has another one now.
    fn is_given_away(&self, name: &str) -> bool {
        self.changed.values().any(|staged| staged.origin.as_deref() == Some(name))
    }

    /// A document as it is now; none if there is none.
    pub(crate) fn document(&self, name: &str) -> Option<Staged> {
        self.changed.get(name).cloned().or_else(|| {
            let document = self.committed(name)?;
            Some(Staged {
                origin: Some(name.to_owned()),
                value: document.value().cloned(),
                facts: document.facts.clone(),
                ..Staged::default()
            })
        })
    }

    /// A document to be changed; made if there is none.
    fn document_mut(&mut self, name: &str) -> &mut Staged {
        if !self.changed.contains_key(name) {
            let document = self.document(name).unwrap_or_default();
            self.changed.insert(name.to_owned(), document);
        }
        self.changed.get_mut(name).expect("it was put there")
    }

    /// Whether a document is there, with a value or without.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.changed.contains_key(name) || self.committed(name).is_some()
    }

    /// Whether a document's value was changed, perhaps back.
    pub(crate) fn is_touched(&self, name: &str) -> bool {
        self.changed.get(name).is_some_and(|staged| staged.is_touched)
    }

    /// Whether a document is there by name, but deleted.
    pub(crate) fn is_deleted(&self, name: &str) -> bool {
        self.value(name).is_none() && self.head(name) > 0
    }

    /// The committed revisions of a document.
    pub(crate) fn versions(&self, name: &str) -> &'m [Arc<Version>] {
        self.committed(name).map_or(&[], |document| &document.versions)
    }

    /// The newest revision of a document, or 0.
    pub(crate) fn head(&self, name: &str) -> u64 {
        self.versions(name).len() as u64
    }

    /// Whether nobody knows if a revision of a document was dropped.
    pub(crate) fn is_open(&self, name: &str, revision: Revision) -> bool {
        self.committed(name).is_some_and(|document| document.kept.is_open(revision))
    }

    /// Whether the history of a document begins with revision 1 for certain.
    pub(crate) fn has_whole_history(&self, name: &str) -> bool {
        self.committed(name).is_none_or(|document| document.kept.is_whole())
    }

    /// The value of a document at a revision.
    pub(crate) fn value_at(&self, name: &str, revision: Revision) -> Option<&'m Json> {
        self.committed(name)?.value_at(revision)
    }

    /// The value of a document.
    pub(crate) fn value(&self, name: &str) -> Option<&Json> {
        match self.changed.get(name) {
            Some(staged) => staged.value.as_ref(),
            None => self.committed(name)?.value(),
        }
    }

    /// What is said of a document beside its values.
    pub(crate) fn facts(&self, name: &str) -> Option<&Facts> {
        match self.changed.get(name) {
            Some(staged) => Some(&staged.facts),
            None => self.committed(name).map(|document| &document.facts),
        }
    }

    /// The same, to be changed.
    pub(crate) fn facts_mut(&mut self, name: &str) -> &mut Facts {
        &mut self.document_mut(name).facts
    }

    /// What undoing a revision makes of a document that nothing has changed since.
    pub(crate) fn undone(&self, name: &str, revision: Revision) -> Result<Json, ErrorKind> {
        if revision.0 == 0 || revision.0 > self.head(name) {
            return Err(ErrorKind::NotFound);
        }
        let before = Revision(revision.0 - 1);
        let document = self.committed(name);
        let is_dropped = |at| document.is_some_and(|document| document.kept.is_dropped(at));
        if is_dropped(revision) || is_dropped(before) {
            return Err(ErrorKind::NotFound);
        }
        let before = self.value_at(name, before);
        let before = before.filter(|_| self.value_at(name, revision).is_some());
        before.cloned().ok_or(ErrorKind::Invalid)
    }

    /// What undoing a revision before the newest makes of a document; none if that depends on more
    /// than values: on nodes that only look alike.
    pub(crate) fn undone_earlier(
        &self,
        name: &str,
        revision: Revision,
    ) -> Option<Result<Json, ErrorKind>> {
        let document = self.committed(name)?;
        if revision.0 == 0 || revision.0 >= self.head(name) || self.is_touched(name) {
            return None;
        }
        if !document.kept.has_all_from(revision.0 - 1) {
            return None;
        }
        let now = document.value()?;
        let before = match self.undone(name, revision) {
            Ok(before) => before,
            Err(kind) => return Some(Err(kind)),
        };
        let version = document.version(revision)?;
        if document.has_map || document.has_many_fields || version.is_rebuilt {
            return None;
        }
        let undone = now.undone(&before, version.json.as_ref()?)?;
        (undone.as_ref() != Ok(now)).then_some(undone.map_err(ErrorKind::from))
    }

    /// Gives a document a value, or makes one without.
    pub(crate) fn set(&mut self, name: &str, value: Option<Json>) {
        let staged = self.document_mut(name);
        staged.traits.has_map |= value.as_ref().is_some_and(Json::has_map);
        staged.traits.is_compound |= staged.is_touched;
        staged.traits.is_rebuilt |= staged.is_touched;
        staged.is_touched = true;
        staged.value = value;
        let differs = self.differs(name);
        self.document_mut(name).had_other_value |= differs;
    }

    /// Whether a change failed half done.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Changes the value of a document in place.
    pub(crate) fn edit(
        &mut self,
        name: &str,
        edit: impl FnOnce(&mut Json) -> Result<(), Refusal>,
    ) -> Result<(), ErrorKind> {
        let before = self.value(name).ok_or(ErrorKind::NotFound)?;
        let mut value = before.clone();
        if let Err(refusal) = edit(&mut value) {
            self.is_broken |= value != *before;
            return Err(refusal.into());
        }
        self.set(name, Some(value));
        Ok(())
    }

    /// A document went through several changes in one step.
    pub(crate) fn compound(&mut self, name: &str) {
        self.document_mut(name).traits.is_compound = true;
    }

    /// Elements of a document may have made way for others that look alike.
    pub(crate) fn rebuilt(&mut self, name: &str) {
        self.document_mut(name).traits.is_rebuilt = true;
    }

    /// Gives a document another name, which is free.
    pub(crate) fn rename(&mut self, name: &str, to: &str) {
        self.document_mut(name).had_other_facts = true;
        let staged = self.changed.remove(name).expect("it is changed");
        self.changed.insert(to.to_owned(), staged);
    }

    /// Two documents exchange their names.
    pub(crate) fn exchange(&mut self, name: &str, other: &str) {
        for name in [name, other] {
            self.document_mut(name).had_other_facts = true;
        }
        let staged = [name, other].map(|name| self.changed.remove(name));
        for (name, staged) in [other, name].into_iter().zip(staged) {
            self.changed.insert(name.to_owned(), staged.expect("it is changed"));
        }
    }

    /// Declares other options of a document.
    pub(crate) fn declare(&mut self, name: &str, options: &DocumentOptions) {
        let staged = self.document_mut(name);
        staged.had_other_facts |= staged.facts.options != *options;
        staged.traits.has_map |= !options.maps.is_empty();
        staged.facts.options = options.clone();
    }

    /// Declares how much of a document's history is kept.
    pub(crate) fn retain(&mut self, name: &str, keep: Retention) {
        let options = &self.document_mut(name).facts.options;
        let options = DocumentOptions { keep, ..options.clone() };
        self.declare(name, &options);
    }

    /// Whether a document's value is another than the committed one.
    pub(crate) fn differs(&self, name: &str) -> bool {
        self.value(name) != self.committed(name).and_then(Document::value)
    }

    /// Whether anything of a document is other than what is committed.
    fn is_changed(&self, name: &str, staged: &Staged) -> bool {
        let facts = self.committed(name).map(|document| &document.facts);
        staged.origin.as_deref() != Some(name) || facts != Some(&staged.facts) || self.differs(name)
    }

    /// The documents that were changed and are as before: whether that makes a revision or a
    /// commit depends on more than what shows.
    pub(crate) fn changed_back(&self) -> Vec<String> {
        let is_back = |(name, staged): &(&String, &Staged)| {
            (staged.had_other_value && !self.differs(name))
                || (staged.had_other_facts && !self.is_changed(name, staged))
        };
        self.changed.iter().filter(is_back).map(|(name, _)| name.clone()).collect()
    }

    /// The documents that a commit would change or make.
    pub(crate) fn changes(&self) -> BTreeMap<String, Staged> {
        let is_changed = |(name, staged): &(&String, &Staged)| self.is_changed(name, staged);
        let changes = self.changed.iter().filter(is_changed);
        changes.map(|(name, staged)| (name.clone(), staged.clone())).collect()
    }
}
