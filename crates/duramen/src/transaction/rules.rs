//! Rules of what is kept of series, in a transaction: setting and removing them, and what that
//! changes of the series there are.

use std::sync::Arc;
use std::time::Duration;

use super::series::ready_for;
use super::{Aim, Transaction};
use crate::engine::View;
use crate::engine::catalogue::check_name;
use crate::error::Result;
use crate::revision::{CommitSequence, Micros};
use crate::series::{Rollup, SeriesInfo, SeriesRule, SeriesSnapshot, rules, tags};
use crate::tree::cell_key::TreeId;

impl Transaction {
    /// Sets for how long the points of series are kept whose names are of a pattern: of those there
    /// are, unless a rule with a more specific pattern wins, and of those that are made later and
    /// whose definitions say nothing of it. It takes the place of the rule that has its pattern.
    /// How many series it changed. `Invalid` if it cannot be, `Full` if there are too many.
    pub fn set_series_rule(&mut self, rule: &SeriesRule) -> Result<u64> {
        rule.check()?;
        let before = self.series_rules()?;
        let mut after = before.clone();
        rules::put(&mut after, rule.clone())?;
        self.aim = Aim::Adding;
        self.rule_series(&rule.glob, &before, &after)
    }

    /// Removes the rule of a pattern; `NotFound` if there is none. Series that it won take what the
    /// rule says that wins now, and keep beside it the rollups that tell of points that have gone,
    /// until a rule that names one of these is set without it; series for which there is no other
    /// rule stay as they are. How many series that changed. `Invalid` if one has too many rollups.
    pub fn remove_series_rule(&mut self, glob: &str) -> Result<u64> {
        let before = self.series_rules()?;
        let mut after = before.clone();
        if let Err(error) = rules::remove(&mut after, glob) {
            let tree = Arc::clone(&self.take(TreeId::SERIES)?.tree);
            self.wait_published(&tree)?;
            return Err(error);
        }
        self.aim = Aim::Adding;
        self.rule_series(glob, &before, &after)
    }

    /// The rules that are there, about to be changed.
    fn series_rules(&mut self) -> Result<Vec<SeriesRule>> {
        self.engine.journal()?;
        let writer = self.take(TreeId::SERIES)?;
        tags::rules(&writer.tree, writer.revision)
    }

    /// Writes the rules `after`, and what they say into the records of the series that the rule of
    /// a pattern wins among these or those of `before`.
    fn rule_series(
        &mut self,
        glob: &str,
        before: &[SeriesRule],
        after: &[SeriesRule],
    ) -> Result<u64> {
        let put = self.put_series_rules(after);
        self.note(put)?;
        let mut won = Vec::new();
        let writer = self.take(TreeId::SERIES)?;
        tags::each(&writer.tree, writer.revision, &mut |name, _| {
            let mut winners =
                [before, after].into_iter().map(|some| SeriesRule::winner(some, name));
            let is_won = winners.any(|rule| rule.is_some_and(|rule| rule.glob == glob));
            won.extend(is_won.then(|| name.to_owned()));
            Ok(())
        })?;
        let mut changed = 0;
        for name in won {
            let done = self.rule_one(&name, before, after);
            changed += u64::from(*done.as_ref().unwrap_or(&false));
            self.note(done.map(drop))?;
        }
        Ok(changed)
    }

    /// Has a series keep what the rule says that wins; whether that is something else.
    fn rule_one(
        &mut self,
        name: &str,
        before: &[SeriesRule],
        after: &[SeriesRule],
    ) -> Result<bool> {
        check_name(name)?;
        let Some(rule) = SeriesRule::winner(after, name) else { return Ok(false) };
        // What a rule named that is still there goes if it is not named any more.
        let is_there = |won: &&SeriesRule| after.iter().any(|rule| rule.glob == won.glob);
        let won = SeriesRule::winner(before, name).filter(is_there);
        let changed = self.engine.now();
        let (engine, view) = (Arc::clone(&self.engine), self.engine.view());
        let writer = self.take(TreeId::SERIES)?;
        let found = tags::find(&writer.tree, name, writer.revision)?;
        let before = found.ok_or_else(|| tags::no_series(name))?;
        let said = [Some(rule), won].into_iter().flatten();
        let said: Vec<Duration> =
            said.flat_map(|rule| &rule.rollups).map(|rollup| rollup.width).collect();
        let beside = outliving(&view, (&before, changed), &said)?;
        let mut definition = before.definition.clone();
        if !rule.define(&mut definition, &beside) {
            return Ok(false);
        }
        definition.check().map_err(|error| {
            error.in_context(format_args!("series {name:?}, with what it has of rules before"))
        })?;
        let clock = view.series.clock(before.number, changed);
        definition.number_rollups(Some((&before.definition, clock)), changed);
        ready_for(&engine, &definition)?;
        writer.put_series(&SeriesInfo { definition, changed, ..before })?;
        Ok(true)
    }

    /// Takes over rules that are of a database elsewhere, as the first thing of its series.
    pub(crate) fn load_series_rules(&mut self, rules: &[SeriesRule]) -> Result<()> {
        self.aim = Aim::Adding;
        // Names are one namespace, whose turn comes first.
        self.catalogue()?;
        let put = self.put_series_rules(rules);
        self.note(put)
    }

    /// Writes these rules and no others, and changes no series.
    pub(crate) fn put_series_rules(&mut self, rules: &[SeriesRule]) -> Result<()> {
        self.take(TreeId::SERIES)?.put_series_rules(rules)
    }
}

/// The rollups of a series of none of these widths that are all that is left of a time, or will be.
fn outliving(
    view: &Arc<View>,
    (info, now): (&SeriesInfo, Micros),
    said: &[Duration],
) -> Result<Vec<Rollup>> {
    let mut rollups = info.definition.rollups.clone();
    rollups.retain(|rollup| !said.contains(&rollup.width));
    if rollups.is_empty() {
        return Ok(rollups);
    }
    let all = CommitSequence(u64::MAX);
    let snapshot = SeriesSnapshot::new(Arc::clone(view), Arc::new(info.clone()), all).kept_at(now);
    let mut outliving = Vec::new();
    for rollup in rollups {
        if snapshot.is_alone(&rollup)? {
            outliving.push(rollup);
        }
    }
    Ok(outliving)
}
