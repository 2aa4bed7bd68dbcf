//! Prints many items of an array or a map on threads that share them.
//!
//! The items are cut into *pieces*, those of a row group each: who prints a piece also loads it.
//! Whoever has nothing to do takes up the next piece, into room of its own; the reader puts the
//! pieces together in their order. So an error is met where it stands, and what is printed ahead is
//! bounded. Without other threads the reader prints them all.

use std::collections::VecDeque;
use std::sync::OnceLock;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::ROW_GROUP_SLOTS;
use crate::state::Extent;
use crate::sync::{Condvar, Mutex};
use crate::tree::Tree;
use crate::tree::print::{Output, Printed};
use crate::tree::serialize::{ManyItems, Serializer};

/// More threads wait for memory, and for who puts the pieces together.
const THREADS_MAX: usize = 4;
/// Pieces for each thread that are taken up before they are put together.
const PIECES_AHEAD: u64 = 2;
/// Bytes of a piece that are printed ahead.
const PIECE_BYTES_MAX: usize = 4 << 20;

/// How many threads print.
pub(super) fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    *THREADS.get_or_init(count)
}

/// Items of a row group, printed.
struct Piece {
    text: Vec<u8>,
    /// Prints what is left of them, if something is.
    rest: Option<Serializer<'static>>,
}

/// All pieces, by their number.
struct Pieces<'t> {
    tree: &'t Tree,
    revision: u32,
    many: &'t ManyItems,
    count: u64,
    plan: Mutex<Plan>,
    moved: Condvar,
}

/// What became of the pieces.
#[derive(Default)]
struct Plan {
    /// The next one to be put together.
    head: u64,
    /// Those that were taken up, from the head on; none while they are printed.
    taken: VecDeque<Option<Result<Piece>>>,
    /// Room for others.
    spare: Vec<Vec<u8>>,
    is_over: bool,
}

/// A piece that somebody prints. It is put back whatever becomes of that.
struct Share<'p, 't> {
    pieces: &'p Pieces<'t>,
    number: u64,
    printed: Option<Result<Piece>>,
}

/// What the reader does next.
enum Work {
    /// It goes past the head.
    Append(u64, Result<Piece>),
    /// It prints the head where it belongs.
    Head(u64),
    /// It prints another one, as the head is being printed.
    Ahead(u64, Vec<u8>),
}

/// Prints them behind what is printed.
pub(super) fn print(
    (tree, revision): (&Tree, u32),
    many: &ManyItems,
    output: &mut Output<'_>,
) -> Result<()> {
    let count = group_of(last(many.extent)) - group_of(many.extent.first) + 1;
    let (plan, moved) = (Mutex::default(), Condvar::default());
    let pieces = Pieces { tree, revision, many, count, plan, moved };
    std::thread::scope(|scope| {
        for _ in 1..threads() {
            let thread = std::thread::Builder::new().name("duramen-print".to_owned());
            let _ = thread.spawn_scoped(scope, || pieces.help());
        }
        let _ending = Ending(&pieces);
        pieces.put_together(output)
    })
}

/// Ends the other threads, whatever becomes of the reader.
struct Ending<'p, 't>(&'p Pieces<'t>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        self.0.plan.lock().is_over = true;
        self.0.moved.notify_all();
    }
}

fn group_of(ordinal: u64) -> u64 {
    ordinal / ROW_GROUP_SLOTS
}

/// The last ordinal of some.
fn last(extent: Extent) -> u64 {
    extent.first.saturating_add(u64::from(extent.count.saturating_sub(1)))
}

impl Plan {
    /// Takes up the next piece, if there is one that is near enough.
    fn take(&mut self, count: u64) -> Option<u64> {
        let number = self.head + self.taken.len() as u64;
        let ahead = PIECES_AHEAD * threads() as u64;
        let is_near = number < count.min(self.head + ahead);
        is_near.then(|| {
            self.taken.push_back(None);
            number
        })
    }
}

impl Pieces<'_> {
    /// Prints pieces until the reader needs no more.
    fn help(&self) {
        let mut plan = self.plan.lock();
        while !plan.is_over {
            let Some(number) = plan.take(self.count) else {
                self.moved.wait(&mut plan);
                continue;
            };
            let room = plan.spare.pop().unwrap_or_default();
            drop(plan);
            self.print_ahead(number, room);
            plan = self.plan.lock();
        }
    }

    /// Prints all pieces, those that others printed before included.
    fn put_together(&self, output: &mut Output<'_>) -> Result<()> {
        while let Some(work) = self.next() {
            match work {
                Work::Ahead(number, room) => self.print_ahead(number, room),
                Work::Head(number) => {
                    self.separate(number, output);
                    let mut serializer = self.serializer(number);
                    self.tree.print_alone(&mut serializer, self.revision, output)?;
                    self.pass(Vec::new());
                }
                Work::Append(number, piece) => {
                    let Piece { mut text, rest } = piece?;
                    self.separate(number, output);
                    output.text.extend_from_slice(&text);
                    if let Some(mut serializer) = rest {
                        self.tree.print_alone(&mut serializer, self.revision, output)?;
                    }
                    text.clear();
                    self.pass(text);
                }
            }
            output.settle()?;
        }
        Ok(())
    }

    /// What the reader does next, waited for; none at the end.
    fn next(&self) -> Option<Work> {
        let mut plan = self.plan.lock();
        while plan.head < self.count {
            let head = plan.head;
            if let Some(piece) = plan.taken.front_mut().and_then(Option::take) {
                return Some(Work::Append(head, piece));
            }
            match plan.take(self.count) {
                Some(number) if number == head => return Some(Work::Head(head)),
                Some(number) => {
                    return Some(Work::Ahead(number, plan.spare.pop().unwrap_or_default()));
                }
                None => self.moved.wait(&mut plan),
            }
        }
        None
    }

    /// Goes past the piece at the head; its room is free.
    fn pass(&self, room: Vec<u8>) {
        let mut plan = self.plan.lock();
        plan.taken.pop_front();
        plan.head += 1;
        if room.capacity() > 0 {
            plan.spare.push(room);
        }
        drop(plan);
        self.moved.notify_all();
    }

    fn print_ahead(&self, number: u64, mut text: Vec<u8>) {
        let mut share = Share { pieces: self, number, printed: None };
        let mut serializer = self.serializer(number);
        let room = (&mut text, PIECE_BYTES_MAX);
        let printed = self.tree.print(&mut serializer, self.revision, room);
        share.printed = Some(printed.map(|printed| {
            let rest = (!matches!(printed, Printed::Whole)).then_some(serializer);
            Piece { text, rest }
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

    fn separate(&self, number: u64, output: &mut Output<'_>) {
        if number > 0 || !self.many.is_first {
            output.text.push(b',');
        }
    }
}

impl Drop for Share<'_, '_> {
    fn drop(&mut self) {
        let printed = self.printed.take();
        let printed = printed.unwrap_or_else(|| Err(ended()));
        let mut plan = self.pieces.plan.lock();
        let index = usize::try_from(self.number - plan.head).unwrap_or(usize::MAX);
        if let Some(taken) = plan.taken.get_mut(index) {
            *taken = Some(printed);
        }
        drop(plan);
        self.pieces.moved.notify_all();
    }
}

#[cold]
fn ended() -> Error {
    Error::new(ErrorKind::Corrupt, "a thread that printed a part of the value ended early")
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
