//! Prints many items of an array or a map on threads that share them.
//!
//! The items are cut into *pieces*, those of a row group each: who prints a piece also loads it.
//! Whoever has nothing to do prints the next piece into room of its own, and the reader puts the
//! pieces together. Without other threads the reader prints them all.

use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::state::Extent;
use crate::sync::Mutex;
use crate::threads::{self, Next, Parts, Share};
use crate::tree::Tree;
use crate::tree::print::{Output, Printed};
use crate::tree::serialize::{ManyItems, Serializer};

/// Pieces for each thread that are begun before they are put together.
const PIECES_AHEAD: usize = 2;
/// Bytes of a piece that are printed ahead.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// Items of a row group, printed.
struct Piece {
    number: u64,
    text: Vec<u8>,
    /// Prints what is left of them, if something is.
    rest: Option<Serializer<'static>>,
}

/// All pieces.
struct Pieces<'t> {
    tree: &'t Tree,
    revision: u32,
    many: &'t ManyItems,
    parts: Parts<Piece>,
    /// Room for others.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// Prints them behind what is printed.
pub(super) fn print(
    (tree, revision): (&Tree, u32),
    many: &ManyItems,
    output: &mut Output<'_>,
) -> Result<()> {
    let parts = Parts::new(PIECES_AHEAD * threads::count());
    let pieces = Pieces { tree, revision, many, parts, spare: Mutex::default() };
    threads::share("duramen-print", &pieces.parts, || pieces.help(), || pieces.put_together(output))
}

fn group_of(ordinal: u64) -> u64 {
    ordinal / ROW_GROUP_SLOTS
}

impl Pieces<'_> {
    /// How many there are.
    fn count(&self) -> u64 {
        let Extent { first, count } = self.many.extent;
        (first + u64::from(count)).div_ceil(ROW_GROUP_SLOTS) - group_of(first)
    }

    /// Prints pieces until the reader needs no more.
    fn help(&self) {
        while self.parts.wait_for_room()
            && let Some(share) = self.parts.begin(self.count())
        {
            self.print_ahead(share);
        }
    }

    fn put_together(&self, output: &mut Output<'_>) -> Result<()> {
        loop {
            match self.parts.next() {
                Next::Part(piece) => self.append(piece?, output)?,
                Next::Room => match self.parts.begin(self.count()) {
                    Some(share) if share.is_next() => {
                        let (number, text) = (share.number(), Vec::new());
                        let rest = Some(self.serializer(number));
                        self.append(Piece { number, text, rest }, output)?;
                        share.skip();
                    }
                    Some(share) => self.print_ahead(share),
                    None => {}
                },
                Next::End => return Ok(()),
            }
        }
    }

    fn append(&self, piece: Piece, output: &mut Output<'_>) -> Result<()> {
        let Piece { number, mut text, rest } = piece;
        if number > 0 || !self.many.is_first {
            output.text.push(b',');
        }
        output.text.extend_from_slice(&text);
        if let Some(mut serializer) = rest {
            self.tree.print_alone(&mut serializer, self.revision, output)?;
        }
        if text.capacity() > 0 {
            text.clear();
            self.spare.lock().push(text);
        }
        output.settle()
    }

    fn print_ahead(&self, share: Share<'_, Piece>) {
        let number = share.number();
        let mut text = self.spare.lock().pop().unwrap_or_default();
        let mut serializer = self.serializer(number);
        let room = (&mut text, PIECE_BYTES_MAX);
        let printed = self.tree.print(&mut serializer, self.revision, room);
        share.put(printed.map(|printed| {
            let rest = (!matches!(printed, Printed::Whole)).then_some(serializer);
            Piece { number, text, rest }
        }));
    }

    fn serializer(&self, number: u64) -> Serializer<'static> {
        let Extent { first, count } = self.many.extent;
        let end = first + u64::from(count);
        let group = (group_of(first) + number) * ROW_GROUP_SLOTS;
        let items = first.max(group)..end.min(group + ROW_GROUP_SLOTS);
        let count = u32::try_from(items.end - items.start).unwrap_or(count);
        Serializer::of_items(self.many, Extent { first: items.start, count })
    }
}

#[cfg(test)]
mod tests {
    use crate::{CommitOptions, Database, Format, JsonPointer, Options, Revision};

    #[test]
    fn a_document_of_many_row_groups_is_printed_whole_young_and_just_opened() {
        let folder = tempfile::tempdir().unwrap();
        let item = |n: u64, of: u64| match n {
            // More than is printed ahead of one row group.
            5_000..5_500 => format!("\"{}{of}\"", "long ".repeat(2_000)),
            _ if n % 97 == of => format!("{{\"n\":[{n},{{}}]}}"),
            _ => format!("{{\"n\":{},\"s\":\"{}\"}}", n + of, n % 1_000),
        };
        let text = |of: u64| {
            let items: Vec<_> = (0..40_000).map(|n| item(n, of)).collect();
            let map: Vec<_> = (0..9_000).map(|n| format!("\"k{n}\":{}", n + of)).collect();
            let (items, map) = (items.join(","), map.join(","));
            format!("{{\"items\":[{items}],\"map\":{{{map}}},\"again\":[0,[{items}]]}}")
        };
        let db = Database::open(folder.path(), Options::default()).unwrap();
        let document = db.create_document("d").unwrap();
        let check = |document: &crate::Document, revision: u64| {
            let then = document.at(Revision(revision)).unwrap();
            let mut written = Vec::new();
            then.write_json(&JsonPointer::root(), &Format::default(), &mut written).unwrap();
            assert!(written == text(revision - 1).as_bytes(), "revision {revision}");
            assert!(then.to_json().unwrap() == text(revision - 1), "revision {revision}");
        };
        for of in 0..2 {
            document.put(text(of), &CommitOptions::default()).unwrap();
            check(&document, of + 1);
        }
        drop(document);
        db.close().unwrap();
        for revision in [1, 2] {
            let db = Database::open(folder.path(), Options::default()).unwrap();
            check(&db.document("d").unwrap(), revision);
        }
    }
}
