//! Shell sessions with the command `duramen`, run again and compared with what is recorded.
//!
//! Each file of `transcripts` is one session in an empty folder: lines that begin with `$ ` are
//! commands, what stands below them is their output, and `? N` is an exit code other than 0. The
//! README's tour is such a session too. `SNAPSHOTS=overwrite` records anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use snapbox::data::DataFormat;
use snapbox::{Assert, Data, Redactions};

/// The folder that the binary lies in, in front of the shell's path.
fn path_with_binary() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_duramen"));
    let folder = binary.parent().unwrap().display();
    format!("{folder}:{}", std::env::var("PATH").unwrap())
}

/// Runs the commands of a session in a folder and gives the session with what they print now.
fn replay(session: &str, folder: &Path) -> String {
    let mut now = String::new();
    let mut in_output = false;
    for line in session.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let output = Command::new("sh")
                .args(["-c", &format!("exec 2>&1\n{command}")])
                .current_dir(folder)
                .env("PATH", path_with_binary())
                .env_remove("CLICOLOR_FORCE")
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            write!(now, "{line}\n{text}").unwrap();
            if !text.is_empty() && !text.ends_with('\n') {
                now.push('\n');
            }
            match output.status.code() {
                Some(0) => {}
                code => writeln!(now, "? {}", code.unwrap()).unwrap(),
            }
            in_output = true;
        } else if line.starts_with("# ") || line.is_empty() && !in_output {
            writeln!(now, "{line}").unwrap();
            in_output = false;
        }
    }
    now
}

/// What differs from run to run, by what stands for it.
const REDACTIONS: &[(&str, &str)] = &[
    ("[NOW]", r"20(?:2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"),
    ("[SEGMENT]", r"every revision in (?<redacted>[\d,]+) bytes"),
    ("[CHECKSUM]", r"checksum: expected (?<redacted>\d+, found \d+)"),
    ("[JOURNAL]", r"beside the (?<redacted>[\d,]+) bytes"),
    ("[DISK]", r#""disk_bytes":(?<redacted>\d+)"#),
    ("[BYTES]", r"[Z\]], (?<redacted>[\d,]+) bytes, of which"),
    ("[COPIED]", r"of which (?<redacted>[\d,]+) were copied"),
    ("[CHECKSUM]", r"segments/\d{8}-(?<redacted>\d+-[0-9a-f]{8})\.segment"),
    ("[ID]", r"\b[0-9a-f]{32}\b"),
    ("[ID]", r#""token":"c\d+\.\d+\.(?<redacted>[0-9a-f]{8})"#),
    ("[DISK]", r"with the journal +(?<redacted>[\d,]+)"),
    // How well ids and times compress differs.
    ("[SIZE]", r"segments? of (?<redacted>[\d.]+ [KM]?i?B) became"),
    ("[SIZE]", r"became \d+ of (?<redacted>[\d.]+ [KM]?i?B)"),
    ("[SIZE]", r#""segment_bytes(?:_before)?":(?<redacted>\d+)"#),
];

fn assert() -> Assert {
    let mut redactions = Redactions::new();
    for (placeholder, pattern) in REDACTIONS {
        redactions.insert(placeholder, regex::Regex::new(pattern).unwrap()).unwrap();
    }
    Assert::new().action_env("SNAPSHOTS").normalize_paths(false).redact_with(redactions)
}

/// Replays the session of this name.
fn check(name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/it/transcripts/{name}.console"));
    let recorded = std::fs::read_to_string(&path).unwrap();
    let expected = Data::read_from(&path, Some(DataFormat::Text));
    let folder = tempfile::tempdir().unwrap();
    assert().eq(replay(&recorded, folder.path()), expected);
}

/// One test for each session, and one that sees a session that is not listed.
macro_rules! sessions {
    ($($name:ident)*) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_session_is_listed() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/transcripts");
            for file in std::fs::read_dir(folder).unwrap() {
                let name = file.unwrap().path().file_stem().unwrap().to_owned();
                let listed: &[&str] = &[$(stringify!($name)),*];
                assert!(listed.contains(&name.to_str().unwrap()), "{name:?} is not listed");
            }
        }
    };
}

sessions!(
    backup bulk check_and_stat demo diff dump dump_series editing_help edits export get help
    history import import_types import_wrong indexes init keys lifecycle lifecycle_help log
    long_values meant pages purge put reading reading_help records records_query repair retention
    series series_help series_retain series_wrong set_and_remove shell show sql watch wrong
);

#[test]
fn readme_shows_what_its_commands_print() {
    const BEGIN: &str = "```console\n";
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = project.join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let copied = folder.path().join("examples/data");
    std::fs::create_dir_all(&copied).unwrap();
    for file in ["weather.csv", "hourly.csv", "earthquakes.json", "flights-20k.json"] {
        std::fs::copy(project.join("examples/data").join(file), copied.join(file)).unwrap();
    }
    let mut parts = readme.split(BEGIN);
    let mut now = parts.next().unwrap().to_owned();
    for part in parts {
        let (session, after) = part.split_once("```").unwrap();
        write!(now, "{BEGIN}{}```{after}", replay(session, folder.path())).unwrap();
    }
    assert().eq(now, Data::read_from(&path, Some(DataFormat::Text)));
}
