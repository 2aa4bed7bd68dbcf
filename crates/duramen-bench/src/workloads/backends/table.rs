//! The players in a table of `SQLite`, by prepared statements.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rusqlite::{Connection, Row, params};

use super::player::Player;
use super::{PAGE, PlayerStore};

const WAIT_FOR_WRITER: Duration = Duration::from_mins(1);

const SCHEMA: &str = "
CREATE TABLE players (
    uuid TEXT PRIMARY KEY, name TEXT NOT NULL, score INTEGER NOT NULL, world TEXT NOT NULL,
    active INTEGER NOT NULL, created_at INTEGER NOT NULL, version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX players_name ON players (name);
CREATE INDEX players_score ON players (score);
CREATE INDEX players_world ON players (world);
CREATE INDEX players_active ON players (active);
CREATE INDEX players_created_at ON players (created_at);";

const SAVE: &str = "
INSERT INTO players (uuid, name, score, world, active, created_at, version)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)
ON CONFLICT (uuid) DO UPDATE SET name = excluded.name, score = excluded.score,
    world = excluded.world, active = excluded.active, created_at = excluded.created_at,
    version = version + 1";

const UPDATE: &str = "
UPDATE players SET name = ?2, score = ?3, world = ?4, active = ?5, created_at = ?6,
    version = version + 1 WHERE uuid = ?1 AND version = ?7";

const COLUMNS: &str = "uuid, name, score, world, active, created_at, version";

/// A connection to the file of the table.
pub(super) struct PlayerTable {
    file: PathBuf,
    connection: Connection,
    /// The last player before the page, by score and key.
    place: (u64, String),
}

/// A row as a program would have it.
struct Stored {
    player: Player,
    version: u64,
}

impl PlayerTable {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let file = folder.join("players.sqlite");
        let table = Self::open(file)?;
        table.connection.execute_batch(SCHEMA)?;
        Ok(table)
    }

    fn open(file: PathBuf) -> Result<Self> {
        let connection = Connection::open(&file)?;
        connection.busy_timeout(WAIT_FOR_WRITER)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
        Ok(Self { file, connection, place: (0, String::new()) })
    }

    fn rows(&self, rest: &str, parameters: impl rusqlite::Params) -> Result<Vec<Stored>> {
        let sql = format!("SELECT {COLUMNS} FROM players {rest}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(parameters, stored)?;
        Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
    }

    fn page(&self, rest: &str, parameters: impl rusqlite::Params) -> Result<Vec<String>> {
        let rest = format!("{rest} ORDER BY score, uuid LIMIT {PAGE}");
        Ok(self.rows(&rest, parameters)?.into_iter().map(|row| row.player.uuid).collect())
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let world: String = row.get(3)?;
    let player = Player {
        uuid: row.get(0)?,
        name: row.get(1)?,
        score: row.get::<_, i64>(2)?.unsigned_abs(),
        world: if world == super::NETHER { super::NETHER } else { "world" },
        active: row.get(4)?,
        created_at: row.get(5)?,
    };
    Ok(Stored { player, version: row.get::<_, i64>(6)?.unsigned_abs() })
}

fn save(connection: &Connection, player: &Player) -> Result<()> {
    let Player { uuid, name, score, world, active, created_at } = player;
    let mut statement = connection.prepare_cached(SAVE)?;
    statement.execute(params![uuid, name, score.cast_signed(), world, active, created_at])?;
    Ok(())
}

impl PlayerStore for PlayerTable {
    fn another(&self) -> Result<Box<dyn PlayerStore>> {
        Ok(Box::new(Self::open(self.file.clone())?))
    }

    fn save_many(&mut self, players: &[Player]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        players.iter().try_for_each(|player| save(&transaction, player))?;
        Ok(transaction.commit()?)
    }

    fn count(&mut self) -> Result<u64> {
        let mut statement = self.connection.prepare_cached("SELECT count(*) FROM players")?;
        Ok(statement.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    fn in_world(&mut self, world: &str) -> Result<u64> {
        Ok(self.rows("WHERE world = ?1", [world])?.len() as u64)
    }

    fn scan(&mut self) -> Result<u64> {
        let sql = format!("SELECT {COLUMNS} FROM players ORDER BY uuid");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut found = 0;
        for row in statement.query_map([], stored)? {
            row?;
            found += 1;
        }
        Ok(found)
    }

    fn get_many(&mut self, uuids: &[String]) -> Result<u64> {
        let mut sum = 0;
        for uuid in uuids {
            sum += self
                .rows("WHERE uuid = ?1", [uuid])?
                .iter()
                .map(|row| row.player.score)
                .sum::<u64>();
        }
        Ok(sum)
    }

    fn versions(&mut self, uuids: &[String]) -> Result<u64> {
        let sql = "SELECT version FROM players WHERE uuid = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut sum = 0;
        for uuid in uuids {
            sum += statement.query_row([uuid], |row| row.get::<_, i64>(0))?.unsigned_abs();
        }
        Ok(sum)
    }

    fn get(&mut self, uuid: &str) -> Result<(usize, u64)> {
        let rows = self.rows("WHERE uuid = ?1", [uuid])?;
        let row = rows.first().context("the player is there")?;
        Ok((row.player.name.len() + row.player.uuid.len(), row.version))
    }

    fn save(&mut self, player: &Player) -> Result<()> {
        save(&self.connection, player)
    }

    fn update(&mut self, player: &Player, version: u64) -> Result<bool> {
        let Player { uuid, name, score, world, active, created_at } = player;
        let (score, version) = (score.cast_signed(), version.cast_signed());
        let mut statement = self.connection.prepare_cached(UPDATE)?;
        let changed =
            statement.execute(params![uuid, name, score, world, active, created_at, version])?;
        Ok(changed == 1)
    }

    fn delete(&mut self, uuid: &str) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM players WHERE uuid = ?1")?.execute([uuid])?;
        Ok(())
    }

    fn offset_page(&mut self, score: u64, offset: u64) -> Result<Vec<String>> {
        let rest = "WHERE score >= ?1 ORDER BY score, uuid LIMIT 50 OFFSET ?2";
        let rows = self.rows(rest, [score.cast_signed(), offset.cast_signed()])?;
        Ok(rows.into_iter().map(|row| row.player.uuid).collect())
    }

    fn seek(&mut self, score: u64, offset: u64) -> Result<()> {
        let rest = "WHERE score >= ?1 ORDER BY score, uuid LIMIT 1 OFFSET ?2";
        let before = offset.saturating_sub(1);
        let rows = self.rows(rest, [score.cast_signed(), before.cast_signed()])?;
        let row = rows.first().context("a player before the page")?;
        self.place = (row.player.score, row.player.uuid.clone());
        // The statement is prepared, as it is for whoever came there page by page.
        self.keyset_page(score)?;
        Ok(())
    }

    fn keyset_page(&mut self, _score: u64) -> Result<Vec<String>> {
        let (score, uuid) = &self.place;
        self.page("WHERE (score, uuid) > (?1, ?2)", params![score.cast_signed(), uuid])
    }
}
