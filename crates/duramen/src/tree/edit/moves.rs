//! Which nodes were made of which others by moves and new names, as of the committed state: moves
//! of one transaction are followed to where a value was before it.

use crate::error::Result;
use crate::json::JsonPointer;
use crate::node::{Move, NodeId};
use crate::order::Places;
use crate::tree::children::is_within;
use crate::tree::locate::{Place, parent_of};
use crate::tree::schema::Label;
use crate::tree::writer::Writer;

/// What leaves its place.
#[derive(Debug)]
pub(super) struct Departure {
    /// The top node, if it is one.
    node: Option<NodeId>,
    /// The node that it was before the transaction, if that is known.
    origin: Option<NodeId>,
    /// What was moved into it by the same transaction: where it is below the top, and its origin.
    carried: Vec<(Vec<String>, Move)>,
}

impl Writer {
    /// Notes what is about to leave a place.
    pub(super) fn depart(&self, from: &JsonPointer) -> Result<Departure> {
        let node = self.node_at(from)?;
        // Most of many moves have nothing to do with each other, which their nodes alone tell.
        let moves = self.tree.read(|data| {
            let mut moves = Vec::new();
            for &moved in &data.moves {
                let is_near = match node {
                    Some(node) => {
                        is_within(data, moved.to, node)? || is_within(data, node, moved.to)?
                    }
                    None => true,
                };
                if is_near {
                    moves.push(moved);
                }
            }
            Ok(moves)
        })?;
        let mut departure = Departure { node, origin: node, carried: Vec::new() };
        for moved in moves {
            if node == Some(moved.to) {
                departure.origin = Some(moved.from);
                continue;
            }
            let Some(place) = self.tree.pointer_of(moved.to, self.revision)? else { continue };
            if let Some(rest) = place.tokens_from(from) {
                departure.carried.push((rest.to_vec(), moved));
            } else if let Some(rest) = from.tokens_from(&place)
                && departure.origin == node
            {
                departure.origin = self.origin_below(moved.from, rest)?;
            }
        }
        Ok(departure)
    }

    /// Notes where that has arrived.
    pub(super) fn arrive(&self, departure: Departure, to: &JsonPointer) -> Result<()> {
        let Departure { node, origin, carried } = departure;
        let mut arrived = Vec::new();
        if let (Some(to), Some(from)) = (self.node_at(to)?, origin) {
            arrived.push(Move { to, from });
        }
        for (rest, moved) in &carried {
            if let Some(to) = self.node_at(&to.below(rest))? {
                arrived.push(Move { to, from: moved.from });
            }
        }
        let mut data = self.tree.data.write();
        data.moves.retain(|moved| {
            let is_carried = carried.iter().any(|(_, carried)| carried == moved);
            let is_replaced = arrived.iter().any(|arrived| arrived.to == moved.to);
            !is_carried && !is_replaced && Some(moved.to) != node
        });
        data.moves.extend(arrived.into_iter().filter(|moved| moved.to != moved.from));
        Ok(())
    }

    /// Leaves of the moves those from what there was to what there is now.
    pub(crate) fn settle_moves(&self) -> Result<()> {
        let moves = std::mem::take(&mut self.tree.data.write().moves);
        let (mut settled, mut places) = (Vec::with_capacity(moves.len()), Places::default());
        let mut is_at = |node, revision| -> Result<bool> {
            Ok(self.tree.pointer_among(&mut places, (node, revision))?.is_some())
        };
        for moved in moves {
            if is_at(moved.to, self.revision)? && is_at(moved.from, self.revision - 1)? {
                settled.push(moved);
            }
        }
        settled.sort_unstable();
        self.tree.data.write().moves = settled;
        Ok(())
    }

    fn node_at(&self, place: &JsonPointer) -> Result<Option<NodeId>> {
        match self.tree.locate(place, self.revision)? {
            Place::Node(node) => Ok(Some(node)),
            Place::Inside(..) | Place::Missing(..) => Ok(None),
        }
    }

    /// The node that was at a place below another before the transaction; none if elements of
    /// arrays lie between, which may have stood elsewhere.
    fn origin_below(&self, top: NodeId, rest: &[String]) -> Result<Option<NodeId>> {
        let before = self.revision - 1;
        let Some(place) = self.tree.pointer_of(top, before)? else { return Ok(None) };
        let Place::Node(node) = self.tree.locate(&place.below(rest), before)? else {
            return Ok(None);
        };
        let mut at = node;
        while at != top {
            let parent = self.tree.read(|data| {
                let is_element = data.schema.label(at.path()) == Label::Element;
                Ok(if is_element { None } else { parent_of(data, at)? })
            })?;
            let Some(parent) = parent else { return Ok(None) };
            at = parent;
        }
        Ok(Some(node))
    }
}
