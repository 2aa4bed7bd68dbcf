//! Commits JSON texts as revisions of one document.

use duramen::{
    CommitOptions, Database, Error, ErrorKind, JsonPointer, Micros, ParseOptions, Result, Revision,
    Transaction,
};

use super::Unit;
use super::source::Item;
use crate::arguments::edit;
use crate::{input, moment};

/// What says when a revision was made.
#[derive(Clone)]
pub(super) enum Clock {
    /// The engine.
    Now,
    /// The file's time of modification.
    FileTime,
    /// A value in the text itself.
    Field(JsonPointer, Unit),
}

/// The loading of one document.
pub(super) struct Loader<'a> {
    database: &'a Database,
    document: &'a str,
    clock: Clock,
    parse: ParseOptions,
    existed: bool,
    /// The timestamp of the newest revision, while timestamps are given.
    newest: Option<Micros>,
    /// How many texts were read.
    pub(super) loaded: u64,
    /// How many of them made a revision.
    pub(super) revisions: u64,
    /// The newest revision.
    pub(super) head: Revision,
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        database: &'a Database,
        document: &'a str,
        clock: Clock,
        parse: ParseOptions,
    ) -> Result<Self> {
        let head = edit::head(database, document)?;
        let newest = match head {
            None | Some(Revision(0)) => None,
            Some(_) => Some(database.document(document)?.head()?.timestamp()?),
        };
        Ok(Self {
            database,
            document,
            clock,
            parse,
            existed: head.is_some(),
            newest,
            loaded: 0,
            revisions: 0,
            head: head.unwrap_or_default(),
        })
    }

    /// Whether the document was made by this.
    pub(super) fn created_document(&self) -> bool {
        !self.existed && self.revisions > 0
    }

    /// Commits one text.
    pub(super) fn load(&mut self, item: &Item, mut options: CommitOptions) -> Result<()> {
        let mut transaction = self.database.transaction();
        transaction.put_with(self.document, &item.json, self.parse)?;
        if let Some(time) = self.time(item, &mut transaction)? {
            options.timestamp = Some(self.newest.map_or(time, |newest| after(newest, time)));
        }
        let committed = transaction.commit(&options)?;
        if let Some((_, revision)) = committed.revisions.first() {
            self.head = *revision;
            self.revisions += 1;
            self.newest = options.timestamp;
        }
        self.loaded += 1;
        Ok(())
    }

    /// Makes what was loaded safe.
    pub(super) fn flush(&self) -> Result<()> {
        self.database.flush()
    }

    fn time(&self, item: &Item, transaction: &mut Transaction) -> Result<Option<Micros>> {
        match (&self.clock, &item.file) {
            (Clock::Now, _) | (Clock::FileTime, None) => Ok(None),
            (Clock::FileTime, Some(file)) => input::modified(file).map(Some),
            (Clock::Field(pointer, unit), _) => {
                field_time(&transaction.get(self.document, pointer)?, *unit).map(Some)
            }
        }
    }
}

/// The time that a value tells: RFC 3339 text, or a whole number of `unit`.
fn field_time(json: &str, unit: Unit) -> Result<Micros> {
    let value = serde_json::from_str(json).unwrap_or(serde_json::Value::Null);
    if let Some(text) = value.as_str() {
        return moment::parse_time(text);
    }
    let micros = match unit {
        Unit::S => 1_000_000,
        Unit::Ms => 1_000,
        Unit::Us => 1,
    };
    let time = value.as_i64().and_then(|count| count.checked_mul(micros));
    time.map(Micros).ok_or_else(|| {
        let message = format!("{json} is no time: neither an RFC 3339 text nor a whole number");
        Error::new(ErrorKind::Invalid, message)
    })
}

/// Sources count seconds or days where the engine needs rising microseconds: within the second of
/// the revision before, the order of the source counts.
fn after(newest: Micros, time: Micros) -> Micros {
    let second = |time: Micros| time.0.div_euclid(1_000_000);
    if time <= newest && second(time) == second(newest) {
        return Micros(newest.0.saturating_add(1));
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_follow_each_other_by_a_microsecond() {
        assert_eq!(after(Micros(5_000_000), Micros(5_000_000)), Micros(5_000_001));
        assert_eq!(after(Micros(5_000_001), Micros(5_000_000)), Micros(5_000_002));
        assert_eq!(after(Micros(5_000_000), Micros(6_000_000)), Micros(6_000_000));
        // A step back of a whole second is left for the engine to refuse.
        assert_eq!(after(Micros(5_000_000), Micros(4_999_999)), Micros(4_999_999));
    }

    #[test]
    fn a_field_tells_the_time_as_text_or_in_a_unit() {
        assert_eq!(field_time("\"1970-01-01T00:00:01Z\"", Unit::Us).unwrap(), Micros(1_000_000));
        assert_eq!(field_time("2", Unit::S).unwrap(), Micros(2_000_000));
        assert_eq!(field_time("2", Unit::Ms).unwrap(), Micros(2_000));
        assert!(field_time("9223372036854775807", Unit::S).is_err());
        assert!(field_time("1.5", Unit::S).is_err());
        assert!(field_time("null", Unit::Us).is_err());
    }
}
