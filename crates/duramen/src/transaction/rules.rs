//! Rules of what is kept of series, in a transaction: setting and removing them, and what that
//! changes of the series there are.

use std::sync::Arc;

use super::{Aim, Transaction};
use crate::engine::catalogue::check_name;
use crate::error::Result;
use crate::series::{SeriesInfo, SeriesRule, rules, tags};
use crate::tree::cell_key::TreeId;

impl Transaction {
    /// Sets for how long the points of series are kept whose names are of a pattern: of those there
    /// are, unless a rule with a more specific pattern wins, and of those that are made later and
    /// whose definitions say nothing of it. It takes the place of the rule that has its pattern.
    /// How many series it changed. `Invalid` if it cannot be, `Full` if there are too many.
    pub fn set_series_rule(&mut self, rule: &SeriesRule) -> Result<u64> {
        rule.check()?;
        let mut rules = self.series_rules()?;
        rules::put(&mut rules, rule.clone())?;
        self.aim = Aim::Adding;
        self.rule_series(&rule.glob, &rules, &rules)
    }

    /// Removes the rule of a pattern; `NotFound` if there is none. Series that it won take what the
    /// rule says that wins now; those for which there is no other stay as they are, so that nothing
    /// is dropped that it had kept. How many series that changed.
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
    /// a pattern wins among those of `before`.
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
            let is_won = SeriesRule::winner(before, name).is_some_and(|rule| rule.glob == glob);
            won.extend(is_won.then(|| name.to_owned()));
            Ok(())
        })?;
        let mut changed = 0;
        for name in won {
            let done = self.rule_one(&name, after);
            changed += u64::from(*done.as_ref().unwrap_or(&false));
            self.note(done.map(drop))?;
        }
        Ok(changed)
    }

    /// Has a series keep what the rule says that wins; whether that is something else.
    fn rule_one(&mut self, name: &str, rules: &[SeriesRule]) -> Result<bool> {
        check_name(name)?;
        let Some(rule) = SeriesRule::winner(rules, name) else { return Ok(false) };
        let changed = self.engine.now();
        let writer = self.take(TreeId::SERIES)?;
        let found = tags::find(&writer.tree, name, writer.revision)?;
        let before = found.ok_or_else(|| tags::no_series(name))?;
        let mut definition = before.definition.clone();
        if !rule.define(&mut definition) {
            return Ok(false);
        }
        let clock = self.engine.view().series.clock(before.number, changed);
        definition.number_rollups(Some((&before.definition, clock)), changed);
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
