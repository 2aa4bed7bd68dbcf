//! What a JSON Patch cannot say: where among its siblings a member of an object stands.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::subsequence::{Point, heaviest_increasing};
use crate::tree::difference::Walk;

/// A member of an object that goes to another place among its siblings.
///
/// ```
/// use duramen::{CommitOptions, Database, JsonPointer, Revision};
///
/// let doc = Database::memory()?.create_document("d")?;
/// doc.put(r#"{"a":1,"c":3}"#, &CommitOptions::default())?;
/// doc.put(r#"{"a":1,"b":2,"c":3}"#, &CommitOptions::default())?;
/// let diff = doc.diff(Revision(1), Revision(2))?;
/// assert_eq!(diff.to_json_patch(), r#"[{"op":"add","path":"/b","value":2}]"#);
/// assert_eq!(diff.moves[0].member, JsonPointer::parse("/b")?);
/// assert_eq!(diff.moves[0].before.as_deref(), Some("c"));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberMove {
    /// The member.
    pub member: JsonPointer,
    /// The name of the sibling that it is to stand in front of; none if it is to be the last.
    pub before: Option<String>,
}

impl Walk<'_> {
    /// Notes the fewest moves that bring the members of the object at the pointer into their
    /// order, from that in which a patch leaves them: first those that stayed, then those that
    /// were added, in their order.
    pub(super) fn place_members(&mut self, old: &[NodeId], new: &[NodeId]) -> Result<()> {
        if self.found.is_some() {
            // A value above that is told as replaced brings its members in their order.
            return Ok(());
        }
        let places: FxHashMap<NodeId, u64> = new.iter().copied().zip(0..).collect();
        let stayed: FxHashSet<NodeId> =
            old.iter().copied().filter(|member| places.contains_key(member)).collect();
        let left = old.iter().filter(|member| stayed.contains(member));
        let added = new.iter().filter(|member| !stayed.contains(member));
        let patched: Vec<NodeId> = left.chain(added).copied().collect();
        // Most of them stay where they are, and of as many rather those that stayed than others.
        let most = new.len() as u64 + 1;
        let weight = |member| if stayed.contains(member) { most + 1 } else { most };
        let points: Vec<Point> = patched
            .iter()
            .map(|member| Point { place: places[member], weight: weight(member) })
            .collect();
        let kept = heaviest_increasing(&points);
        let fixed: FxHashSet<NodeId> = kept.into_iter().map(|index| patched[index]).collect();
        // From the last on, so that what a member goes in front of is in its place already.
        let mut before = None;
        for &member in new.iter().rev() {
            if !fixed.contains(&member) {
                let before = before.map(|next| self.member_name(next)).transpose()?;
                let member = self.pointer.child(self.member_name(member)?);
                self.moves.push(MemberMove { member, before });
            }
            before = Some(member);
        }
        Ok(())
    }

    fn member_name(&self, member: NodeId) -> Result<String> {
        self.tree.name_of(member)?.ok_or_else(|| {
            let message = format!("{member} is in an object and has no name");
            Error::new(ErrorKind::Corrupt, message)
        })
    }
}
