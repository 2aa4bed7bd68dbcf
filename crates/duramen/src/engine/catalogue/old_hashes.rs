//! What a purge takes out of the catalogue: the content hashes that the tags of the document had,
//! because a hash of a text that is known but for a short value tells the value. In their place
//! stand zeros; the hash that a tag has now stays, which the purge's commit has seen to.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::encoding::{
    Column, RunChange, RunPiece, encode_column, encode_complete_run, encode_run,
};
use crate::engine::catalogue::facts::record_of;
use crate::error::Result;
use crate::node::PathId;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::{CellKey, GroupCell, TreeId};
use crate::tree::data::node;
use crate::tree::erase::{Erase, each_parent, ordinal_of};

/// A hash of zeros, as a record has it.
const ZEROS: Datum<'_> = Datum::Text { bytes: &[b'0'; 64], plain: true };

/// The hashes of a document's tags, those that were removed too.
#[derive(Debug)]
pub(crate) struct OldHashes {
    /// The path of the hashes.
    path: PathId,
    /// The revision of the catalogue up to which hashes are old, but for those that it shows.
    newest: u32,
    /// By the ordinal of a tag the revision of the catalogue whose hash stays; 0 for none.
    kept: FxHashMap<u64, u32>,
    /// In which revision each of the tags first had a hash.
    born: FxHashMap<u64, u32>,
}

impl OldHashes {
    /// The hashes of the tags of a tree's document, as of a revision of the catalogue; none if the
    /// catalogue never had a tag.
    pub(crate) fn of(catalogue: &Tree, tree: TreeId, revision: u32) -> Result<Option<Self>> {
        let found = {
            let data = catalogue.data.read();
            record_of(&data, tree).and_then(|record| {
                let tags = data.schema.field(record.path(), b"tags")?;
                let tag = data.schema.path(tags).entry?;
                let hash = data.schema.field(tag, b"hash")?;
                Some((record.ordinal().0, tag, hash, data.schema.path(tag).space))
            })
        };
        let Some((record, tag, path, space)) = found else { return Ok(None) };
        let (kept, born) = (FxHashMap::default(), FxHashMap::default());
        let mut old = Self { path, newest: revision, kept, born };
        each_parent(catalogue, space, &mut |ordinal, parent| {
            if parent == record { old.add(catalogue, (tag, ordinal)) } else { Ok(()) }
        })?;
        Ok(Some(old))
    }

    fn add(&mut self, catalogue: &Tree, (tag, ordinal): (PathId, u64)) -> Result<()> {
        let revision = self.newest;
        let (kept, born) = catalogue.read(|data| {
            let is_there = !data.state(node(tag, ordinal), revision)?.is_absent();
            let hash = data.version(node(self.path, ordinal), revision)?;
            let kept = hash.filter(|_| is_there).map_or(0, |(set, _)| set);
            Ok((kept, data.born(data.address(node(tag, ordinal)).space, ordinal)?.unwrap_or(0)))
        })?;
        self.kept.insert(ordinal, kept);
        self.born.insert(ordinal, born);
        Ok(())
    }

    /// What becomes of the hash that a revision set.
    fn left<'d>(&self, state: Datum<'d>, ordinal: u64, revision: u32) -> Datum<'d> {
        let is_old = revision <= self.newest
            && self.kept.get(&ordinal).is_some_and(|&kept| kept != revision);
        if is_old && !state.is_absent() { ZEROS } else { state }
    }
}

impl Erase for OldHashes {
    fn apply(&mut self, kind: CellKey, cell: Bytes) -> Result<Option<Bytes>> {
        if let CellKey::Hash { revision } = kind {
            // That of the catalogue itself does not hold any more where it has zeros now.
            return Ok((revision >= self.newest.into()).then_some(cell));
        }
        let CellKey::Group { id, path, kind, number } = kind else { return Ok(Some(cell)) };
        if path != self.path {
            return Ok(Some(cell));
        }
        let mut left = Vec::new();
        match kind {
            GroupCell::Base => {
                let column = Column::parse(cell.clone())?;
                let mut states = Vec::with_capacity(column.len());
                for (ordinal, state) in (ordinal_of(id, number)..).zip(column.iter()) {
                    let born = self.born.get(&ordinal).copied().unwrap_or(0);
                    states.push(self.left(state?, ordinal, born));
                }
                encode_column(&states, &mut left);
            }
            GroupCell::Run => {
                let piece = RunPiece::parse(cell.clone())?;
                let mut changes: Vec<RunChange<'_>> = Vec::with_capacity(piece.len());
                for index in 0..piece.len() {
                    let (slot, revision, state) = piece.entry(index)?;
                    let ordinal = ordinal_of(id, slot.into());
                    changes.push((slot, revision, self.left(state, ordinal, revision)));
                }
                if piece.is_complete() {
                    encode_complete_run(&changes, piece.first_revision(), &mut left);
                } else {
                    encode_run(&changes, &mut left);
                }
            }
            GroupCell::Parent | GroupCell::Born | GroupCell::Key => return Ok(Some(cell)),
        }
        Ok(Some(left.into()))
    }
}
