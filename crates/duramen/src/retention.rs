//! How much of its history a document keeps.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::revision::{Micros, Revision};
use crate::tree::Tree;

/// How much of its history a document keeps.
///
/// What is not kept is dropped when segments are merged, at the latest by
/// [`Database::compact`](crate::Database::compact); until then it can be read. Revisions that a tag
/// names are kept beside it. Elements, entries and records that no kept revision shows are dropped
/// by `compact` as well; a key that comes back goes on counting its versions, also where the
/// history was exported, dumped or repaired meanwhile (but for versions that a deleted record got
/// in dropped revisions behind the last that shows it, such as a tagged one). Of a document that is
/// deleted in every kept revision all values go. A value that was removed goes; what was in a
/// removed object or array stays stored, though no revision shows it.
///
/// ```
/// use duramen::{CommitOptions, Database, ErrorKind, Retention, Revision};
/// # use std::ops::ControlFlow;
///
/// let db = Database::memory()?;
/// let doc = db.create_document("d")?;
/// for value in ["1", "2", "3"] {
///     doc.put(value, &CommitOptions::default())?;
/// }
/// doc.tag("v1", Some(Revision(1)), &CommitOptions::default())?;
/// doc.retain(Retention::Last(1), &CommitOptions::default())?;
/// db.compact(&mut |_, _| ControlFlow::Continue(()))?;
/// assert_eq!(doc.first_revision()?, Revision(3));
/// assert_eq!(doc.at(Revision(2)).unwrap_err().kind(), ErrorKind::NotFound);
/// assert_eq!(doc.at_tag("v1")?.to_json()?, "1");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// Every revision.
    #[default]
    All,
    /// The newest revisions, so many.
    Last(u64),
    /// What there was at any time since so long ago.
    For(Duration),
    /// The newest revision only.
    Head,
}

impl Retention {
    /// Refuses to keep nothing, and times that cannot be counted.
    pub(crate) fn check(self) -> Result<()> {
        let what = match self {
            Self::Last(0) => "no revision",
            Self::For(time) if micros(time).is_none() => "a time of more than 292,000 years",
            _ => return Ok(()),
        };
        let message = format!("{what} cannot be kept: keep one or more, a shorter time, or all");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// The first revision of a tree that is kept, of those up to `head`.
    pub(crate) fn first(self, tree: &Tree, head: Revision, now: Micros) -> Result<Revision> {
        Ok(match self {
            Self::All => Revision(1),
            Self::Head => head,
            Self::Last(count) => Revision(head.0.saturating_sub(count.saturating_sub(1)).max(1)),
            Self::For(time) => {
                let since = Micros(now.0.saturating_sub(micros(time).unwrap_or(i64::MAX)));
                // The one before the first after that time was the newest then.
                let after = tree.first_after(since, head)?;
                Revision(after.0.saturating_sub(1).max(tree.first_revision()))
            }
        })
    }

    /// What the catalogue keeps of it.
    pub(crate) fn to_json(self) -> Option<String> {
        match self {
            Self::All => None,
            Self::Head => Some("\"head\"".to_owned()),
            Self::Last(count) => Some(format!("{{\"last\":{count}}}")),
            Self::For(time) => Some(format!("{{\"for_us\":{}}}", time.as_micros())),
        }
    }

    /// What [`Self::to_json`] gave: the text, or else the name and number in it.
    pub(crate) fn from_json(text: Option<&str>, named: Option<(&str, u64)>) -> Result<Self> {
        let retention = match (text, named) {
            (Some("head"), _) => Self::Head,
            (_, Some(("last", count))) => Self::Last(count),
            (_, Some(("for_us", time))) => Self::For(Duration::from_micros(time)),
            _ => {
                let message = "\"keep\" is neither \"head\" nor a number of revisions or a time";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        };
        retention.check().map(|()| retention)
    }
}

fn micros(time: Duration) -> Option<i64> {
    i64::try_from(time.as_micros()).ok()
}
