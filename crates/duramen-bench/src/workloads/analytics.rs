//! A1 to A9: questions of SQL about the records of workload A, from text to rows.
//!
//! Literals vary from round to round. All subjects answer the same question in turn, and their
//! answers must agree.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use duramen::{
    BulkOptions, BulkProgress, CommitOptions, Database, Durability, JsonPointer, Key, KeyKind,
    Options,
};
use duramen_sql::{Format, SessionOptions};
use serde_json::Value;

use super::queries::People;
use crate::figures::Measure;
use crate::files;
use crate::random::SplitMix64;
use crate::rivals::{ANALYTICS, AnalyticsEngine};
use crate::sampling::{Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

/// Values as text, in an order that all engines share.
type Rows = Vec<Vec<String>>;

/// The ids, in the order of the questions.
const IDS: [&str; 9] = ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9"];
const COLLECTION: &str = "people";
const DOCUMENT: &str = "staff";
const EMPTY: &str = "nobody";
const BATCH: usize = 10_000;
/// Commits before which the records are as they were at the old revision, and what each changes.
const COMMITS: u64 = 1_000;
const CHANGED_SHARE: u64 = 100;
/// Records of which answers are known.
const MILLION: u64 = 1_000_000;
const FIRST_RUNS: usize = 5;
/// What a rival's figure is called where Duramen is measured against itself.
const HEAD: &str = "head";

/// Where the questions are asked.
#[derive(Debug, Clone, Copy)]
struct Table {
    /// As it stands after FROM.
    name: &'static str,
    /// What the case of a figure has behind its state.
    suffix: &'static str,
}

const TABLES: [Table; 2] =
    [Table { name: COLLECTION, suffix: "" }, Table { name: "staff.\"$[*]\"", suffix: "/array" }];

/// The subjects with all records; made once for the questions of a run.
pub(crate) struct Analytics {
    records: u64,
    rivals: Vec<AnalyticsEngine>,
    /// As loaded.
    loaded: Engine,
    /// After the commits, and the revisions of the two tables before them.
    changed: Engine,
    before: [u64; 2],
}

/// Runs one of A1 to A9, counted from 0.
pub(crate) fn run(session: &mut Session, question: usize) -> Result<()> {
    for records in session.scale.analytics.clone() {
        let mut subjects = match session.analytics.take() {
            Some(made) if made.records == records => made,
            _ => Analytics::make(session, records)?,
        };
        for table in TABLES {
            subjects.compare(session, question, table)?;
            subjects.first_runs(session, question, table)?;
        }
        subjects.old_revisions(session, question)?;
        subjects.dispatch(session, question)?;
        // The last question leaves no processes behind.
        session.analytics = (question + 1 < IDS.len()).then_some(subjects);
    }
    Ok(())
}

/// The text of a question about a table, with the literals of a round.
fn sql(question: usize, table: &str, round: usize) -> String {
    let vary = round % 10;
    let (select, rest) = match question {
        0 => ("count(*) AS n", format!("WHERE age > {} AND active", 40 - vary)),
        1 => ("dept, count(*) AS n", "GROUP BY dept".to_owned()),
        2 => ("sum(age) AS n", String::new()),
        3 => ("avg(age) AS n", String::new()),
        4 => ("min(age) AS low, max(age) AS high", String::new()),
        5 => ("dept, city, count(*) AS n", "GROUP BY dept, city".to_owned()),
        6 => ("dept, count(*) AS n", "WHERE active GROUP BY dept".to_owned()),
        7 => ("count(DISTINCT dept) AS n", String::new()),
        _ => {
            let (low, high) = (30 - vary, 50 + vary);
            ("count(*) AS n", format!("WHERE age > {low} AND age < {high} AND active"))
        }
    };
    format!("SELECT {select} FROM {table} {rest}").trim_end().to_owned()
}

/// The known answers at a million records, to the literals of round 0.
fn check_million(question: usize, rows: &Rows) -> Result<()> {
    let known: &[&str] = match question {
        0 => &["260459"],
        2 => &["41499993"],
        4 => &["18", "65"],
        7 => &["8"],
        8 => &["198293"],
        _ => return Ok(()),
    };
    ensure!(*rows == [known], "A{} finds {rows:?}, not {known:?}", question + 1);
    Ok(())
}

impl Analytics {
    fn make(session: &mut Session, records: u64) -> Result<Self> {
        let people = People::new(records);
        let folder = session.new_folder("analytics");
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("people.ndjson");
        files::write(&file, people.lines().as_bytes())?;
        let arguments = session.arguments();
        let rivals = AnalyticsEngine::start_wanted(arguments, &ANALYTICS, &|name| {
            AnalyticsEngine::start(name, &file)
        })?;
        let mut engines = Vec::new();
        for _ in 0..2 {
            engines.push(Engine::load(session.new_folder(DURAMEN), &people)?);
        }
        let [loaded, mut changed] = engines.try_into().ok().context("two were made")?;
        let before = changed.change(records)?;
        Ok(Self { records, rivals, loaded, changed, before })
    }

    fn case(&self, state: &str, table: Table) -> String {
        format!("{}/{state}{}", self.records, table.suffix)
    }

    /// All subjects, warm.
    fn compare(&mut self, session: &mut Session, question: usize, table: Table) -> Result<()> {
        let case = self.case("warm", table);
        let mut subjects: Vec<_> = self.rivals.iter_mut().map(Subject::Rival).collect();
        subjects.push(Subject::Duramen(&self.loaded, table));
        // By the text of the question.
        let mut known: HashMap<String, Rows> = HashMap::new();
        let samples = interleave(&mut subjects, rounds(session), |subject, round| {
            let (micros, rows) = subject.ask(question, round.number)?;
            let others = known.entry(sql(question, COLLECTION, round.number));
            let others = others.or_insert_with(|| rows.clone());
            let name = subject.name();
            ensure!(*others == rows, "{name} finds {rows:?} for A{}: {others:?}", question + 1);
            Ok(micros)
        })?;
        if self.records == MILLION
            && let Some(rows) = known.get(&sql(question, COLLECTION, 0))
        {
            check_million(question, rows)?;
        }
        let named: Vec<_> = subjects.iter().map(Subject::name).zip(samples).collect();
        session.figures.add(&Measure::cost(IDS[question], "time", "us").case(case), &named);
        Ok(())
    }

    /// The first query of a database that was just opened.
    fn first_runs(&mut self, session: &mut Session, question: usize, table: Table) -> Result<()> {
        let mut times = Vec::new();
        for round in 0..FIRST_RUNS {
            self.loaded.reopen()?;
            times.push(self.loaded.ask(&sql(question, table.name, round))?.0);
        }
        let measure = Measure::cost(IDS[question], "time", "us").case(self.case("first", table));
        session.figures.add(&measure, &[(DURAMEN, times)]);
        Ok(())
    }

    /// As of before the commits, beside what is newest.
    fn old_revisions(&mut self, session: &mut Session, question: usize) -> Result<()> {
        for (table, before) in TABLES.into_iter().zip(self.before) {
            let old = format!("{} FOR SYSTEM_TIME AS OF {before}", table.name);
            let mut tables = [(DURAMEN, old.as_str()), (HEAD, table.name)];
            let samples = interleave(&mut tables, rounds(session), |(subject, name), round| {
                let (micros, rows) = self.changed.ask(&sql(question, name, round.number))?;
                if *subject == DURAMEN {
                    let was = self.loaded.ask(&sql(question, table.name, round.number))?.1;
                    ensure!(rows == was, "A{} at {before} is another answer", question + 1);
                }
                Ok(micros)
            })?;
            let named: Vec<_> = tables.iter().map(|(subject, _)| *subject).zip(samples).collect();
            let measure = Measure::cost(IDS[question], "time", "us");
            session.figures.add(&measure.case(self.case("old_revision", table)), &named);
        }
        Ok(())
    }

    /// The same of a table without records: planning and dispatch alone.
    fn dispatch(&mut self, session: &mut Session, question: usize) -> Result<()> {
        let mut subjects = [&self.loaded];
        let samples = interleave(&mut subjects, rounds(session), |engine, round| {
            Ok(engine.ask(&sql(question, EMPTY, round.number))?.0)
        })?;
        let measure = Measure::cost(IDS[question], "time", "us").case("0/warm");
        session
            .figures
            .add(&measure, &samples.into_iter().map(|one| (DURAMEN, one)).collect::<Vec<_>>());
        Ok(())
    }
}

fn rounds(session: &Session) -> Rounds {
    let measured = session.scale.questions.max(session.scale.rounds.measured);
    Rounds { warmups: session.scale.rounds.warmups, measured }
}

/// Who is asked.
enum Subject<'e> {
    Rival(&'e mut AnalyticsEngine),
    Duramen(&'e Engine, Table),
}

impl Subject<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Rival(engine) => engine.name(),
            Self::Duramen(..) => DURAMEN,
        }
    }

    fn ask(&mut self, question: usize, round: usize) -> Result<(f64, Rows)> {
        match self {
            Self::Rival(engine) => {
                let answer = engine.query(&sql(question, COLLECTION, round))?;
                Ok((answer.micros, canonical(answer.rows)))
            }
            Self::Duramen(engine, table) => engine.ask(&sql(question, table.name, round)),
        }
    }
}

/// A database with the records, as a collection and as an array, and a session of SQL.
struct Engine {
    folder: PathBuf,
    open: Option<(Database, duramen_sql::Session)>,
}

impl Engine {
    fn load(folder: PathBuf, people: &People) -> Result<Self> {
        let durability = Durability::Interval(1_000);
        let database = Database::open(&folder, Options { durability, ..Options::default() })?;
        let mut array = people.json.as_bytes();
        let go_on = &mut |_: BulkProgress| std::ops::ControlFlow::Continue(());
        database.bulk_load(DOCUMENT, &mut array, &BulkOptions::default(), go_on)?;
        let collection = database.create_collection(COLLECTION, KeyKind::U64)?;
        let lines = people.lines();
        let mut records = (0_u64..).zip(lines.lines()).peekable();
        while records.peek().is_some() {
            collection.put_many(records.by_ref().take(BATCH), &CommitOptions::default())?;
        }
        let nobody = database.create_collection(EMPTY, KeyKind::U64)?;
        if let Some(line) = lines.lines().next() {
            nobody.put(0, line, &CommitOptions::default())?;
            nobody.delete(0, &CommitOptions::default())?;
        }
        database.checkpoint()?;
        drop((collection, nobody));
        database.close()?;
        let mut engine = Self { folder, open: None };
        engine.reopen()?;
        Ok(engine)
    }

    fn reopen(&mut self) -> Result<()> {
        if let Some((database, session)) = self.open.take() {
            drop(session);
            database.close()?;
        }
        let database = Database::open(&self.folder, Options::default())?;
        let session = duramen_sql::Session::new(database.clone(), SessionOptions::default());
        self.open = Some((database, session));
        Ok(())
    }

    /// Makes the commits; returns the revisions of the two tables before them.
    fn change(&mut self, records: u64) -> Result<[u64; 2]> {
        let (database, _) = self.open.as_ref().context("the database is open")?;
        let before = [COLLECTION, DOCUMENT].map(|name| database.document(name)?.head_revision());
        let mut random = SplitMix64::new(42);
        let options = CommitOptions {
            durability: Some(Durability::Interval(1_000)),
            ..CommitOptions::default()
        };
        for _ in 0..COMMITS {
            let mut transaction = database.transaction();
            for _ in 0..(records / CHANGED_SHARE / COMMITS).max(1) {
                let (id, age) = (random.below(records), 18 + random.below(48));
                let patch = format!("{{\"age\":{age}}}");
                transaction.merge_patch_record(COLLECTION, &Key::from(id), patch.as_bytes())?;
                let place = JsonPointer::parse(&format!("/{id}/age"))?;
                transaction.set(DOCUMENT, &place, age.to_string().as_bytes())?;
            }
            transaction.commit(&options)?;
        }
        let [collection, document] = before;
        Ok([collection?.0, document?.0])
    }

    /// Answers a query; the microseconds from its text to the text of all rows.
    fn ask(&self, sql: &str) -> Result<(f64, Rows)> {
        let (_, session) = self.open.as_ref().context("the database is open")?;
        let mut text = Vec::new();
        let watch = Stopwatch::start();
        session.query(sql)?.write(Format::Ndjson, &mut text)?;
        let micros = watch.micros();
        let objects = serde_json::Deserializer::from_slice(&text).into_iter();
        let rows = objects.map(|object: serde_json::Result<serde_json::Map<_, _>>| {
            Ok(object?.into_iter().map(|(_, value)| value).collect())
        });
        Ok((micros, canonical(rows.collect::<Result<_>>()?)))
    }
}

/// Rows in one order, and the values of each too: engines have their own.
fn canonical(rows: Vec<Vec<Value>>) -> Rows {
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |number| format!("{number:.6}"))
        }
        other => other.to_string(),
    };
    let row = |values: Vec<Value>| {
        let mut values: Vec<String> = values.into_iter().map(text).collect();
        values.sort_unstable();
        values
    };
    let mut rows: Vec<_> = rows.into_iter().map(row).collect();
    rows.sort_unstable();
    rows
}
