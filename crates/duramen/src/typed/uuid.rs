//! UUIDs of the crate `uuid` as keys.

use uuid::Uuid;

use crate::collection::{Key, KeyKind};
use crate::typed::RecordKey;

impl From<Uuid> for Key {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid.as_u128())
    }
}

impl From<&Uuid> for Key {
    fn from(uuid: &Uuid) -> Self {
        Self::from(*uuid)
    }
}

/// ```
/// use duramen::{CommitOptions, Database, Record};
/// use serde::{Deserialize, Serialize};
/// use uuid::Uuid;
///
/// #[derive(Record, Serialize, Deserialize)]
/// struct Order {
///     #[record(key)]
///     id: Uuid,
///     item: String,
/// }
///
/// let orders = Database::memory()?.create_typed_collection::<Order>("orders")?;
/// let id = Uuid::from_u128(7);
/// orders.save(&mut Order { id, item: "tea".into() }, &CommitOptions::default())?;
/// assert_eq!(orders.get(&id)?.expect("it is there").item, "tea");
/// # Ok::<(), duramen::Error>(())
/// ```
impl RecordKey for Uuid {
    const KIND: KeyKind = KeyKind::Uuid;
}
