//! The indexes that types declare.

use crate::error::Result;
use crate::index::IndexDefinition;

/// An index that a type declares for its records, as [`IndexDefinition::new`] takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexDeclaration {
    /// Its name among the indexes of the collection.
    pub name: &'static str,
    /// Where the values are, those that count first in front: members by the names under which they
    /// are stored, such as `address.city` or `tags[*]`.
    pub paths: &'static [&'static str],
    /// Whether no two records have the same values there.
    pub is_unique: bool,
}

impl IndexDeclaration {
    /// The index, as it is made.
    pub(super) fn definition(self) -> Result<IndexDefinition> {
        let definition = IndexDefinition::new(self.name, self.paths)?;
        Ok(if self.is_unique { definition.unique() } else { definition })
    }
}
