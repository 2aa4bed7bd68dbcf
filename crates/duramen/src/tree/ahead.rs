//! Loads row groups on a thread of its own, ahead of who prints one after the other.
//!
//! It does nothing but put into memory what the other one would load by itself a little later: what
//! cannot be loaded is met there once more, and told there.

use crate::error::Result;
use crate::sync::{Condvar, Mutex};
use crate::tree::Tree;
use crate::tree::disk::Load;
use crate::tree::group::{ColumnId, DiskPart, GroupId};

/// Row groups that are loaded before they are needed.
const GROUPS_AHEAD: u32 = 3;
/// So many row groups one after the other are loaded by who needs them.
const GROUPS_ALONE: u32 = 3;

/// Row groups of the items that a reader goes through, missed one after the other.
#[derive(Debug, Default)]
pub(super) struct Missed {
    /// Where the reader is.
    at: Option<GroupId>,
    last: Option<GroupId>,
    count: u32,
}

/// Who tells where a reader is.
#[derive(Debug)]
pub(super) enum Pace<'a> {
    /// Nobody has to know it yet.
    Alone(Missed),
    /// Row groups are loaded ahead.
    Led(&'a Lead),
}

/// Where a reader is.
#[derive(Debug, Default)]
pub(super) struct Lead {
    place: Mutex<Place>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Place {
    at: Option<GroupId>,
    is_over: bool,
}

impl Missed {
    /// Notes one; whether there have been enough of them for the next ones to be loaded ahead.
    fn note(&mut self, id: GroupId) -> bool {
        // What the items have in arrays of their own is read in between.
        if self.at.is_none_or(|at| at.space != id.space) {
            return false;
        }
        let follows = |last: GroupId| id.space == last.space && id.group == last.group + 1;
        if self.last != Some(id) {
            self.count = if self.last.is_some_and(follows) { self.count + 1 } else { 1 };
            self.last = Some(id);
        }
        self.count > GROUPS_ALONE
    }
}

impl Pace<'_> {
    /// Notes what was missed; whether the reader is to stop and come back led.
    pub(super) fn miss(&mut self, load: &Load) -> bool {
        match self {
            Self::Alone(missed) => missed.note(load.group()),
            Self::Led(_) => false,
        }
    }

    /// Notes where the reader is.
    pub(super) fn reach(&mut self, at: Option<GroupId>) {
        match self {
            Self::Alone(missed) => missed.at = at,
            Self::Led(lead) if at.is_some() => {
                lead.place.lock().at = at;
                lead.moved.notify_one();
            }
            Self::Led(_) => {}
        }
    }
}

impl Lead {
    /// Loads row groups until the reader is done.
    fn follow(&self, tree: &Tree, revision: u32) {
        let mut loaded = None;
        while let Some(next) = self.next(loaded) {
            if load(tree, next, revision).is_err() {
                return;
            }
            loaded = Some(next);
        }
    }

    /// The row group to be loaded after another one, waited for; none if the reader is done.
    fn next(&self, loaded: Option<GroupId>) -> Option<GroupId> {
        let mut place = self.place.lock();
        loop {
            if place.is_over {
                return None;
            }
            if let Some(at) = place.at {
                let loaded = loaded.filter(|loaded| loaded.space == at.space);
                let group = loaded.map_or(at.group, |loaded| loaded.group.max(at.group)) + 1;
                if group <= at.group + GROUPS_AHEAD {
                    return Some(GroupId { space: at.space, group });
                }
            }
            self.moved.wait(&mut place);
        }
    }
}

/// Ends the thread of a lead, whatever becomes of the reader.
struct Ending<'a>(&'a Lead);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.place.lock().is_over = true;
        self.0.moved.notify_one();
    }
}

/// Runs a read that stops (`None`) where it should be led, and then goes on led.
pub(super) fn led<T>(
    (tree, revision): (&Tree, u32),
    mut read: impl FnMut(&mut Pace<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    if let Some(done) = read(&mut Pace::Alone(Missed::default()))? {
        return Ok(Some(done));
    }
    let lead = Lead::default();
    std::thread::scope(|scope| {
        // Without a thread everything is loaded by who needs it.
        let thread = std::thread::Builder::new().name("duramen-ahead".to_owned());
        let _ = thread.spawn_scoped(scope, || lead.follow(tree, revision));
        let _ending = Ending(&lead);
        read(&mut Pace::Led(&lead))
    })
}

/// Loads what a row group has of a revision, if there is one.
fn load(tree: &Tree, id: GroupId, revision: u32) -> Result<()> {
    let mut column = 0;
    tree.read(|data| {
        data.kept.check(revision)?;
        let columns = data.schema.space(id.space).columns.len();
        let Some(found) = data.group_for_scan(id)? else { return Ok(()) };
        let DiskPart::Loaded(disk) = &found.disk else { return Ok(()) };
        while let Ok(index) = u32::try_from(column)
            && column < columns
        {
            disk.pieces(ColumnId::Value(index), revision)?;
            disk.bases(ColumnId::Value(index))?;
            column += 1;
        }
        disk.bases(ColumnId::Key)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::schema::SpaceId;
    use crate::{CommitOptions, Database, Format, JsonPointer, Options, Revision};

    fn id(space: u32, group: u32) -> GroupId {
        GroupId { space: SpaceId(space), group }
    }

    #[test]
    fn who_misses_row_groups_in_order_is_led() {
        let mut missed = Missed::default();
        assert!((0..9).all(|group| !missed.note(id(1, group))), "it is nowhere yet");
        missed.at = Some(id(1, 4));
        let mut note = |space, group| missed.note(id(space, group));
        assert!(!note(1, 4) && !note(1, 6) && !note(2, 7) && !note(1, 7) && !note(1, 7));
        assert!(!note(2, 8) && !note(1, 8) && !note(2, 9));
        assert!(note(1, 9));
    }

    #[test]
    fn some_row_groups_after_the_place_of_a_reader_are_loaded() {
        let lead = Lead::default();
        let mut pace = Pace::Led(&lead);
        pace.reach(Some(id(1, 5)));
        assert_eq!(lead.next(None), Some(id(1, 6)));
        assert_eq!(lead.next(Some(id(1, 7))), Some(id(1, 8)));
        pace.reach(None);
        pace.reach(Some(id(1, 9)));
        assert_eq!(lead.next(Some(id(1, 8))), Some(id(1, 10)));
        assert_eq!(lead.next(Some(id(2, 30))), Some(id(1, 10)));
        drop(Ending(&lead));
        assert_eq!(lead.next(Some(id(1, 10))), None);
    }

    #[test]
    fn a_just_opened_document_of_many_row_groups_is_printed_whole() {
        let folder = tempfile::tempdir().unwrap();
        let text = |of: u64| {
            let item = |n: u64| format!("{{\"n\":{},\"s\":\"{}\"}}", n + of, n % 1_000);
            format!("{{\"items\":[{}]}}", (0..40_000).map(item).collect::<Vec<_>>().join(","))
        };
        let db = Database::open(folder.path(), Options::default()).unwrap();
        let document = db.create_document("d").unwrap();
        for of in 0..2 {
            document.put(text(of), &CommitOptions::default()).unwrap();
        }
        drop(document);
        db.close().unwrap();
        for revision in [1, 2] {
            let db = Database::open(folder.path(), Options::default()).unwrap();
            let then = db.document("d").unwrap().at(Revision(revision)).unwrap();
            let expected = text(revision - 1);
            let mut written = Vec::new();
            then.write_json(&JsonPointer::root(), &Format::default(), &mut written).unwrap();
            assert!(written == expected.as_bytes(), "revision {revision}");
            assert!(then.to_json().unwrap() == expected, "revision {revision}");
        }
    }
}
