//! Purges of records, and of their fields.

use std::ops::ControlFlow;

use duramen::{Database, JsonPointer, Key, PurgeOptions};

use super::change::{NOTE, key};
use super::model::{Purged, State};
use super::{COLLECTIONS, KEYS};
use crate::Random;
use crate::json::Json;

/// Fields that no index refuses.
const FIELDS: [&str; 5] = ["name", "score", "tags", "at", NOTE];

/// Draws what is purged of the newest state, and takes it out there; none if there is nothing. It
/// is of the first collection, whose keys are the names of its members.
pub(super) fn draw(random: &mut Random, state: &mut State) -> Option<Purged> {
    let place = (0, random.below(KEYS));
    let held = state.get_mut(&place)?;
    let Some(Json::Object(fields)) = &mut held.value else { return None };
    let field = random.choose(&FIELDS);
    if random.one_in(2) && fields.iter().any(|(name, _)| name == field) {
        fields.retain(|(name, _)| name != field);
        return Some(Purged { place, field: Some(field) });
    }
    held.value = None;
    Some(Purged { place, field: None })
}

/// Does it.
pub(super) fn call(purged: Purged, db: &Database) -> duramen::Result<()> {
    let Key::Text(record) = key(purged.place) else { unreachable!("keys are texts") };
    let field = purged.field.map(|field| format!("/{field}")).unwrap_or_default();
    let target = JsonPointer::parse(&format!("/{}{field}", record.replace('/', "~1")))?;
    let collection = db.collection(COLLECTIONS[purged.place.0].0)?;
    let go_on = &mut |_, _| ControlFlow::Continue(());
    collection.document().purge(&target, &PurgeOptions::default(), go_on).map(drop)
}
