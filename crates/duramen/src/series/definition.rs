//! What the catalogue says of a series beside its name: its type, and what people want to know.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::json::escape::quoted;
use crate::json::{Item, Tape, TapeIndex};
use crate::limits::{SERIES_LABELS_MAX, SERIES_NOTE_BYTES_MAX};
use crate::revision::Micros;
use crate::series::source::Direction;
use crate::series::{Lossy, Rollup, ValueType, tiers};
use crate::tree::cell_key::TreeId;

/// What a series is: the type of its values, and what is said of them.
///
/// ```
/// use duramen::{SeriesDefinition, ValueType};
///
/// let pressure = SeriesDefinition {
///     unit: "bar".to_owned(),
///     labels: [("site".to_owned(), "north".to_owned())].into(),
///     ..SeriesDefinition::new(ValueType::F64)
/// };
/// assert_eq!(pressure.value_type, ValueType::F64);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesDefinition {
    /// The type of every value of it.
    pub value_type: ValueType,
    /// What a value counts or measures, such as `kg/s`; may be empty.
    pub unit: String,
    /// What it is, for people; may be empty.
    pub description: String,
    /// Free names and values by which it is found.
    pub labels: BTreeMap<String, String>,
    /// Between which values it is usually shown: the lower one, then the upper one.
    pub display: Option<(f64, f64)>,
    /// What is given up of its values, so that less is stored; nothing if nothing is said.
    pub lossy: Option<Lossy>,
    /// For how long its points are kept; for ever if nothing is said. Older ones are not seen, and
    /// go when segments are merged, at the latest by
    /// [`Database::compact`](crate::Database::compact).
    pub keep: Option<Duration>,
    /// Summaries that are kept beside the points, of one width each.
    pub rollups: Vec<Rollup>,
}

/// A series as the catalogue lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesInfo {
    /// Its name.
    pub name: String,
    /// What it is.
    pub definition: SeriesDefinition,
    /// When it was made.
    pub created: Micros,
    /// When what is said of it, or its name, was last changed.
    pub changed: Micros,
    pub(crate) number: TreeId,
}

impl SeriesDefinition {
    /// Of values of this type, without anything else.
    pub fn new(value_type: ValueType) -> Self {
        let (unit, description) = (String::new(), String::new());
        let labels = BTreeMap::new();
        let (display, lossy, keep, rollups) = (None, None, None, Vec::new());
        Self { value_type, unit, description, labels, display, lossy, keep, rollups }
    }

    /// Whether a series can be so.
    ///
    /// # Errors
    /// `Invalid` if a text is too long, there are too many labels, or a range, a tolerance or a
    /// span is none.
    pub fn check(&self) -> Result<()> {
        let invalid = |message| Err(Error::new(ErrorKind::Invalid, message));
        let texts = [("unit", &self.unit), ("description", &self.description)];
        let labels =
            self.labels.iter().flat_map(|(name, value)| [("label", name), ("label", value)]);
        for (what, text) in texts.into_iter().chain(labels) {
            if text.len() > SERIES_NOTE_BYTES_MAX {
                let len = text.len();
                return invalid(format!(
                    "the {what} of the series has {len} bytes: use at most {SERIES_NOTE_BYTES_MAX}"
                ));
            }
        }
        if self.labels.len() > SERIES_LABELS_MAX {
            let count = self.labels.len();
            return invalid(format!("{count} labels: a series has at most {SERIES_LABELS_MAX}"));
        }
        match self.display {
            Some((low, high)) if !(low.is_finite() && high.is_finite() && low < high) => {
                let message =
                    format!("the display range {low} to {high}: use a rising, finite one");
                invalid(message)
            }
            _ => {
                self.lossy.map_or(Ok(()), |lossy| lossy.check(self.value_type))?;
                tiers::check(self.keep, &self.rollups)
            }
        }
    }
}

impl SeriesInfo {
    /// Of a series without a name, all points of which are to go.
    pub(crate) fn purged(number: TreeId, now: Micros) -> Self {
        let (name, definition) = (String::new(), SeriesDefinition::purged());
        Self { name, definition, created: now, changed: now, number }
    }

    /// An error of reading points from a time on, or up to it: one of damage names them, and the
    /// time unless it is that of no point.
    pub(crate) fn named(&self, error: Error, (time, direction): (Micros, Direction)) -> Error {
        let series = format!("series {:?}", self.name);
        if error.kind() != ErrorKind::Corrupt || error.message().starts_with(&series) {
            return error;
        }
        error.in_context(match direction {
            _ if [i64::MIN, i64::MAX].contains(&time.0) => series,
            Direction::Rising => format!("{series}, from {time}"),
            Direction::Falling => format!("{series}, up to {time}"),
        })
    }

    /// Whether all its points are to go.
    pub(crate) fn is_purged(&self) -> bool {
        self.definition.keep.is_some_and(|keep| keep.is_zero())
    }

    /// The record as the catalogue keeps it.
    pub(crate) fn to_json(&self) -> String {
        let SeriesDefinition { value_type, unit, description, labels, display, .. } =
            &self.definition;
        let text = |(member, text): (&str, &String)| {
            (!text.is_empty()).then(|| format!("\"{member}\":{}", quoted(text)))
        };
        let pair =
            |(name, value): (&String, &String)| format!("{}:{}", quoted(name), quoted(value));
        let pairs: Vec<String> = labels.iter().map(pair).collect();
        let number = own_number(self.number);
        let members = [
            Some(format!("\"number\":{number},\"type\":\"{value_type}\"")),
            text(("unit", unit)),
            text(("description", description)),
            (!pairs.is_empty()).then(|| format!("\"labels\":{{{}}}", pairs.join(","))),
            display.map(|(low, high)| format!("\"display\":[{low},{high}]")),
            self.definition.lossy.map(Lossy::to_json),
            tiers::to_json(self.definition.keep, &self.definition.rollups),
            Some(format!("\"created\":{},\"changed\":{}", self.created.0, self.changed.0)),
        ];
        let members: Vec<String> = members.into_iter().flatten().collect();
        format!("{{{}}}", members.join(","))
    }

    /// The record that [`Self::to_json`] gave.
    pub(crate) fn from_json(name: &str, text: &[u8]) -> Result<Self> {
        let tape = Tape::parse(text, crate::json::ParseOptions::default())?;
        Self::from_tape(name, (&tape, tape.root())).ok_or_else(|| {
            let text = String::from_utf8_lossy(text);
            let message = format!("the catalogue says of series {name:?} what none can be: {text}");
            Error::new(ErrorKind::Corrupt, message)
        })
    }

    /// The same out of a part of a text.
    pub(super) fn from_tape(name: &str, (tape, at): (&Tape<'_>, TapeIndex)) -> Option<Self> {
        // As they are written, so that each is compared with few names before its own.
        let names = [
            "number",
            "type",
            "unit",
            "description",
            "labels",
            "display",
            "lossy",
            "keep",
            "rollups",
            "created",
            "changed",
        ];
        let [
            own,
            value_type,
            unit,
            description,
            labels,
            display,
            lossy,
            keep,
            rollups,
            created,
            changed,
        ] = tape.named(at, names);
        let text = |at: TapeIndex| tape.item(at).text().map(str::to_owned);
        let text_if_any = |at: Option<TapeIndex>| at.map_or(Some(String::new()), text);
        let value_type = ValueType::parse(tape.item(value_type?).text()?).ok()?;
        let mut definition = SeriesDefinition {
            unit: text_if_any(unit)?,
            description: text_if_any(description)?,
            ..SeriesDefinition::new(value_type)
        };
        for (label, value) in labels.into_iter().flat_map(|at| tape.fields(at)) {
            definition.labels.insert(label.text()?.to_owned(), text(value)?);
        }
        if let Some(range) = display {
            let mut bounds = tape.elements(range).map(|bound| number::<f64>(tape, bound));
            definition.display = Some((bounds.next()??, bounds.next()??));
        }
        if let Some(lossy) = lossy {
            definition.lossy = Some(Lossy::from_tape(tape, lossy)?);
        }
        (definition.keep, definition.rollups) = tiers::from_tape(tape, (keep, rollups))?;
        let micros = |at: Option<TapeIndex>| number(tape, at?).map(Micros);
        Some(Self {
            name: name.to_owned(),
            definition,
            created: micros(created)?,
            changed: micros(changed)?,
            number: series_number(number(tape, own?)?)?,
        })
    }
}

pub(super) fn number<N: std::str::FromStr>(tape: &Tape<'_>, at: TapeIndex) -> Option<N> {
    match tape.item(at) {
        Item::Number(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// The number in keys of the series that the catalogue numbers so, from 1 on.
pub(crate) fn series_number(own: u64) -> Option<TreeId> {
    let is_one = (1..TreeId::SERIES.0).contains(&own);
    is_one.then_some(TreeId(TreeId::SERIES.0 + own))
}

fn own_number(number: TreeId) -> u64 {
    number.0.saturating_sub(TreeId::SERIES.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let info = SeriesInfo {
            name: "boiler/7/temp".to_owned(),
            definition: SeriesDefinition {
                value_type: ValueType::F64,
                unit: "\u{b0}C".to_owned(),
                description: "steam \"drum\"".to_owned(),
                labels: [("site".into(), "north".into()), ("\n".into(), String::new())].into(),
                display: Some((-0.1, 1e300)),
                lossy: Some(Lossy::Quantised { low: -1e-9, high: 5e300 }),
                keep: Some(Duration::from_hours(1)),
                rollups: [1, 60].map(|s| Rollup::new(Duration::from_secs(s))).into(),
            },
            created: Micros(-5),
            changed: Micros(i64::MAX),
            number: series_number(7).unwrap(),
        };
        let read = SeriesInfo::from_json(&info.name, info.to_json().as_bytes()).unwrap();
        assert_eq!(read, info);
        let plain =
            SeriesInfo { definition: SeriesDefinition::new(ValueType::String), ..info.clone() };
        let read = SeriesInfo::from_json(&info.name, plain.to_json().as_bytes()).unwrap();
        assert_eq!(read, plain);
    }

    #[test]
    fn what_is_no_record_is_corrupt() {
        for text in [
            "{}",
            "7",
            r#"{"number":0,"type":"f64","created":1,"changed":1}"#,
            r#"{"number":1,"type":"f16","created":1,"changed":1}"#,
        ] {
            let error = SeriesInfo::from_json("a", text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
        }
    }

    #[test]
    fn definitions_that_are_out_of_bounds_are_refused() {
        let base = SeriesDefinition::new(ValueType::I64);
        assert!(base.check().is_ok());
        let display = |display| SeriesDefinition { display: Some(display), ..base.clone() };
        for range in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert_eq!(display(range).check().unwrap_err().kind(), ErrorKind::Invalid);
        }
        let unit = "x".repeat(SERIES_NOTE_BYTES_MAX + 1);
        assert!(SeriesDefinition { unit, ..base.clone() }.check().is_err());
        let labels = (0..=SERIES_LABELS_MAX).map(|i| (i.to_string(), String::new())).collect();
        assert!(SeriesDefinition { labels, ..base }.check().is_err());
    }
}
