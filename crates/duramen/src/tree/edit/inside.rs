//! Changes inside a subtree stored whole: its text is read, changed and stored again.

use crate::error::Result;
use crate::json::{Item, JsonPointer, ParseOptions, Tape, TapeIndex, escape};
use crate::node::NodeId;
use crate::state::ApartKind;
use crate::tree::compare::name_of;
use crate::tree::edit::{Given, New, Range};
use crate::tree::locate::not_found;
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// What happens to the members of an array or object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change<'a> {
    /// The member at an index gets another value.
    Put(u64, Given<'a>),
    /// A range of members makes way for new ones.
    Splice(Range, &'a [New<'a>]),
    /// The member at an index goes to another, counted without it.
    Shift(u64, u64),
}

/// A member while the text is made anew.
struct Member<'a> {
    name: &'a [u8],
    value: Given<'a>,
}

impl Writer {
    /// Makes an array or object a subtree stored whole, for want of paths.
    pub(super) fn store_whole(&self, container: NodeId) -> Result<()> {
        let mut text = Vec::new();
        let root = (container, self.revision);
        self.tree.append_json(root, &Format::default(), &mut text)?;
        self.erase_children(container)?;
        self.stage_bytes(container, ApartKind::Opaque, &text)
    }

    /// Reads a subtree stored whole.
    pub(super) fn read_inside<T>(
        &self,
        node: NodeId,
        read: impl FnOnce(&Tape<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut text = Vec::new();
        self.tree.append_json((node, self.revision), &Format::default(), &mut text)?;
        read(&Tape::parse(&text, ParseOptions::default())?)
    }

    /// Where the member of an object stands that has a name, if there is one.
    pub(super) fn index_inside(
        &self,
        (node, depth): (NodeId, usize),
        container: &JsonPointer,
        name: &str,
    ) -> Result<Option<u64>> {
        self.read_inside(node, |tape| {
            let (_, at) = walk(tape, (container, depth))?;
            let index = tape.fields(at).position(|field| name_of(field.0).0 == name.as_bytes());
            Ok(index.map(|index| index as u64))
        })
    }

    /// Changes the members of an array or object in a subtree stored whole.
    pub(super) fn edit_inside(
        &self,
        (node, depth): (NodeId, usize),
        container: &JsonPointer,
        change: Change<'_>,
    ) -> Result<()> {
        let edited = self.read_inside(node, |tape| {
            let (above, at) = walk(tape, (container, depth))?;
            let is_object = matches!(tape.item(at), Item::Object { .. });
            let mut members = members(tape, at);
            apply(&mut members, change);
            let mut changed = Vec::new();
            write_members(is_object, &members, &mut changed, |value, out| {
                value.tape.write(value.at, out);
            });
            let mut edited = Vec::new();
            write_with(tape, (&above, at), &changed, &mut edited);
            Ok(edited)
        })?;
        self.stage_bytes(node, ApartKind::Opaque, &edited)
    }
}

/// The values on the way to a place inside a subtree that `depth` tokens lead to, and the place.
pub(super) fn walk(
    tape: &Tape<'_>,
    (pointer, depth): (&JsonPointer, usize),
) -> Result<(Vec<TapeIndex>, TapeIndex)> {
    let (mut above, mut at) = (Vec::new(), tape.root());
    for (level, token) in pointer.tokens().enumerate().skip(depth) {
        above.push(at);
        at = tape.child(at, token).ok_or_else(|| not_found(pointer, level))?;
    }
    Ok((above, at))
}

fn members<'a>(tape: &'a Tape<'a>, at: TapeIndex) -> Vec<Member<'a>> {
    let fields = tape.fields(at).map(|(name, at)| (name_of(name).0, at));
    let elements = tape.elements(at).map(|at| (&b""[..], at));
    let member = |(name, at)| Member { name, value: Given { tape, at } };
    fields.chain(elements).map(member).collect()
}

fn apply<'a>(members: &mut Vec<Member<'a>>, change: Change<'a>) {
    let len = members.len();
    let place = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(len);
    match change {
        Change::Put(index, value) => {
            let index = place(index);
            members[index].value = value;
        }
        Change::Splice((index, remove), new) => {
            let range = place(index)..place(index + remove);
            let new = new.iter().map(|new| {
                let name = new.name.map_or(&b""[..], str::as_bytes);
                Member { name, value: new.value }
            });
            members.splice(range, new);
        }
        Change::Shift(from, to) => {
            let (from, to) = (place(from), place(to));
            let member = members.remove(from);
            members.insert(to, member);
        }
    }
}

fn write_members(
    is_object: bool,
    members: &[Member<'_>],
    out: &mut Vec<u8>,
    mut write: impl FnMut(&Given<'_>, &mut Vec<u8>),
) {
    out.push(if is_object { b'{' } else { b'[' });
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if is_object {
            escape::write_text(member.name, escape::is_plain(member.name), out);
            out.push(b':');
        }
        write(&member.value, out);
    }
    out.push(if is_object { b'}' } else { b']' });
}

/// Prints a value with the text of one place in it replaced; `above` leads to the place.
fn write_with(
    tape: &Tape<'_>,
    (above, place): (&[TapeIndex], TapeIndex),
    text: &[u8],
    out: &mut Vec<u8>,
) {
    let Some((&at, below)) = above.split_first() else {
        out.extend_from_slice(text);
        return;
    };
    let next = below.first().copied().unwrap_or(place);
    let is_object = matches!(tape.item(at), Item::Object { .. });
    write_members(is_object, &members(tape, at), out, |value, out| {
        if value.at == next {
            write_with(tape, (below, place), text, out);
        } else {
            tape.write(value.at, out);
        }
    });
}
