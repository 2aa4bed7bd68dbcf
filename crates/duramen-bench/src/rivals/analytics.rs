//! Engines for analytics and of series, each in a process of its own: those of the Python package
//! index, and Prometheus.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::arguments::{Arguments, cache_folder};

/// The engines that `scripts/analytics-rivals.py` knows.
pub(crate) const ANALYTICS: [&str; 4] = ["duckdb", "polars", "chdb", "datafusion"];

/// Those that keep points: `scripts/series-rivals.py` knows the first two, and
/// `scripts/series-rival` is made of the last one.
pub(crate) const SERIES_RIVALS: [&str; 3] = ["duckdb", "chdb", PROMETHEUS];
const PROMETHEUS: &str = "prometheus";

/// What answers their queries.
const SCRIPT: &str = include_str!("../../../../scripts/analytics-rivals.py");
/// What keeps points.
const SERIES_SCRIPT: &str = include_str!("../../../../scripts/series-rivals.py");

/// An engine with one table, `people` or that of points; it ends when dropped.
#[derive(Debug)]
pub(crate) struct AnalyticsEngine {
    name: &'static str,
    version: String,
    process: Child,
    queries: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// An answer, and how long it took inside of the engine's process.
#[derive(Debug, Deserialize)]
pub(crate) struct TimedRows {
    /// From the text of the query to all of its rows.
    pub(crate) micros: f64,
    /// A list of values each.
    pub(crate) rows: Vec<Vec<serde_json::Value>>,
}

impl AnalyticsEngine {
    /// For the line that says they are skipped.
    const HOW_TO_GET: &str = "`scripts/setup.sh --bench` installs them";

    /// Starts those engines that take part and are installed.
    pub(crate) fn start_wanted(
        arguments: &Arguments,
        names: &[&'static str],
        start: &dyn Fn(&'static str) -> Result<Option<Self>>,
    ) -> Result<Vec<Self>> {
        let mut rivals = Vec::new();
        for name in names.iter().copied().filter(|name| arguments.wants(name)) {
            let how = Self::HOW_TO_GET;
            match start(name)? {
                Some(engine) => rivals.push(engine),
                None if arguments.require_rivals => bail!("{name} is not installed: {how}"),
                None => eprintln!("{name} is skipped, as it is not installed: {how}"),
            }
        }
        Ok(rivals)
    }

    /// Starts an engine with the records of a file, an object a line; `None` if the engines are
    /// not installed.
    pub(crate) fn start(name: &'static str, records: &Path) -> Result<Option<Self>> {
        // What it makes goes with the records.
        let temporary = records.parent().unwrap_or(records);
        script(name, SCRIPT)
            .map(|command| Self::run(name, command, (records, temporary)))
            .transpose()
    }

    /// Starts an engine that keeps points in a folder; `None` if it is not installed.
    pub(crate) fn start_series(name: &'static str, folder: &Path) -> Result<Option<Self>> {
        let command = match name {
            PROMETHEUS => installed("prometheus/series-rival").map(Command::new),
            name => script(name, SERIES_SCRIPT),
        };
        command.map(|command| Self::run(name, command, (folder, folder))).transpose()
    }

    fn run(
        name: &'static str,
        mut command: Command,
        (of, temporary): (&Path, &Path),
    ) -> Result<Self> {
        let mut process = command
            .arg(of)
            .env("TMPDIR", temporary)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (queries, answers) = (process.stdin.take(), process.stdout.take());
        let queries = queries.context("the process has an input")?;
        let answers = BufReader::new(answers.context("the process has an output")?);
        let mut engine = Self { name, version: String::new(), process, queries, answers };
        engine.version = engine.line()?;
        ensure!(engine.version.starts_with(name), "{name} says {:?}", engine.version);
        Ok(engine)
    }

    /// Its name in the tables.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Answers a query, or a line of what points are asked for.
    pub(crate) fn query(&mut self, sql: &str) -> Result<TimedRows> {
        writeln!(self.queries, "{sql}")?;
        self.queries.flush()?;
        let line = self.line()?;
        serde_json::from_str(&line).with_context(|| format!("{} answers {line:?}", self.name))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("{} has ended: {}", self.name, self.process.wait()?);
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for AnalyticsEngine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A script for the interpreter that has the engines.
fn script(name: &str, text: &str) -> Option<Command> {
    let mut command = Command::new(installed("analytics/bin/python")?);
    command.args(["-c", text, name]);
    Some(command)
}

/// What `scripts/setup.sh --bench` has put into the cache.
fn installed(path: &str) -> Option<PathBuf> {
    let (folder, name) = path.split_once('/')?;
    let program = cache_folder(folder).join(name);
    program.exists().then_some(program)
}
