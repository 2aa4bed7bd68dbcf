//! A place in the commits of a database that outlives it being open.

use std::fmt;
use std::str::FromStr;

use super::not_there;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::CommitSequence;

/// How many bits of a database's id are not in a token.
const LEFT_OUT_BITS: u32 = 96;

/// A commit, to go on after with [`WatchFrom::Token`](super::WatchFrom::Token): of which database,
/// and in which epoch it was delivered. So a commit of `Interval` that was lost with the power
/// after it had been delivered is not taken for another one that has got its number since.
///
/// As text it is `c1042.3.9f3a01b2`: commit, epoch, the first 32 bits of the database's id.
///
/// ```
/// use duramen::ResumeToken;
///
/// let token: ResumeToken = "c1042.3.9f3a01b2".parse()?;
/// assert_eq!(token.sequence().0, 1042);
/// assert_eq!(token.to_string(), "c1042.3.9f3a01b2");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResumeToken {
    sequence: CommitSequence,
    epoch: u64,
    database: u32,
}

impl ResumeToken {
    pub(super) fn new(engine: &Engine, sequence: CommitSequence) -> Self {
        Self { sequence, epoch: engine.epoch(), database: short_id(engine) }
    }

    /// The commit.
    pub fn sequence(self) -> CommitSequence {
        self.sequence
    }

    /// The commit, if it is the one that was meant.
    pub(super) fn resolve(self, engine: &Engine) -> Result<CommitSequence> {
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
            return Ok(self.sequence);
        }
        match engine.last_kept_of(self.epoch) {
            Some(kept) if self.sequence <= kept => Ok(self.sequence),
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
        write!(f, "c{}.{}.{:08x}", self.sequence, self.epoch, self.database)
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
        let mut parts = text.strip_prefix('c').ok_or_else(invalid)?.split('.');
        let (Some(sequence), Some(epoch), Some(database), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid());
        };
        let is_hex = database.len() == 8 && database.bytes().all(|byte| byte.is_ascii_hexdigit());
        let database = u32::from_str_radix(database, 16).ok().filter(|_| is_hex);
        Ok(Self {
            sequence: CommitSequence(number(sequence)?),
            epoch: number(epoch)?,
            database: database.ok_or_else(invalid)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token_is_refused() {
        for text in
            ["", "c", "1042", "c1042", "c1.2", "c1.2.3", "c1.2.9f3a01b2.4", "c+1.2.9f3a01b2"]
        {
            let refused = text.parse::<ResumeToken>().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{text}: {refused}");
        }
    }
}
