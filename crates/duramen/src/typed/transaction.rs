//! Values of a type in a transaction.

use std::marker::PhantomData;

use super::{TypedCollection, TypedRecord, coding};
use crate::collection::{Filter, Key, Record, ScanOptions};
use crate::error::Result;
use crate::transaction::Transaction;

/// A typed collection as a transaction makes it: reads see what the transaction did before.
///
/// Values are stored as [`TypedCollection`] stores them, the version as no member. A value that is
/// read has the version that its record was at when the transaction first saw it, and keeps it: the
/// closure of [`Database::transact`](crate::Database::transact) may run again, and the record gets
/// its next version with the commit. So a value that goes on being edited after it is read again.
#[derive(Debug)]
pub struct TypedTransaction<'t, R> {
    transaction: &'t mut Transaction,
    collection: &'t str,
    values: PhantomData<fn() -> R>,
}

impl Transaction {
    /// Reads and changes values of a typed collection in this transaction.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Record, TransactOptions};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Record, Serialize, Deserialize)]
    /// struct Account {
    ///     #[record(key)]
    ///     owner: String,
    ///     balance: i64,
    ///     #[record(version)]
    ///     version: u64,
    /// }
    ///
    /// let db = Database::memory()?;
    /// let accounts = db.create_typed_collection::<Account>("accounts")?;
    /// for owner in ["ann", "bob"] {
    ///     let new = Account { owner: owner.into(), balance: 50, version: 0 };
    ///     accounts.insert(&new, &CommitOptions::default())?;
    /// }
    /// db.transact(&TransactOptions::default(), |transaction| {
    ///     let mut accounts = transaction.typed(&accounts);
    ///     for (owner, change) in [("ann", -20), ("bob", 20)] {
    ///         let mut account = accounts.get(&owner.into())?.expect("it is there");
    ///         account.balance += change;
    ///         accounts.save(&account)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// let bob = accounts.get(&"bob".into())?.expect("he is there");
    /// assert_eq!((bob.balance, bob.version), (70, 2));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn typed<'t, R: TypedRecord>(
        &'t mut self,
        collection: &'t TypedCollection<R>,
    ) -> TypedTransaction<'t, R> {
        let collection = collection.collection().name();
        TypedTransaction { transaction: self, collection, values: PhantomData }
    }
}

impl<R: TypedRecord> TypedTransaction<'_, R> {
    /// The value with a key, if there is one.
    ///
    /// # Errors
    /// As [`TypedCollection::get`].
    pub fn get(&mut self, key: &R::Key) -> Result<Option<R>> {
        let record = self.transaction.read_record(self.collection, &key.clone().into())?;
        record.map(|record| coding::decode(&record, self.collection)).transpose()
    }

    /// How many records there are.
    pub fn count(&mut self) -> Result<u64> {
        self.transaction.count_records(self.collection)
    }

    /// The values in the order of their keys. They are all held in memory: give a
    /// [limit](ScanOptions::limit) and go on behind the last key where there are many.
    ///
    /// # Errors
    /// As [`TypedCollection::get`].
    pub fn scan(&mut self, options: &ScanOptions) -> Result<Vec<R>> {
        let records = self.transaction.staged_records(self.collection)?.scan(options)?;
        let value = |record: Result<Record>| coding::decode(&record?, self.collection);
        records.map(value).collect()
    }

    /// The values of the records of which a filter is true; they are all held in memory.
    ///
    /// # Errors
    /// As [`TypedCollection::get`].
    pub fn find(&mut self, filter: &Filter) -> Result<Vec<R>> {
        let keys = self.transaction.find_records(self.collection, filter)?;
        let mut values = Vec::with_capacity(keys.len());
        for key in &keys {
            let record = self.transaction.read_record(self.collection, key)?;
            values.extend(record.map(|record| coding::decode(&record, self.collection)));
        }
        values.into_iter().collect()
    }

    /// Saves a value that was read, or a new one, as [`TypedCollection::save`] does: `Conflict` if
    /// the record was at another version than the value when the transaction first saw it, or is
    /// there already where the value has none. The value keeps its version. Of a type without a
    /// field for the version this is [`put`](Self::put).
    ///
    /// # Errors
    /// As of all that saves values, `Invalid` if one has a number that JSON has not.
    pub fn save(&mut self, value: &R) -> Result<()> {
        match (R::VERSION_MEMBER, value.version()) {
            (None, _) => self.put(value),
            (Some(_), 0) => self.insert(value),
            (Some(_), version) => {
                let (key, json) = self.stored(value)?;
                self.transaction.expect_record(self.collection, &key, version)?;
                self.transaction.put_value(self.collection, &key, json.as_bytes())
            }
        }
    }

    /// Adds a value; `Conflict` if there is a record with its key.
    pub fn insert(&mut self, value: &R) -> Result<()> {
        let (key, json) = self.stored(value)?;
        self.transaction.insert_record(self.collection, &key, json.as_bytes())
    }

    /// Adds a value, or saves it over what has its key, whatever version that is.
    pub fn put(&mut self, value: &R) -> Result<()> {
        let (key, json) = self.stored(value)?;
        self.transaction.put_value(self.collection, &key, json.as_bytes())
    }

    /// Deletes the record with a key; whether there was one.
    pub fn delete(&mut self, key: &R::Key) -> Result<bool> {
        let key = key.clone().into();
        Ok(self.transaction.delete_records(self.collection, &[key])? > 0)
    }

    fn stored(&self, value: &R) -> Result<(Key, String)> {
        Ok((value.key().into(), coding::encode(value, self.collection)?))
    }
}
