//! The command line of Duramen: each command parses, calls the engine once, and renders.
//!
//! This is the library part of the binary `duramen`, and no interface for others.

#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic where nothing can be written: use Output, or notice"
)]

mod arguments;
mod bulk;
mod change;
mod commands;
mod dump_line;
mod exit;
mod extension;
mod history_line;
mod input;
mod interruption;
mod meant;
mod moment;
mod notice;
mod outfile;
mod output;
mod progress;
mod session;
mod written;

use std::io;
use std::panic;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

use arguments::Arguments;
use exit::{Failure, Success};
use output::{Output, Style};
use session::Session;

/// Runs the command line that the process was given.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let json =
                std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
            return exit::refuse(error, json).into();
        }
    };
    hide_panics_of_queries();
    if let Err(error) = interruption::listen(arguments.json) {
        return exit::finish(Err(error.into()), arguments.json);
    }
    let style = Style::of_standard_output(arguments.json);
    let mut stream = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut output = Output::new(&mut stream, style);
    let session = Session::default();
    let result = arguments.command.run(&session, &mut output);
    session.end(&result);
    let told = session.told(flushed(result, &mut output));
    let makes_files = arguments.command.makes_files();
    let told = if makes_files { told.map_err(Failure::after_writing) } else { told };
    exit::finish(told, arguments.json)
}

/// How a command ended whose output has left the process. That it could not matters more than
/// anything else, but for a reader who went away from a command that failed of something else.
fn flushed(result: Result<Success>, output: &mut Output) -> Result<Success> {
    match (result, output.flush()) {
        (Ok(_), Err(failure)) => Err(failure),
        // It is known already.
        (result @ Err(Failure::Output(_) | Failure::Untold(_)), _) => result,
        (Err(_), Err(failure)) if !failure.is_broken_pipe() => Err(failure),
        (result, _) => result,
    }
}

/// Prints no panic of a thread of queries, which becomes the error of the query.
fn hide_panics_of_queries() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        if thread::current().name() != Some(duramen_sql::THREAD_NAME) {
            print(panic);
        }
    }));
}

/// What a command gives back.
type Result<T, E = Failure> = std::result::Result<T, E>;
