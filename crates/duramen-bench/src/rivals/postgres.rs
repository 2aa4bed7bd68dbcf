//! `PostgreSQL` with a `jsonb` column and a history table that a trigger fills.
//!
//! Reads find their row through the index on `valid_from`, also where a revision is asked for: the
//! instants of the revisions are learnt once, outside the clock.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use postgres::{Client, Row, Statement};

use super::{Cluster, Trees};
use crate::files::{self, Space};
use crate::sampling::Latencies;
use crate::subject::{
    At, Difference, Durability, Entry, FieldChange, Journal, Rendering, Stage, Step, Target,
    VersionedStore,
};

/// The subject's name where whole loops run inside the server.
pub(crate) const POSTGRES: &str = "postgresql";
/// The subject's name where each operation is a statement of its own.
pub(crate) const POSTGRES_STATEMENTS: &str = "postgresql-statements";

const SCHEMA: &str = "
CREATE TABLE doc (id int PRIMARY KEY, doc jsonb NOT NULL);
CREATE TABLE doc_history (
    id int NOT NULL, rev bigserial, valid_from timestamptz NOT NULL, doc jsonb NOT NULL);
CREATE FUNCTION keep_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO doc_history (id, valid_from, doc) VALUES (NEW.id, clock_timestamp(), NEW.doc);
    RETURN NULL;
END $$;
CREATE TRIGGER keep_history AFTER INSERT OR UPDATE ON doc
    FOR EACH ROW EXECUTE FUNCTION keep_history();
CREATE PROCEDURE count_up(tree int, first bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
    FOR value IN first..last LOOP
        UPDATE doc SET doc = jsonb_set(doc, '{counter}', to_jsonb(value)) WHERE id = tree;
        COMMIT;
    END LOOP;
END $$;
CREATE FUNCTION read_sum(trees int[], instants timestamptz[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    total bigint := 0;
    found text;
BEGIN
    FOR i IN 1..cardinality(instants) LOOP
        SELECT doc::text INTO STRICT found FROM doc_history
            WHERE id = trees[i] AND valid_from <= instants[i]
            ORDER BY valid_from DESC LIMIT 1;
        total := total + octet_length(found);
    END LOOP;
    RETURN total;
END $$;";

const AT: &str = "FROM doc_history WHERE id = $1 AND valid_from <= $2 \
                  ORDER BY valid_from DESC LIMIT 1";

const RUNS: &str = "
SELECT value FROM (
    SELECT rev, doc->>$1 AS value, lag(doc->>$1) OVER (ORDER BY rev) AS before
    FROM doc_history WHERE id = 1) AS of
WHERE value IS DISTINCT FROM before ORDER BY rev";

const DIFF: &str = "
SELECT key, a.value::text, b.value::text
FROM jsonb_each((SELECT doc FROM doc_history WHERE id = 1 AND valid_from <= $1
                 ORDER BY valid_from DESC LIMIT 1)) AS a
FULL OUTER JOIN jsonb_each((SELECT doc FROM doc_history WHERE id = 1 AND valid_from <= $2
                            ORDER BY valid_from DESC LIMIT 1)) AS b USING (key)
WHERE a.value IS DISTINCT FROM b.value";

/// Where the loop over commits or reads runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// In the server, in PL/pgSQL.
    Loop,
    /// In the client, one statement at a time.
    Statements,
}

/// One database of the throwaway server.
pub(crate) struct PostgresStore {
    cluster: Arc<Cluster>,
    database: String,
    folder: PathBuf,
    empty: Space,
    style: Style,
    connection: Connection,
    instants: HashMap<u32, Vec<SystemTime>>,
}

struct Connection {
    client: Client,
    process: u32,
    set_counter: Statement,
    set_field: Statement,
    set_whole: Statement,
    read: Statement,
    diff: Statement,
}

impl PostgresStore {
    /// Makes the tables in a database of their own.
    pub(crate) fn create(cluster: &Arc<Cluster>, style: Style, trees: Trees) -> Result<Self> {
        let database = cluster.create_database()?;
        let mut client = cluster.connect(&database)?;
        client.batch_execute(SCHEMA)?;
        let columns = trees.index_columns();
        client.batch_execute(&format!("CREATE INDEX ON doc_history ({columns})"))?;
        client.batch_execute("CHECKPOINT")?;
        let row = client
            .query_one("SELECT oid::text FROM pg_database WHERE datname = $1", &[&database])?;
        let folder = cluster.data().join("base").join(row.try_get::<_, String>(0)?);
        let empty = files::space(&folder)?;
        let connection = Connection::over(client)?;
        let instants = HashMap::new();
        let cluster = Arc::clone(cluster);
        Ok(Self { cluster, database, folder, empty, style, connection, instants })
    }

    fn instant(&self, target: Target) -> Result<SystemTime> {
        match target.at {
            At::Instant(micros) => Ok(to_system(micros)),
            At::Revision(revision) => {
                let known = self.instants.get(&target.tree).context("a settled document")?;
                let index = usize::try_from(revision)?.checked_sub(1);
                let found = index.and_then(|index| known.get(index));
                found.copied().context("a revision that exists")
            }
        }
    }

    fn instant_of(&self, revision: u64) -> Result<SystemTime> {
        self.instant(Target { tree: 1, at: At::Revision(revision) })
    }
}

impl Connection {
    fn open(cluster: &Cluster, database: &str) -> Result<Self> {
        Self::over(cluster.connect(database)?)
    }

    fn over(mut client: Client) -> Result<Self> {
        let process: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.try_get(0)?;
        let set = "UPDATE doc SET doc = jsonb_set(doc,";
        let set_counter = format!("{set} '{{counter}}', to_jsonb($2::bigint)) WHERE id = $1");
        let set_field = format!("{set} $2::text[], $3::text::jsonb) WHERE id = $1");
        let set_whole = "UPDATE doc SET doc = $2::text::jsonb WHERE id = $1";
        Ok(Self {
            process: u32::try_from(process)?,
            set_counter: client.prepare(&set_counter)?,
            set_field: client.prepare(&set_field)?,
            set_whole: client.prepare(set_whole)?,
            read: client.prepare(&format!("SELECT doc::text {AT}"))?,
            diff: client.prepare(DIFF)?,
            client,
        })
    }
}

impl VersionedStore for PostgresStore {
    fn subject(&self) -> &'static str {
        match self.style {
            Style::Loop => POSTGRES,
            Style::Statements => POSTGRES_STATEMENTS,
        }
    }

    fn rendering(&self) -> Rendering {
        Rendering::Spaced
    }

    fn process(&self) -> Option<u32> {
        Some(self.connection.process)
    }

    fn set_durability(&mut self, durability: Durability) -> Result<()> {
        let mode = match durability {
            Durability::Sync => "on",
            Durability::Relaxed => "off",
        };
        let set = format!("SET synchronous_commit = {mode}");
        Ok(self.connection.client.batch_execute(&set)?)
    }

    fn insert(&mut self, tree: u32, json: &str) -> Result<()> {
        let insert = "INSERT INTO doc VALUES ($1, $2::text::jsonb)";
        self.connection.client.execute(insert, &[&i32::try_from(tree)?, &json])?;
        Ok(())
    }

    fn count_up(
        &mut self,
        tree: u32,
        values: RangeInclusive<u64>,
        latencies: &mut Latencies,
    ) -> Result<()> {
        let Connection { client, set_counter, .. } = &mut self.connection;
        if self.style == Style::Loop {
            let call = format!("CALL count_up({tree}, {}, {})", values.start(), values.end());
            return Ok(client.batch_execute(&call)?);
        }
        let tree = i32::try_from(tree)?;
        for value in values {
            let value = i64::try_from(value)?;
            let changed = latencies.time(|| Ok(client.execute(set_counter, &[&tree, &value])?))?;
            ensure!(changed == 1, "one document changes");
        }
        Ok(())
    }

    fn commit(&mut self, tree: u32, step: &Step) -> Result<()> {
        let Connection { client, set_field, set_whole, .. } = &mut self.connection;
        let tree = i32::try_from(tree)?;
        // Every `jsonb_set` copies the document, so several changes are cheaper as a whole.
        let changed = if let [change] = step.changes.as_slice() {
            let path: Vec<&str> = change.pointer.split('/').skip(1).collect();
            client.execute(set_field, &[&tree, &path, &change.value])?
        } else {
            client.execute(set_whole, &[&tree, &step.whole])?
        };
        ensure!(changed == 1, "one document changes");
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.connection.client.batch_execute("VACUUM ANALYZE doc, doc_history")?;
        self.instants.clear();
        let all = "SELECT id, valid_from FROM doc_history ORDER BY id, valid_from";
        for row in self.connection.client.query(all, &[])? {
            let tree = u32::try_from(row.try_get::<_, i32>(0)?)?;
            self.instants.entry(tree).or_default().push(row.try_get(1)?);
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        Ok(self.connection.client.batch_execute("CHECKPOINT")?)
    }

    fn reopen(&mut self) -> Result<()> {
        self.connection = Connection::open(&self.cluster, &self.database)?;
        Ok(())
    }

    fn read(&mut self, targets: &[Target], latencies: &mut Latencies) -> Result<u64> {
        let mut instants = Vec::with_capacity(targets.len());
        let mut trees = Vec::with_capacity(targets.len());
        for target in targets {
            instants.push(self.instant(*target)?);
            trees.push(i32::try_from(target.tree)?);
        }
        let Connection { client, read, .. } = &mut self.connection;
        if self.style == Style::Loop {
            let row = client.query_one("SELECT read_sum($1, $2)", &[&trees, &instants])?;
            return Ok(u64::try_from(row.try_get::<_, i64>(0)?)?);
        }
        let mut bytes = 0;
        for (tree, instant) in trees.iter().zip(&instants) {
            let row = latencies.time(|| Ok(client.query_one(read, &[tree, instant])?))?;
            bytes += row.try_get::<_, &str>(0)?.len() as u64;
        }
        Ok(bytes)
    }

    fn timestamps(&mut self) -> Result<Vec<i64>> {
        let all = "SELECT valid_from FROM doc_history WHERE id = 1 ORDER BY valid_from";
        let rows = self.connection.client.query(all, &[])?;
        rows.iter().map(|row| to_micros(row.try_get(0)?)).collect()
    }

    fn entries(&mut self, newest: Option<u32>) -> Result<Vec<Entry>> {
        let all = "SELECT rev, valid_from FROM doc_history WHERE id = 1 ORDER BY valid_from";
        let select = match newest {
            None => all.to_owned(),
            Some(count) => format!("{all} DESC LIMIT {count}"),
        };
        let rows = self.connection.client.query(&select, &[])?;
        let entry =
            |row: &Row| Ok(Entry { revision: row.try_get(0)?, at: to_micros(row.try_get(1)?)? });
        rows.iter().map(entry).collect()
    }

    fn counters(&mut self) -> Result<Vec<i64>> {
        let all = "SELECT (doc->>'counter')::bigint FROM doc_history WHERE id = 1 \
                   ORDER BY valid_from";
        let rows = self.connection.client.query(all, &[])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn runs(&mut self, field: &str) -> Result<Vec<String>> {
        let rows = self.connection.client.query(RUNS, &[&field])?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn counter_at(&mut self, revision: u64) -> Result<i64> {
        let instant = self.instant_of(revision)?;
        let select = format!("SELECT (doc->>'counter')::bigint {AT}");
        Ok(self.connection.client.query_one(&select, &[&1_i32, &instant])?.try_get(0)?)
    }

    fn diff(&mut self, from: u64, to: u64) -> Result<Difference> {
        let (from, to) = (self.instant_of(from)?, self.instant_of(to)?);
        let Connection { client, diff, .. } = &mut self.connection;
        let change = |row: &Row| {
            let key: &str = row.try_get(0)?;
            let pointer = format!("/{key}");
            Ok(FieldChange { pointer, old: row.try_get(1)?, new: row.try_get(2)? })
        };
        let rows = client.query(diff, &[&from, &to])?;
        let changes = rows.iter().map(change).collect::<Result<_>>()?;
        Ok(Difference { changes, patch: None })
    }

    fn journal(&mut self) -> Result<Journal> {
        let client = &mut self.connection.client;
        // Sessions hand in their counts when they end, a moment after the socket has closed.
        let others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                      AND datname = current_database() AND pid <> pg_backend_pid()";
        while client.query_one(others, &[])?.try_get::<_, i64>(0)? > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let position = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint";
        let bytes = u64::try_from(client.query_one(position, &[])?.try_get::<_, i64>(0)?)?;
        Ok(Journal { syncs: journal_syncs(client), bytes: Some(bytes), device: None })
    }

    fn space(&mut self, stage: Stage) -> Result<Option<Space>> {
        let client = &mut self.connection.client;
        match stage {
            Stage::WithJournal => {}
            Stage::Checkpointed => client.batch_execute("CHECKPOINT")?,
            Stage::Compacted => {
                client.batch_execute("VACUUM FULL doc")?;
                client.batch_execute("VACUUM FULL doc_history")?;
                client.batch_execute("CHECKPOINT")?;
            }
        }
        let tables = files::space(&self.folder)?.since(self.empty);
        match stage {
            Stage::WithJournal => {
                let journal = files::space(&self.cluster.data().join("pg_wal"))?;
                Ok(Some(tables.plus(journal)))
            }
            Stage::Checkpointed | Stage::Compacted => Ok(Some(tables)),
        }
    }

    fn another_handle(&self) -> Result<Box<dyn VersionedStore>> {
        Ok(Box::new(Self {
            cluster: Arc::clone(&self.cluster),
            database: self.database.clone(),
            folder: self.folder.clone(),
            empty: self.empty,
            style: self.style,
            connection: Connection::open(&self.cluster, &self.database)?,
            instants: self.instants.clone(),
        }))
    }

    fn discard(self: Box<Self>) -> Result<()> {
        let Self { cluster, database, connection, .. } = *self;
        drop(connection);
        cluster.drop_database(&database)
    }
}

/// Only some versions count them in this view.
fn journal_syncs(client: &mut Client) -> Option<u64> {
    client.batch_execute("SELECT pg_stat_force_next_flush()").ok()?;
    let row = client.query_one("SELECT wal_sync FROM pg_stat_wal", &[]).ok()?;
    u64::try_from(row.try_get::<_, i64>(0).ok()?).ok()
}

fn to_system(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros.unsigned_abs())
}

fn to_micros(at: SystemTime) -> Result<i64> {
    Ok(i64::try_from(at.duration_since(UNIX_EPOCH)?.as_micros())?)
}
