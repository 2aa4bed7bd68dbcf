//! Commands that are programs of their own: `duramen NAME` runs `duramen-NAME`, looked for beside
//! this program and then in `PATH`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{CommandFactory, Parser};
use duramen::Error;

use crate::Result;
use crate::arguments::Arguments;
use crate::exit::{self, Failure, Success};
use crate::output::Output;
use crate::session::Session;

/// Runs the program for the first word with the other words, and ends as it ends. A word that
/// names a database starts the shell on it.
pub(crate) fn run(words: &[OsString], session: &Session, output: &mut Output) -> Result<Success> {
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::Usage("a command is missing; see duramen help".to_owned()));
    };
    let program = find(name);
    if program.is_none() && is_path(name) {
        let shell = [OsStr::new("duramen"), OsStr::new("shell")];
        let line = shell.into_iter().map(OsStr::to_owned).chain(words.iter().cloned());
        let arguments = Arguments::try_parse_from(line)
            .map_err(|error| Failure::Usage(exit::text(&error).trim_end().to_owned()))?;
        output.style.json |= arguments.json;
        return arguments.command.run(session, output);
    }
    let program = program.ok_or_else(|| Failure::Usage(missing(&name.to_string_lossy())))?;
    let status = Command::new(&program).args(arguments).status();
    let status = status
        .map_err(|error| Error::io(format_args!("cannot run {}", program.display()), error))?;
    // A program that a signal ended has no code of its own.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(130);
    Ok(Success::Code(code))
}

fn find(name: &OsStr) -> Option<PathBuf> {
    let mut file = OsString::from("duramen-");
    file.push(name);
    file.push(env::consts::EXE_SUFFIX);
    // A name with a slash in it would leave the folder.
    if PathBuf::from(name).components().count() != 1 {
        return None;
    }
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(PathBuf::from));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = beside.into_iter().chain(env::split_paths(&path));
    folders.find_map(|folder| Some(folder.join(&file)).filter(|program| program.is_file()))
}

/// Whether a word that is no command can be meant as the folder of a database.
fn is_path(name: &OsStr) -> bool {
    let path = Path::new(name);
    path.is_dir() || path.components().count() > 1 || path.extension().is_some()
}

fn missing(name: &str) -> String {
    if name == "bench" {
        return "the benchmarks are a program of their own, duramen-bench, which does not lie \
                beside this one; in a clone of Duramen, `make bench` builds and runs it"
            .to_owned();
    }
    let hint = similar(name).map_or_else(
        || "see duramen help".to_owned(),
        |command| format!("did you mean {command}? See duramen help"),
    );
    format!("there is no command {name:?}, and no program duramen-{name}; {hint}")
}

/// The command that a mistyped one is most like.
pub(crate) fn similar(name: &str) -> Option<String> {
    let command = Arguments::command();
    duramen::nearest(name, command.get_subcommands().map(|known| known.get_name().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_is_recognized() {
        assert_eq!(similar("histroy").as_deref(), Some("history"));
        assert_eq!(similar("xyzzy"), None);
    }

    #[test]
    fn missing_benchmarks_are_told_how_to_get() {
        assert!(missing("bench").contains("make bench"));
        assert!(missing("histroy").contains("did you mean history?"));
    }

    #[test]
    fn an_extension_lies_in_a_folder_that_is_searched() {
        assert_eq!(find(OsStr::new("../bin/sh")), None);
        assert_eq!(find(OsStr::new("no-such-program")), None);
    }
}
