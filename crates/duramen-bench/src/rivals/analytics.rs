//! Engines for analytics from the Python package index, each in a process of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::arguments::{Arguments, cache_folder};

/// The engines that `scripts/analytics-rivals.py` knows.
pub(crate) const ANALYTICS: [&str; 4] = ["duckdb", "polars", "chdb", "datafusion"];

/// The engines that `scripts/series-rivals.py` knows.
pub(crate) const SERIES_RIVALS: [&str; 2] = ["duckdb", "chdb"];

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
        Self::run(name, (SCRIPT, records), records.parent().unwrap_or(records))
    }

    /// Starts an engine that keeps points in a folder; `None` if the engines are not installed.
    pub(crate) fn start_series(name: &'static str, folder: &Path) -> Result<Option<Self>> {
        Self::run(name, (SERIES_SCRIPT, folder), folder)
    }

    fn run(
        name: &'static str,
        (script, of): (&str, &Path),
        temporary: &Path,
    ) -> Result<Option<Self>> {
        let Some(python) = python() else { return Ok(None) };
        let mut process = Command::new(python)
            .args(["-c", script, name])
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
        Ok(Some(engine))
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

/// The interpreter that has the engines.
fn python() -> Option<PathBuf> {
    let python = cache_folder("analytics").join("bin/python");
    python.exists().then_some(python)
}
