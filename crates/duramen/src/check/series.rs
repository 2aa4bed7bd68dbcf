//! Verifies series: what their catalogue says, that all their points can be read together, and that
//! rollups say what these come to.

use std::sync::Arc;

use super::{CheckReport, Finding};
use crate::engine::View;
use crate::error::Result;
use crate::revision::{CommitSequence, Micros};
use crate::series::{SeriesSnapshot, tags};
use crate::tree::cell_key::TreeId;

impl CheckReport {
    /// Every series as of a commit.
    pub(super) fn check_series(
        &mut self,
        (view, published): (&Arc<View>, CommitSequence),
        now: Micros,
    ) -> Result<()> {
        let place = "the catalogue of the series";
        let Some(tree) = self.found(place, view.tree(TreeId::SERIES))? else { return Ok(()) };
        self.check_tree(place, &tree, published);
        let Some((tags, head)) = self.found(place, view.series_tags(published))? else {
            return Ok(());
        };
        self.found("the rules of the series", tags::rules(&tags, head))?;
        let mut entries = Vec::new();
        let listed = tags::each(&tags, head, &mut |name, entry| {
            entries.push((name.to_owned(), entry));
            Ok(())
        });
        self.found(place, listed)?;
        for (name, entry) in entries {
            let place = format!("series {name:?}");
            let info = tags::read(&tags, (&name, entry), head);
            let Some(info) = self.found(&place, info)? else { continue };
            self.series += 1;
            let snapshot = SeriesSnapshot::new(Arc::clone(view), Arc::new(info), published);
            let read = snapshot
                .range(..)
                .and_then(|mut points| points.try_for_each(|some| some.map(drop)));
            if self.found(&place, read)?.is_some() {
                let mut wrong = Vec::new();
                let checked =
                    snapshot.kept_at(now).check_rollups(&mut |message| wrong.push(message));
                self.found(&place, checked)?;
                let findings = wrong.into_iter();
                self.findings
                    .extend(findings.map(|message| Finding { place: place.clone(), message }));
            }
        }
        Ok(())
    }
}
