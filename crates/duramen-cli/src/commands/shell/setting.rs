//! What a shell is about: its database, and the document and moment in use.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use duramen::{Document, Snapshot};

use crate::arguments::{Keys, moment};
use crate::output::one_line;
use crate::session::Session;
use crate::{Result, meant};

/// Shared by the shell and its completion.
#[derive(Debug)]
pub(super) struct Setting {
    folder: PathBuf,
    pub(super) session: Session,
    /// The document that commands are about without naming it.
    document: RefCell<Option<String>>,
    /// The moment that commands look at unless they say otherwise.
    at: RefCell<Option<String>>,
}

impl Setting {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let session = Session::open(folder)?;
        let (folder, document, at) = (folder.to_path_buf(), RefCell::default(), RefCell::default());
        Ok(Self { folder, session, document, at })
    }

    /// Takes a document that is there, or none.
    pub(super) fn use_document(&self, name: Option<&str>) -> Result<()> {
        if let Some(name) = name {
            meant::document(&self.session.reader(&self.folder)?, name)?;
        }
        self.document.replace(name.map(str::to_owned));
        self.at.replace(None);
        Ok(())
    }

    /// Takes a moment, or the present.
    pub(super) fn use_moment(&self, text: Option<&str>) -> Result<()> {
        if let (Some(text), Some(name)) = (text, self.document.borrow().as_deref()) {
            self.look(name, Some(text))?;
        }
        self.at.replace(text.map(str::to_owned));
        Ok(())
    }

    pub(super) fn document(&self) -> Option<String> {
        self.document.borrow().clone()
    }

    /// The tags of a document.
    pub(super) fn tags(&self, name: &str) -> Result<Vec<String>> {
        let tags = self.session.reader(&self.folder)?.document(name)?.tags()?;
        Ok(tags.into_iter().map(|tag| tag.name).collect())
    }

    /// The names of the documents.
    pub(super) fn documents(&self) -> Result<Vec<String>> {
        Ok(self.session.reader(&self.folder)?.documents()?)
    }

    fn is_collection(&self, name: &str) -> bool {
        let database = self.session.reader(&self.folder);
        database.is_ok_and(|database| database.collection(name).is_ok())
    }

    /// The document in use, if an argument stands for one such as it. Who names a collection as
    /// the next word means that one.
    pub(super) fn named_by(&self, argument: &Arg, next: Option<&String>) -> Option<String> {
        let is_meant =
            |name: &str| self.is_collection(name) && !next.is_some_and(|it| self.is_collection(it));
        self.document()
            .filter(|name| is(argument, "DOC") || is(argument, "COLLECTION") && is_meant(name))
    }

    /// A document as commands see it by default.
    pub(super) fn snapshot(&self, name: &str) -> Result<(Snapshot, Keys)> {
        self.look(name, self.at.borrow().as_deref())
    }

    /// A document at a moment, and how places in it are written.
    fn look(&self, name: &str, at: Option<&str>) -> Result<(Snapshot, Keys)> {
        let document: Document = self.session.reader(&self.folder)?.document(name)?;
        let snapshot = match at {
            None => document.head()?,
            Some(text) => moment::snapshot(&document, text)?,
        };
        Ok((snapshot, Keys::of(&document)?))
    }

    /// What stands in front of a line.
    pub(super) fn prompt(&self) -> String {
        let folder = self.folder.file_name().unwrap_or(self.folder.as_os_str()).to_string_lossy();
        let mut prompt = folder.into_owned();
        if let Some(document) = &*self.document.borrow() {
            prompt = format!("{prompt} {document}");
        }
        if let Some(at) = &*self.at.borrow() {
            prompt = format!("{prompt} at {at}");
        }
        format!("{}> ", one_line(&prompt))
    }

    /// The whole command line that `words`, which begin with the name of `command`, stand for.
    pub(super) fn command_line(&self, command: &Command, words: &[String]) -> Vec<OsString> {
        let (command, names) = innermost(command, words);
        let mut line = vec![OsString::from("duramen")];
        let rest = words.get(names.len()..).unwrap_or_default();
        line.extend(names.into_iter().map(Into::into));
        let at = self.at.borrow().clone().filter(|_| takes_moment(command) && !names_moment(rest));
        line.extend(at.map(|at| format!("--at={at}").into()));
        let mut positionals = command.get_positionals();
        if positionals.next().is_some_and(|argument| is(argument, "DB")) {
            line.push(self.folder.clone().into());
            let next = rest.iter().find(|word| !word.starts_with('-'));
            let second = positionals.next().and_then(|argument| self.named_by(argument, next));
            line.extend(second.map(Into::into));
        }
        line.extend(rest.iter().map(Into::into));
        line
    }
}

/// The command that words name with those it is in, and its names.
pub(super) fn innermost<'c>(command: &'c Command, words: &[String]) -> (&'c Command, Vec<String>) {
    let (mut command, mut names) = (command, vec![command.get_name().to_owned()]);
    for word in words.iter().skip(1) {
        let Some(inner) = command.find_subcommand(word) else { break };
        command = inner;
        names.push(inner.get_name().to_owned());
    }
    (command, names)
}

/// Whether help calls an argument's value by this name.
pub(super) fn is(argument: &Arg, name: &str) -> bool {
    argument.get_value_names().unwrap_or_default().iter().any(|known| known.as_str() == name)
}

fn takes_moment(command: &Command) -> bool {
    let has = |name| command.get_opts().any(|option| option.get_long() == Some(name));
    has("at") && !has("wait")
}

fn names_moment(words: &[String]) -> bool {
    words.iter().any(|word| word == "--at" || word.starts_with("--at="))
}
