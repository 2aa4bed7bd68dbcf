//! `duramen watch`: follows what commits do.

use std::io;
use std::time::Duration;

use clap::Args;
use duramen::{
    Batch, CommitSequence, Database, Error, ErrorKind, Event, JsonPointer, KeyFilter, Operation,
    ResumeToken, WatchFrom, WatchOptions,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::arguments::ReadDatabase;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::meant::Named as _;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, meant, moment};

const EXAMPLES: &str = "\
Examples:
  duramen watch shop.duramen
  duramen watch shop.duramen config --path /opening --values
  duramen watch shop.duramen players --key ann --from beginning --no-follow
  duramen watch shop.duramen --from c1042.1.9f3a01b2
  duramen watch shop.duramen --from c1042.1.9f3a01b2.5.17

Prints a line of JSON for each record, and for each document that is no collection, that a commit
changed, in the order of the commits, beside a process that may be writing. Ctrl-C stops it and
tells the --from to go on with. The \"token\" of each line is one that goes on right behind it,
also in the middle of a commit. It counts what the commit did, not what was printed, so that the
rest may be watched with other options. A line has the value before and after of a record, and of
an updated document the JSON Patch (RFC 6902). With --path all of this is of the value there: a
record that goes on without it is a \"delete\" with the version of the record. A line with
\"first_kept\" is of the first revision that is kept where earlier ones were dropped: what it
tells as an \"insert\" may have been there before.";

/// How often it looks whether it is to stop.
const STEP: Duration = Duration::from_millis(100);

/// Follow what commits do to documents and records, as lines of JSON
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Watch {
    #[command(flatten)]
    database: ReadDatabase,
    /// Only this document or collection; all if none is named, those made later too
    #[arg(value_name = "DOC")]
    name: Option<String>,
    /// Only the record with this key
    #[arg(long, value_name = "KEY", requires = "name", allow_negative_numbers = true)]
    key: Option<String>,
    /// Only records whose keys begin so
    #[arg(long, value_name = "TEXT", requires = "name", conflicts_with = "key")]
    prefix: Option<String>,
    /// Only the value at this JSON Pointer in each record, or in the document
    #[arg(long, value_name = "POINTER")]
    path: Option<String>,
    /// Print the values of documents before and after too
    #[arg(long)]
    values: bool,
    /// Begin now, at the beginning, after a commit such as c1042, behind the line of a token, or at
    /// a time
    #[arg(long, value_name = "now|beginning|COMMIT|TOKEN|TIME", default_value = "now")]
    from: String,
    /// End after this many commits
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<u64>,
    /// End when there is nothing more, instead of waiting for it
    #[arg(long)]
    no_follow: bool,
}

impl Watch {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::watch();
        let database = self.database.open(session)?;
        let feed = database.watch(&self.options(&database)?);
        let name = self.name.as_deref().unwrap_or_default();
        let mut feed = feed.or_meant(&database.snapshot(), name)?;
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let wait = if self.no_follow { Duration::ZERO } else { STEP };
            match feed.next(wait)? {
                Some(batch) => {
                    print(batch, &interruption, output)?;
                    left -= 1;
                }
                None if self.no_follow => break,
                None => {}
            }
            if interruption.is_asked() {
                return Err(interrupted(feed.token()));
            }
        }
        Ok(Success::Done)
    }

    fn options(&self, database: &Database) -> Result<WatchOptions> {
        let keys = match (&self.name, &self.key, &self.prefix) {
            (Some(name), Some(key), _) => {
                KeyFilter::Key(meant::collection(database, name)?.key_kind().parse(key)?)
            }
            (_, _, Some(prefix)) => KeyFilter::Prefix(prefix.clone()),
            _ => KeyFilter::All,
        };
        Ok(WatchOptions {
            documents: self.name.iter().cloned().collect(),
            keys,
            path: self.path.as_deref().map(JsonPointer::parse).transpose()?,
            values: self.values,
            from: beginning(&self.from)?,
        })
    }
}

fn beginning(text: &str) -> Result<WatchFrom> {
    let sequence = text.strip_prefix('c').and_then(|digits| digits.parse().ok());
    match (text, sequence) {
        ("now", _) => Ok(WatchFrom::Now),
        ("beginning", _) => Ok(WatchFrom::Beginning),
        (_, None) if text.starts_with('c') => Ok(WatchFrom::Token(text.parse()?)),
        (_, Some(sequence)) => Ok(WatchFrom::After(CommitSequence(sequence))),
        _ => moment::parse_time(text).map(WatchFrom::Time).map_err(|_| {
            let message = format!(
                "{text:?} is no place to begin: use now, beginning, a token such as \
                 c1042.1.9f3a01b2, a commit such as c1042, or a time such as 2024-05-01T12:30:00Z"
            );
            Error::new(ErrorKind::Invalid, message).into()
        }),
    }
}

/// Prints the lines of a commit, unless it is to stop: one commit may have millions of them.
fn print(mut batch: Batch, interruption: &Interruption, output: &mut Output) -> Result<()> {
    let commit = Commit {
        committed: moment::format(batch.timestamp),
        author: batch.author.clone(),
        message: batch.message.clone(),
    };
    while let Some(event) = batch.next().transpose()? {
        let token = event.token;
        let line = Line::new(&commit, event)?;
        output.line(serde_json::to_string(&line).map_err(io::Error::from)?)?;
        if token.is_inside() && interruption.is_asked() {
            output.flush()?;
            return Err(interrupted(token));
        }
    }
    output.flush()
}

fn interrupted(token: ResumeToken) -> Failure {
    Failure::Interrupted(format!("interrupted: go on with --from {token}"))
}

/// What a commit says of itself.
#[derive(Debug, Serialize)]
struct Commit {
    committed: String,
    author: Option<String>,
    message: Option<String>,
}

/// One event.
#[derive(Debug, Serialize)]
struct Line<'a> {
    token: String,
    #[serde(flatten)]
    commit: &'a Commit,
    document: String,
    revision: u64,
    timestamp: String,
    operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    purged: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    first_kept: bool,
}

impl<'a> Line<'a> {
    fn new(commit: &'a Commit, event: Event) -> Result<Self> {
        let json = |text: Option<String>| text.map(RawValue::from_string).transpose();
        Ok(Self {
            token: event.token.to_string(),
            commit,
            document: event.document,
            revision: event.revision.0,
            timestamp: moment::format(event.timestamp),
            operation: match event.operation {
                Operation::Insert => "insert",
                Operation::Update => "update",
                Operation::Delete => "delete",
            },
            key: event.key.map(|key| key.to_string()),
            version: event.version,
            old: json(event.old).map_err(io::Error::from)?,
            new: json(event.new).map_err(io::Error::from)?,
            patch: json(event.patch).map_err(io::Error::from)?,
            purged: event.is_purged,
            first_kept: event.is_first_kept,
        })
    }
}
