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

/// What stands before the commit up to which a feed expects nothing that was dropped.
const BEGINNING: char = 'b';

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
/// a collection that of the record, `c1042.3.9f3a01b2.5.17`. A feed that began at the beginning, or
/// at a time, expects nothing that was dropped of what there was then: until it has come to the
/// last commit that there was, it is named at the end, `c1042.3.9f3a01b2.b2063`.
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
    /// Nothing is expected of what was dropped up to this commit, which is still to come.
    begins: Option<CommitSequence>,
}

impl ResumeToken {
    /// A position of a feed that expects nothing of what was dropped up to a commit.
    pub(super) fn new(engine: &Engine, position: Position, begins: CommitSequence) -> Self {
        let Position { sequence, place } = position;
        let begins = Some(begins).filter(|&begins| begins > position.whole());
        Self { sequence, epoch: engine.epoch(), database: short_id(engine), place, begins }
    }

    /// The same of a place inside the commit.
    pub(super) fn at(self, place: CommitPlace, begins: CommitSequence) -> Self {
        let begins = Some(begins).filter(|&begins| begins >= self.sequence);
        Self { place: Some(place), begins, ..self }
    }

    pub(super) fn position(self) -> Position {
        Position { sequence: self.sequence, place: self.place }
    }

    /// The commit up to which nothing is expected of what was dropped.
    pub(super) fn begins(self) -> CommitSequence {
        self.begins.unwrap_or(CommitSequence(0))
    }

    /// The commit to go on after, or in.
    pub fn sequence(self) -> CommitSequence {
        self.sequence
    }

    /// Whether it is a place inside the commit, so that the rest of it may still be to come.
    pub fn is_inside(self) -> bool {
        self.place.is_some()
    }

    /// The same, if the commit is the one that was meant. What it expects nothing of ends with the
    /// commits that there were then and are still there.
    pub(super) fn resolve(self, engine: &Engine) -> Result<Self> {
        let until = |last| Self { begins: self.begins.map(|begins| begins.min(last)), ..self };
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
            return Ok(until(published));
        }
        match engine.last_kept_of(self.epoch) {
            Some(kept) if self.sequence <= kept => Ok(until(kept)),
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
        if let Some(CommitPlace { tree, record }) = self.place {
            write!(f, ".{}", tree.0)?;
            record.map_or(Ok(()), |record| write!(f, ".{record}"))?;
        }
        self.begins.map_or(Ok(()), |begins| write!(f, ".{BEGINNING}{begins}"))
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
        let parts: Vec<_> = text.strip_prefix('c').ok_or_else(invalid)?.split('.').collect();
        let [sequence, epoch, database, behind @ ..] = parts.as_slice() else {
            return Err(invalid());
        };
        let begins = behind.last().and_then(|last| last.strip_prefix(BEGINNING));
        let place = match &behind[..behind.len() - usize::from(begins.is_some())] {
            [] => None,
            [tree] => Some(CommitPlace { tree: TreeId(number(tree)?), record: None }),
            [tree, record] => {
                let record = Some(number(record)?);
                Some(CommitPlace { tree: TreeId(number(tree)?), record })
            }
            _ => return Err(invalid()),
        };
        let begins = match begins {
            // So tokens were written once, of places alone: their own commit was meant.
            Some("") if place.is_some() => Some(number(sequence)?),
            begins => begins.map(number).transpose()?,
        };
        let is_hex = database.len() == 8 && database.bytes().all(|byte| byte.is_ascii_hexdigit());
        let database = u32::from_str_radix(database, 16).ok().filter(|_| is_hex);
        Ok(Self {
            sequence: CommitSequence(number(sequence)?),
            epoch: number(epoch)?,
            database: database.ok_or_else(invalid)?,
            place,
            begins: begins.map(CommitSequence),
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
            "c1.2.9f3a01b2.bx",
            "c1.2.9f3a01b2.b3.4",
            "c1.2.9f3a01b2.4.5.6.b7",
            "c1.2.b7",
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
        let places = ["", ".4", ".4.0", ".4.17", ".18446744073709551615"];
        for (place, begins) in places.iter().flat_map(|place| [(place, ""), (place, ".b2063")]) {
            for id in ["9f3a01b2", "b0000001"] {
                let text = format!("c1042.3.{id}{place}{begins}");
                assert_eq!(text.parse::<ResumeToken>().unwrap().to_string(), text);
            }
        }
    }

    #[test]
    fn a_place_that_was_written_without_the_commit_that_its_feed_began_at_means_its_own() {
        for place in [".4", ".4.17"] {
            let token: ResumeToken = format!("c1042.3.9f3a01b2{place}.b").parse().unwrap();
            assert_eq!(token.begins(), CommitSequence(1042));
            assert_eq!(token.to_string(), format!("c1042.3.9f3a01b2{place}.b1042"));
        }
    }
}
