//! JSON Merge Patch (RFC 7396) on the staged state of a tree.

use super::told_from;
use crate::error::Result;
use crate::json::{Item, JsonPointer, ParseOptions, Tape, TapeIndex, escape};
use crate::tree::compare::name_of;
use crate::tree::edit::Given;
use crate::tree::writer::Writer;

/// Applies a merge patch to the value at `base`: members that are null are removed, objects are
/// merged, everything else is set.
pub(crate) fn apply(writer: &Writer, base: &JsonPointer, patch: &Tape<'_>) -> Result<()> {
    merge(writer, base, Given::whole(patch)).map_err(|error| told_from(base, error))
}

/// Reads a merge patch.
pub(crate) fn read(patch: &[u8]) -> Result<Tape<'_>> {
    Tape::parse(patch, ParseOptions::default())
}

fn merge(writer: &Writer, place: &JsonPointer, patch: Given<'_>) -> Result<()> {
    if !matches!(patch.tape.item(patch.at), Item::Object { .. }) {
        return writer.set(place, patch);
    }
    if !writer.is_object(place)? {
        let mut text = Vec::new();
        write_merged(patch.tape, patch.at, &mut text);
        return writer.set(place, Given::whole(&Tape::parse(&text, ParseOptions::default())?));
    }
    for (name, at) in patch.tape.fields(patch.at) {
        let place = place.child(String::from_utf8_lossy(name_of(name).0));
        if !matches!(patch.tape.item(at), Item::Null) {
            merge(writer, &place, Given { at, ..patch })?;
        } else if writer.is_there(&place)? {
            writer.remove(&place)?;
        }
    }
    Ok(())
}

/// Prints what a merge patch makes of nothing: itself without the members that are null.
fn write_merged(tape: &Tape<'_>, at: TapeIndex, out: &mut Vec<u8>) {
    if !matches!(tape.item(at), Item::Object { .. }) {
        tape.write(at, out);
        return;
    }
    out.push(b'{');
    for (name, at) in tape.fields(at).filter(|(_, at)| !matches!(tape.item(*at), Item::Null)) {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        let (name, plain) = name_of(name);
        escape::write_text(name, plain, out);
        out.push(b':');
        write_merged(tape, at, out);
    }
    out.push(b'}');
}
