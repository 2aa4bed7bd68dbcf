//! What a database should hold, kept the naive way: every revision of every document in full.
//!
//! It knows nothing of the device: what a power loss may take is the business of the suites.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use duramen::{ContentHash, DocumentOptions, Revision};

use crate::json::Json;
use crate::plan::Plan;
use crate::random::Random;
use crate::samples::Scale;

mod kept;
mod staging;

pub use kept::{Kept, Listed};
pub(crate) use staging::{Staged, Staging};

/// Fewer than the paths from which on the engine keeps objects otherwise.
const MANY_FIELDS: usize = 2_000;

/// A database.
#[derive(Debug, Clone)]
pub struct Model {
    scale: Scale,
    /// Whether no document is to drop anything of its history.
    keeps_all: bool,
    sequence: u64,
    documents: BTreeMap<String, Document>,
}

/// A document of it.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Whether an object in it was ever a map: what comes back after a gap is another node then
    /// if it was a field and is an entry, or the other way round.
    pub has_map: bool,
    /// Whether it ever had so many fields at once that objects may be maps, or stored whole.
    pub(crate) has_many_fields: bool,
    /// Its revisions, from the first on.
    pub versions: Vec<Arc<Version>>,
    /// Which of them are there still.
    pub kept: Kept,
    /// What is said of it beside its values.
    pub facts: Facts,
}

/// What is said of a document beside its values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its tags by name.
    pub tags: BTreeMap<String, Tag>,
    /// What is declared of it.
    pub options: DocumentOptions,
}

/// A name for a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// The revision.
    pub revision: Revision,
    /// The hash of its value.
    pub hash: ContentHash,
    /// The commit that set the tag to it.
    pub sequence: u64,
    /// Who did.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
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
    /// Whether elements that look alike before and after may be others.
    pub(crate) is_rebuilt: bool,
}

impl Document {
    /// Whether it is deleted.
    pub fn is_deleted(&self) -> bool {
        self.versions.last().is_some_and(|version| version.json.is_none())
    }

    /// Its newest value.
    pub(crate) fn value(&self) -> Option<&Json> {
        self.versions.last().and_then(|version| version.json.as_ref())
    }

    /// Its value at a revision; none if it was dropped.
    pub(crate) fn value_at(&self, revision: Revision) -> Option<&Json> {
        let version = self.version(revision).filter(|_| !self.kept.is_dropped(revision));
        version?.json.as_ref()
    }

    /// One of its revisions.
    pub(crate) fn version(&self, revision: Revision) -> Option<&Version> {
        let index = usize::try_from(revision.0).ok()?.checked_sub(1)?;
        self.versions.get(index).map(|version| &**version)
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

impl Model {
    /// An empty database; documents will have this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale, keeps_all: false, sequence: 0, documents: BTreeMap::new() }
    }

    /// From now on no document is to drop anything of its history.
    #[must_use]
    pub fn keeping_all(self) -> Self {
        Self { keeps_all: true, ..self }
    }

    /// Whether no document is to drop anything of its history.
    pub(crate) fn keeps_all(&self) -> bool {
        self.keeps_all
    }

    /// A compaction of everything has ended, and this is what a document says since.
    ///
    /// # Errors
    /// What is wrong with that.
    pub fn compacted(&mut self, name: &str, listed: &Listed) -> Result<(), String> {
        let Some(Document { kept, facts, .. }) = self.documents.get_mut(name) else {
            return Err(format!("there is no document {name:?}"));
        };
        kept.compacted(listed, facts)
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

    /// What a plan leads to happens: one commit, or none if nothing comes of it.
    pub fn commit(&mut self, plan: &Plan) {
        if !plan.is_commit() {
            return;
        }
        self.sequence += 1;
        // All of them leave their names before any takes one.
        let take = |(name, staged): (&String, &Staged)| {
            let origin = staged.origin.as_ref();
            let document = origin.and_then(|origin| self.documents.remove(origin));
            (name.clone(), document.unwrap_or_default())
        };
        let taken: Vec<(String, Document)> = plan.staged.iter().map(take).collect();
        for (name, mut document) in taken {
            document.commit(&plan.staged[&name], plan, self.sequence);
            self.documents.insert(name, document);
        }
    }
}

impl Document {
    fn commit(&mut self, staged: &Staged, plan: &Plan, sequence: u64) {
        self.has_map |= staged.traits.has_map;
        self.facts = staged.facts.clone();
        for tag in self.facts.tags.values_mut().filter(|tag| tag.sequence == sequence) {
            (tag.author, tag.message) = (plan.author.clone(), plan.message.clone());
        }
        if staged.value.as_ref() != self.value() {
            self.push_version(staged, plan, sequence);
        }
        self.kept.commit(self.versions.len(), &self.facts);
    }

    fn push_version(&mut self, staged: &Staged, plan: &Plan, sequence: u64) {
        let fields = staged.value.as_ref().map_or(0, Json::fields);
        self.has_many_fields |= fields > MANY_FIELDS;
        self.versions.push(Arc::new(Version {
            sequence,
            json: staged.value.clone(),
            text: staged.value.as_ref().map(Json::to_string).unwrap_or_default(),
            author: plan.author.clone(),
            message: plan.message.clone(),
            is_compound: staged.traits.is_compound,
            is_rebuilt: staged.traits.is_rebuilt,
        }));
    }
}
