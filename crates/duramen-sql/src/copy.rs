//! `COPY`: an answer into a file, and the records of a file into a collection.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use duramen::{
    BulkOptions, BulkProgress, CollectionSnapshot, Commit, CommitOptions, Error, ErrorKind, Key,
    KeyKind, Result, ScanOptions,
};

use crate::allowance::Allowance;
use crate::answer::Answer;
use crate::change::{KEY, OF_ENGINE, Staged, collection_name, quoted, unsupported};
use crate::failure;
use crate::format::Format;
use crate::no_text::NoText;
use crate::outfile::replace_file;
use crate::record_file::RecordFile;
use crate::record_json::string;
use crate::record_line::write_record;
use crate::record_load::RecordLoad;
use crate::session::Session;
use crate::statement::Places;
use crate::system_time::{Period, TableName};

/// Bytes of a file that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Rows after which it is told how far a copy is.
const ROWS_TOLD: usize = 1_024;

/// What is copied, and where.
#[derive(Debug)]
pub(crate) struct Copy {
    subject: Subject,
    pub(crate) direction: Direction,
    file: PathBuf,
    format: Option<String>,
    /// The field of the file that has the key.
    key: Option<String>,
}

#[derive(Debug)]
enum Subject {
    Query(String),
    Table(ObjectName, Vec<Ident>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    To,
    From,
}

/// How far a `COPY ... FROM` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CopyProgress {
    /// Bytes of the file that were read; 0 of Parquet, which is not read in order.
    pub bytes: u64,
    /// Bytes of the file; none of Parquet, and if it has no length.
    pub bytes_all: Option<u64>,
    /// Records that were taken.
    pub records: u64,
}

/// A file, and how much of it was read.
struct Metered {
    file: File,
    read: Arc<AtomicU64>,
}

type Parsed<T> = std::result::Result<T, ParserError>;

/// Reads a `COPY`, if a text is one.
pub(crate) fn parse(parser: &mut Parser<'_>) -> Parsed<Option<Copy>> {
    if !parser.parse_keyword(Keyword::COPY) {
        return Ok(None);
    }
    let subject = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query()?;
        parser.expect_token(&Token::RParen)?;
        Subject::Query(query.to_string())
    } else {
        let table = parser.parse_object_name(false)?;
        let columns = if parser.consume_token(&Token::LParen) {
            let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::RParen)?;
            columns
        } else {
            Vec::new()
        };
        Subject::Table(table, columns)
    };
    let direction = match parser.expect_one_of_keywords(&[Keyword::TO, Keyword::FROM])? {
        Keyword::TO => Direction::To,
        _ => Direction::From,
    };
    let file = PathBuf::from(parser.parse_literal_string()?);
    let (format, key) = options(parser)?;
    let _ = parser.consume_token(&Token::SemiColon);
    parser.expect_token(&Token::EOF)?;
    Ok(Some(Copy { subject, direction, file, format, key }))
}

/// `STORED AS` a format, or a format and the field of the key in brackets.
fn options(parser: &mut Parser<'_>) -> Parsed<(Option<String>, Option<String>)> {
    let (mut format, mut key) = (None, None);
    if parser.parse_keyword(Keyword::STORED) {
        parser.expect_keyword(Keyword::AS)?;
        format = Some(parser.parse_identifier()?.value.to_lowercase());
    }
    let has_with = parser.parse_keyword(Keyword::WITH);
    if !parser.consume_token(&Token::LParen) {
        return if has_with {
            parser.expected("(", parser.peek_token())
        } else {
            Ok((format, key))
        };
    }
    loop {
        match parser.expect_one_of_keywords(&[Keyword::FORMAT, Keyword::KEY, Keyword::HEADER])? {
            Keyword::FORMAT => format = Some(parser.parse_identifier()?.value.to_lowercase()),
            // The first line of a CSV always has the names.
            Keyword::HEADER => {
                let is_next = matches!(parser.peek_token().token, Token::Comma | Token::RParen);
                if !is_next {
                    parser.expect_keyword(Keyword::TRUE)?;
                }
            }
            _ => key = Some(parser.parse_identifier()?.value),
        }
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok((format, key))
}

impl Copy {
    /// The format that is given, or that the name of the file ends with.
    fn format(&self) -> Result<Format> {
        let end = || self.file.extension().and_then(|end| end.to_str()).map(str::to_lowercase);
        let name = self.format.clone().or_else(end).unwrap_or_default();
        match name.as_str() {
            "parquet" => Ok(Format::Parquet),
            "csv" => Ok(Format::Csv),
            "ndjson" | "jsonl" => Ok(Format::Ndjson),
            "json" if self.direction == Direction::To => Ok(Format::Json),
            "arrow" if self.direction == Direction::To => Ok(Format::Arrow),
            _ => {
                let message = format!(
                    "{}: it is not clear how the file is written: STORED AS PARQUET, CSV or NDJSON \
                     says so",
                    self.file.display()
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
        }
    }

    /// The records of the file, of which is counted how much was read.
    fn records(&self, read: &Arc<AtomicU64>) -> Result<RecordFile> {
        let format = self.format()?;
        let (file, no_text) = open(&self.file)?;
        if let Some(found) = no_text
            && (format, found) != (Format::Parquet, NoText::Parquet)
        {
            let name = self.file.display().to_string();
            let message = format!("it {}", found.advice(&name));
            return Err(Error::new(ErrorKind::Invalid, message).in_context(name));
        }
        let key = self.key.as_deref().unwrap_or(KEY);
        let lines = |file| {
            let metered = Metered { file, read: Arc::clone(read) };
            Box::new(BufReader::with_capacity(READ_BYTES, metered))
        };
        let records = match format {
            Format::Csv => RecordFile::csv(lines(file), key),
            Format::Parquet => RecordFile::parquet(file, key),
            _ => Ok(RecordFile::ndjson(lines(file), key)),
        };
        records.map_err(|error| error.in_context(self.file.display()))
    }

    /// Bytes of the file; none if it has no length.
    fn bytes(&self) -> Option<u64> {
        let metadata = fs::metadata(&self.file).ok();
        metadata.filter(fs::Metadata::is_file).map(|metadata| metadata.len())
    }

    /// Bytes of the file, if it is read from front to end.
    fn bytes_all(&self) -> Result<Option<u64>> {
        Ok(if self.format()? == Format::Parquet { None } else { self.bytes() })
    }
}

/// Tells how far the copy of a file is.
struct Meter<'s> {
    session: &'s Session,
    read: Arc<AtomicU64>,
    bytes_all: Option<u64>,
}

impl Meter<'_> {
    fn tell(&self, records: u64) {
        if let Some(tell) = &self.session.tell {
            let bytes = self.read.load(Ordering::Relaxed);
            tell(CopyProgress { bytes, bytes_all: self.bytes_all, records });
        }
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

impl Session {
    /// Copies, and says how many rows they were.
    pub(crate) fn copy(&self, copy: &Copy, places: &Places) -> Result<Answer<'_>> {
        match copy.direction {
            Direction::To => self.copy_to(copy, places),
            Direction::From => self.copy_from(copy, places),
        }
    }

    fn copy_to(&self, copy: &Copy, places: &Places) -> Result<Answer<'_>> {
        if copy.key.is_some() {
            return Err(unsupported("KEY in COPY TO: it names a field of a file that is read"));
        }
        if let Some(records) = self.whole_records(copy, places)? {
            let allowance = places.allowance.of_part();
            let rows = replace_file(&copy.file, |out| write_lines(&records, out, &allowance))?;
            return Self::counted(rows, None);
        }
        let query = match &copy.subject {
            Subject::Query(query) => query.clone(),
            Subject::Table(table, columns) if columns.is_empty() => {
                // Those of the engine would become fields when the file is read again.
                let name = collection_name(table);
                let is_collection = name.is_ok_and(|name| self.db().collection(&name).is_ok());
                let except = if is_collection { OF_ENGINE.as_slice() } else { &[] };
                match except {
                    [] => format!("SELECT * FROM {table}"),
                    except => format!("SELECT * EXCEPT ({}) FROM {table}", except.join(", ")),
                }
            }
            Subject::Table(table, columns) => {
                let columns: Vec<String> = columns.iter().map(|name| quoted(&name.value)).collect();
                format!("SELECT {} FROM {table}", columns.join(", "))
            }
        };
        let (format, answer) =
            (copy.format()?, self.read_with(&query, places, self.tables(places))?);
        let rows = replace_file(&copy.file, |out| answer.write_counted(format, out))?;
        Self::counted(rows, None)
    }

    /// The records of the collection that is copied, if NDJSON takes them as they are: a table has
    /// NULL for what is missing, and one type for a column.
    fn whole_records(&self, copy: &Copy, places: &Places) -> Result<Option<CollectionSnapshot>> {
        let (Subject::Table(table, columns), Format::Ndjson) = (&copy.subject, copy.format()?)
        else {
            return Ok(None);
        };
        let Ok(name) = collection_name(table) else { return Ok(None) };
        let TableName { name: collection, period } = TableName::of(&name);
        let is_state = matches!(period, None | Some(Period::AsOf(_)));
        if !columns.is_empty() || !is_state || self.db().collection(collection).is_err() {
            return Ok(None);
        }
        self.tables(places).records(&name).map(Some)
    }

    fn copy_from(&self, copy: &Copy, places: &Places) -> Result<Answer<'_>> {
        let table = match &copy.subject {
            Subject::Table(table, columns) if columns.is_empty() => table,
            _ => return Err(unsupported("COPY FROM into anything but a collection as a whole")),
        };
        let target = self.target_to_fill(table, places)?;
        let in_file = |error: Error| error.in_context(copy.file.display());
        let meter = Meter { session: self, read: Arc::default(), bytes_all: copy.bytes_all()? };
        let (name, keys) = (target.collection.name(), target.collection.key_kind());
        let allowance = places.allowance.of_part();
        let definition = target.definition.as_deref();
        // A load looks at no values.
        if definition.is_none()
            && let Some((commit, rows)) =
                self.load(copy, (name, keys), (&allowance, &meter)).map_err(in_file)?
        {
            return Self::counted(rows, Some(commit.revision));
        }
        meter.read.store(0, Ordering::Relaxed);
        let mut records = copy.records(&meter.read)?;
        let is_csv = copy.format()? == Format::Csv;
        let mut transaction = self.db().transaction();
        let mut staged = Staged::new(self, places);
        let mut json = Vec::new();
        while let Some((key, line)) = records.next(keys, &mut json).map_err(in_file)? {
            let in_line = |error: Error| in_file(records.places().in_line(line, &error));
            if let Some(definition) = definition {
                json = definition.record(&json, is_csv).map_err(in_line)?;
            }
            transaction.insert_record(name, &key, &json).map_err(in_line)?;
            staged.add(&transaction, 1, json.len())?;
            json.clear();
            allowance.check()?;
            if staged.rows.is_multiple_of(ROWS_TOLD) {
                meter.tell(staged.rows as u64);
            }
        }
        let committed = transaction.commit(&CommitOptions::default())?;
        Self::counted(staged.rows, committed.revisions.first().map(|(_, revision)| *revision))
    }

    /// Loads a file in bulk: how many rows it had; none if they have to be inserted.
    fn load(
        &self,
        copy: &Copy,
        (name, keys): (&str, KeyKind),
        (allowance, meter): (&Allowance, &Meter<'_>),
    ) -> Result<Option<(Commit, usize)>> {
        let load = RecordLoad { name, keys, options: BulkOptions::default() };
        if !load.suits(self.db(), copy.bytes().unwrap_or(0))? {
            return Ok(None);
        }
        let mut go_on = |progress: BulkProgress| {
            meter.tell(progress.values);
            match allowance.check() {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        match load.run(self.db(), copy.records(&meter.read)?, &mut go_on) {
            Ok((commit, progress)) => {
                Ok(Some((commit, usize::try_from(progress.values).unwrap_or(usize::MAX))))
            }
            Err(error) => match error.kind() {
                ErrorKind::Conflict | ErrorKind::Unsupported => Ok(None),
                ErrorKind::Cancelled => allowance.check().map(|()| None),
                _ => Err(error),
            },
        }
    }
}

/// Writes records as lines, each with its key; how many they are.
fn write_lines(
    records: &CollectionSnapshot,
    out: &mut dyn Write,
    allowance: &Allowance,
) -> Result<usize> {
    let mut rows = 0;
    for record in records.scan(&ScanOptions::default())? {
        allowance.check()?;
        let record = record?;
        let key = match &record.key {
            Key::I64(_) | Key::U64(_) => record.key.to_string(),
            Key::Text(_) | Key::Uuid(_) => string(&record.key.to_string()),
        };
        write_record(out, &key, &record.json).map_err(failure::output)?;
        rows += 1;
    }
    Ok(rows)
}

/// A file, and what it is if it is no text.
#[expect(clippy::disallowed_methods, reason = "these are the user's files, not the engine's")]
fn open(path: &Path) -> Result<(File, Option<NoText>)> {
    let unread = |error| Error::io(format_args!("cannot read {}", path.display()), error);
    let mut file = File::open(path).map_err(unread)?;
    let no_text = NoText::of_file(&mut file).map_err(unread)?;
    Ok((file, no_text))
}
