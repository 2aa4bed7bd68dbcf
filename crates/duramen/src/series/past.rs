//! What series were before: under which names, and what was said of them, as dumps tell it.
//!
//! What is kept of a series is no part of that: it goes for all commits, and so it is told as it is
//! now. Of a series that was deleted nothing is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::{Bound, ControlFlow};

use crate::error::Result;
use crate::json::escape::quoted;
use crate::json::{ParseOptions, Tape, TapeIndex};
use crate::node::NodeId;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::series::commits::CommitTime;
use crate::series::definition::{SeriesInfo, number, series_number};
use crate::series::tags;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::node;
use crate::tree::record_keys::KeyRange;

/// What a series was before what it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Past {
    /// The commit that made it, if another series had its first name before.
    pub(crate) since: Option<CommitTime>,
    /// What it was, oldest first, each up to a commit.
    pub(crate) states: Vec<(SeriesInfo, CommitTime)>,
}

/// The same while it is looked for: from which revisions on a series was what.
type Runs = Vec<(u32, SeriesInfo)>;

/// A revision in which an entry of a series was written, with its name.
type Written = (u32, String, NodeId);

/// When something was written of each series, rising, and which of them are there.
type Known = (BTreeMap<TreeId, Vec<Written>>, BTreeSet<TreeId>);

/// What series were that are there in a state of the catalogue, of those that were something else.
pub(crate) fn all(tags: &Tree, revision: u32) -> Result<BTreeMap<TreeId, Past>> {
    let mut found = BTreeMap::new();
    let (written, living) = written(tags, revision)?;
    let mut runs: BTreeMap<TreeId, Runs> = BTreeMap::new();
    for series in living {
        let some = written.get(&series).map_or(&[][..], Vec::as_slice);
        runs.insert(series, runs_of(tags, some)?);
    }
    let mut first_of: BTreeMap<&str, u32> = BTreeMap::new();
    for (from, info) in runs.values().flatten() {
        let first = first_of.entry(&info.name).or_insert(*from);
        *first = (*first).min(*from);
    }
    let time = |revision: u32| -> Result<CommitTime> {
        let row = tags.row(Revision(revision.into()))?;
        Ok((row.sequence, row.timestamp))
    };
    for (series, runs) in &runs {
        let Some((made, first)) = runs.first() else { continue };
        let mut past = Past::default();
        if first_of.get(first.name.as_str()).is_some_and(|from| from < made) {
            past.since = Some(time(*made)?);
        }
        for pair in runs.windows(2) {
            if let [(_, info), (until, _)] = pair {
                past.states.push((info.clone(), time(*until)?));
            }
        }
        if past != Past::default() {
            found.insert(*series, past);
        }
    }
    Ok(found)
}

/// What was written of series up to a state of the catalogue.
fn written(tags: &Tree, revision: u32) -> Result<Known> {
    let (mut written, mut living) = (BTreeMap::<_, Vec<Written>>::new(), BTreeSet::new());
    let Some(map) = tags::map_of(tags, revision)? else { return Ok((written, living)) };
    let paths = {
        let schema = &tags.data.read().schema;
        let of = |entries| {
            Some((entries, schema.field(entries, b"number")?, schema.field(entries, b"changed")?))
        };
        schema.path(map.path()).entry.and_then(of)
    };
    let Some((entries, numbers, changes)) = paths else { return Ok((written, living)) };
    let all = KeyRange { low: Bound::Unbounded, high: Bound::Unbounded };
    for (name, ordinal) in tags.entry_keys(map.path(), &all, false, usize::MAX)?.iter() {
        let entry = node(entries, ordinal);
        let (sets, last) = tags.read(|data| {
            // A name that comes back has its members again, though they are not written.
            let mut sets = BTreeSet::new();
            for of in [entry, node(changes, ordinal)] {
                data.versions(of, revision, &mut |set, _| {
                    sets.insert(set);
                    ControlFlow::Continue(())
                })?;
            }
            let mut of_series = Vec::new();
            for set in sets {
                if !data.state(entry, set)?.is_absent()
                    && let Datum::Int(own) = data.state(node(numbers, ordinal), set)?
                {
                    of_series.push((set, own.cast_unsigned()));
                }
            }
            let last = match data.state(node(numbers, ordinal), revision)? {
                Datum::Int(own) if !data.state(entry, revision)?.is_absent() => Some(own),
                _ => None,
            };
            Ok((of_series, last))
        })?;
        living.extend(last.and_then(|own| series_number(own.cast_unsigned())));
        for (set, own) in sets {
            let Some(series) = series_number(own) else { continue };
            let name = String::from_utf8_lossy(name).into_owned();
            written.entry(series).or_default().push((set, name, entry));
        }
    }
    for some in written.values_mut() {
        some.sort_unstable_by_key(|one| one.0);
    }
    Ok((written, living))
}

/// From when on a series was what: of states that follow each other and say the same but for what
/// is kept, as the last one says it.
fn runs_of(tags: &Tree, written: &[Written]) -> Result<Runs> {
    let mut runs = Runs::new();
    for (set, name, entry) in written {
        let info = tags::read(tags, (name, *entry), *set)?;
        match runs.last_mut() {
            Some((_, last)) if says_the_same(last, &info) => *last = info,
            _ => runs.push((*set, info)),
        }
    }
    Ok(runs)
}

fn says_the_same(one: &SeriesInfo, other: &SeriesInfo) -> bool {
    let mut definition = other.definition.clone();
    definition.keep = one.definition.keep;
    definition.rollups.clone_from(&one.definition.rollups);
    one.name == other.name && one.definition == definition
}

/// The record of a series with what it was before.
pub(crate) fn to_json(info: &SeriesInfo, past: Option<&Past>) -> String {
    let mut record = info.to_json();
    let Some(Past { since, states }) = past else { return record };
    record.truncate(record.len().saturating_sub(1));
    if let Some((sequence, time)) = since {
        let _ = write!(record, ",\"since\":[{sequence},{}]", time.0);
    }
    if !states.is_empty() {
        let state = |(was, (sequence, time)): &(SeriesInfo, CommitTime)| {
            let mut was = was.clone();
            (was.definition.keep, was.definition.rollups) = (None, Vec::new());
            let (name, is, time) = (quoted(&was.name), was.to_json(), time.0);
            format!("{{\"name\":{name},\"until\":[{sequence},{time}],\"is\":{is}}}")
        };
        let states: Vec<String> = states.iter().map(state).collect();
        let _ = write!(record, ",\"was\":[{}]", states.join(","));
    }
    record.push('}');
    record
}

/// What was before, as the record says it; none if that can be of no series. What is kept is as it
/// is now.
pub(crate) fn from_json(info: &SeriesInfo, record: &[u8]) -> Result<Option<Past>> {
    let tape = Tape::parse(record, ParseOptions::default())?;
    let [since, was] = tape.named(tape.root(), ["since", "was"]);
    let since = since.map(|at| time_of(&tape, at));
    let states = was.into_iter().flat_map(|was| tape.elements(was));
    let states: Option<Vec<_>> = states.map(|at| state_of(info, (&tape, at))).collect();
    let (Some(states), true) = (states, since.is_none_or(|since| since.is_some())) else {
        return Ok(None);
    };
    let past = Past { since: since.flatten(), states };
    let times = past.since.iter().chain(past.states.iter().map(|(_, until)| until));
    let rises = times.is_sorted_by(|one, two| one.0 < two.0 && one.1 < two.1);
    Ok(rises.then_some(past))
}

fn state_of(
    info: &SeriesInfo,
    (tape, at): (&Tape<'_>, TapeIndex),
) -> Option<(SeriesInfo, CommitTime)> {
    let [name, until, is] = tape.named(at, ["name", "until", "is"]);
    let mut was = SeriesInfo::from_tape(tape.item(name?).text()?, (tape, is?))?;
    was.definition.keep = info.definition.keep;
    was.definition.rollups.clone_from(&info.definition.rollups);
    let is_it =
        was.number == info.number && was.definition.value_type == info.definition.value_type;
    let until = time_of(tape, until?)?;
    is_it.then_some((was, until))
}

fn time_of(tape: &Tape<'_>, at: TapeIndex) -> Option<CommitTime> {
    let mut numbers = tape.elements(at);
    let sequence = CommitSequence(number(tape, numbers.next()?)?);
    Some((sequence, Micros(number(tape, numbers.next()?)?)))
}
