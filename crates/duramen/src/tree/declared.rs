//! What the options of a document change when a value is taken in: elements that are told apart by
//! a field, and objects that are maps.
//!
//! Elements with an id that no other one on their side has pair up by it and with nothing else.
//! The others, without an id or with a shared one, are aligned among themselves by content and
//! place. So a permutation of elements is a change of order and keeps every node.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::json::{self, TapeIndex};
use crate::node::{NodeId, PathId};
use crate::tree::compare::{Elements, name_of};
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// The text of an element's id; none if it has none, or none that could be one.
type Id = Option<Vec<u8>>;

impl Writer {
    /// The field that tells the elements of arrays at a path apart, if one is declared.
    pub(crate) fn id_field(&self, path: PathId) -> Option<String> {
        let options = self.options.as_ref()?;
        options.id_field(&self.tree.data.read().schema, path).map(str::to_owned)
    }

    /// Whether objects at a path are declared to be maps.
    pub(crate) fn is_declared_map(&self, path: PathId) -> bool {
        let options = self.options.as_ref().filter(|options| options.has_maps(path));
        options.is_some_and(|options| options.is_map(&self.tree.data.read().schema, path))
    }

    /// The path of a field of an object, made if there is room for it and the object is not
    /// declared a map; none if the field has to be an entry.
    pub(crate) fn field_path(&self, object: PathId, name: &[u8]) -> Result<Option<PathId>> {
        if self.is_declared_map(object) {
            return Ok(self.tree.data.read().schema.field(object, name));
        }
        self.tree.change(|data| Ok(data.field_or_add(object, name)))
    }

    /// Makes elements, by their ids, those of the new value; their ordinals in its order.
    pub(crate) fn put_identified(
        &self,
        elements: Elements<'_>,
        field: &str,
        olds: &[NodeId],
        new: &[TapeIndex],
    ) -> Result<Vec<u64>> {
        let tape = elements.tape;
        let stored = olds.iter().map(|&old| self.stored_id(old, field));
        let mut old_ids = stored.collect::<Result<Vec<Id>>>()?;
        let mut new_ids: Vec<Id> = new.iter().map(|&at| given_id(elements, at, field)).collect();
        let shared = shared(&old_ids, &new_ids);
        for id in old_ids.iter_mut().chain(&mut new_ids) {
            id.take_if(|id| shared.contains(id));
        }
        let by_id: FxHashMap<&[u8], usize> = (0..)
            .zip(&old_ids)
            .filter_map(|(index, id)| id.as_deref().map(|id| (id, index)))
            .collect();
        let mut is_kept = vec![false; olds.len()];
        let (mut ordinals, mut others) = (vec![0; new.len()], Vec::new());
        let (mut same, mut values) = (Vec::new(), Vec::new());
        for (index, (&at, id)) in new.iter().zip(&new_ids).enumerate() {
            let Some(id) = id else {
                others.push(index);
                continue;
            };
            ordinals[index] = if let Some(&old) = by_id.get(id.as_slice()) {
                is_kept[old] = true;
                same.push(olds[old]);
                values.push(at);
                olds[old].ordinal().0
            } else {
                self.put_each(&std::mem::take(&mut same), tape, &std::mem::take(&mut values))?;
                self.bear_element(elements, at)?
            };
        }
        self.put_each(&same, tape, &values)?;
        let mut old_others = Vec::new();
        for ((&old, id), is_kept) in olds.iter().zip(&old_ids).zip(is_kept) {
            match id {
                None => old_others.push(old),
                Some(_) if !is_kept => self.erase(old)?,
                Some(_) => {}
            }
        }
        let new_others: Vec<TapeIndex> = others.iter().map(|&index| new[index]).collect();
        let aligned = self.put_aligned(elements, &old_others, &new_others)?;
        for (index, ordinal) in others.into_iter().zip(aligned) {
            ordinals[index] = ordinal;
        }
        Ok(ordinals)
    }

    fn stored_id(&self, element: NodeId, field: &str) -> Result<Id> {
        let Some(at) = self.tree.member(element, field.as_bytes(), self.revision)? else {
            return Ok(None);
        };
        let mut text = Vec::new();
        self.tree.append_json((at, self.revision), &Format::default(), &mut text)?;
        Ok(can_be_id(&text).then_some(text))
    }
}

fn given_id(elements: Elements<'_>, at: TapeIndex, field: &str) -> Id {
    let tape = elements.tape;
    let (_, value) = tape.fields(at).find(|(name, _)| name_of(*name).0 == field.as_bytes())?;
    if let json::Item::Array { .. } | json::Item::Object { .. } = tape.item(value) {
        return None;
    }
    let mut text = Vec::new();
    tape.write(value, &mut text);
    can_be_id(&text).then_some(text)
}

/// Whether a JSON text can be an id: `null`, arrays and objects tell nothing apart.
fn can_be_id(text: &[u8]) -> bool {
    text != b"null" && !matches!(text.first(), Some(b'[' | b'{') | None)
}

/// The ids that several elements of one side have.
fn shared(olds: &[Id], new: &[Id]) -> FxHashSet<Vec<u8>> {
    let mut shared = FxHashSet::default();
    for side in [olds, new] {
        let mut seen = FxHashSet::default();
        shared.extend(side.iter().flatten().filter(|&id| !seen.insert(id)).cloned());
    }
    shared
}
