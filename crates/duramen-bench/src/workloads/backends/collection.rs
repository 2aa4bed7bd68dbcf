//! The players in a collection.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use duramen::{
    Collection, CommitOptions, Database, ErrorKind, Filter, IndexDefinition, Key, KeyKind, Options,
    Order, Query, ScanOptions,
};

use super::player::Player;
use super::{PAGE, PlayerStore};

const INDEXES: [&str; 5] = ["name", "score", "world", "active", "created_at"];

/// A collection, and the database that has it.
#[derive(Clone)]
pub(super) struct PlayerCollection {
    players: Collection,
    options: CommitOptions,
    cursor: Option<String>,
    database: Arc<Database>,
}

impl PlayerCollection {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let database = Arc::new(Database::open(folder, Options::default())?);
        let players = database.create_collection("players", KeyKind::Uuid)?;
        for field in INDEXES {
            players.create_index(&IndexDefinition::new(field, &[field])?)?;
        }
        Ok(Self { players, options: CommitOptions::default(), cursor: None, database })
    }

    fn key(uuid: &str) -> Result<Key> {
        Ok(KeyKind::Uuid.parse(uuid)?)
    }

    fn best(score: u64) -> Query {
        Query::new().filter(Filter::ge("score", score)).order_by(Order::asc("score"))
    }
}

impl PlayerStore for PlayerCollection {
    fn another(&self) -> Result<Box<dyn PlayerStore>> {
        Ok(Box::new(Self { database: Arc::clone(&self.database), ..self.clone() }))
    }

    fn save_many(&mut self, players: &[Player]) -> Result<()> {
        let records = players.iter().map(|player| Ok((Self::key(&player.uuid)?, player.json())));
        let records = records.collect::<Result<Vec<_>>>()?;
        self.players.put_many(records, &self.options)?;
        Ok(())
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.players.count()?)
    }

    fn in_world(&mut self, world: &str) -> Result<u64> {
        let mut found = 0;
        for record in self.players.query(&Query::new().filter(Filter::eq("world", world)))? {
            record?;
            found += 1;
        }
        Ok(found)
    }

    fn scan(&mut self) -> Result<u64> {
        let mut found = 0;
        for record in self.players.scan(&ScanOptions::default())? {
            record?;
            found += 1;
        }
        Ok(found)
    }

    fn get_many(&mut self, uuids: &[String]) -> Result<u64> {
        let keys = uuids.iter().map(|uuid| Self::key(uuid)).collect::<Result<Vec<_>>>()?;
        let records = self.players.get_many(&keys)?;
        let scores = records.iter().flatten().map(|record| score(&record.json));
        scores.sum()
    }

    fn versions(&mut self, uuids: &[String]) -> Result<u64> {
        let keys = uuids.iter().map(|uuid| Self::key(uuid)).collect::<Result<Vec<_>>>()?;
        Ok(self.players.versions(&keys)?.into_iter().flatten().sum())
    }

    fn get(&mut self, uuid: &str) -> Result<(usize, u64)> {
        let record = self.players.get(Self::key(uuid)?)?.context("the player is there")?;
        Ok((record.json.len(), record.version))
    }

    fn save(&mut self, player: &Player) -> Result<()> {
        self.players.put(Self::key(&player.uuid)?, player.json(), &self.options)?;
        Ok(())
    }

    fn update(&mut self, player: &Player, version: u64) -> Result<bool> {
        let key = Self::key(&player.uuid)?;
        match self.players.update(key, version, player.json(), &self.options) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn delete(&mut self, uuid: &str) -> Result<()> {
        self.players.delete(Self::key(uuid)?, &self.options)?;
        Ok(())
    }

    fn offset_page(&mut self, score: u64, offset: u64) -> Result<Vec<String>> {
        let query = Self::best(score).offset(offset).limit(PAGE as u64);
        let records = self.players.query(&query)?;
        records.map(|record| Ok(record?.key.to_string())).collect()
    }

    fn seek(&mut self, score: u64, offset: u64) -> Result<()> {
        self.cursor = None;
        let mut left = offset;
        while left > 0 {
            let size = left.min(PAGE as u64);
            let query = Self::best(score);
            let cursor = self.cursor.as_deref();
            self.cursor = self.players.page(&query, cursor, usize::try_from(size)?)?.next;
            left -= size;
        }
        Ok(())
    }

    fn keyset_page(&mut self, score: u64) -> Result<Vec<String>> {
        let page = self.players.page(&Self::best(score), self.cursor.as_deref(), PAGE)?;
        Ok(page.records.iter().map(|record| record.key.to_string()).collect())
    }
}

/// The score in a record's text.
fn score(json: &str) -> Result<u64> {
    let (_, rest) = json.split_once(r#""score":"#).context("a score")?;
    let digits = rest.split(|digit: char| !digit.is_ascii_digit()).next().context("a number")?;
    Ok(digits.parse()?)
}
