//! What is left after a kill or a power loss.
//!
//! Invariants, whatever the loss:
//! - what was synced survives, unless a later pending change of the same bytes or name replaced it;
//! - bytes outside the range of a pending change are as they were.

use std::collections::BTreeSet;

use super::content::{Change, Content, Medium};
use super::directory::Directory;
use super::disk::Disk;
use super::profile::Profile;
use crate::Random;

/// What a power loss does to changes that were not synced. Growth and content of one write are
/// two changes, and so are the new and the old name of a rename. A sequential disk keeps the
/// changes up to a random one instead of a random set of them, in every mode but `Clean`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerLoss {
    /// None survives.
    Clean,
    /// Each survives or not.
    Subset,
    /// Each survives or not, and the survivors happen in a random order.
    Reorder,
    /// As `Reorder`, and a write keeps only some of its sectors.
    Torn,
    /// As `Reorder`, and a write ends at a random byte. On a disk with atomic sectors: `Torn`.
    Prefix,
    /// As `Torn`, and some sectors of a write are noise. On a disk with atomic sectors: `Torn`.
    Garbage,
}

impl PowerLoss {
    /// Every way to lose power.
    pub const ALL: [Self; 6] =
        [Self::Clean, Self::Subset, Self::Reorder, Self::Torn, Self::Prefix, Self::Garbage];

    /// Any of them.
    pub fn random(random: &mut Random) -> Self {
        random.choose(&Self::ALL)
    }

    fn tear(self, profile: Profile) -> Tear {
        let sector = u64::from(profile.sector);
        match self {
            Self::Clean | Self::Subset | Self::Reorder => Tear::Nowhere,
            Self::Prefix if !profile.atomic_sector => Tear::Prefix,
            Self::Garbage if !profile.atomic_sector => Tear::Garbage { sector },
            Self::Torn | Self::Prefix | Self::Garbage => Tear::Sectors { sector },
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Tear {
    Nowhere,
    Sectors { sector: u64 },
    Prefix,
    Garbage { sector: u64 },
}

/// What becomes of the pending changes.
#[derive(Debug)]
struct Fate {
    dropped: BTreeSet<u64>,
    is_reordered: bool,
    tear: Tear,
    /// Changes before this one are whole.
    torn_from: u64,
}

impl Fate {
    /// Whole changes, in order, without those that were dropped.
    fn without(dropped: BTreeSet<u64>) -> Self {
        Self { dropped, is_reordered: false, tear: Tear::Nowhere, torn_from: 0 }
    }

    fn draw(loss: PowerLoss, disk: &Disk, random: &mut Random) -> Self {
        let pending = disk.pending();
        if loss == PowerLoss::Clean {
            return Self::without(pending.into_iter().collect());
        }
        let tear = loss.tear(disk.profile);
        if disk.profile.sequential {
            let kept = random.index(pending.len() + 1);
            let torn_from = pending[..kept].last().copied().unwrap_or_default();
            let dropped = pending[kept..].iter().copied().collect();
            return Self { dropped, is_reordered: false, tear, torn_from };
        }
        let kept_in_8 = random.choose(&[2, 4, 6, 8]);
        let dropped = pending.into_iter().filter(|_| random.below(8) >= kept_in_8).collect();
        Self { dropped, is_reordered: loss != PowerLoss::Subset, tear, torn_from: 0 }
    }

    fn content(&self, content: &Content, random: &mut Random) -> Content {
        let pending = content.pending.iter();
        let mut survivors: Vec<_> =
            pending.filter(|pending| !self.dropped.contains(&pending.order)).collect();
        if survivors.is_empty() {
            return Content::settled(content.durable.clone());
        }
        if self.is_reordered {
            random.shuffle(&mut survivors);
        }
        let mut medium = Medium::new(content.durable.clone());
        for pending in survivors {
            match &pending.change {
                Change::Write { offset, bytes } if pending.order >= self.torn_from => {
                    for change in self.tear.pieces(bytes, *offset, random) {
                        medium.apply(&change);
                    }
                }
                whole => medium.apply(whole),
            }
        }
        Content::settled(medium.finish())
    }
}

impl Tear {
    /// What reaches the medium of a write that was under way.
    fn pieces(self, bytes: &[u8], offset: u64, random: &mut Random) -> Vec<Change> {
        let whole = || vec![Change::Write { offset, bytes: bytes.into() }];
        if random.one_in(2) {
            return whole();
        }
        match self {
            Self::Nowhere => whole(),
            Self::Prefix => {
                let prefix = &bytes[..random.index(bytes.len() + 1)];
                vec![Change::Write { offset, bytes: prefix.into() }]
            }
            Self::Sectors { sector } => {
                let mut pieces = sectors(bytes, offset, sector);
                pieces.retain(|_| random.one_in(2));
                pieces.iter().map(Piece::change).collect()
            }
            Self::Garbage { sector } => {
                let mut pieces = sectors(bytes, offset, sector);
                pieces.retain_mut(|piece| match random.below(3) {
                    0 => false,
                    1 => true,
                    _ => {
                        random.fill(&mut piece.bytes);
                        true
                    }
                });
                pieces.iter().map(Piece::change).collect()
            }
        }
    }
}

/// The part of a write in one sector.
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
}

impl Piece {
    fn change(&self) -> Change {
        Change::Write { offset: self.offset, bytes: self.bytes.as_slice().into() }
    }
}

/// Cuts a write where sectors of the device begin, not where the write does.
fn sectors(bytes: &[u8], offset: u64, sector: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut offset, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let room = usize::try_from(sector - offset % sector).expect("sectors are small");
        let (piece, after) = rest.split_at(room.min(rest.len()));
        pieces.push(Piece { offset, bytes: piece.to_vec() });
        offset += piece.len() as u64;
        rest = after;
    }
    pieces
}

impl Disk {
    /// The orders of all changes that a power loss may lose, rising.
    pub(super) fn pending(&self) -> Vec<u64> {
        let reachable = self.reachable();
        let files = reachable.iter().filter_map(|inode| self.files.get(inode));
        let directories = reachable.iter().filter_map(|inode| self.directories.get(inode));
        let mut orders: Vec<u64> = files
            .flat_map(|content| content.pending.iter().map(|pending| pending.order))
            .chain(directories.flat_map(|dir| dir.pending.iter().map(|pending| pending.order)))
            .collect();
        orders.sort_unstable();
        orders
    }

    /// The disk as the next process finds it when this one is killed.
    pub(super) fn killed(&self, random: Random) -> Self {
        let reachable = self.reachable();
        let mut disk = self.rebooted(random);
        for inode in reachable {
            if let Some(content) = self.files.get(&inode) {
                disk.files.insert(inode, content.survivor());
            }
            if let Some(directory) = self.directories.get(&inode) {
                disk.directories.insert(inode, directory.clone());
            }
        }
        disk
    }

    /// The disk after a power loss.
    pub(super) fn after(&self, loss: PowerLoss, random: &mut Random) -> Self {
        let fate = Fate::draw(loss, self, random);
        self.image(&fate, random)
    }

    /// The disk after a power loss that whole changes survive unless they are `dropped`.
    pub(super) fn without(&self, dropped: BTreeSet<u64>, random: &mut Random) -> Self {
        self.image(&Fate::without(dropped), random)
    }

    fn image(&self, fate: &Fate, random: &mut Random) -> Self {
        let mut disk = self.rebooted(random.fork());
        let settled = self.directories.iter().map(|(inode, directory)| {
            let names = directory.surviving(|order| fate.dropped.contains(&order));
            (*inode, Directory::settled(names))
        });
        disk.directories = settled.collect();
        let reachable = disk.reachable();
        disk.directories.retain(|inode, _| reachable.contains(inode));
        for inode in reachable {
            if let Some(content) = self.files.get(&inode) {
                disk.files.insert(inode, fate.content(content, random));
            }
        }
        disk
    }
}
