//! J1: JSONPath filters over the records of workload A, kept as one array.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use duramen::{CommitOptions, Database, Document, JsonPath, Options};
use rusqlite::Connection;

use crate::figures::Measure;
use crate::random::JavaRandom;
use crate::rivals::SQLITE;
use crate::sampling::interleave;
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const NAME: &str = "people";
/// An array parsed by `serde_json`.
const PARSED: &str = "parsed";
const SEED: u64 = 42;
const DEPARTMENTS: [&str; 8] = ["Eng", "Sales", "Mkt", "Ops", "HR", "Finance", "Legal", "Supp"];
const CITIES: [&str; 8] = ["NYC", "LA", "SF", "ATL", "BOS", "CHI", "DEN", "DAL"];
/// The known answer of two fields at 1,000,000 records.
const MILLION: (u64, u64) = (1_000_000, 260_459);

/// Runs J1.
pub(crate) fn filters(session: &mut Session) -> Result<()> {
    let people = People::new(session.scale.records);
    if people.records == MILLION.0 {
        ensure!(people.both == MILLION.1, "the records are not those of the workload");
    }
    let mut subjects = Vec::new();
    if session.arguments().wants(DURAMEN) {
        subjects.push(Subject::duramen(session.new_folder(DURAMEN), &people.json)?);
    }
    if session.arguments().wants(SQLITE) {
        subjects.push(Subject::sqlite(&session.new_folder(SQLITE), &people.json)?);
    }
    if session.arguments().wants(PARSED) {
        subjects.push(Subject::Parsed(serde_json::from_str(&people.json)?));
    }
    for (question, name) in [(Question::Age, "one field"), (Question::Both, "two fields")] {
        for (reopen, state) in [(false, "warm"), (true, "opened")] {
            run(session, &mut subjects, (&people, question, reopen), &format!("{name}/{state}"))?;
        }
    }
    Ok(())
}

fn run(
    session: &mut Session,
    subjects: &mut [Subject],
    (people, question, reopen): (&People, Question, bool),
    case: &str,
) -> Result<()> {
    let samples = interleave(subjects, session.scale.rounds, |subject, _| {
        if reopen {
            subject.reopen()?;
        }
        let watch = Stopwatch::start();
        let count = subject.count(question)?;
        let micros = watch.micros();
        let expected = people.answer(question);
        ensure!(count == expected, "{} counts {count}, not {expected}", subject.name());
        Ok(micros / 1e3)
    })?;
    let measure = Measure::cost("J1", "time", "ms").case(format!("{}/{case}", people.records));
    let named: Vec<_> = subjects.iter().map(Subject::name).zip(samples).collect();
    session.figures.add(&measure, &named);
    Ok(())
}

/// What is counted.
#[derive(Debug, Clone, Copy)]
enum Question {
    /// Those over 40.
    Age,
    /// The active ones of these.
    Both,
}

impl Question {
    fn json_path(self) -> &'static str {
        match self {
            Self::Age => "$[?@.age > 40]",
            Self::Both => "$[?@.age > 40 && @.active == true]",
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Age => "SELECT count(*) FROM people WHERE json_extract(record, '$.age') > 40",
            Self::Both => {
                "SELECT count(*) FROM people WHERE json_extract(record, '$.age') > 40 \
                 AND json_extract(record, '$.active') = 1"
            }
        }
    }
}

/// The records and what is known of them.
pub(super) struct People {
    records: u64,
    pub(super) json: String,
    over_40: u64,
    both: u64,
}

impl People {
    pub(super) fn new(records: u64) -> Self {
        let mut random = JavaRandom::new(SEED);
        let mut people = Self { records, json: "[".to_owned(), over_40: 0, both: 0 };
        for id in 0..records {
            let age = 18 + random.below(48);
            let department = pick(&DEPARTMENTS, &mut random);
            let city = pick(&CITIES, &mut random);
            let active = random.boolean();
            people.over_40 += u64::from(age > 40);
            people.both += u64::from(age > 40 && active);
            let comma = if id == 0 { "" } else { "," };
            // Writing into text cannot fail.
            let _ = write!(
                people.json,
                "{comma}{{\"id\":{id},\"age\":{age},\"dept\":\"{department}\",\
                 \"city\":\"{city}\",\"active\":{active}}}"
            );
        }
        people.json.push(']');
        people
    }

    /// One a line.
    pub(super) fn lines(&self) -> String {
        self.json.trim_matches(['[', ']']).replace("},{", "}\n{")
    }

    fn answer(&self, question: Question) -> u64 {
        match question {
            Question::Age => self.over_40,
            Question::Both => self.both,
        }
    }
}

fn pick(names: &[&'static str; 8], random: &mut JavaRandom) -> &'static str {
    usize::try_from(random.below(8)).ok().and_then(|index| names.get(index)).unwrap_or(&"")
}

/// Who counts.
enum Subject {
    Duramen {
        folder: PathBuf,
        open: Option<(Database, Document)>,
    },
    /// A row for each record, with its JSON text.
    Sqlite {
        file: PathBuf,
        open: Option<Connection>,
    },
    /// The whole array as values in memory, walked over: nothing to open.
    Parsed(serde_json::Value),
}

impl Subject {
    fn duramen(folder: PathBuf, json: &str) -> Result<Self> {
        let database = Database::open(&folder, Options::default())?;
        database.create_document(NAME)?.put(json, &CommitOptions::default())?;
        database.checkpoint()?;
        database.close()?;
        let mut subject = Self::Duramen { folder, open: None };
        subject.reopen()?;
        Ok(subject)
    }

    fn sqlite(folder: &Path, json: &str) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join("people.sqlite");
        let connection = Connection::open(&file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE people (id INTEGER PRIMARY KEY, record TEXT)",
        )?;
        connection
            .execute("INSERT INTO people (record) SELECT value FROM json_each(?1)", [json])?;
        Ok(Self::Sqlite { file, open: Some(connection) })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Duramen { .. } => DURAMEN,
            Self::Sqlite { .. } => SQLITE,
            Self::Parsed(_) => PARSED,
        }
    }

    fn reopen(&mut self) -> Result<()> {
        match self {
            Self::Duramen { folder, open } => {
                if let Some((database, document)) = open.take() {
                    drop(document);
                    database.close()?;
                }
                let database = Database::open(folder, Options::default())?;
                let document = database.document(NAME)?;
                *open = Some((database, document));
            }
            Self::Sqlite { file, open } => {
                drop(open.take());
                *open = Some(Connection::open(file)?);
            }
            Self::Parsed(_) => {}
        }
        Ok(())
    }

    fn count(&self, question: Question) -> Result<u64> {
        match self {
            Self::Duramen { open, .. } => {
                let (_, document) = open.as_ref().context("an open database")?;
                let matches = document.head()?.query(&JsonPath::parse(question.json_path())?)?;
                let mut count = 0;
                for found in matches {
                    found?;
                    count += 1;
                }
                Ok(count)
            }
            Self::Sqlite { open, .. } => {
                let connection = open.as_ref().context("an open database")?;
                let count: i64 = connection.query_row(question.sql(), [], |row| row.get(0))?;
                Ok(u64::try_from(count)?)
            }
            Self::Parsed(value) => Ok(count(value, question)),
        }
    }
}

fn count(people: &serde_json::Value, question: Question) -> u64 {
    let is_meant = |record: &&serde_json::Value| {
        let is_over = record["age"].as_i64().is_some_and(|age| age > 40);
        is_over && (matches!(question, Question::Age) || record["active"] == true)
    };
    people.as_array().map_or(0, |records| records.iter().filter(is_meant).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_counts_the_same() {
        let people = People::new(1_000);
        let folder = tempfile::tempdir().unwrap();
        let subjects = [
            Subject::duramen(folder.path().join(DURAMEN), &people.json).unwrap(),
            Subject::sqlite(&folder.path().join(SQLITE), &people.json).unwrap(),
            Subject::Parsed(serde_json::from_str(&people.json).unwrap()),
        ];
        for question in [Question::Age, Question::Both] {
            for subject in &subjects {
                assert_eq!(subject.count(question).unwrap(), people.answer(question));
            }
        }
    }
}
