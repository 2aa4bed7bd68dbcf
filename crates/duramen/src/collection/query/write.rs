//! Changes of all records of which a filter is true.

use std::sync::Arc;

use super::candidates::Candidates;
use super::{Filter, QueryCounts, RecordView, lookup};
use crate::collection::indexes::with_indexes;
use crate::collection::{Collection, CollectionSnapshot, Key};
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::json::JsonPointer;
use crate::patch;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::tree::children::is_there;

impl Collection {
    /// Changes the records of which a filter is true by a JSON Merge Patch (RFC 7396), in one
    /// commit; how many those are, those included that it leaves as they were.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Filter, KeyKind};
    ///
    /// let players = Database::memory()?.create_collection("players", KeyKind::Text)?;
    /// let how = CommitOptions::default();
    /// players.put("ann", r#"{"score":3}"#, &how)?;
    /// players.put("bob", r#"{"score":7}"#, &how)?;
    /// let good = Filter::gt("score", 5);
    /// assert_eq!(players.update_where(&good, r#"{"medal":true}"#, &how)?, 1);
    /// let bob = players.get("bob")?.expect("he is there");
    /// assert_eq!(bob.json, r#"{"score":7,"medal":true}"#);
    /// assert_eq!(players.delete_where(&good, &how)?, 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn update_where(
        &self,
        filter: &Filter,
        merge_patch: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<u64> {
        let mut updated = 0;
        super::super::commit(self, options, |transaction, name| {
            updated = transaction.update_records_where(name, filter, merge_patch.as_ref())?;
            Ok(())
        })?;
        Ok(updated)
    }

    /// Deletes the records of which a filter is true, in one commit; how many those were.
    pub fn delete_where(&self, filter: &Filter, options: &CommitOptions) -> Result<u64> {
        let mut deleted = 0;
        super::super::commit(self, options, |transaction, name| {
            deleted = transaction.delete_records_where(name, filter)?;
            Ok(())
        })?;
        Ok(deleted)
    }
}

impl Transaction {
    /// The keys of the records of which a filter is true, as this transaction has made them. Though
    /// it only reads, it takes the collection as a change does: others who write it wait until the
    /// transaction ends, also in [`Database::transact`](crate::Database::transact).
    pub fn find_records(&mut self, name: &str, filter: &Filter) -> Result<Vec<Key>> {
        let keys = self.key_kind(name)?;
        let Some(chosen) = self.choose(name, filter)? else { return Ok(Vec::new()) };
        let ordinals = chosen.ordinals.iter();
        ordinals.map(|&ordinal| keys.key_of(chosen.view.name(ordinal)?.as_bytes())).collect()
    }

    /// Changes the records of which a filter is true by a JSON Merge Patch; how many those are.
    pub fn update_records_where(
        &mut self,
        name: &str,
        filter: &Filter,
        merge_patch: &[u8],
    ) -> Result<u64> {
        let patch = patch::merge::read(merge_patch)?;
        let keys = self.key_kind(name)?;
        let Some(Chosen { view, ordinals }) = self.choose(name, filter)? else { return Ok(0) };
        self.change_collection(name, |writer| {
            for &ordinal in &ordinals {
                let key = view.name(ordinal)?;
                let place = JsonPointer::root().child(key.as_ref());
                patch::merge::apply(writer, &place, &patch)
                    .map_err(|error| error.in_context(format!("record {}", keys.shown(&key))))?;
            }
            Ok(ordinals.len() as u64)
        })
    }

    /// Deletes the records of which a filter is true; how many those were.
    pub fn delete_records_where(&mut self, name: &str, filter: &Filter) -> Result<u64> {
        let Some(Chosen { view, ordinals }) = self.choose(name, filter)? else { return Ok(0) };
        let records: Vec<_> = ordinals.into_iter().map(|ordinal| view.node(ordinal)).collect();
        if records.is_empty() {
            return Ok(0);
        }
        self.change_collection(name, |writer| writer.remove_records(&records))?;
        Ok(records.len() as u64)
    }

    /// The records of which a filter is true, found by indexes or a scan; none if there never was a
    /// record.
    fn choose(&mut self, name: &str, filter: &Filter) -> Result<Option<Chosen>> {
        let expression = Arc::new(filter.expression()?.clone());
        let keys = self.key_kind(name)?;
        let writer = self.writer(name)?;
        let (tree, staged) = (Arc::clone(&writer.tree), Revision(writer.revision.into()));
        let snapshot = |revision| Snapshot { tree: Arc::clone(&tree), revision, head: staged };
        let Some(view) = RecordView::new(snapshot(staged), keys) else { return Ok(None) };
        let mut counts = QueryCounts::default();
        let named = if staged.0 > 1 {
            let document = self.document_of(name, &tree);
            let committed = snapshot(Revision(staged.0 - 1));
            let committed = CollectionSnapshot::of(document, Some(committed), keys);
            with_indexes(|| lookup::named_for(&committed, &expression, &mut counts))?
        } else {
            None
        };
        let mut candidates = match named {
            Some(mut named) => {
                // Indexes know of nothing that is staged. What is gone is not one without values.
                let staged = Staged::of(&view)?;
                named.retain(|ordinal| staged.gone.binary_search(ordinal).is_err());
                named.extend(staged.there);
                named.sort_unstable();
                named.dedup();
                Candidates::among(named, Some(expression), &(0..u64::MAX), false)
            }
            None => Candidates::new(&view, Some(expression), 0..u64::MAX, false)?,
        };
        let mut ordinals = Vec::new();
        while let Some(ordinal) = candidates.next(&view, &mut counts)? {
            ordinals.push(ordinal);
        }
        Ok(Some(Chosen { view, ordinals }))
    }
}

/// The records that a filter chose, by their ordinals, which take little memory.
struct Chosen {
    view: RecordView,
    ordinals: Vec<u64>,
}

/// The ordinals of the records that the staged transaction changed, made or deleted, rising.
struct Staged {
    there: Vec<u64>,
    gone: Vec<u64>,
}

impl Staged {
    fn of(view: &RecordView) -> Result<Self> {
        let (tree, path) = (view.tree(), view.path());
        let (touched, born) = {
            let data = tree.data.read();
            let space = &data.spaces[data.schema.path(path).space.0 as usize];
            (data.touched().to_vec(), space.committed..space.next)
        };
        let mut records = tree.records_of(&touched, path)?;
        records.extend(born);
        let mut staged = Self { there: Vec::new(), gone: Vec::new() };
        for ordinal in records {
            let record = view.node(ordinal);
            let is_there = tree.read(|data| is_there(data, record, view.revision()))?;
            if is_there { &mut staged.there } else { &mut staged.gone }.push(ordinal);
        }
        Ok(staged)
    }
}
