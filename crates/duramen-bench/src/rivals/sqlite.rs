//! `SQLite` with a JSON text column and a history table that a trigger fills, in WAL mode.
//!
//! With one document its revision is the history's row id, the fastest way `SQLite` has to a row;
//! with many, reads go through the index on document and time.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::Trees;
use crate::files::{self, Space};
use crate::sampling::Latencies;
use crate::stopwatch::unix_micros;
use crate::subject::{
    At, Difference, Durability, Entry, FieldChange, Journal, Rendering, Stage, Step, Target,
    VersionedStore,
};

/// The subject's name.
pub(crate) const SQLITE: &str = "sqlite";

const FILE: &str = "bench.sqlite";
const WAIT_FOR_WRITER: Duration = Duration::from_mins(1);

const SCHEMA: &str = "
CREATE TABLE doc (id INTEGER PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE doc_history (
    rev INTEGER PRIMARY KEY, id INTEGER NOT NULL, valid_from INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE TRIGGER keep_insert AFTER INSERT ON doc BEGIN
    INSERT INTO doc_history (id, valid_from, doc) VALUES (new.id, now_us(), new.doc);
END;
CREATE TRIGGER keep_update AFTER UPDATE ON doc BEGIN
    INSERT INTO doc_history (id, valid_from, doc) VALUES (new.id, now_us(), new.doc);
END;";

const READ_BY_REVISION: &str = "SELECT doc FROM doc_history WHERE rev = ?1";
const READ_BY_INSTANT: &str = "SELECT doc FROM doc_history WHERE id = ?1 AND valid_from <= ?2 \
                               ORDER BY valid_from DESC LIMIT 1";

const RUNS: &str = "
SELECT value FROM (
    SELECT rev, json_extract(doc, ?1) AS value,
           lag(json_extract(doc, ?1)) OVER (ORDER BY rev) AS before
    FROM doc_history WHERE id = 1)
WHERE value IS NOT before ORDER BY rev";

const DIFF: &str = "
SELECT coalesce(a.key, b.key), CAST(a.value AS TEXT), CAST(b.value AS TEXT)
FROM (SELECT key, value FROM json_each((SELECT doc FROM doc_history WHERE rev = ?1))) AS a
FULL OUTER JOIN
     (SELECT key, value FROM json_each((SELECT doc FROM doc_history WHERE rev = ?2))) AS b
  ON a.key = b.key
WHERE a.value IS NOT b.value";

/// One database file with its write-ahead log, in a folder of its own.
pub(crate) struct SqliteStore {
    folder: PathBuf,
    trees: Trees,
    connection: Option<Connection>,
    instants: HashMap<u32, Vec<i64>>,
}

impl SqliteStore {
    /// Makes the tables in a new folder.
    pub(crate) fn create(folder: PathBuf, trees: Trees) -> Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let connection = connect(&folder)?;
        connection.execute_batch(SCHEMA)?;
        let columns = trees.index_columns();
        connection.execute_batch(&format!("CREATE INDEX by_time ON doc_history ({columns})"))?;
        Ok(Self { folder, trees, connection: Some(connection), instants: HashMap::new() })
    }

    /// Opens one that was made before, with one document.
    pub(crate) fn open(folder: PathBuf) -> Result<Self> {
        let connection = Some(connect(&folder)?);
        Ok(Self { folder, trees: Trees::One, connection, instants: HashMap::new() })
    }

    /// The library's version.
    pub(crate) fn version() -> String {
        format!("SQLite {}", rusqlite::version())
    }

    fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().context("an open database")
    }

    fn learn_instants(&mut self) -> Result<()> {
        let mut instants: HashMap<u32, Vec<i64>> = HashMap::new();
        let all = "SELECT id, valid_from FROM doc_history ORDER BY id, valid_from";
        let mut statement = self.connection()?.prepare(all)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            instants.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        drop(rows);
        drop(statement);
        self.instants = instants;
        Ok(())
    }

    fn instant(&self, tree: u32, revision: u64) -> Result<i64> {
        let known = self.instants.get(&tree).context("a settled document")?;
        let index = usize::try_from(revision)?.checked_sub(1);
        index.and_then(|index| known.get(index)).copied().context("a revision that exists")
    }

    fn read_one(&self, target: Target) -> Result<u64> {
        let length = |row: &rusqlite::Row<'_>| Ok(row.get_ref(0)?.as_str()?.len() as u64);
        let instant = match (self.trees, target.at) {
            (Trees::One, At::Revision(revision)) => {
                let mut statement = self.connection()?.prepare_cached(READ_BY_REVISION)?;
                return Ok(statement.query_row([i64::try_from(revision)?], length)?);
            }
            (Trees::Many, At::Revision(revision)) => self.instant(target.tree, revision)?,
            (_, At::Instant(instant)) => instant,
        };
        let mut statement = self.connection()?.prepare_cached(READ_BY_INSTANT)?;
        Ok(statement.query_row(params![target.tree, instant], length)?)
    }

    fn column<T: rusqlite::types::FromSql>(&self, select: &str) -> Result<Vec<T>> {
        let mut statement = self.connection()?.prepare_cached(select)?;
        let values = statement.query_map([], |row| row.get(0))?;
        Ok(values.collect::<rusqlite::Result<_>>()?)
    }
}

impl VersionedStore for SqliteStore {
    fn subject(&self) -> &'static str {
        SQLITE
    }

    fn rendering(&self) -> Rendering {
        Rendering::Compact
    }

    fn process(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn set_durability(&mut self, durability: Durability) -> Result<()> {
        let mode = match durability {
            Durability::Sync => "FULL",
            Durability::Relaxed => "OFF",
        };
        Ok(self.connection()?.pragma_update(None, "synchronous", mode)?)
    }

    fn insert(&mut self, tree: u32, json: &str) -> Result<()> {
        self.connection()?.execute("INSERT INTO doc VALUES (?1, ?2)", params![tree, json])?;
        Ok(())
    }

    fn count_up(
        &mut self,
        tree: u32,
        values: RangeInclusive<u64>,
        latencies: &mut Latencies,
    ) -> Result<()> {
        let set = "UPDATE doc SET doc = json_set(doc, '$.counter', ?2) WHERE id = ?1";
        let mut statement = self.connection()?.prepare_cached(set)?;
        for value in values {
            let value = i64::try_from(value)?;
            let changed = latencies.time(|| Ok(statement.execute(params![tree, value])?))?;
            ensure!(changed == 1, "one document changes");
        }
        Ok(())
    }

    fn commit(&mut self, tree: u32, step: &Step) -> Result<()> {
        let connection = self.connection()?;
        let changed = if let [change] = step.changes.as_slice() {
            let set = "UPDATE doc SET doc = json_set(doc, ?2, json(?3)) WHERE id = ?1";
            let path = json_path(&change.pointer);
            connection.prepare_cached(set)?.execute(params![tree, path, change.value])?
        } else {
            let set = "UPDATE doc SET doc = ?2 WHERE id = ?1";
            connection.prepare_cached(set)?.execute(params![tree, step.whole])?
        };
        ensure!(changed == 1, "one document changes");
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.connection()?.execute_batch("ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
        if self.trees == Trees::Many { self.learn_instants() } else { Ok(()) }
    }

    fn checkpoint(&mut self) -> Result<()> {
        Ok(self.connection()?.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }

    fn reopen(&mut self) -> Result<()> {
        drop(self.connection.take());
        self.connection = Some(connect(&self.folder)?);
        Ok(())
    }

    fn read(&mut self, targets: &[Target], latencies: &mut Latencies) -> Result<u64> {
        let mut bytes = 0;
        for target in targets {
            bytes += latencies.time(|| self.read_one(*target))?;
        }
        Ok(bytes)
    }

    fn timestamps(&mut self) -> Result<Vec<i64>> {
        self.column("SELECT valid_from FROM doc_history WHERE id = 1 ORDER BY valid_from")
    }

    fn entries(&mut self, newest: Option<u32>) -> Result<Vec<Entry>> {
        let all = "SELECT rev, valid_from FROM doc_history WHERE id = 1 ORDER BY rev";
        let select = match newest {
            None => all.to_owned(),
            Some(count) => format!("{all} DESC LIMIT {count}"),
        };
        let mut statement = self.connection()?.prepare_cached(&select)?;
        let entry = |row: &rusqlite::Row<'_>| Ok(Entry { revision: row.get(0)?, at: row.get(1)? });
        let entries = statement.query_map([], entry)?;
        Ok(entries.collect::<rusqlite::Result<_>>()?)
    }

    fn counters(&mut self) -> Result<Vec<i64>> {
        let all = "SELECT json_extract(doc, '$.counter') FROM doc_history WHERE id = 1 \
                   ORDER BY rev";
        self.column(all)
    }

    fn runs(&mut self, field: &str) -> Result<Vec<String>> {
        let mut statement = self.connection()?.prepare_cached(RUNS)?;
        let values = statement.query_map([format!("$.{field}")], |row| row.get(0))?;
        Ok(values.collect::<rusqlite::Result<_>>()?)
    }

    fn counter_at(&mut self, revision: u64) -> Result<i64> {
        let select = "SELECT json_extract(doc, '$.counter') FROM doc_history WHERE rev = ?1";
        let mut statement = self.connection()?.prepare_cached(select)?;
        let found = statement.query_row([i64::try_from(revision)?], |row| row.get(0)).optional()?;
        found.context("a revision that exists")
    }

    fn diff(&mut self, from: u64, to: u64) -> Result<Difference> {
        let mut statement = self.connection()?.prepare_cached(DIFF)?;
        let change = |row: &rusqlite::Row<'_>| {
            let pointer = format!("/{}", row.get::<_, String>(0)?);
            Ok(FieldChange { pointer, old: row.get(1)?, new: row.get(2)? })
        };
        let changes = statement.query_map([i64::try_from(from)?, i64::try_from(to)?], change)?;
        Ok(Difference { changes: changes.collect::<rusqlite::Result<_>>()?, patch: None })
    }

    fn journal(&mut self) -> Result<Journal> {
        Ok(Journal::default())
    }

    fn space(&mut self, stage: Stage) -> Result<Option<Space>> {
        match stage {
            Stage::WithJournal => {}
            Stage::Checkpointed => self.checkpoint()?,
            Stage::Compacted => {
                let connection = self.connection()?;
                connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
            }
        }
        Ok(Some(files::space(&self.folder)?))
    }

    fn another_handle(&self) -> Result<Box<dyn VersionedStore>> {
        Ok(Box::new(Self {
            folder: self.folder.clone(),
            trees: self.trees,
            connection: Some(connect(&self.folder)?),
            instants: self.instants.clone(),
        }))
    }

    fn discard(self: Box<Self>) -> Result<()> {
        let Self { folder, connection, .. } = *self;
        drop(connection);
        Ok(std::fs::remove_dir_all(folder)?)
    }
}

fn connect(folder: &Path) -> Result<Connection> {
    let connection = Connection::open(folder.join(FILE))?;
    connection.busy_timeout(WAIT_FOR_WRITER)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // SQLite's own clock has milliseconds only, too coarse to tell commits apart.
    let newest = Arc::new(AtomicI64::new(0));
    let rising = move || {
        let now = unix_micros();
        let before = newest.fetch_max(now, Ordering::Relaxed);
        if before < now { now } else { newest.fetch_add(1, Ordering::Relaxed) + 1 }
    };
    connection
        .create_scalar_function("now_us", 0, FunctionFlags::SQLITE_UTF8, move |_| Ok(rising()))?;
    Ok(connection)
}

/// `/items/3/qty` as `$.items[3].qty`; no field of the documents here is a number.
fn json_path(pointer: &str) -> String {
    let step = |token: &str| match token.parse::<u64>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{token}"),
    };
    std::iter::once("$".to_owned()).chain(pointer.split('/').skip(1).map(step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_become_json_paths() {
        assert_eq!(json_path("/items/3/qty"), "$.items[3].qty");
        assert_eq!(json_path("/counter"), "$.counter");
    }
}
