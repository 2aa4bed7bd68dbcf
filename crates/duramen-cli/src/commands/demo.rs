//! `duramen demo`: a tour on the published versions of the MIME type registry.

mod registry;

use std::path::{Path, PathBuf};

use clap::{Args, Parser};
use duramen::{CommitOptions, Database, Error, Options, Outcome};
use indicatif::HumanCount;

use self::registry::{Version, versions};
use super::shell::words::quoted;
use crate::arguments::Arguments;
use crate::exit::{Failure, Success};
use crate::output::{Output, Style};
use crate::session::Session;
use crate::{Result, input, progress};

const EXAMPLES: &str = "\
Examples:
  duramen demo
  duramen demo --dir mime.duramen";

const DOCUMENT: &str = "mime";

/// Take a tour: 63 published versions of a real document, and what can be asked of them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Make the database in this folder, and not in a temporary one
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// A step of the tour.
enum Step {
    /// What people read.
    Say(&'static str),
    /// A command, without the database and the document, that they see run.
    Run(&'static str, &'static [&'static str]),
}

const TOUR: &[Step] = &[
    Step::Say("The newest revisions, with the release dates as their times:"),
    Step::Run("log", &["--limit", "5"]),
    Step::Say("What the registry said of JavaScript on New Year's Day 2020, and what it says now:"),
    Step::Run("get", &["--path", "/application~1javascript", "--at", "2020-01-01"]),
    Step::Run("get", &["--path", "/application~1javascript"]),
    Step::Say("What changed in July 2015:"),
    Step::Run("diff", &["2015-07-01", "2015-08-01"]),
    Step::Say("Who vouched for PDF's form data, over the years:"),
    Step::Run("history", &["/application~1vnd.fdf/source"]),
];

impl Demo {
    pub(crate) fn run(&self, _session: &Session, output: &mut Output) -> Result<Success> {
        let folder = match &self.dir {
            Some(folder) => folder.clone(),
            None => temporary_folder()?,
        };
        let loaded = load(&folder)?;
        output.line(format_args!(
            "{} versions of the MIME type registry, each put into one document: {} revisions.",
            loaded.versions, loaded.revisions
        ))?;
        if !loaded.unchanged.is_empty() {
            output.line(format_args!(
                "{} were published without a change; a put that changes nothing makes no revision.",
                loaded.unchanged.join(", ")
            ))?;
        }
        // What people see is for people, whatever else they asked for.
        output.style = Style { json: false, ..output.style };
        for step in TOUR {
            match step {
                Step::Say(text) => output.line(format_args!("\n{text}"))?,
                Step::Run(command, arguments) => show(output, &folder, command, arguments)?,
            }
        }
        close(output, &folder, &loaded)
    }
}

fn temporary_folder() -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("duramen-demo-").tempdir();
    let folder = folder.map_err(|error| Error::io("cannot make a temporary folder", error))?;
    Ok(folder.keep().join("mime.duramen"))
}

/// What loading the versions gave.
#[derive(Default)]
struct Loaded {
    versions: usize,
    revisions: u64,
    unchanged: Vec<String>,
    /// Of the published files.
    file_bytes: u64,
    /// Of the database.
    segment_bytes: u64,
}

fn load(folder: &Path) -> Result<Loaded> {
    let database = Database::open(folder, Options::default())?;
    if !database.was_created() {
        let message = format!("{} is there already; choose another --dir", folder.display());
        return Err(Error::new(duramen::ErrorKind::Conflict, message).into());
    }
    let versions = versions()?;
    let document = database.create_document(DOCUMENT)?;
    let bar = progress::bar("loading", u64::try_from(versions.len()).ok());
    let mut loaded = Loaded { versions: versions.len(), ..Loaded::default() };
    for Version { name, timestamp, document: json } in bar.wrap_iter(versions.into_iter()) {
        loaded.file_bytes += u64::try_from(json.get().len()).unwrap_or(u64::MAX);
        let options = CommitOptions {
            message: Some(name.clone()),
            timestamp: Some(timestamp),
            ..CommitOptions::default()
        };
        match document.put(json.get(), &options)? {
            Outcome::Committed(commit) => loaded.revisions = commit.revision.0,
            Outcome::Unchanged(_) => loaded.unchanged.push(name),
        }
    }
    bar.finish_and_clear();
    database.checkpoint()?;
    loaded.segment_bytes = database.stats()?.segment_bytes;
    Ok(loaded)
}

/// Prints a command as it would be typed, and runs it.
fn show(output: &mut Output, folder: &Path, command: &str, arguments: &[&str]) -> Result<()> {
    let folder = folder.display().to_string();
    let words: Vec<&str> =
        ["duramen", command, &folder, DOCUMENT].iter().chain(arguments).copied().collect();
    let heading = output.style.palette.heading;
    output.line(format_args!("{heading}$ {}{heading:#}", typed(&words)))?;
    let arguments =
        Arguments::try_parse_from(&words).map_err(|error| Failure::Usage(error.to_string()))?;
    arguments.command.run(&Session::default(), output).map(drop)
}

/// The words of a command as a shell reads them.
fn typed(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Compares the sizes and says how to go on.
fn close(output: &mut Output, folder: &Path, loaded: &Loaded) -> Result<Success> {
    output.line(format_args!(
        "\nThe {} files have {} bytes in all; the database keeps every revision in {} bytes,\n\
         beside the {} bytes of its journal, which is used again and again.",
        loaded.versions,
        HumanCount(loaded.file_bytes),
        HumanCount(loaded.segment_bytes),
        HumanCount(input::folder_bytes(folder)?.saturating_sub(loaded.segment_bytes)),
    ))?;
    let folder = folder.display().to_string();
    output.line("\nThe database stays there. Go on with:")?;
    for rest in [
        &["stat", &folder, DOCUMENT][..],
        &["diff", &folder, DOCUMENT, "59", "60", "--patch"],
        &["history", &folder, DOCUMENT, "/image~1webp/source"],
        &["set", &folder, DOCUMENT, "/text~1plain/note", "\"mine\""],
        &["help"],
    ] {
        output.line(format_args!("  duramen {}", typed(rest)))?;
    }
    Ok(Success::Done)
}
