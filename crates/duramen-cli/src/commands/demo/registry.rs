//! The published versions of the MIME type registry, as `examples/data/README.md` describes them.

use std::io::Read;

use duramen::{Error, ErrorKind, Micros};
use serde::Deserialize;
use serde_json::value::RawValue;
use zstd::stream::read::Decoder;

use crate::{Result, moment};

static COMPRESSED: &[u8] = include_bytes!("../../../../../examples/data/mime-db.ndjson.zst");

/// One published version.
pub(super) struct Version {
    pub(super) name: String,
    pub(super) timestamp: Micros,
    pub(super) document: Box<RawValue>,
}

#[derive(Deserialize)]
struct Line {
    version: String,
    date: Option<String>,
    document: Box<RawValue>,
}

/// All versions, oldest first, at rising times: a version stands at 00:00 of the day it was
/// published, and an hour after the one before where that was on the same day. The one version
/// without a date, the first, stands on the day of the second.
pub(super) fn versions() -> Result<Vec<Version>> {
    const HOUR: i64 = 3_600_000_000;
    let lines = lines()?;
    let Some(first_day) = lines.iter().find_map(|line| line.date.clone()) else {
        return Err(damaged("no version has a date").into());
    };
    let mut versions: Vec<Version> = Vec::with_capacity(lines.len());
    for Line { version, date, document } in lines {
        let day = moment::parse_time(date.as_ref().unwrap_or(&first_day))?;
        let earliest = versions.last().map_or(day, |last| Micros(last.timestamp.0 + HOUR));
        versions.push(Version { name: version, timestamp: day.max(earliest), document });
    }
    Ok(versions)
}

fn lines() -> Result<Vec<Line>> {
    let mut text = String::new();
    let mut decoder = Decoder::new(COMPRESSED).map_err(damaged)?;
    decoder.read_to_string(&mut text).map_err(damaged)?;
    let lines = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
    Ok(lines.map_err(damaged)?)
}

fn damaged(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("the example data in this program: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rise_in_time_and_keep_their_dates() {
        let versions = versions().unwrap();
        assert_eq!(versions.len(), 63);
        assert!(versions.is_sorted_by(|one, next| one.timestamp < next.timestamp));
        let dates: Vec<String> =
            versions.iter().map(|version| moment::format(version.timestamp)).collect();
        assert_eq!(dates[0], "2014-08-30T00:00:00Z");
        assert_eq!(dates[2], "2014-08-30T02:00:00Z");
        assert_eq!(dates[62], "2025-03-17T00:00:00Z");
    }
}
