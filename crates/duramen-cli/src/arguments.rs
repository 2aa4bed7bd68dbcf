//! The command line: its commands, and the arguments that several of them share.

pub(crate) mod database;
pub(crate) mod edit;
pub(crate) mod list;
pub(crate) mod moment;
pub(crate) mod place;
pub(crate) mod value;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub(crate) use self::database::{ReadDatabase, ReadDocument, WriteDatabase};
pub(crate) use self::edit::Edit;
pub(crate) use self::moment::At;
pub(crate) use self::place::{Destination, Keys, Place};
use crate::commands::{
    append, copy, insert, movement, patch, rename, replace, revert, splice, undo,
};
use crate::commands::{backup, dump, load, restore};
use crate::commands::{
    blame, check, completions, demo, diff, export, get, history, import, index, init, log, ls, man,
    put, query, records, remove, repair, scrub, series, set, shell, show, sql, stat, watch, when,
};
use crate::commands::{compact, delete, options, purge, rename_document, retain, tag, untag};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, extension};

const AFTER_HELP: &str = "\
DB is the database's folder and DOC the name of a document in it. A POINTER is a JSON Pointer,
such as /players/3/name; inside a name write ~1 for / and ~0 for ~. In its place stand also # and
the id of a value, which finds it wherever it is, and a JSONPath (RFC 9535), which begins with $.
A REVISION is a number, a TIME is in RFC 3339 form: 2024-05-01T12:30:00+02:00. A time without a zone
is UTC, and a date alone is its first moment, 00:00 UTC. A FILE called - is standard input.

Examples:
  duramen put shop.duramen config config.json --message 'first version'
  duramen get shop.duramen config --at 2024-05-01
  duramen log shop.duramen config --limit 10

Exit codes: 0 done, 1 `check`, `scrub`, `repair` or `diff --exit-code` found something, 2 wrong
command line, 10 to 23 by kind of error (docs/errors.md), 130 stopped by Ctrl-C, 141 nobody reads
the output any more.";

/// Keeps every revision of JSON documents, readable at the speed of the present.
#[derive(Debug, Parser)]
#[command(name = "duramen", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Print JSON, one object a line, and errors as JSON too
    #[arg(long, global = true, display_order = 100)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Init),
    Put(put::Put),
    Get(get::Get),
    Set(set::Set),
    Remove(remove::Remove),
    Insert(insert::Insert),
    Append(append::Append),
    Splice(splice::Splice),
    Replace(replace::Replace),
    Move(movement::Move),
    Copy(copy::Copy),
    Rename(rename::Rename),
    Patch(patch::Patch),
    Undo(undo::Undo),
    Revert(revert::Revert),
    Tag(tag::Tag),
    Untag(untag::Untag),
    Delete(delete::Delete),
    RenameDocument(rename_document::RenameDocument),
    Options(options::Options),
    Retain(retain::Retain),
    Purge(purge::Purge),
    Log(log::Log),
    Show(show::Show),
    Diff(diff::Diff),
    History(history::History),
    Query(query::Query),
    Blame(blame::Blame),
    When(when::When),
    Watch(watch::Watch),
    Records(records::Records),
    Sql(sql::Sql),
    Series(series::Series),
    Index(index::Index),
    Ls(ls::Ls),
    Export(export::Export),
    Import(import::Import),
    Stat(stat::Stat),
    Check(check::Check),
    Compact(compact::Compact),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Dump(dump::Dump),
    Load(load::Load),
    Scrub(scrub::Scrub),
    Repair(repair::Repair),
    Shell(shell::Shell),
    Completions(completions::Completions),
    Man(man::Man),
    Demo(demo::Demo),
    #[command(external_subcommand)]
    Extension(Vec<OsString>),
}

impl Command {
    /// Whether it makes files elsewhere than in a database that is open for writing.
    pub(crate) fn makes_files(&self) -> bool {
        matches!(self, Self::Backup(_) | Self::Restore(_) | Self::Load(_) | Self::Repair(_))
    }

    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        match self {
            Self::Init(command) => command.run(session, output),
            Self::Put(command) => command.run(session, output),
            Self::Get(command) => command.run(session, output),
            Self::Set(command) => command.run(session, output),
            Self::Append(command) => command.run(session, output),
            Self::Copy(command) => command.run(session, output),
            Self::Insert(command) => command.run(session, output),
            Self::Move(command) => command.run(session, output),
            Self::Patch(command) => command.run(session, output),
            Self::Rename(command) => command.run(session, output),
            Self::Replace(command) => command.run(session, output),
            Self::Revert(command) => command.run(session, output),
            Self::Splice(command) => command.run(session, output),
            Self::Undo(command) => command.run(session, output),
            Self::Tag(command) => command.run(session, output),
            Self::Untag(command) => command.run(session, output),
            Self::Delete(command) => command.run(session, output),
            Self::RenameDocument(command) => command.run(session, output),
            Self::Options(command) => command.run(session, output),
            Self::Retain(command) => command.run(session, output),
            Self::Purge(command) => command.run(session, output),
            Self::Remove(command) => command.run(session, output),
            Self::Log(command) => command.run(session, output),
            Self::Diff(command) => command.run(session, output),
            Self::History(command) => command.run(session, output),
            Self::Ls(command) => command.run(session, output),
            Self::Import(command) => command.run(session, output),
            Self::Stat(command) => command.run(session, output),
            Self::Check(command) => command.run(session, output),
            Self::Compact(command) => command.run(session, output),
            Self::Backup(command) => command.run(session, output),
            Self::Restore(command) => command.run(output),
            Self::Dump(command) => command.run(session, output),
            Self::Load(command) => command.run(output),
            Self::Scrub(command) => command.run(session, output),
            Self::Repair(command) => command.run(session, output),
            Self::Query(command) => command.run(session, output),
            Self::Records(command) => command.run(session, output),
            Self::Sql(command) => command.run(session, output),
            Self::Series(command) => command.run(session, output),
            Self::Index(command) => command.run(session, output),
            Self::Blame(command) => command.run(session, output),
            Self::When(command) => command.run(session, output),
            Self::Watch(command) => command.run(session, output),
            Self::Show(command) => command.run(session, output),
            Self::Export(command) => command.run(session, output),
            Self::Shell(command) => command.run(session, output),
            Self::Completions(command) => command.run(session, output),
            Self::Man(command) => command.run(session, output),
            Self::Demo(command) => command.run(session, output),
            Self::Extension(words) => extension::run(words, session, output),
        }
    }
}
