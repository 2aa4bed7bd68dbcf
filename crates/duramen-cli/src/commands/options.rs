//! `duramen options`: what is declared of a document.

use std::io::{self, Write};

use clap::Args;
use duramen::{DocumentOptions, Error, ErrorKind, LabelPath};
use serde::Serialize;

use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen options shop.duramen config
  duramen options shop.duramen config --id '$.items=sku' --map '$.prices'
  duramen options shop.duramen config --no-map '$.prices'

A PATH has field names, [*] for the elements of an array and {*} for the entries of a map, such as
'$.shops{*}.items'. What is declared counts for what is put from then on; what is stored stays.";

/// What is declared of a document.
#[derive(Debug, Args)]
pub(crate) struct Declarations {
    /// The elements of the arrays at PATH are told apart by their FIELD when a value is put
    #[arg(long = "id", value_name = "PATH=FIELD")]
    ids: Vec<String>,
    /// The objects at PATH are maps: their names are data
    #[arg(long = "map", value_name = "PATH")]
    maps: Vec<String>,
}

impl Declarations {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.maps.is_empty()
    }

    /// Adds them to what is declared.
    pub(crate) fn add_to(&self, options: &mut DocumentOptions) -> Result<()> {
        for id in &self.ids {
            let (path, field) = id.rsplit_once('=').ok_or_else(|| {
                let message = format!("{id:?} has no =: write --id PATH=FIELD, '$.items=sku'");
                Error::new(ErrorKind::Invalid, message)
            })?;
            options.ids.insert(path.parse()?, field.to_owned());
        }
        for path in &self.maps {
            options.maps.insert(path.parse()?);
        }
        Ok(())
    }
}

/// Show or change what is declared of a document: id fields of arrays, and maps
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    #[command(flatten)]
    declarations: Declarations,
    /// The arrays at PATH have no id field any more
    #[arg(long = "no-id", value_name = "PATH")]
    no_ids: Vec<String>,
    /// New objects at PATH are no maps any more
    #[arg(long = "no-map", value_name = "PATH")]
    no_maps: Vec<String>,
    #[command(flatten)]
    note: Note,
}

impl Options {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let changes =
            !self.declarations.is_empty() || !self.no_ids.is_empty() || !self.no_maps.is_empty();
        if !changes {
            let document = meant::document(&self.database.read(session)?, &self.document)?;
            return print(&document.options()?, output);
        }
        let document = meant::document(&self.database.open(session)?, &self.document)?;
        let mut options = document.options()?;
        self.declarations.add_to(&mut options)?;
        for path in &self.no_ids {
            let path = path.parse()?;
            options.ids.remove(&path).ok_or_else(|| undeclared(&path, "no id field"))?;
        }
        for path in &self.no_maps {
            let path = path.parse()?;
            options.maps.take(&path).ok_or_else(|| undeclared(&path, "no map"))?;
        }
        document.set_options(&options, &self.note.options())?;
        print(&options, output)
    }
}

fn undeclared(path: &LabelPath, what: &str) -> Error {
    let message = format!("{what} is declared at {path}: \"duramen options\" lists what is");
    Error::new(ErrorKind::NotFound, message)
}

fn print(options: &DocumentOptions, output: &mut Output) -> Result<Success> {
    for (path, field) in &options.ids {
        output.record(&Line { path: path.to_string(), id: Some(field), map: false })?;
    }
    for path in &options.maps {
        output.record(&Line { path: path.to_string(), id: None, map: true })?;
    }
    Ok(Success::Done)
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    map: bool,
}

impl Record for Line<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        match self.id {
            Some(field) => writeln!(out, "id   {}={field}", self.path),
            None => writeln!(out, "map  {}", self.path),
        }
    }
}
