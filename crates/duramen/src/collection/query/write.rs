//! Changes of all records of which a filter is true.

use super::candidates::Candidates;
use super::{Filter, QueryCounts, RecordView};
use crate::collection::{Collection, Key, KeyKind};
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

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
    /// The keys of the records of which a filter is true, as this transaction has made them.
    pub fn find_records(&mut self, name: &str, filter: &Filter) -> Result<Vec<Key>> {
        let keys = self.key_kind(name)?;
        let writer = self.writer(name)?;
        let revision = Revision(writer.revision.into());
        let tree = std::sync::Arc::clone(&writer.tree);
        find(RecordView::new(Snapshot { tree, revision, head: revision }, keys), filter, keys)
    }

    /// Changes the records of which a filter is true by a JSON Merge Patch; how many those are.
    pub fn update_records_where(
        &mut self,
        name: &str,
        filter: &Filter,
        merge_patch: &[u8],
    ) -> Result<u64> {
        let keys = self.find_records(name, filter)?;
        for key in &keys {
            self.merge_patch_record(name, key, merge_patch)?;
        }
        Ok(keys.len() as u64)
    }

    /// Deletes the records of which a filter is true; how many those were.
    pub fn delete_records_where(&mut self, name: &str, filter: &Filter) -> Result<u64> {
        let keys = self.find_records(name, filter)?;
        self.delete_records(name, &keys)
    }
}

fn find(staged: Option<RecordView>, filter: &Filter, kind: KeyKind) -> Result<Vec<Key>> {
    let expression = Some(std::sync::Arc::new(filter.expression()?.clone()));
    let Some(view) = staged else { return Ok(Vec::new()) };
    let mut counts = QueryCounts::default();
    let mut candidates = Candidates::new(&view, expression, 0..u64::MAX, false)?;
    let mut keys = Vec::new();
    while let Some(ordinal) = candidates.next(&view, &mut counts)? {
        keys.push(kind.key_of(&view.name(ordinal)?)?);
    }
    Ok(keys)
}
