//! `duramen DB`: one command after the other on the same database.

mod completion;
pub(crate) mod interruptible;
mod lines;
mod setting;
pub(crate) mod terminal;
pub(crate) mod words;

use std::rc::Rc;

use clap::{Args, CommandFactory, Parser};

use self::completion::Completion;
use self::interruptible::Interruptible;
use self::lines::{Lines, Read};
use self::setting::Setting;
use crate::arguments::{Arguments, Command, ReadDatabase};
use crate::exit::{self, Failure, Success};
use crate::extension::similar;
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::{Output, Style};
use crate::session::Session;
use crate::{Result, arguments};

const EXAMPLES: &str = "\
Examples:
  duramen shop.duramen
  echo 'get config --at 7' | duramen shop.duramen
  duramen shop.duramen < script

In it commands stand without `duramen` and DB, and, after `use DOC`, without DOC, or COLLECTION if
it is one. The tab key completes commands, documents and places, Ctrl-C cancels a line or stops what
a command prints, and Ctrl-D ends it. `help` lists all commands.

From a pipe there is no prompt: a line that fails does not stop the lines after it, and the exit
code is that of the last line that failed. The database is open for writing from the first command
that writes to the end; at a prompt only while a command runs.";

/// What only a shell can do.
const BUILT_IN: &[(&str, &str)] = &[
    ("use", "Take a document, so that commands need not name it; `use` alone names them again"),
    ("at", "Look at a revision or time unless --at says otherwise; `at head` is the present"),
    ("help", "List the commands, or describe one"),
    ("exit", "End the shell, as Ctrl-D does"),
];

/// Run commands one after the other: an interactive shell; `duramen DB` is short for it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Shell {
    #[command(flatten)]
    database: ReadDatabase,
}

/// What came of a line.
enum Obeyed {
    Code(u8),
    Exit,
}

impl Shell {
    pub(crate) fn run(&self, _session: &Session, output: &mut Output) -> Result<Success> {
        let setting = Rc::new(Setting::open(self.database.folder())?);
        let ended = Self::obey_all(&setting, output);
        setting.session.told(ended)
    }

    /// Does what the lines say, up to the last one.
    fn obey_all(setting: &Rc<Setting>, output: &mut Output) -> Result<Success> {
        let mut lines = Lines::open(Completion::new(Rc::clone(setting)))?;
        let interruption = lines.is_terminal().then(Interruption::watch);
        if lines.is_terminal() {
            notice!("help lists the commands, the tab key completes them, exit ends");
        }
        let mut failed = 0;
        loop {
            output.flush()?;
            let line = match lines.next(&setting.prompt())? {
                Read::Line(line) => line,
                Read::Cancelled => continue,
                Read::End => break,
            };
            let obeyed = obey(setting, &line, (output, interruption.as_ref()));
            if lines.is_terminal() {
                setting.session.release();
            }
            let json = output.style.json || line.contains("--json");
            match finish(obeyed, (output, interruption.as_ref()), json)? {
                Obeyed::Exit => break,
                Obeyed::Code(0) => {}
                Obeyed::Code(code) => failed = code,
            }
        }
        if lines.is_terminal() {
            return Ok(Success::Done);
        }
        Ok(if failed == 0 { Success::Done } else { Success::Code(failed) })
    }
}

/// Does what a line says.
fn obey(
    setting: &Setting,
    line: &str,
    (output, interruption): (&mut Output, Option<&Interruption>),
) -> Result<Obeyed> {
    let line = line.trim();
    // A `#` directly before a number is an id.
    if line == "#" || line.starts_with("# ") {
        return Ok(Obeyed::Code(0));
    }
    let found = words::split(line);
    if let Some(quote) = found.open_quote {
        return Err(Failure::Usage(format!("the quote {quote} is not closed")));
    }
    let words: Vec<String> = found.words.into_iter().map(|word| word.text).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    match texts[..] {
        [] => {}
        ["exit" | "quit"] => return Ok(Obeyed::Exit),
        ["use"] => setting.use_document(None)?,
        ["use", name] => setting.use_document(Some(name))?,
        ["at"] | ["at", "head"] => setting.use_moment(None)?,
        ["at", moment] => setting.use_moment(Some(moment))?,
        ["help" | "?"] => help(output)?,
        ["use" | "at" | "exit" | "quit", ..] => {
            let message = format!("{} takes one word at most; see help", texts[0]);
            return Err(Failure::Usage(message));
        }
        _ => return run(setting, &words, (output, interruption)),
    }
    Ok(Obeyed::Code(0))
}

/// Runs a command as the command line would.
fn run(
    setting: &Setting,
    words: &[String],
    (output, interruption): (&mut Output, Option<&Interruption>),
) -> Result<Obeyed> {
    let root = Arguments::command();
    let line = match root.find_subcommand(&words[0]) {
        Some(command) => setting.command_line(command, words),
        None if words[0] == "help" => std::iter::once("duramen")
            .chain(words.iter().map(String::as_str))
            .map(Into::into)
            .collect(),
        None => return Err(Failure::Usage(unknown(&words[0]))),
    };
    let arguments = match Arguments::try_parse_from(line) {
        Ok(arguments) => arguments,
        Err(error) => {
            output.flush()?;
            let json = output.style.json || words.iter().any(|word| word == "--json");
            return Ok(Obeyed::Code(exit::refuse(error, json)));
        }
    };
    if let Command::Shell(_) = arguments.command {
        return Err(Failure::Usage("this is a shell already; exit ends it".to_owned()));
    }
    let style = Style { json: output.style.json || arguments.json, ..output.style };
    let success = match interruption {
        None => {
            let mut output = Output::new(output.stream(), style);
            arguments.command.run(&setting.session, &mut output)
        }
        Some(interruption) => {
            let mut stream = Interruptible { stream: output.stream(), interruption };
            let mut output = Output::new(&mut stream, style);
            arguments.command.run(&setting.session, &mut output)
        }
    };
    setting.session.end(&success);
    Ok(Obeyed::Code(exit::code(success?)))
}

/// Tells a failure; only what a script cannot go on after ends the shell.
fn finish(
    obeyed: Result<Obeyed>,
    (output, interruption): (&mut Output, Option<&Interruption>),
    json: bool,
) -> Result<Obeyed> {
    let was_interrupted = interruption.is_some_and(Interruption::forget);
    output.flush()?;
    match obeyed {
        Ok(obeyed) => Ok(obeyed),
        Err(Failure::Interrupted(message)) if interruption.is_some() => {
            notice!("{message}");
            Ok(Obeyed::Code(130))
        }
        Err(Failure::Output(_)) if was_interrupted => Ok(Obeyed::Code(130)),
        Err(failure @ (Failure::Interrupted(_) | Failure::Output(_))) => Err(failure),
        Err(failure) if failure.is_broken_pipe() => Err(failure),
        Err(failure) => Ok(Obeyed::Code(exit::report(&failure, json))),
    }
}

fn unknown(name: &str) -> String {
    match similar(name) {
        Some(command) => format!("there is no command {name:?}; did you mean {command}? See help"),
        None => format!("there is no command {name:?}; see help"),
    }
}

fn help(output: &mut Output) -> Result<()> {
    let heading = output.style.palette.heading;
    let root = arguments::Arguments::command();
    let commands = root.get_subcommands().filter(|command| !command.is_hide_set());
    let described = commands.map(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        (command.get_name().to_owned(), about)
    });
    let own = BUILT_IN.iter().map(|(name, about)| ((*name).to_owned(), (*about).to_owned()));
    for (name, about) in own.chain(described) {
        output.line(format_args!("{heading}{name:<15}{heading:#} {about}"))?;
    }
    output.line(
        "\nhelp COMMAND tells what a command takes; leave `duramen` and DB out, and DOC after \
         `use DOC`.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_names_are_not_those_of_commands() {
        let root = Arguments::command();
        assert!(BUILT_IN.iter().all(|(name, _)| root.find_subcommand(name).is_none()));
    }
}
