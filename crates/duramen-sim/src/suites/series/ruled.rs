//! Rules of what series keep, set, changed and removed in the commits of the suite, with series
//! that are made under them.

use std::collections::BTreeMap;
use std::time::Duration;

use duramen::{
    DatabaseSnapshot, Rollup, SeriesDefinition, SeriesFilter, SeriesRule, Transaction, ValueType,
};

use crate::Random;
use crate::expectation::Check;
use crate::oracle::said;

/// Patterns, the one that wins first.
const GLOBS: [&str; 3] = ["made/*/x", "made/1/?", "made/**"];
/// Names, and which of the patterns are for each.
const NAMES: [(&str, [bool; 3]); 3] = [
    ("made/1/x", [true, true, true]),
    ("made/1/y", [false, true, true]),
    ("made/2/x", [true, false, true]),
];

/// For how many seconds points are kept, and the width of a rollup in seconds, if there is one.
type Tiers = (Option<u64>, Option<u64>);

/// What the rules say, and what series keep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ruled {
    rules: BTreeMap<String, Tiers>,
    series: BTreeMap<String, Tiers>,
}

impl Ruled {
    /// What some transactions change.
    pub(super) fn change(
        &mut self,
        random: &mut Random,
        transaction: &mut Transaction,
    ) -> duramen::Result<()> {
        if !random.one_in(3) {
            return Ok(());
        }
        let (glob, (name, _)) = (random.index(GLOBS.len()), random.choose(&NAMES));
        match random.below(4) {
            0 if self.rules.contains_key(GLOBS[glob]) => {
                transaction.remove_series_rule(GLOBS[glob])?;
                let won = self.won(glob);
                self.rules.remove(GLOBS[glob]);
                self.settle(&won);
            }
            0 | 1 => {
                let keep = random.one_in(2).then(|| 60 + random.below(40));
                let tiers = (keep, random.one_in(2).then(|| 1 + random.below(60)));
                transaction.set_series_rule(&rule(GLOBS[glob], tiers))?;
                self.rules.insert(GLOBS[glob].to_owned(), tiers);
                let won = self.won(glob);
                self.settle(&won);
            }
            _ if self.series.remove(name).is_some() => transaction.delete_series(name)?,
            _ => {
                transaction.create_series(name, &SeriesDefinition::new(ValueType::I64))?;
                self.series.insert(name.to_owned(), (None, None));
                self.settle(&[name]);
            }
        }
        Ok(())
    }

    /// The pattern of the rule that wins for a name.
    fn winner(&self, name: &str) -> Option<usize> {
        let (_, taken) = NAMES.iter().find(|(known, _)| *known == name)?;
        (0..GLOBS.len()).find(|&at| taken[at] && self.rules.contains_key(GLOBS[at]))
    }

    fn won(&self, glob: usize) -> Vec<&'static str> {
        let names = NAMES.iter().map(|(name, _)| *name);
        let there = names.filter(|name| self.series.contains_key(*name));
        there.filter(|name| self.winner(name) == Some(glob)).collect()
    }

    /// Has these keep what the rule says that wins.
    fn settle(&mut self, names: &[&str]) {
        for &name in names {
            if let Some(glob) = self.winner(name) {
                self.series.insert(name.to_owned(), self.rules[GLOBS[glob]]);
            }
        }
    }

    /// Compares it with what a database says.
    pub(super) fn compare(&self, snapshot: &DatabaseSnapshot) -> Check {
        let rules = said("rules", snapshot.series_rules())?;
        let series = said("series", snapshot.find_series(&SeriesFilter::glob("made/**")))?;
        let kept =
            |info: &duramen::SeriesInfo| tiers(info.definition.keep, &info.definition.rollups);
        let found = Self {
            rules: rules
                .into_iter()
                .map(|rule| (rule.glob, tiers(rule.keep, &rule.rollups)))
                .collect(),
            series: series.into_iter().map(|info| (info.name.clone(), kept(&info))).collect(),
        };
        if found == *self {
            return Ok(());
        }
        Err(format!("the rules are {found:?}, expected {self:?}"))
    }
}

fn rule(glob: &str, (keep, width): Tiers) -> SeriesRule {
    let rollup = |width| Rollup::new(Duration::from_secs(width));
    SeriesRule {
        keep: keep.map(Duration::from_secs),
        rollups: width.map(rollup).into_iter().collect(),
        ..SeriesRule::new(glob)
    }
}

fn tiers(keep: Option<Duration>, rollups: &[Rollup]) -> Tiers {
    (keep.map(|keep| keep.as_secs()), rollups.first().map(|rollup| rollup.width.as_secs()))
}
