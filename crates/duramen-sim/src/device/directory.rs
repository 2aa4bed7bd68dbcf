//! The names in one directory: as the process sees them, and as they survive.

use std::collections::BTreeMap;

/// Names a file or directory, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inode(pub(super) u64);

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    File(Inode),
    Directory(Inode),
}

pub(super) type Names = BTreeMap<String, Entry>;

#[derive(Debug, Clone, Default)]
pub(super) struct Directory {
    pub(super) live: Names,
    pub(super) durable: Names,
    pub(super) pending: Vec<PendingName>,
}

/// A change of a name that is not durable yet, with its place in the order of all changes.
#[derive(Debug, Clone)]
pub(super) struct PendingName {
    pub(super) order: u64,
    pub(super) change: NameChange,
}

/// A rename is two changes, so that a power loss may leave both names.
#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Link {
        name: String,
        entry: Entry,
    },
    /// With the order of the link that moved the file elsewhere, if it was a rename: without that
    /// link the file stays where it was, for no power loss takes a renamed file away.
    Unlink {
        name: String,
        moved_by: Option<u64>,
    },
}

impl Directory {
    /// A directory on a disk that has just been powered on.
    pub(super) fn settled(names: Names) -> Self {
        Self { live: names.clone(), durable: names, pending: Vec::new() }
    }

    /// Gives `name` to `entry`, in place of what had it; returns the order of the change.
    pub(super) fn link(&mut self, name: &str, entry: Entry, next_order: &mut u64) -> u64 {
        self.live.insert(name.to_owned(), entry);
        self.push(NameChange::Link { name: name.to_owned(), entry }, next_order)
    }

    /// Takes `name` away.
    pub(super) fn unlink(&mut self, name: &str, moved_by: Option<u64>, next_order: &mut u64) {
        self.live.remove(name);
        self.push(NameChange::Unlink { name: name.to_owned(), moved_by }, next_order);
    }

    fn push(&mut self, change: NameChange, next_order: &mut u64) -> u64 {
        let order = *next_order;
        self.pending.push(PendingName { order, change });
        *next_order += 1;
        order
    }

    /// The durable names once every pending change has happened that `is_dropped` does not name.
    pub(super) fn surviving(&self, is_dropped: impl Fn(u64) -> bool) -> Names {
        let mut names = self.durable.clone();
        for PendingName { order, change } in &self.pending {
            match change {
                _ if is_dropped(*order) => {}
                NameChange::Link { name, entry } => {
                    names.insert(name.clone(), *entry);
                }
                NameChange::Unlink { name, moved_by } => {
                    if !moved_by.is_some_and(&is_dropped) {
                        names.remove(name);
                    }
                }
            }
        }
        names
    }

    /// Makes the pending changes durable that `is_dropped` does not name, and forgets the others.
    pub(super) fn sync(&mut self, is_dropped: impl Fn(u64) -> bool) {
        self.durable = self.surviving(is_dropped);
        self.pending.clear();
    }

    /// Every entry that the process sees or that a power loss may leave.
    pub(super) fn possible(&self) -> impl Iterator<Item = Entry> {
        let linked = self.pending.iter().filter_map(|pending| match &pending.change {
            NameChange::Link { entry, .. } => Some(*entry),
            NameChange::Unlink { .. } => None,
        });
        self.live.values().chain(self.durable.values()).copied().chain(linked)
    }
}
