//! Where a new value goes.

use crate::target::Target;

/// A place for a value among the elements of an array or the members of an object, which keep
/// their order too.
///
/// ```
/// use duramen::{CommitOptions, Database, Position};
///
/// let list = Database::memory()?.create_document("list")?;
/// let options = CommitOptions::default();
/// list.put(r#"{"a":[1,3],"c":0}"#, &options)?;
/// list.insert(&Position::Before("/a/1".parse()?), None, "2", &options)?;
/// list.insert(&Position::After("/a".parse()?), Some("b"), "true", &options)?;
/// assert_eq!(list.head()?.to_json()?, r#"{"a":[1,2,3],"b":true,"c":0}"#);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// In front of a value, in the array or object it is in.
    Before(Target),
    /// Behind a value, in the array or object it is in.
    After(Target),
    /// The first one in an array or object.
    First(Target),
    /// The last one in an array or object.
    Last(Target),
}
