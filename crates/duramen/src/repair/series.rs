//! Series of a damaged database: what was written to those whose names can be read, as of the same
//! commits, as a dump has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Lost, NO_REVISIONS, Repair};
use crate::dump::{PointItems, SeriesLoad, deletes_until};
use crate::error::Result;
use crate::revision::CommitSequence;
use crate::series::commits::Commits;
use crate::series::past;
use crate::series::rollup::StoredRollup;
use crate::series::{SeriesInfo, SeriesSnapshot, rules, tags};
use crate::tree::Tree;
use crate::tree::cell_key::{self, TreeId};
use crate::tree::salvage::readable;

/// As of the last commit, whatever its sequence is.
const NEWEST: CommitSequence = CommitSequence(u64::MAX);

impl Repair {
    /// Takes over all series that the catalogue still names, but for names that documents have.
    /// It is the first thing that is written: documents are committed behind it.
    pub(super) fn series(
        &mut self,
        trees: &BTreeSet<TreeId>,
        documents: &BTreeSet<&str>,
    ) -> Result<()> {
        let may_lack = self.may_lack(&TreeId::SERIES.0.to_be_bytes());
        if may_lack {
            self.lose(None, NO_REVISIONS, "some of what the catalogue said of series");
        }
        let Some((tree, head)) = readable(self.engine.view().series_tags(NEWEST))? else {
            self.lose(None, NO_REVISIONS, "all that the catalogue said of series");
            return Ok(());
        };
        let infos = self.series_infos((&tree, head), documents)?;
        self.leave_out_deleted((trees, may_lack), (&tree, head), &infos)?;
        let mut load = SeriesLoad::default();
        match readable(tags::rules(&tree, head))? {
            None => self.lose(None, NO_REVISIONS, "the rules of what is kept of series"),
            Some(found) if found.is_empty() => {}
            Some(found) => load.rule(&self.database, &rules::to_json(&found))?,
        }
        // Of a catalogue with gaps it is not told what series were before.
        let past = if may_lack { None } else { readable(past::all(&tree, head))? };
        let past = past.unwrap_or_default();
        for info in infos.values() {
            let record = past::to_json(info, past.get(&info.number));
            load.define(&self.database, &info.name, &record)?;
        }
        if !infos.is_empty() {
            self.series_commits(&mut load)?;
        }
        for info in infos.into_values() {
            self.written(&mut load, info)?;
        }
        load.finish(&self.database)
    }

    /// The series that can be taken over, by their names.
    fn series_infos(
        &mut self,
        (tree, head): (&Tree, u32),
        documents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, SeriesInfo>> {
        let mut found: Vec<SeriesInfo> = Vec::new();
        let listed = tags::each(tree, head, &mut |name, entry| {
            found.extend(readable(tags::read(tree, (name, entry), head))?);
            Ok(())
        });
        if readable(listed)?.is_none() {
            self.lose(None, NO_REVISIONS, "the names of some series");
        }
        // Where it is lost that a series got another name, the new one is the later one.
        found.sort_by_key(|info| std::cmp::Reverse(info.changed));
        let (mut infos, mut numbers) = (BTreeMap::new(), BTreeSet::new());
        for info in found {
            if documents.contains(info.name.as_str()) {
                self.lose_of(&info.name, "all of it: a document has its name now");
            } else if numbers.insert(info.number) {
                infos.insert(info.name.clone(), info);
            } else {
                self.lose_of(&info.name, "its name: the series has another one, which is later");
            }
        }
        Ok(infos)
    }

    /// Tells of series that nothing names any more: only as of commits before they were deleted
    /// they could be read. In a catalogue with gaps their names may be lost.
    fn leave_out_deleted(
        &mut self,
        (trees, may_lack): (&BTreeSet<TreeId>, bool),
        (tree, head): (&Tree, u32),
        infos: &BTreeMap<String, SeriesInfo>,
    ) -> Result<()> {
        let mut unnamed = trees.clone();
        unnamed.extend(self.engine.view().series.series());
        unnamed.retain(|number| number.is_series());
        for info in infos.values() {
            unnamed.remove(&info.number);
        }
        if unnamed.is_empty() {
            return Ok(());
        }
        let names = readable(tags::last_names(tree, head))?.unwrap_or_default();
        for number in unnamed {
            let Some(name) = names.get(&number) else {
                let number = number.0 - TreeId::SERIES.0;
                let what = format!("a series whose name is lost, number {number}: all of it");
                self.lose(None, NO_REVISIONS, what);
                continue;
            };
            let what = format!("series {name:?}: all of it: the series was deleted");
            let (first, last) = NO_REVISIONS;
            let series = Lost { document: None, path: None, first, last, values: 1, what };
            let report = &mut self.report;
            if may_lack { &mut report.lost } else { &mut report.left_out }.push(series);
        }
        Ok(())
    }

    /// Takes over when commits were made that changed series.
    fn series_commits(&mut self, load: &mut SeriesLoad) -> Result<()> {
        let mut is_lost = self.may_lack(&cell_key::all_commits());
        let mut commits = Commits::of(&self.engine.view())?;
        let mut last = (CommitSequence(0), None);
        loop {
            let Some(mut some) = readable(commits.next())? else {
                is_lost = true;
                break;
            };
            if some.is_empty() {
                break;
            }
            some.retain(|&(sequence, time)| {
                let rises = sequence > last.0 && last.1.is_none_or(|last| time > last);
                if rises {
                    last = (sequence, Some(time));
                }
                rises
            });
            load.push_commits(&self.database, &some)?;
        }
        if is_lost {
            let what = "when some commits were made that changed series: as of a time near them \
                        series may be as they were before";
            self.lose(None, NO_REVISIONS, what);
        }
        Ok(())
    }

    /// Takes over all that was written to a series and deleted of it.
    fn written(&mut self, load: &mut SeriesLoad, info: SeriesInfo) -> Result<()> {
        let name = info.name.clone();
        if self.may_lack(&cell_key::all_points(info.number)) {
            self.lose_of(&name, "some of its points");
        }
        if self.may_lack(&cell_key::all_deletes(info.number)) {
            self.lose_of(&name, "some of what was deleted of it, which may be there again");
        }
        let (view, now) = (self.engine.view().clone(), self.engine.now());
        let snapshot = SeriesSnapshot::new(view, Arc::new(info), NEWEST).kept_at(now);
        let first = self.points(load, &snapshot)?;
        self.lose_windows(snapshot.info(), first)?;
        let Some(deletes) = readable(deletes_until(&snapshot))? else {
            self.lose_of(&name, "what was deleted of it, which is there again");
            return Ok(());
        };
        let spans = deletes.iter().map(|delete| {
            load.reach(delete.sequence);
            (delete.sequence, delete.span.first(), delete.span.last())
        });
        let spans: Vec<_> = spans.collect();
        load.push_deletes(&self.database, &name, &spans)
    }

    /// Takes over the points; the time of the first one.
    fn points(&mut self, load: &mut SeriesLoad, snapshot: &SeriesSnapshot) -> Result<Option<i64>> {
        let name = &snapshot.info().name;
        let Some(items) = readable(PointItems::of(snapshot))? else {
            self.lose_of(name, "all of its points");
            return Ok(None);
        };
        let mut first = None;
        let Some(mut items) = items else { return Ok(first) };
        loop {
            let Some(next) = readable(items.next())? else {
                self.lose_of(name, "its later points");
                return Ok(first);
            };
            let Some(dumped) = next else { return Ok(first) };
            first = first.or(dumped.points.times().first().copied());
            dumped.commits.iter().max().into_iter().for_each(|last| load.reach(*last));
            load.push_points(&self.database, &dumped)?;
        }
    }

    /// Tells how many windows of rollups there are only the rows of, which are not taken over.
    fn lose_windows(&mut self, info: &SeriesInfo, first: Option<i64>) -> Result<()> {
        for rollup in &info.definition.rollups {
            let stored = StoredRollup::new(info, *rollup, &self.engine.view());
            let before = first.unwrap_or(i64::MAX);
            let windows = readable(stored.windows_before(before, self.engine.now()))?;
            if windows == Some(0) {
                continue;
            }
            let name = &info.name;
            let what = format!(
                "series {name:?}: windows of {:?} whose points are not there any more",
                rollup.width
            );
            let (first, last) = NO_REVISIONS;
            let values = windows.unwrap_or(1);
            self.report.lost.push(Lost { document: None, path: None, first, last, values, what });
        }
        Ok(())
    }

    fn lose_of(&mut self, series: &str, what: &str) {
        self.lose(None, NO_REVISIONS, format!("series {series:?}: {what}"));
    }
}
