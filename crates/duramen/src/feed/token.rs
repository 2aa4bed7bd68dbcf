//! A place in the commits of a database that outlives it being open.

use std::fmt;
use std::str::FromStr;

use super::not_there;
use super::position::{CommitPlace, Position};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::CommitSequence;
use crate::tree::cell_key::TreeId;

/// How many bits of a database's id are not in a token.
const LEFT_OUT_BITS: u32 = 96;

/// What ends the text of a place of a feed that expects nothing of what was dropped up to there.
const BEGINNING: &str = ".b";

/// What to go on after with [`WatchFrom::Token`](super::WatchFrom::Token): a commit, or a place
/// inside one, of which database, and in which epoch it was delivered. So a commit of `Interval`
/// that was lost with the power after it had been delivered is not taken for another one that has
/// got its number since.
///
/// A place inside a commit counts what the commit did, and not what a feed told of it: a feed that
/// goes on there with another filter is told of what its filter leaves of the rest.
///
/// As text it is `c1042.3.9f3a01b2`: commit, epoch, the first 32 bits of the database's id. A
/// place inside the commit has the number of the document behind it, `c1042.3.9f3a01b2.5`, and in
/// a collection that of the record, `c1042.3.9f3a01b2.5.17`; then `.b` if the feed expects nothing
/// that was dropped up to there, as it began at the beginning, or at a time.
///
/// ```
/// use duramen::ResumeToken;
///
/// let token: ResumeToken = "c1042.3.9f3a01b2".parse()?;
/// assert_eq!(token.sequence().0, 1042);
/// assert_eq!(token.to_string(), "c1042.3.9f3a01b2");
/// assert!(!token.is_inside());
/// assert!("c1042.3.9f3a01b2.5.17".parse::<ResumeToken>()?.is_inside());
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResumeToken {
    sequence: CommitSequence,
    epoch: u64,
    database: u32,
    place: Option<CommitPlace>,
}

impl ResumeToken {
    pub(super) fn new(engine: &Engine, Position { sequence, place }: Position) -> Self {
        Self { sequence, epoch: engine.epoch(), database: short_id(engine), place }
    }

    /// The same of a place inside the commit.
    pub(super) fn at(self, place: CommitPlace) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The commit to go on after, or in.
    pub fn sequence(self) -> CommitSequence {
        self.sequence
    }

    /// Whether it is a place inside the commit, so that the rest of it may still be to come.
    pub fn is_inside(self) -> bool {
        self.place.is_some()
    }

    /// The position, if the commit is the one that was meant.
    pub(super) fn resolve(self, engine: &Engine) -> Result<Position> {
        let position = Position { sequence: self.sequence, place: self.place };
        let refuse = |what: &str| {
            let message = format!(
                "the feed cannot go on after {self}: {what}; read the documents again and watch \
                 from now on"
            );
            Err(Error::new(ErrorKind::NotFound, message))
        };
        if self.database != short_id(engine) {
            return refuse("it is of another database");
        }
        let (epoch, published) = (engine.epoch(), engine.published());
        if self.sequence > published {
            return Err(not_there(self.sequence, published));
        }
        if self.epoch > epoch {
            return refuse("the database is an older copy");
        }
        if self.epoch == epoch {
            return Ok(position);
        }
        match engine.last_kept_of(self.epoch) {
            Some(kept) if self.sequence <= kept => Ok(position),
            Some(_) => refuse("this commit was lost with the power before it was durable"),
            None => refuse("it is of too long ago to know that nothing was lost since"),
        }
    }
}

fn short_id(engine: &Engine) -> u32 {
    u32::try_from(engine.id >> LEFT_OUT_BITS).unwrap_or_default()
}

impl fmt::Display for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}.{}.{:08x}", self.sequence, self.epoch, self.database)?;
        let Some(CommitPlace { tree, record, is_beginning }) = self.place else { return Ok(()) };
        write!(f, ".{}", tree.0)?;
        record.map_or(Ok(()), |record| write!(f, ".{record}"))?;
        f.write_str(if is_beginning { BEGINNING } else { "" })
    }
}

impl FromStr for ResumeToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || {
            let message = format!("{text:?} is no token of a feed: it is such as c1042.3.9f3a01b2");
            Error::new(ErrorKind::Invalid, message)
        };
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_plain).ok_or_else(invalid)
        };
        let (numbers, is_beginning) = match text.strip_suffix(BEGINNING) {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let mut parts = numbers.strip_prefix('c').ok_or_else(invalid)?.split('.');
        let (Some(sequence), Some(epoch), Some(database), tree, record, None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid());
        };
        let record = record.map(number).transpose()?;
        let place = match tree.map(number).transpose()? {
            Some(tree) => Some(CommitPlace { tree: TreeId(tree), record, is_beginning }),
            None if is_beginning => return Err(invalid()),
            None => None,
        };
        let is_hex = database.len() == 8 && database.bytes().all(|byte| byte.is_ascii_hexdigit());
        let database = u32::from_str_radix(database, 16).ok().filter(|_| is_hex);
        Ok(Self {
            sequence: CommitSequence(number(sequence)?),
            epoch: number(epoch)?,
            database: database.ok_or_else(invalid)?,
            place,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token_is_refused() {
        for text in [
            "",
            "c",
            "1042",
            "c1042",
            "c1.2",
            "c1.2.3",
            "c+1.2.9f3a01b2",
            "c1.2.9f3a01b2.b",
            "c1.2.9f3a01b2.",
            "c1.2.9f3a01b2.4.",
            "c1.2.9f3a01b2.4.x",
            "c1.2.9f3a01b2.4.5.6",
        ] {
            let refused = text.parse::<ResumeToken>().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{text}: {refused}");
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        for place in ["", ".4", ".4.b", ".4.0", ".4.17", ".4.17.b", ".18446744073709551615"] {
            let text = format!("c1042.3.9f3a01b2{place}");
            assert_eq!(text.parse::<ResumeToken>().unwrap().to_string(), text);
        }
    }
}
