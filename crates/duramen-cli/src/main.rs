//! The command `duramen`.

use std::process::ExitCode;

fn main() -> ExitCode {
    duramen_cli::main()
}
