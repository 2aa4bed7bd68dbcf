//! All that was written, with what was written over and deleted since.

use super::Reading;
use crate::error::Result;
use crate::series::block::Sequences;
use crate::series::merge::order_from;
use crate::series::points::Points;

impl Reading {
    /// Appends some of the next points that were written by then, in the order of their times and
    /// then of their commits, with the sequences of those; false if none are left. It is for
    /// reading in rising order.
    pub(crate) fn read_written(
        &mut self,
        out: &mut Points,
        sequences: &mut Sequences,
    ) -> Result<bool> {
        let start = out.len();
        let until = self.as_of.sequence;
        let value_type = self.value_type;
        let mut checked = Ok(());
        let mut visits = 0;
        let is_some = self.each_place(&mut |piece, places| {
            visits += 1;
            let found = piece.points.value_type();
            if found != value_type {
                checked = Err(found);
                return;
            }
            for at in places {
                if piece.sequences.get(at) <= until {
                    sequences.append(out.len(), &piece.sequences, at..at + 1);
                    out.append(&piece.points, at..at + 1);
                }
            }
        })?;
        if let Err(found) = checked {
            self.check_type(found)?;
        }
        if visits > 1 {
            // Those of one time come piece by piece.
            order_from(start, (out, sequences), false);
        }
        Ok(is_some)
    }
}
