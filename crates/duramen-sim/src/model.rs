//! What a database should hold, kept the naive way: every revision of every document in full.
//!
//! It knows nothing of the device: what a power loss may take is the business of the suites.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use duramen::{ErrorKind, Revision};

use crate::json::{Json, Refusal};
use crate::plan::Plan;
use crate::random::Random;
use crate::samples::Scale;

/// A database.
#[derive(Debug, Clone)]
pub struct Model {
    scale: Scale,
    sequence: u64,
    documents: BTreeMap<String, Document>,
}

/// A document of it.
#[derive(Debug, Clone)]
pub struct Document {
    /// The commit that made it.
    pub created: u64,
    /// Whether an object in it was ever a map: what comes back after a gap is another node then
    /// if it was a field and is an entry, or the other way round.
    pub has_map: bool,
    /// Its revisions, from the first on.
    pub versions: Vec<Arc<Version>>,
}

/// One revision of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Version {
    /// The commit that made it.
    pub sequence: u64,
    /// Its value; none if the document was deleted in it.
    pub json: Option<Json>,
    /// The same as compact JSON.
    pub text: String,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// Whether several changes made it: what is there before and after may have been away.
    pub is_compound: bool,
}

impl Document {
    /// Whether it is deleted.
    pub fn is_deleted(&self) -> bool {
        self.versions.last().is_some_and(|version| version.json.is_none())
    }

    /// The revisions around one in which what a path of names leads to was there all the time, as
    /// indexes.
    pub fn presence(&self, path: &[String], around: usize) -> Range<usize> {
        let goes_on = |index: usize| {
            let is_there = |version: &Version| version.at_names(path).is_some();
            let version = &self.versions[index];
            is_there(&self.versions[index - 1]) && is_there(version) && !version.is_compound
        };
        let mut first = around;
        while first > 0 && goes_on(first) {
            first -= 1;
        }
        let mut end = around + 1;
        while end < self.versions.len() && goes_on(end) {
            end += 1;
        }
        first..end
    }
}

impl Version {
    /// What a path of names leads to.
    pub fn at_names(&self, path: &[String]) -> Option<&Json> {
        self.json.as_ref().and_then(|json| json.at_names(path))
    }
}

/// Documents and their values; none where there is no value yet, or no more.
pub(crate) type Values = BTreeMap<String, Option<Json>>;

impl Model {
    /// An empty database; documents will have this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale, sequence: 0, documents: BTreeMap::new() }
    }

    /// How large its documents are.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The last commit.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The documents by name.
    pub fn documents(&self) -> &BTreeMap<String, Document> {
        &self.documents
    }

    /// The revisions of a document; none if it is not there.
    pub fn versions(&self, name: &str) -> &[Arc<Version>] {
        self.documents.get(name).map_or(&[], |document| &document.versions)
    }

    /// The newest revision of a document, or 0.
    pub fn head(&self, name: &str) -> u64 {
        self.versions(name).len() as u64
    }

    /// The documents that have revisions.
    pub fn histories(&self) -> impl Iterator<Item = (&str, &Document)> {
        let all = self.documents.iter().map(|(name, document)| (name.as_str(), document));
        all.filter(|(_, document)| !document.versions.is_empty())
    }

    /// One of the documents that have revisions.
    pub fn some_history(&self, random: &mut Random) -> Option<(&str, &Document)> {
        let used: Vec<_> = self.histories().collect();
        used.get(random.index(used.len().max(1))).copied()
    }

    /// The newest value of a document.
    pub(crate) fn value(&self, name: &str) -> Option<&Json> {
        self.versions(name).last().and_then(|version| version.json.as_ref())
    }

    /// The value of a document at a revision.
    pub(crate) fn value_at(&self, name: &str, revision: Revision) -> Option<&Json> {
        let index = usize::try_from(revision.0).ok()?.checked_sub(1)?;
        self.versions(name).get(index)?.json.as_ref()
    }

    /// What a plan leads to happens: one commit, or none if nothing comes of it.
    pub fn commit(&mut self, plan: &Plan) {
        if !plan.is_commit() {
            return;
        }
        self.sequence += 1;
        let sequence = self.sequence;
        for (name, value) in &plan.staged {
            let fresh = || Document { created: sequence, has_map: false, versions: Vec::new() };
            let document = self.documents.entry(name.clone()).or_insert_with(fresh);
            document.has_map |= plan.traits.maps.contains(name);
            if value.is_none() && document.versions.is_empty() {
                continue;
            }
            document.versions.push(Arc::new(Version {
                sequence,
                json: value.clone(),
                text: value.as_ref().map(Json::to_string).unwrap_or_default(),
                author: plan.author.clone(),
                message: plan.message.clone(),
                is_compound: plan.traits.compound.contains(name),
            }));
        }
    }

    /// Forgets the commits after `sequence`.
    pub(crate) fn truncate(&mut self, sequence: u64) {
        self.documents.retain(|_, document| document.created <= sequence);
        for document in self.documents.values_mut() {
            document.versions.retain(|version| version.sequence <= sequence);
        }
        self.sequence = self.sequence.min(sequence);
    }
}

/// What a transaction sees: the model under its own changes.
#[derive(Debug)]
pub(crate) struct Staging<'m> {
    model: &'m Model,
    changed: Values,
    /// Facts of them that the nodes they are made of depend on.
    traits: Traits,
    /// Whether a change failed half done: then there is no commit.
    is_broken: bool,
}

/// What documents went through in a transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Those that had a map at some moment.
    pub(crate) maps: BTreeSet<String>,
    /// Those that were changed more than once.
    pub(crate) compound: BTreeSet<String>,
}

impl<'m> Staging<'m> {
    /// A transaction that has changed nothing.
    pub(crate) fn new(model: &'m Model) -> Self {
        Self { model, changed: Values::new(), traits: Traits::default(), is_broken: false }
    }

    /// What is committed.
    pub(crate) fn model(&self) -> &'m Model {
        self.model
    }

    /// Whether a document is there, with a value or without.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.changed.contains_key(name) || self.model.documents.contains_key(name)
    }

    /// Whether a document was changed, perhaps back.
    pub(crate) fn is_touched(&self, name: &str) -> bool {
        self.changed.contains_key(name)
    }

    /// Whether a document is there by name, but deleted.
    pub(crate) fn is_deleted(&self, name: &str) -> bool {
        self.value(name).is_none() && self.model.head(name) > 0
    }

    /// What undoing the last revision of a document makes of it.
    pub(crate) fn undone(&self, name: &str, revision: Revision) -> Result<Json, ErrorKind> {
        let head = self.model.head(name);
        if revision.0 == 0 || revision.0 > head {
            return Err(ErrorKind::NotFound);
        }
        let before = self.model.value_at(name, Revision(revision.0 - 1));
        let before = before.filter(|_| self.model.value_at(name, revision).is_some());
        before.cloned().ok_or(ErrorKind::Invalid)
    }

    /// The value of a document.
    pub(crate) fn value(&self, name: &str) -> Option<&Json> {
        match self.changed.get(name) {
            Some(value) => value.as_ref(),
            None => self.model.value(name),
        }
    }

    /// Gives a document a value, or makes one without.
    pub(crate) fn set(&mut self, name: &str, value: Option<Json>) {
        if value.as_ref().is_some_and(Json::has_map) {
            self.traits.maps.insert(name.to_owned());
        }
        if self.changed.insert(name.to_owned(), value).is_some() {
            self.traits.compound.insert(name.to_owned());
        }
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
        self.traits.compound.insert(name.to_owned());
    }

    /// Whether a document's value is another than the committed one.
    pub(crate) fn differs(&self, name: &str) -> bool {
        self.value(name) != self.model.value(name)
    }

    /// The documents that a commit would change or make, and what they went through.
    pub(crate) fn into_changes(self) -> (Values, Traits) {
        let model = self.model;
        let is_new = |name: &String| !model.documents.contains_key(name);
        let changes = self.changed.into_iter();
        let differs = |name: &String, value: &Option<Json>| value.as_ref() != model.value(name);
        (
            changes.filter(|(name, value)| is_new(name) || differs(name, value)).collect(),
            self.traits,
        )
    }
}
