//! Writing records: each method is one commit; a transaction makes several of them one.

use super::{Collection, Key, commit};
use crate::document::Outcome;
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::transaction::{StagedVersion, record_tape};
use crate::tree::records::Members;

/// What saving a record did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// The record's version that has the value saved, made by this change or not; 0 if the change
    /// removed the record.
    pub version: u64,
    /// The commit, or that nothing differed.
    pub outcome: Outcome,
}

impl Collection {
    /// Adds a record; `Conflict` if there is one with that key.
    pub fn insert(
        &self,
        key: impl Into<Key>,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Saved> {
        let key = key.into();
        self.save(&key, options, |transaction, name| {
            transaction.insert_record(name, &key, json.as_ref())
        })
    }

    /// Adds a record or saves another value of it; only fields that differ are committed.
    pub fn put(
        &self,
        key: impl Into<Key>,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Saved> {
        let key = key.into();
        self.save(&key, options, |transaction, name| {
            transaction.put_record(name, &key, json.as_ref())
        })
    }

    /// Whether a text is one that can be saved as a record: `Invalid` if not, as [`put`](Self::put)
    /// would say.
    ///
    /// ```
    /// use duramen::{Collection, Key};
    ///
    /// let key = Key::from("a");
    /// assert!(Collection::check_record(&key, r#"{"text":"b"}"#).is_ok());
    /// let error = Collection::check_record(&key, r#"{"text":"\ud800"}"#).unwrap_err();
    /// assert!(error.message().starts_with("record a: "));
    /// ```
    pub fn check_record(key: &Key, json: impl AsRef<[u8]>) -> Result<()> {
        record_tape(key, json.as_ref()).map(drop)
    }

    /// Saves any number of records in one commit, all or none; of a key that is given twice the
    /// last value counts.
    pub fn put_many<K, J>(
        &self,
        records: impl IntoIterator<Item = (K, J)>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        K: Into<Key>,
        J: AsRef<[u8]>,
    {
        commit(self, options, |transaction, name| {
            let records = records.into_iter().map(|(key, json)| (key.into(), json));
            transaction.put_records(name, records, Members::InOrder)
        })
    }

    /// Saves another value of a record that is at a version; `Conflict` if it is at another, or
    /// not there: it tells the key and both versions.
    pub fn update(
        &self,
        key: impl Into<Key>,
        expected: u64,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Saved> {
        let key = key.into();
        self.save(&key, options, |transaction, name| {
            transaction.update_record(name, &key, expected, json.as_ref())
        })
    }

    /// Changes a record by a JSON Patch (RFC 6902) whose pointers begin at the record; `NotFound`
    /// if it is not there.
    pub fn patch(
        &self,
        key: impl Into<Key>,
        json_patch: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Saved> {
        let key = key.into();
        self.save(&key, options, |transaction, name| {
            transaction.patch_record(name, &key, json_patch.as_ref())
        })
    }

    /// Changes a record by a JSON Merge Patch (RFC 7396); `NotFound` if it is not there.
    pub fn merge_patch(
        &self,
        key: impl Into<Key>,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Saved> {
        let key = key.into();
        self.save(&key, options, |transaction, name| {
            transaction.merge_patch_record(name, &key, json.as_ref())
        })
    }

    /// Deletes a record; whether there was one. Its versions stay readable.
    pub fn delete(&self, key: impl Into<Key>, options: &CommitOptions) -> Result<bool> {
        let key = key.into();
        Ok(self.delete_many(&[key], options)? > 0)
    }

    /// Deletes the records with these keys in one commit; how many there were.
    pub fn delete_many(&self, keys: &[Key], options: &CommitOptions) -> Result<u64> {
        let mut deleted = 0;
        commit(self, options, |transaction, name| {
            deleted = transaction.delete_records(name, keys)?;
            Ok(())
        })?;
        Ok(deleted)
    }

    pub(crate) fn save(
        &self,
        key: &Key,
        options: &CommitOptions,
        change: impl FnOnce(&mut crate::Transaction, &str) -> Result<()>,
    ) -> Result<Saved> {
        // Asked before the commit: once it is made there may be later ones, whose retention or
        // purge lets go of its revision, and what cannot be read then is committed all the same.
        let mut staged = StagedVersion::default();
        let outcome = commit(self, options, |transaction, name| {
            change(transaction, name)?;
            staged = transaction.staged_version(name, key)?;
            Ok(())
        })?;
        let version = if outcome.is_committed() { staged.changed } else { staged.before };
        Ok(Saved { version, outcome })
    }
}
