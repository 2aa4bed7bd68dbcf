//! The lines of a dump that are about series. Points are columns; a column that is one value
//! throughout is that value. What is no number in JSON is the bits of the float, as text.

use std::borrow::Cow;
use std::io::Write;

use duramen::{
    CommitSequence, DumpItem, DumpedPoints, Error, ErrorKind, Micros, Points, Qualities, Quality,
    SeriesValue, Texts, ValueType, Values,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::{no_line, write_line};
use crate::Result;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesLine<'a> {
    #[serde(borrow)]
    series: Cow<'a, str>,
    #[serde(borrow)]
    is: Cow<'a, RawValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesLine<'a> {
    #[serde(borrow)]
    rules: Cow<'a, RawValue>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitsLine {
    commits: Vec<(u64, i64)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointsLine<'a> {
    #[serde(borrow)]
    points: Cow<'a, str>,
    #[serde(rename = "type")]
    value_type: Cow<'a, str>,
    commits: Column<u64>,
    qualities: Column<u8>,
    times: Vec<i64>,
    #[serde(borrow)]
    values: Vec<Cow<'a, RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeletesLine<'a> {
    #[serde(borrow)]
    deletes: Cow<'a, str>,
    spans: Vec<(u64, i64, i64)>,
}

/// One for all, or one for each.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Column<T> {
    All(T),
    Each(Vec<T>),
}

impl<T: Copy + PartialEq> Column<T> {
    fn of(each: Vec<T>) -> Self {
        match each.first() {
            Some(&first) if each.iter().all(|one| *one == first) => Self::All(first),
            _ => Self::Each(each),
        }
    }

    fn each(self, len: usize) -> Vec<T> {
        match self {
            Self::All(all) => vec![all; len],
            Self::Each(each) => each,
        }
    }
}

/// Writes the line of the rules.
pub(super) fn write_rules(rules: &str, out: &mut dyn Write) -> Result<()> {
    let rules: &RawValue = serde_json::from_str(rules).map_err(std::io::Error::from)?;
    write_line(&RulesLine { rules: Cow::Borrowed(rules) }, out)
}

/// Writes the line of a series.
pub(super) fn write_series(name: &str, record: &str, out: &mut dyn Write) -> Result<()> {
    let is: &RawValue = serde_json::from_str(record).map_err(std::io::Error::from)?;
    write_line(&SeriesLine { series: name.into(), is: Cow::Borrowed(is) }, out)
}

/// Writes the line of some commits.
pub(super) fn write_commits(
    commits: &[(CommitSequence, Micros)],
    out: &mut dyn Write,
) -> Result<()> {
    let commits = commits.iter().map(|(sequence, time)| (sequence.0, time.0)).collect();
    write_line(&CommitsLine { commits }, out)
}

/// Writes the line of some points.
pub(super) fn write_points(dumped: &DumpedPoints, out: &mut dyn Write) -> Result<()> {
    let DumpedPoints { series, points, commits } = dumped;
    let values: serde_json::Result<Vec<_>> =
        points.iter().map(|point| to_raw_value(&Exact(&point.value)).map(Cow::Owned)).collect();
    let line = PointsLine {
        points: series.into(),
        value_type: points.value_type().to_string().into(),
        commits: Column::of(commits.iter().map(|commit| commit.0).collect()),
        qualities: Column::of(points.iter().map(|point| point.quality.0).collect()),
        times: points.times().to_vec(),
        values: values.map_err(std::io::Error::from)?,
    };
    write_line(&line, out)
}

/// Writes the line of some deleted spans.
pub(super) fn write_deletes(
    series: &str,
    spans: &[(CommitSequence, Micros, Micros)],
    out: &mut dyn Write,
) -> Result<()> {
    let spans = spans.iter().map(|(commit, first, last)| (commit.0, first.0, last.0)).collect();
    write_line(&DeletesLine { deletes: series.into(), spans }, out)
}

/// Reads the line of the rules.
pub(super) fn parse_rules(text: &[u8]) -> duramen::Result<DumpItem> {
    let line: RulesLine = from_slice(text)?;
    Ok(DumpItem::SeriesRules(line.rules.get().to_owned()))
}

/// Reads the line of a series.
pub(super) fn parse_series(text: &[u8]) -> duramen::Result<DumpItem> {
    let line: SeriesLine = from_slice(text)?;
    Ok(DumpItem::Series { name: line.series.into_owned(), record: line.is.get().to_owned() })
}

/// Reads the line of some commits.
pub(super) fn parse_commits(text: &[u8]) -> duramen::Result<DumpItem> {
    let line: CommitsLine = from_slice(text)?;
    let commit = |(sequence, time)| (CommitSequence(sequence), Micros(time));
    Ok(DumpItem::Commits(line.commits.into_iter().map(commit).collect()))
}

/// Reads the line of some deleted spans.
pub(super) fn parse_deletes(text: &[u8]) -> duramen::Result<DumpItem> {
    let line: DeletesLine = from_slice(text)?;
    let span = |(commit, first, last)| (CommitSequence(commit), Micros(first), Micros(last));
    let spans = line.spans.into_iter().map(span).collect();
    Ok(DumpItem::Deletes { series: line.deletes.into_owned(), spans })
}

/// Reads the line of some points.
pub(super) fn parse_points(text: &[u8]) -> duramen::Result<DumpItem> {
    let line: PointsLine = from_slice(text)?;
    let len = line.times.len();
    let values = values_of(&line.value_type, &line.values)?;
    let qualities = match line.qualities {
        Column::All(all) => Qualities::All(Quality(all)),
        Column::Each(each) => Qualities::Each(each.into_iter().map(Quality).collect()),
    };
    let commits = line.commits.each(len).into_iter().map(CommitSequence).collect();
    let points = Points::from_columns(line.times, values, qualities)?;
    let series = line.points.into_owned();
    Ok(DumpItem::Points(DumpedPoints { series, points, commits }))
}

fn values_of(value_type: &str, texts: &[Cow<'_, RawValue>]) -> duramen::Result<Values> {
    fn all<T, C: FromIterator<T>>(
        texts: &[Cow<'_, RawValue>],
        read: impl Fn(&str) -> Option<T>,
    ) -> duramen::Result<C> {
        let wrong = |text: &str| {
            let message = format!("{text} is no value of the type of the points");
            Error::new(ErrorKind::Invalid, message)
        };
        texts.iter().map(|text| read(text.get()).ok_or_else(|| wrong(text.get()))).collect()
    }
    let string = |text: &str| serde_json::from_str::<String>(text).ok();
    let bits = |text: &str| u64::from_str_radix(&string(text)?, 16).ok();
    let f64 = |text: &str| text.parse().ok().or_else(|| bits(text).map(f64::from_bits));
    let f32_bits = |text: &str| u32::try_from(bits(text)?).ok().map(f32::from_bits);
    Ok(match ValueType::parse(value_type)? {
        ValueType::F64 => Values::F64(all(texts, f64)?),
        ValueType::F32 => Values::F32(all(texts, |t| t.parse().ok().or_else(|| f32_bits(t)))?),
        ValueType::I64 => Values::I64(all(texts, |text| text.parse().ok())?),
        ValueType::Bool => Values::Bool(all(texts, |text| text.parse().ok())?),
        ValueType::String => {
            let strings: Vec<String> = all(texts, string)?;
            Values::String(strings.iter().map(String::as_str).collect::<Texts>())
        }
    })
}

fn from_slice<'a, T: Deserialize<'a>>(text: &'a [u8]) -> duramen::Result<T> {
    serde_json::from_slice(text).map_err(|error| no_line(&error))
}

/// A value as it is read back to the bit.
struct Exact<'a>(&'a SeriesValue);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            SeriesValue::F64(value) if value.is_finite() => value.serialize(serializer),
            SeriesValue::F64(value) => format!("{:016x}", value.to_bits()).serialize(serializer),
            SeriesValue::F32(value) if value.is_finite() => value.serialize(serializer),
            SeriesValue::F32(value) => format!("{:08x}", value.to_bits()).serialize(serializer),
            SeriesValue::I64(value) => value.serialize(serializer),
            SeriesValue::Bool(value) => value.serialize(serializer),
            SeriesValue::String(text) => text.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(dumped: &DumpedPoints) -> DumpedPoints {
        let mut line = Vec::new();
        write_points(dumped, &mut line).unwrap();
        match parse_points(&line).unwrap() {
            DumpItem::Points(points) => points,
            other => panic!("{other:?} of a line of points"),
        }
    }

    #[test]
    fn values_come_back_to_the_bit() {
        let odd = [0x7ff8_0000_0000_0001, 0xfff0_0000_0000_0000, 1 << 63, 1, 0x7fef_ffff_ffff_ffff];
        let values = [
            Values::F64(odd.map(f64::from_bits).into()),
            Values::F32(
                [0x7fc0_0001, 0xff80_0000, 1 << 31, 1, 0x3dcc_cccd].map(f32::from_bits).into(),
            ),
            Values::I64([i64::MIN, -1, 0, 1, i64::MAX].into()),
            Values::Bool([true, false, true, true, false].into()),
            Values::String(["", "\"", "\n", "\u{1f600}", "null"].into_iter().collect()),
        ];
        for values in values {
            for qualities in [vec![Quality::BAD; 5], (0..5).map(Quality).collect()] {
                let times = vec![i64::MIN, -1, 0, 0, i64::MAX];
                let points =
                    Points::from_columns(times, values.clone(), Qualities::Each(qualities))
                        .unwrap();
                let commits = (1..=5).map(CommitSequence).collect();
                let dumped = DumpedPoints { series: "a\"b".into(), points, commits };
                assert_eq!(again(&dumped), dumped);
            }
        }
    }

    #[test]
    fn lines_that_are_none_are_refused() {
        let line = |value_type: &str, quality: u32, values: &str| {
            format!(r#"{{"points":"a","type":"{value_type}","commits":1,"qualities":{quality},"#)
                + &format!(r#""times":[1],"values":{values}}}"#)
        };
        assert!(parse_points(line("f64", 192, "[1]").as_bytes()).is_ok());
        for line in [
            line("f64", 192, "[]"),
            line("f64", 192, "[true]"),
            line("i64", 192, "[1.5]"),
            line("f32", 192, r#"["7ff8000000000000"]"#),
            line("f16", 192, "[1]"),
            line("f64", 256, "[1]"),
        ] {
            assert_eq!(parse_points(line.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
