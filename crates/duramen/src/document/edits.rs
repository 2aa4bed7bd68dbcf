//! Changes of single places of a document, each a commit.

use crate::document::{Document, Outcome};
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::jsonpath::JsonPath;
use crate::position::Position;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::target::Target;

/// # Changing single places
///
/// Each of these is one commit, all or nothing; several changes in one commit are a
/// [`Transaction`](crate::Transaction). What names a value is a [`Target`], or a
/// [`JsonPointer`](crate::JsonPointer) or the [`NodeId`](crate::NodeId) that makes one, by
/// reference.
impl Document {
    /// Sets what a target names: replaces the value there, adds a field, or adds an element at the
    /// end of an array (`/list/-`).
    pub fn set<'t, T>(
        &self,
        target: &'t T,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.set(&self.name, target, json.as_ref()))
    }

    /// Replaces what a target names; `NotFound` if it is not there.
    pub fn replace<'t, T>(
        &self,
        target: &'t T,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.replace(&self.name, target, json.as_ref()))
    }

    /// Removes what a target names; elements behind it move up.
    pub fn remove<'t, T>(&self, target: &'t T, options: &CommitOptions) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.remove(&self.name, target))
    }

    /// Replaces everything that a path finds by a value, in one commit, and says how many places
    /// that was. What is found in something else that is found goes with it.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPath};
    ///
    /// let shop = Database::memory()?.create_document("shop")?;
    /// let options = CommitOptions::default();
    /// shop.put(r#"[{"price":5},{"price":80},{"price":90}]"#, &options)?;
    /// let dear = JsonPath::parse("$[?@.price > 50].price")?;
    /// let (outcome, places) = shop.set_all(&dear, "50", &options)?;
    /// assert_eq!((outcome.is_committed(), places), (true, 2));
    /// assert_eq!(shop.head()?.to_json()?, r#"[{"price":5},{"price":50},{"price":50}]"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn set_all(
        &self,
        path: &JsonPath,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<(Outcome, u64)> {
        let mut places = 0;
        let outcome = self.commit(options, |transaction| {
            places = transaction.set_all(&self.name, path, json.as_ref())?;
            Ok(())
        })?;
        Ok((outcome, places))
    }

    /// Removes everything that a path finds, in one commit, and says how many places that was.
    pub fn remove_all(&self, path: &JsonPath, options: &CommitOptions) -> Result<(Outcome, u64)> {
        let mut places = 0;
        let outcome = self.commit(options, |transaction| {
            places = transaction.remove_all(&self.name, path)?;
            Ok(())
        })?;
        Ok((outcome, places))
    }

    /// Adds an element to an array, or with a `member` name a field to an object; `Conflict` if
    /// there is a field of that name.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, ErrorKind, Position};
    ///
    /// let menu = Database::memory()?.create_document("menu")?;
    /// let options = CommitOptions::default();
    /// menu.put(r#"{"soup":5,"cake":4}"#, &options)?;
    /// let cake = Position::Before("/cake".parse()?);
    /// menu.insert(&cake, Some("fish"), "12.50", &options)?;
    /// assert_eq!(menu.head()?.to_json()?, r#"{"soup":5,"fish":12.50,"cake":4}"#);
    /// let twice = menu.insert(&cake, Some("fish"), "12.50", &options).unwrap_err();
    /// assert_eq!(twice.kind(), ErrorKind::Conflict);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn insert(
        &self,
        position: &Position,
        member: Option<&str>,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Outcome> {
        let json = json.as_ref();
        self.commit(options, |transaction| transaction.insert(&self.name, position, member, json))
    }

    /// Adds an element at the end of an array.
    pub fn append<'t, T>(
        &self,
        array: &'t T,
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.append(&self.name, array, json.as_ref()))
    }

    /// Replaces `remove` elements of an array from `index` on by those of a JSON array.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPointer};
    ///
    /// let list = Database::memory()?.create_document("list")?;
    /// let options = CommitOptions::default();
    /// list.put("[1,2,3,4]", &options)?;
    /// list.splice(&JsonPointer::root(), (1, 2), r#"["two","and","three"]"#, &options)?;
    /// assert_eq!(list.head()?.to_json()?, r#"[1,"two","and","three",4]"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn splice<'t, T>(
        &self,
        array: &'t T,
        (index, remove): (u64, u64),
        json: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        let (range, json) = ((index, remove), json.as_ref());
        self.commit(options, |transaction| transaction.splice(&self.name, array, range, json))
    }

    /// Moves a value to another place, in an object under the name `member` (none keeps its name).
    ///
    /// Within one array, or under its name within one object, it goes on as the same node; else
    /// its nodes end, and new ones begin that are known to have been moved from there.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPointer, Position};
    ///
    /// let board = Database::memory()?.create_document("board")?;
    /// let options = CommitOptions::default();
    /// board.put(r#"{"todo":["a","b"],"done":["c"]}"#, &options)?;
    /// let done = Position::First("/done".parse()?);
    /// board.move_to(&JsonPointer::parse("/todo/1")?, &done, None, &options)?;
    /// assert_eq!(board.head()?.to_json()?, r#"{"todo":["a"],"done":["b","c"]}"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn move_to<'t, T>(
        &self,
        from: &'t T,
        position: &Position,
        member: Option<&str>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.move_to(&self.name, from, position, member))
    }

    /// Copies a value to another place, in an object under the name `member` (none keeps its name).
    pub fn copy<'t, T>(
        &self,
        from: &'t T,
        position: &Position,
        member: Option<&str>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.copy(&self.name, from, position, member))
    }

    /// Copies a value of another document, or of another revision, to a place in this document.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPointer, Position, Revision};
    ///
    /// let config = Database::memory()?.create_document("config")?;
    /// let options = CommitOptions::default();
    /// config.put(r#"{"colour":"red"}"#, &options)?;
    /// config.remove(&JsonPointer::parse("/colour")?, &options)?;
    /// let before = config.at(Revision(1))?;
    /// let end = Position::Last("".parse()?);
    /// let colour = JsonPointer::parse("/colour")?;
    /// config.copy_from((&before, &colour), &end, Some("old"), &options)?;
    /// assert_eq!(config.head()?.to_json()?, r#"{"old":"red"}"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn copy_from<'t, T>(
        &self,
        (other, from): (&Snapshot, &'t T),
        position: &Position,
        member: Option<&str>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| {
            transaction.copy_from(&self.name, (other, from), position, member)
        })
    }

    /// Gives a field another name, in its place; `Conflict` if there is a field of that name.
    ///
    /// Its nodes end, and new ones begin that are known to have been moved from there.
    pub fn rename_field<'t, T>(
        &self,
        field: &'t T,
        new_name: &str,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        &'t T: Into<Target>,
    {
        self.commit(options, |transaction| transaction.rename_field(&self.name, field, new_name))
    }

    /// Applies a JSON Patch (RFC 6902), all of it or nothing. An error says which operation failed,
    /// counted from 1, and why; a `test` that finds another value is a `Conflict`.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, ErrorKind};
    ///
    /// let account = Database::memory()?.create_document("account")?;
    /// let options = CommitOptions::default();
    /// account.put(r#"{"balance":70}"#, &options)?;
    /// let pay = r#"[{"op":"test","path":"/balance","value":70.0},
    ///               {"op":"replace","path":"/balance","value":50}]"#;
    /// assert!(account.patch(pay, &options)?.is_committed());
    /// let again = account.patch(pay, &options).unwrap_err();
    /// assert_eq!(again.kind(), ErrorKind::Conflict);
    /// let reason = "operation 1 of 2 (test \"/balance\"): the value is 50, not 70.0";
    /// assert_eq!(again.message(), reason);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn patch(&self, json_patch: impl AsRef<[u8]>, options: &CommitOptions) -> Result<Outcome> {
        self.commit(options, |transaction| transaction.patch(&self.name, json_patch.as_ref()))
    }

    /// Applies a JSON Merge Patch (RFC 7396): members that are `null` in it are removed, objects
    /// are merged, everything else is set.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database};
    ///
    /// let page = Database::memory()?.create_document("page")?;
    /// let options = CommitOptions::default();
    /// page.put(r#"{"title":"Hello","author":{"name":"Ann","age":40}}"#, &options)?;
    /// page.merge_patch(r#"{"title":"Bye","author":{"age":null}}"#, &options)?;
    /// assert_eq!(page.head()?.to_json()?, r#"{"title":"Bye","author":{"name":"Ann"}}"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn merge_patch(&self, json: impl AsRef<[u8]>, options: &CommitOptions) -> Result<Outcome> {
        self.commit(options, |transaction| transaction.merge_patch(&self.name, json.as_ref()))
    }
    /// Takes back what one revision changed, as a new revision. `Conflict` if any of it has changed
    /// since: it names the first ten such values. What was removed comes back as the nodes it was.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, ErrorKind, JsonPointer, Revision};
    ///
    /// let config = Database::memory()?.create_document("config")?;
    /// let options = CommitOptions::default();
    /// let (port, host) = (JsonPointer::parse("/port")?, JsonPointer::parse("/host")?);
    /// config.put(r#"{"port":80,"host":"a"}"#, &options)?;
    /// config.set(&port, "8080", &options)?;
    /// config.set(&host, r#""b""#, &options)?;
    /// config.undo(Revision(2), &options)?;
    /// assert_eq!(config.head()?.to_json()?, r#"{"port":80,"host":"b"}"#);
    /// config.set(&host, r#""c""#, &options)?;
    /// assert_eq!(config.undo(Revision(3), &options).unwrap_err().kind(), ErrorKind::Conflict);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn undo(&self, revision: Revision, options: &CommitOptions) -> Result<Outcome> {
        self.commit(options, |transaction| transaction.undo(&self.name, revision))
    }

    /// Makes the document what it was at a revision, as a new revision. What was removed since
    /// comes back as the nodes it was. A deleted document lives again.
    pub fn revert_to(&self, revision: Revision, options: &CommitOptions) -> Result<Outcome> {
        self.commit(options, |transaction| transaction.revert_to(&self.name, revision))
    }
}

#[cfg(test)]
mod tests;
