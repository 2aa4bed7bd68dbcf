//! Rules of how long points are kept, by patterns of the names of series.
//!
//! A rule is a template: what it says becomes part of the record of a series, when the series is
//! made or the rule is. So whoever reads, writes or merges points looks at that record alone.
//!
//! Invariants:
//! - of each pattern there is one rule at most, and rules are sorted by their patterns;
//! - of the rules that are for a name, the one with the most characters in its pattern wins that
//!   stand for themselves; of those with as many the pattern that is sorted first.

use std::cmp::Reverse;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::json::escape::quoted;
use crate::json::{ParseOptions, Tape, TapeIndex};
use crate::limits::{SERIES_NOTE_BYTES_MAX, SERIES_RULES_MAX};
use crate::series::definition::SeriesDefinition;
use crate::series::filter::NamePattern;
use crate::series::tiers::{self, Rollup};

/// For how long the points of series are kept whose names are of a pattern, and which rollups they
/// have. It holds for the series there are when it is set, and for those that are made later,
/// unless a rule with a more specific pattern does: the one with the most characters that stand
/// for themselves, and of those with as many the pattern that is sorted first.
///
/// ```
/// use std::time::Duration;
///
/// use duramen::{CommitOptions, Database, Rollup, SeriesDefinition, SeriesRule, ValueType};
///
/// let db = Database::memory()?;
/// let day = Duration::from_secs(86_400);
/// let rule = SeriesRule {
///     keep: Some(30 * day),
///     rollups: vec![Rollup::new(day)],
///     ..SeriesRule::new("boiler/**")
/// };
/// let mut transaction = db.transaction();
/// transaction.set_series_rule(&rule)?;
/// transaction.commit(&CommitOptions::default())?;
/// let made = db.create_series("boiler/7/temp", &SeriesDefinition::new(ValueType::F64))?;
/// assert_eq!(made.info().definition.keep, Some(30 * day));
/// assert_eq!(db.series_rules()?, [rule]);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRule {
    /// The pattern, as of a [`SeriesFilter`](crate::SeriesFilter).
    pub glob: String,
    /// For how long points are kept; for ever if nothing is said.
    pub keep: Option<Duration>,
    /// Summaries that are kept beside the points, of one width each.
    pub rollups: Vec<Rollup>,
}

impl SeriesRule {
    /// For all names of a pattern: everything is kept, without rollups.
    pub fn new(glob: impl Into<String>) -> Self {
        Self { glob: glob.into(), keep: None, rollups: Vec::new() }
    }

    /// The rule among some that wins for a name.
    pub fn winner<'r>(rules: &'r [Self], name: &str) -> Option<&'r Self> {
        let taking = rules.iter().filter(|rule| rule.takes(name));
        taking.max_by_key(|rule| (rule.literals(), Reverse(&rule.glob)))
    }

    /// Refuses what can be no rule.
    pub(crate) fn check(&self) -> Result<()> {
        let bytes = self.glob.len();
        if bytes == 0 || bytes > SERIES_NOTE_BYTES_MAX {
            let message = format!(
                "the pattern of a rule has {bytes} bytes: use 1 to {SERIES_NOTE_BYTES_MAX}"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        tiers::check(self.keep, &self.rollups)
    }

    /// Whether it is for series of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        NamePattern::new(&self.glob).takes(name)
    }

    /// Has a definition say what it says, and keep some rollups beside that; whether that is
    /// something else.
    pub(crate) fn define(&self, definition: &mut SeriesDefinition, beside: &[Rollup]) -> bool {
        let tiers = |rollup: &Rollup| (rollup.width, rollup.keep);
        let rollups = [&self.rollups, beside].concat();
        // Points are kept for a window at least.
        let keep = beside.iter().map(|rollup| rollup.width);
        let keep = self.keep.map(|own| keep.fold(own, Duration::max));
        if definition.keep == keep
            && definition.rollups.iter().map(tiers).eq(rollups.iter().map(tiers))
        {
            return false;
        }
        (definition.keep, definition.rollups) = (keep, rollups);
        true
    }

    /// How many characters of the pattern stand for themselves.
    fn literals(&self) -> usize {
        self.glob.chars().filter(|character| !matches!(character, '*' | '?')).count()
    }

    fn to_json(&self) -> String {
        let tiers = tiers::to_json(self.keep, &self.rollups);
        let tiers = tiers.map_or(String::new(), |tiers| format!(",{tiers}"));
        format!("{{\"glob\":{}{tiers}}}", quoted(&self.glob))
    }

    fn from_tape(tape: &Tape<'_>, at: TapeIndex) -> Option<Self> {
        let [glob, keep, rollups] = tape.named(at, ["glob", "keep", "rollups"]);
        let glob = tape.item(glob?).text()?.to_owned();
        let (keep, rollups) = tiers::from_tape(tape, (keep, rollups))?;
        Some(Self { glob, keep, rollups })
    }
}

/// Puts a rule among others, in the place of the one that has its pattern.
pub(crate) fn put(rules: &mut Vec<SeriesRule>, rule: SeriesRule) -> Result<()> {
    match rules.binary_search_by(|known| known.glob.cmp(&rule.glob)) {
        Ok(known) => rules[known] = rule,
        Err(_) if rules.len() >= SERIES_RULES_MAX => {
            let message = format!(
                "there are {SERIES_RULES_MAX} rules, and no more can be: remove one, or use wider \
                 patterns"
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        Err(place) => rules.insert(place, rule),
    }
    Ok(())
}

/// Takes the rule of a pattern out of others; `NotFound` if none has it.
pub(crate) fn remove(rules: &mut Vec<SeriesRule>, glob: &str) -> Result<()> {
    let Ok(place) = rules.binary_search_by(|known| known.glob.as_str().cmp(glob)) else {
        let message = format!(
            "there is no rule for {glob:?}: \"duramen series retain --list\" shows those there are"
        );
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    rules.remove(place);
    Ok(())
}

/// The rules as the catalogue keeps them.
pub(crate) fn to_json(rules: &[SeriesRule]) -> String {
    let rules: Vec<String> = rules.iter().map(SeriesRule::to_json).collect();
    format!("[{}]", rules.join(","))
}

/// The rules that [`to_json`] gave.
pub(crate) fn from_json(text: &[u8]) -> Result<Vec<SeriesRule>> {
    let tape = Tape::parse(text, ParseOptions::default())?;
    let rules: Option<Vec<SeriesRule>> =
        tape.elements(tape.root()).map(|at| SeriesRule::from_tape(&tape, at)).collect();
    rules.filter(|rules| rules.is_sorted_by(|one, next| one.glob < next.glob)).ok_or_else(|| {
        let text = String::from_utf8_lossy(text);
        let message = format!("the catalogue of the series has rules that none can be: {text}");
        Error::new(ErrorKind::Corrupt, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_with_the_most_characters_of_its_own_wins() {
        let globs = ["**", "**/temp", "boiler/**", "boiler/*/temp", "boiler/7/temp"];
        let rules = globs.map(SeriesRule::new);
        for (name, expected) in [
            ("boiler/7/temp", "boiler/7/temp"),
            ("boiler/8/temp", "boiler/*/temp"),
            ("boiler/8/x/temp", "boiler/**"),
            ("pump/temp", "**/temp"),
            ("x", "**"),
        ] {
            assert_eq!(SeriesRule::winner(&rules, name).unwrap().glob, expected, "{name}");
        }
        assert_eq!(SeriesRule::winner(&rules[1..], "x"), None);
        let even = ["*/b", "a/*"].map(SeriesRule::new);
        assert_eq!(SeriesRule::winner(&even, "a/b").unwrap().glob, "*/b");
    }

    #[test]
    fn rules_are_read_as_they_were_written() {
        let second = Duration::from_secs(1);
        let rules = [
            SeriesRule::new("a \"b\"/**"),
            SeriesRule {
                keep: Some(90 * second),
                rollups: vec![Rollup::new(second), Rollup::new(60 * second).keeping(second)],
                ..SeriesRule::new("b")
            },
        ];
        assert_eq!(from_json(to_json(&rules).as_bytes()).unwrap(), rules);
        for text in ["[{}]", "[7]", r#"[{"glob":7}]"#, r#"[{"glob":"b"},{"glob":"a"}]"#] {
            let error = from_json(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
        }
    }

    #[test]
    fn what_can_be_no_rule_is_refused() {
        let kind = |rule: SeriesRule| rule.check().unwrap_err().kind();
        assert_eq!(kind(SeriesRule::new("")), ErrorKind::Invalid);
        assert_eq!(kind(SeriesRule::new("x".repeat(5_000))), ErrorKind::Invalid);
        let none = SeriesRule { keep: Some(Duration::ZERO), ..SeriesRule::new("a") };
        assert_eq!(kind(none), ErrorKind::Invalid);
        let mut rules = Vec::new();
        for number in 0..SERIES_RULES_MAX {
            put(&mut rules, SeriesRule::new(number.to_string())).unwrap();
        }
        put(&mut rules, SeriesRule::new("0")).unwrap();
        let full = put(&mut rules, SeriesRule::new("one more")).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Full);
        assert_eq!(remove(&mut rules, "one more").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
