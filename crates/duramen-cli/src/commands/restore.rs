//! `duramen restore`: a new database from a backup.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use duramen::{BackupFolder, CommitSequence, Database, Error, ErrorKind, Moment, RestorePoint};
use serde::Serialize;

use super::backup::watched;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen restore /backups/shop restored.duramen
  duramen restore /backups/shop before.duramen --at 2024-05-01T12:30:00Z
  duramen restore /backups/shop before.duramen --at c417

Every byte is compared with what the backup says it was. With --at the database ends with that
commit, or with the last one at or before that time; what came later is not in it. `duramen stat`
and `duramen backup` tell the number of the last commit. The new database has an id of its own, so
its backups go into another folder.";

/// Make a new database from a backup
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Restore {
    /// The folder of the backups
    #[arg(value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// The folder of the new database, empty or missing
    #[arg(value_name = "DB", value_hint = ValueHint::DirPath)]
    database: PathBuf,
    /// As of this commit or time; the end of the newest backup if not given
    #[arg(long, value_name = "COMMIT|TIME", allow_negative_numbers = true)]
    at: Option<String>,
}

impl Restore {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let point = self.at.as_deref().map_or(Ok(RestorePoint::Newest), parse)?;
        let folder = BackupFolder::new(&self.folder);
        let restored = watched("restoring", |report| {
            let restored = Database::restore(&folder, &self.database, point, report);
            restored.map_err(|error| {
                error.in_context(format_args!("restore from {}", self.folder.display()))
            })
        })?;
        output.record(&Made {
            database: self.database.display().to_string(),
            backup: restored.backup.number,
            commit: restored.commit.0,
            timestamp: moment::format(restored.timestamp),
        })?;
        Ok(Success::Done)
    }
}

fn parse(text: &str) -> Result<RestorePoint> {
    if let Some(Ok(number)) = text.strip_prefix('c').map(str::parse::<u64>) {
        return Ok(RestorePoint::Commit(CommitSequence(number)));
    }
    match moment::parse(text) {
        Some(Moment::Revision(number)) => Ok(RestorePoint::Commit(CommitSequence(number.0))),
        Some(Moment::Time(time)) => Ok(RestorePoint::Time(time)),
        _ => {
            let message = format!(
                "{text:?} is neither a commit, such as c417 or 417, nor a time, such as \
                 2024-05-01T12:30:00Z"
            );
            Err(Error::new(ErrorKind::Invalid, message).into())
        }
    }
}

#[derive(Debug, Serialize)]
struct Made {
    database: String,
    backup: u64,
    commit: u64,
    timestamp: String,
}

impl Record for Made {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { database, backup, commit, timestamp } = self;
        let (time, revision) = (palette.time, palette.revision);
        writeln!(
            out,
            "{database}: restored from backup {backup}, up to commit \
             {revision}{commit}{revision:#} of {time}{timestamp}{time:#}"
        )
    }
}
