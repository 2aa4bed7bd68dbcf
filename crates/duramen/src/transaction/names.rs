//! Names in a transaction: making, deleting and renaming documents.
//!
//! The catalogue's turn comes before that of any document, so whoever may have to write both
//! takes it first.

use std::sync::Arc;

use crate::engine::CATALOGUE;
use crate::engine::catalogue::{self, Name, Status, check_name, facts, no_document};
use crate::error::{Error, ErrorKind, Result};
use crate::index::no_index;
use crate::json::escape::quoted;
use crate::json::{JsonPointer, ParseOptions, Tape};
use crate::options::DocumentOptions;
use crate::revision::Revision;
use crate::series::tags;
use crate::transaction::{Aim, Transaction};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::node;
use crate::tree::edit::Given;
use crate::tree::history::short;
use crate::tree::schema::ROOT;
use crate::tree::writer::Writer;

impl Transaction {
    /// Makes a document without revisions; `Conflict` if there is one of that name, deleted or
    /// not.
    pub fn create_document(&mut self, name: &str) -> Result<()> {
        if self.find(name)?.is_none() {
            let (_, is_made) = self.create(name)?;
            if is_made {
                return Ok(());
            }
            // Another commit made it: what it says counts once it is published.
            let catalogue = self.engine.view().tree(CATALOGUE)?;
            self.wait_published(&catalogue)?;
        }
        let (catalogue, revision) = self.names_now()?;
        let message = match catalogue::find(&catalogue, name, revision)?.map(|name| name.status) {
            Some(Status::Deleted(revision)) => format!(
                "document {name:?} was deleted in revision {revision} and keeps its past: put a \
                 value to go on with it, or rename it to free the name"
            ),
            _ => format!("there is a document {name:?} already"),
        };
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Deletes a document: it is not there from its next revision on, and every revision before
    /// stays readable. A `put` of the same name goes on counting.
    ///
    /// What this transaction was the first to put into it was never there. `NotFound` if nothing
    /// is in it, or it is deleted already.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, ErrorKind, Revision};
    ///
    /// let db = Database::memory()?;
    /// let note = db.create_document("note")?;
    /// note.put("1", &CommitOptions::default())?;
    /// let mut transaction = db.transaction();
    /// transaction.delete_document("note")?;
    /// transaction.commit(&CommitOptions::default())?;
    /// assert_eq!(note.head().unwrap_err().kind(), ErrorKind::NotFound);
    /// assert_eq!(note.at(Revision(1))?.to_json()?, "1");
    /// note.put("3", &CommitOptions::default())?;
    /// assert_eq!(note.head()?.revision(), Revision(3));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn delete_document(&mut self, name: &str) -> Result<()> {
        self.find(name)?.ok_or_else(|| self.missing(name))?;
        self.catalogue()?;
        let repeats = self.repeats;
        let writer = self.writer(name)?;
        let is_new = writer.is_new();
        if is_new && !repeats {
            if !writer.has_root() {
                let message =
                    format!("document {name:?} has no revision yet: there is nothing to delete");
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            writer.take_back();
            return Ok(());
        }
        if is_new {
            // What is left of a history may begin so: something has to be there to be deleted.
            self.put(name, b"null")?;
            self.keep_unchanged();
        }
        let deleted = self.writer(name)?.delete();
        self.aim.let_go();
        self.note(deleted)
    }

    /// Gives a document another name. Its revisions, tags and options stay with it; the old name
    /// is free again, and finds the document still in snapshots of the database taken before.
    ///
    /// `Conflict` if a document has the new name, deleted or not.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Revision};
    ///
    /// let db = Database::memory()?;
    /// db.create_document("draft")?.put("1", &CommitOptions::default())?;
    /// let before = db.snapshot();
    /// let mut transaction = db.transaction();
    /// transaction.rename_document("draft", "final")?;
    /// transaction.commit(&CommitOptions::default())?;
    /// assert_eq!(db.document("final")?.at(Revision(1))?.to_json()?, "1");
    /// assert_eq!(before.document("draft")?.to_json()?, "1");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn rename_document(&mut self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        self.find(from)?.ok_or_else(|| self.missing(from))?;
        let writer = self.take(CATALOGUE)?;
        let (catalogue, revision) = (Arc::clone(&writer.tree), writer.revision);
        // Another commit may have renamed it, or taken the new name: that counts once published.
        let Some(source) = used(&catalogue, from, revision)? else {
            self.wait_published(&catalogue)?;
            return Err(catalogue::missing(&catalogue, from, revision)?);
        };
        if let Some(target) = used(&catalogue, to, revision)? {
            self.wait_published(&catalogue)?;
            let is =
                if target.status == Status::Live { "is" } else { "is, deleted but with a past," };
            let message = format!(
                "there {is} a document {to:?} already: give {from:?} another name, or rename \
                 that one first"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.check_no_series(to)?;
        // Who read the document by its name commits before or after.
        self.take(source.tree)?;
        let renamed = self.writers[&CATALOGUE].rename((from, source), to);
        if renamed.is_ok() {
            self.names.remove(from);
            self.names.insert(to.to_owned(), source.tree);
        }
        self.note(renamed)
    }

    /// The writer of the catalogue: taken before any document's.
    pub(crate) fn catalogue(&mut self) -> Result<&Writer> {
        self.engine.journal()?;
        self.take(CATALOGUE)
    }

    /// Declares the options of a document, for what is put after this commit or, in a document
    /// that this transaction makes, with it.
    pub fn declare(&mut self, name: &str, declared: &DocumentOptions) -> Result<()> {
        declared.check()?;
        let id = self.find(name)?.ok_or_else(|| self.missing(name))?;
        // What is declared now is looked at when nobody else can declare anything.
        self.catalogue()?;
        self.check_collection(id, declared)?;
        let tree = self.engine.view().tree(id)?;
        let mut declared = declared.clone();
        // Whoever sets other options has nothing to say of these, unless he loads the collection.
        if let Some(before) = self.options(&tree)?
            && !before.indexes.is_empty()
        {
            declared.indexes = before.indexes.clone();
        }
        self.declare_all(id, &declared)?;
        if let Some(writer) = self.writers.get_mut(&id).filter(|writer| writer.is_new()) {
            writer.options = Some(Arc::new(declared));
        }
        Ok(())
    }

    /// Drops an index of a collection with this commit, also of one that is deleted: what is put
    /// by this transaction need not be unique there any more. `NotFound` if there is none of that
    /// name.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, IndexDefinition, Key, KeyKind};
    ///
    /// let db = Database::memory()?;
    /// let players = db.create_collection("players", KeyKind::Text)?;
    /// players.create_index(&IndexDefinition::new("by-name", &["name"])?.unique())?;
    /// let mut transaction = db.transaction();
    /// transaction.drop_index("players", "by-name")?;
    /// for key in ["a", "b"] {
    ///     transaction.put_record("players", &Key::from(key), br#"{"name":"Ann"}"#)?;
    /// }
    /// transaction.commit(&CommitOptions::default())?;
    /// assert!(players.indexes()?.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn drop_index(&mut self, name: &str, index: &str) -> Result<()> {
        let id = self.find(name)?.ok_or_else(|| self.missing(name))?;
        self.catalogue()?;
        let tree = self.engine.view().tree(id)?;
        let mut declared = self.options(&tree)?.map(Arc::unwrap_or_clone).unwrap_or_default();
        let dropped = declared.indexes.remove(index).ok_or_else(|| no_index(index))?;
        self.declare_all(id, &declared)?;
        if let Some(writer) = self.writers.get_mut(&id) {
            writer.options = Some(Arc::new(declared));
        }
        self.dropped_indexes.push((tree, dropped.id));
        Ok(())
    }

    /// Forgets the indexes that were dropped once that is committed.
    pub(super) fn forget_dropped(&mut self) {
        for (tree, index) in std::mem::take(&mut self.dropped_indexes) {
            tree.indexes.forget(index);
        }
    }

    /// Declares the options of a document, its indexes included.
    pub(crate) fn declare_all(&mut self, id: TreeId, declared: &DocumentOptions) -> Result<()> {
        let json = (!declared.is_empty()).then(|| declared.to_json());
        let told = self.catalogue()?.set_of_tree(id, "options", json.as_deref());
        self.aim.let_go();
        self.note(told)
    }

    /// What has a revision stays a collection, with its type of keys, or none.
    fn check_collection(&mut self, id: TreeId, declared: &DocumentOptions) -> Result<()> {
        let tree = self.engine.view().tree(id)?;
        let before = self.options(&tree)?.and_then(|options| options.collection);
        // Who has put something as what it was before comes to its end first.
        if before == declared.collection || self.take(id)?.is_new() {
            return Ok(());
        }
        let message = "whether a document is a collection, and of which keys, is said when it is \
                       made: make another one and put the records there";
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// The writer of a document, deleted or not.
    pub(super) fn any_writer(&mut self, name: &str) -> Result<&Writer> {
        let id = self.find(name)?.ok_or_else(|| self.missing(name))?;
        self.open(id)
    }

    /// The writer of a document that is not deleted.
    pub(crate) fn writer(&mut self, name: &str) -> Result<&Writer> {
        let writer = self.any_writer(name)?;
        let Some(revision) = writer.deleted()? else { return self.any_writer(name) };
        let tree = Arc::clone(&writer.tree);
        self.wait_published(&tree)?;
        let message = format!(
            "document {name:?} was deleted in revision {revision}: put a value to go on with it"
        );
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// The writer of a document's tree. That of a deleted document comes with the catalogue's,
    /// which says that it is deleted and may have to say otherwise.
    pub(super) fn open(&mut self, id: TreeId) -> Result<&Writer> {
        let is_first = !self.writers.contains_key(&id);
        let is_alone = !self.writers.contains_key(&CATALOGUE);
        if self.take(id)?.deleted()?.is_some() && is_alone {
            // A turn that another attempt took ahead is kept, so that nobody comes first again.
            if is_first {
                self.writers.remove(&id);
            }
            self.take(CATALOGUE)?;
        }
        self.take(id)
    }

    /// Has the catalogue say which of the documents written are deleted. Those whose deletion
    /// this transaction can have changed come with the catalogue's writer.
    pub(super) fn tell_deletions(&self) -> Result<()> {
        let Some(catalogue) = self.writers.get(&CATALOGUE) else { return Ok(()) };
        for (&id, writer) in self.writers.iter().filter(|(id, _)| !id.is_catalogue()) {
            let revision = catalogue.revision;
            let told = catalogue.tree.read(|data| facts::deleted(data, id, revision))?;
            let deleted = writer.deleted()?;
            if told != deleted {
                let deleted = deleted.map(|revision| revision.to_string());
                catalogue.set_of_tree(id, "deleted", deleted.as_deref())?;
            }
        }
        Ok(())
    }

    /// The tree that has a name, as far as this transaction sees.
    pub(super) fn find(&mut self, name: &str) -> Result<Option<TreeId>> {
        let known = self.names.get(name).copied();
        if known.is_none() {
            check_name(name)?;
        }
        self.engine.journal()?;
        if known.is_some() {
            return Ok(known);
        }
        let (catalogue, revision) = self.names_now()?;
        let found = tree_of(&catalogue, name, revision)?;
        self.note_name(name, found);
        if let Some(id) = found {
            self.names.insert(name.to_owned(), id);
        }
        Ok(found)
    }

    /// The catalogue and its revision that this transaction sees: what it staged itself, else
    /// what is published, or was in its snapshot.
    pub(super) fn names_now(&self) -> Result<(Arc<Tree>, u32)> {
        match self.writers.get(&CATALOGUE) {
            Some(writer) => Ok((Arc::clone(&writer.tree), writer.revision)),
            None => self.engine.view().catalogue(self.seen()),
        }
    }

    pub(super) fn missing(&self, name: &str) -> Error {
        let series = self.series_tags_now();
        if series.is_ok_and(|(tags, revision)| tags::has(&tags, name, revision).unwrap_or(false)) {
            return catalogue::is_series(name);
        }
        let told = self
            .names_now()
            .and_then(|(catalogue, revision)| catalogue::missing(&catalogue, name, revision));
        told.unwrap_or_else(|_| no_document(name))
    }

    /// What is declared of a tree's document, as of the catalogue's newest revision.
    pub(super) fn options(&self, tree: &Tree) -> Result<Option<Arc<DocumentOptions>>> {
        let id = tree.id();
        if id == CATALOGUE {
            return Ok(Some(facts::catalogue_options()));
        }
        if id == TreeId::SERIES {
            return Ok(Some(tags::options()));
        }
        if let Some(writer) = self.writers.get(&CATALOGUE) {
            // What this transaction has staged may be taken back, so it is not remembered.
            return Ok(facts::options(&writer.tree, id, writer.revision)?.map(Arc::new));
        }
        let catalogue = self.engine.view().tree(CATALOGUE)?;
        let newest = short(catalogue.newest());
        tree.options.at(newest, || facts::options(&catalogue, id, newest))
    }

    /// The tree that a name would have, and whether no document has the name. One that was never
    /// used gets an entry.
    pub(super) fn reserve(&mut self, name: &str) -> Result<(TreeId, bool)> {
        let writer = self.take(CATALOGUE)?;
        let (catalogue, revision) = (Arc::clone(&writer.tree), writer.revision);
        if let Some(found) = catalogue::find(&catalogue, name, revision)? {
            return Ok((found.tree, found.is_free()));
        }
        self.check_no_series(name)?;
        let writer = self.take(CATALOGUE)?;
        let new = writer.add_name(name)?;
        writer.write_name(name, &Name { status: Status::Free, ..new }, None)?;
        Ok((new.tree, true))
    }

    /// Makes a document, unless a commit not yet published has made it; whether it was made now.
    pub(super) fn create(&mut self, name: &str) -> Result<(TreeId, bool)> {
        self.aim = Aim::Adding;
        let writer = self.take(CATALOGUE)?;
        let (catalogue, revision) = (Arc::clone(&writer.tree), writer.revision);
        let found = catalogue::find(&catalogue, name, revision)?;
        if found.is_none_or(|found| found.is_free()) {
            self.check_no_series(name)?;
        }
        let writer = self.take(CATALOGUE)?;
        let (id, is_made) = match found {
            Some(found) if !found.is_free() => (found.tree, false),
            Some(free) => {
                writer.write_name(name, &Name { status: Status::Live, ..free }, None)?;
                (free.tree, true)
            }
            None => (writer.add_name(name)?.tree, true),
        };
        self.names.insert(name.to_owned(), id);
        Ok((id, is_made))
    }
}

/// The tree of the document that has a name.
pub(super) fn tree_of(catalogue: &Tree, name: &str, revision: u32) -> Result<Option<TreeId>> {
    Ok(used(catalogue, name, revision)?.map(|found| found.tree))
}

/// What a name stands for if a document has it.
fn used(catalogue: &Tree, name: &str, revision: u32) -> Result<Option<Name>> {
    Ok(catalogue::find(catalogue, name, revision)?.filter(|found| !found.is_free()))
}

impl Writer {
    /// The revision in which the document was deleted, if it is.
    pub(crate) fn deleted(&self) -> Result<Option<Revision>> {
        self.tree.deleted_in(self.revision)
    }

    /// Removes the whole value.
    fn delete(&self) -> Result<()> {
        if self.tree.deleted_in(self.revision - 1)?.is_some() {
            // It was not there before this transaction, so what it put since was never there.
            self.take_back();
            return Ok(());
        }
        self.erase(node(ROOT, 0))
    }

    /// Adds a name that the catalogue never had.
    fn add_name(&self, name: &str) -> Result<Name> {
        if !self.has_root() {
            self.put_root(&Tape::parse(b"{}", ParseOptions::default())?)?;
        }
        let mut pointer = JsonPointer::root();
        pointer.push(name);
        let record = Tape::parse(catalogue::record().as_bytes(), ParseOptions::default())?;
        self.set(&pointer, Given::whole(&record))?;
        catalogue::find(&self.tree, name, self.revision)?.ok_or_else(|| no_document(name))
    }

    /// Exchanges the trees of a name in use and one that is not.
    fn rename(&self, (from, source): (&str, Name), to: &str) -> Result<()> {
        let target = match catalogue::find(&self.tree, to, self.revision)? {
            Some(free) => free,
            None => self.add_name(to)?,
        };
        let freed = Name { tree: target.tree, status: Status::Free, ..source };
        self.write_name(from, &freed, Some(to))?;
        self.write_name(to, &Name { tree: source.tree, status: source.status, ..target }, None)
    }

    /// Makes a name that is there that of a document.
    pub(super) fn make_live(&self, name: &str) -> Result<()> {
        let found = catalogue::find(&self.tree, name, self.revision)?;
        let free = found.ok_or_else(|| no_document(name))?;
        self.write_name(name, &Name { status: Status::Live, ..free }, None)
    }

    /// Writes what a name stands for; a free one says what its document was renamed to.
    fn write_name(&self, name: &str, is: &Name, renamed: Option<&str>) -> Result<()> {
        let kind = if is.is_free() { "\"free\"" } else { "\"document\"" };
        let tree = (is.tree != is.own).then(|| is.tree.0.to_string());
        self.set_of_name(name, "kind", Some(kind))?;
        self.set_of_name(name, "tree", tree.as_deref())?;
        self.set_of_name(name, "renamed", renamed.map(quoted).as_deref())
    }
}

impl Tree {
    /// The revision in which the document was deleted, if it is not there at a revision.
    pub(crate) fn deleted_in(&self, revision: u32) -> Result<Option<Revision>> {
        let root = node(ROOT, 0);
        self.read(|data| {
            // Most are there, which the state alone says soonest.
            if !data.state(root, revision)?.is_absent() {
                return Ok(None);
            }
            Ok(match data.version(root, revision)? {
                Some((set, state)) if state.is_absent() && set > 0 => Some(Revision(set.into())),
                _ => None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Collection, CommitOptions, Database, IndexDefinition, KeyKind};

    /// Declares an index as one that is made.
    fn declare_index(transaction: &mut Transaction, collection: &Collection) {
        let (_, tree) = collection.document().parts();
        let mut declared = (*transaction.options(tree).unwrap().unwrap()).clone();
        let by_n = IndexDefinition::new("n", &["n"]).unwrap();
        let id = declared.indexes.begin(&by_n).unwrap().id;
        assert!(declared.indexes.finish("n", id));
        transaction.declare_all(tree.id(), &declared).unwrap();
    }

    #[test]
    fn an_index_that_a_transaction_drops_is_there_until_its_commit() {
        let db = Database::memory().unwrap();
        let collection = db.create_collection("c", KeyKind::Text).unwrap();
        let unique = |name| IndexDefinition::new(name, &[name]).unwrap().unique();
        for name in ["m", "n"] {
            collection.create_index(&unique(name)).unwrap();
        }
        let how = CommitOptions::default();
        collection.put("a", r#"{"m":1,"n":1}"#, &how).unwrap();
        let same = || {
            let mut transaction = db.transaction();
            // Also where the collection is being changed already.
            transaction.merge_patch_record("c", &"a".into(), b"{\"x\":1}").unwrap();
            transaction.drop_index("c", "n").unwrap();
            assert_eq!(transaction.drop_index("c", "n").unwrap_err().kind(), ErrorKind::NotFound);
            transaction
        };
        let mut dropping = same();
        dropping.put_record("c", &"b".into(), br#"{"m":1,"n":1}"#).unwrap();
        assert_eq!(dropping.commit(&how).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(collection.indexes().unwrap(), [unique("m"), unique("n")]);
        let mut dropping = same();
        dropping.put_record("c", &"b".into(), br#"{"m":2,"n":1}"#).unwrap();
        assert_eq!(collection.indexes().unwrap().len(), 2);
        dropping.commit(&how).unwrap();
        assert_eq!(collection.indexes().unwrap(), [unique("m")]);
        assert!(db.check().unwrap().is_clean());
    }

    /// It was told that there was nothing to delete.
    #[test]
    fn a_document_that_a_transaction_makes_and_deletes_was_never_there() {
        let db = Database::memory().unwrap();
        let how = CommitOptions::default();
        db.create_collection("old", KeyKind::Text).unwrap();
        let mut transaction = db.transaction();
        for _ in 0..2 {
            transaction.put("new", br#"{"a":["x"]}"#).unwrap();
            transaction.put_record("old", &"k".into(), br#"{"n":1}"#).unwrap();
            for name in ["new", "old"] {
                transaction.delete_document(name).unwrap();
                let again = transaction.delete_document(name).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::NotFound, "{again}");
            }
        }
        assert!(transaction.commit(&how).unwrap().revisions.is_empty());
        for name in ["new", "old"] {
            let document = db.document(name).unwrap();
            assert_eq!(document.head_revision().unwrap(), Revision(0));
        }
        let saved = db.collection("old").unwrap().put("k", r#"{"n":2}"#, &how).unwrap();
        assert_eq!(saved.version, 1);
        assert!(db.check().unwrap().is_clean());
    }

    /// An index that came while somebody waited to declare other options was not there any more.
    #[test]
    fn options_that_are_declared_leave_indexes_that_came_meanwhile() {
        let db = Database::memory().unwrap();
        let collection = db.create_collection("c", KeyKind::Text).unwrap();
        let options = collection.document().options().unwrap();
        let mut first = db.transaction();
        first.catalogue().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut second = db.transaction();
                second.declare("c", &options).unwrap();
                second.commit(&CommitOptions::default()).unwrap();
            });
            std::thread::sleep(Duration::from_millis(100));
            declare_index(&mut first, &collection);
            first.commit(&CommitOptions::default()).unwrap();
            waiting.join().unwrap();
        });
        assert_eq!(collection.indexes().unwrap().len(), 1);
    }
}
