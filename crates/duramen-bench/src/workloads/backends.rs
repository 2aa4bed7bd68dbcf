//! B: a collection of players beside a hand-written table of `SQLite` with the same indexes and the
//! same durability: every commit that is acknowledged is on the device.

mod collection;
mod player;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Child;
use crate::figures::{Measure, SYNC};
use crate::machine;
use crate::random::SplitMix64;
use crate::rivals::SQLITE;
use crate::sampling::{Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;
use collection::PlayerCollection;
use player::{NETHER, Player, players};
use table::PlayerTable;

/// Records of a batch of the bulk insert, and of what is read or changed at once.
const BATCH: usize = 1_000;
const SAVES: usize = 200;
const DELETES: usize = 200;
const PAGE: usize = 50;
const WORKERS: usize = 8;
/// Operations of all workers: as many gets as saves.
const MIXED: usize = 2_000;
/// Players that all workers change.
const SHARED: usize = 20;
const SEED: u64 = 7;

/// A store of players.
trait PlayerStore: Send {
    /// Another way into the same store, for a thread.
    fn another(&self) -> Result<Box<dyn PlayerStore>>;

    /// Saves players in one commit, whether they are there or not.
    fn save_many(&mut self, players: &[Player]) -> Result<()>;

    fn count(&mut self) -> Result<u64>;

    /// How many players are in a world, each of them read.
    fn in_world(&mut self, world: &str) -> Result<u64>;

    /// How many there are, each of them read, in the order of their keys.
    fn scan(&mut self) -> Result<u64>;

    /// The scores of the players with these keys.
    fn get_many(&mut self, uuids: &[String]) -> Result<u64>;

    /// The sum of the versions of the players with these keys.
    fn versions(&mut self, uuids: &[String]) -> Result<u64>;

    /// Bytes read of the player with a key, and its version.
    fn get(&mut self, uuid: &str) -> Result<(usize, u64)>;

    fn save(&mut self, player: &Player) -> Result<()>;

    /// Saves a player that is at a version; whether it was.
    fn update(&mut self, player: &Player, version: u64) -> Result<bool>;

    fn delete(&mut self, uuid: &str) -> Result<()>;

    /// The keys of the players behind the first `offset` of those with at least this score, in the
    /// order of scores.
    fn offset_page(&mut self, score: u64, offset: u64) -> Result<Vec<String>>;

    /// Goes to the place behind the first `offset` of them, which is not timed.
    fn seek(&mut self, score: u64, offset: u64) -> Result<()>;

    /// The keys of the page from that place on.
    fn keyset_page(&mut self, score: u64) -> Result<Vec<String>>;
}

/// Runs B.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    for count in session.scale.players.clone() {
        with_players(session, count)?;
    }
    Ok(())
}

/// One pass over all operations for each round, in fresh stores.
fn with_players(session: &mut Session, count: u64) -> Result<()> {
    let players = players(count);
    let mut subjects: Vec<&'static str> = Vec::new();
    subjects.extend(session.arguments().wants(DURAMEN).then_some(DURAMEN));
    subjects.extend(session.arguments().wants(SQLITE).then_some(SQLITE));
    let rounds = session.scale.passes;
    let samples = interleave(&mut subjects, rounds, |subject, _| {
        let folder = session.new_folder(subject);
        let mut store = create(subject, &folder)?;
        let pass = Pass { players: &players, rows: Vec::new() };
        let rows = pass.run(store.as_mut()).with_context(|| format!("{subject} in B"))?;
        drop(store);
        std::fs::remove_dir_all(folder)?;
        Ok(rows)
    })?;
    let rows = samples.first().and_then(|passes| passes.first()).map_or(0, Vec::len);
    for row in 0..rows {
        let of = |passes: &Vec<Vec<Row>>| passes.iter().map(|pass| pass[row].value).collect();
        let named: Vec<_> = subjects.iter().copied().zip(samples.iter().map(of)).collect();
        let Row { name, metric, unit, .. } = samples[0][0][row];
        let measure = Measure::cost("B", metric, unit);
        session.figures.add(&measure.case(format!("{count}/{name}")).durability(SYNC), &named);
    }
    let once = Rounds { warmups: 0, measured: 1 };
    let peaks = interleave(&mut subjects, once, |subject, _| {
        let folder = session.new_folder(subject);
        let alone = Alone { subject: (*subject).to_owned(), count, folder: folder.clone() };
        let bytes: f64 = Child::Players(alone).in_a_fresh_process()?;
        std::fs::remove_dir_all(folder)?;
        Ok(bytes / 1e6)
    })?;
    let measure = Measure::cost("B", "peak_memory_mb", "MB").case(format!("{count}/memory"));
    let named: Vec<_> = subjects.into_iter().zip(peaks).collect();
    session.figures.add(&measure.durability(SYNC), &named);
    Ok(())
}

fn create(subject: &str, folder: &Path) -> Result<Box<dyn PlayerStore>> {
    Ok(match subject {
        SQLITE => Box::new(PlayerTable::create(folder)?),
        _ => Box::new(PlayerCollection::create(folder)?),
    })
}

/// A pass in a process of its own, in which nothing else takes memory but the players.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Alone {
    subject: String,
    count: u64,
    folder: PathBuf,
}

impl Alone {
    /// Does it and prints the most memory that the process took, in bytes.
    pub(crate) fn run(&self) -> Result<()> {
        let players = players(self.count);
        let mut store = create(&self.subject, &self.folder)?;
        Pass { players: &players, rows: Vec::new() }.run(store.as_mut())?;
        println!("{}", serde_json::to_string(&machine::process_bytes("VmHWM")?)?);
        Ok(())
    }
}

/// What an operation took, or did.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    metric: &'static str,
    unit: &'static str,
    value: f64,
}

impl Row {
    /// Microseconds of one operation, or one record.
    fn time(name: &'static str, value: f64) -> Self {
        Self { name, metric: "time_per_operation", unit: "us", value }
    }
}

/// All operations, in the order of the workload.
struct Pass<'a> {
    players: &'a [Player],
    rows: Vec<Row>,
}

impl Pass<'_> {
    fn time<T>(
        &mut self,
        name: &'static str,
        operations: usize,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let watch = Stopwatch::start();
        let done = work()?;
        self.rows.push(Row::time(name, watch.micros() / operations.max(1) as f64));
        Ok(done)
    }

    fn run(mut self, store: &mut dyn PlayerStore) -> Result<Vec<Row>> {
        let players = self.players;
        let count = players.len();
        self.time("bulk insert, a record", count, || {
            players.chunks(BATCH).try_for_each(|batch| store.save_many(batch))
        })?;
        ensure!(self.time("count", 1, || store.count())? == count as u64, "not all are there");
        let nether = players.iter().filter(|player| player.world == NETHER).count();
        let found = self.time("indexed query, a record", nether, || store.in_world(NETHER))?;
        ensure!(found == nether as u64, "{found} of {nether} are in the world");
        let again =
            self.time("indexed query again, a record", nether, || store.in_world(NETHER))?;
        ensure!(again == found, "the second query found {again}");
        let scanned = self.time("scan, a record", count, || store.scan())?;
        ensure!(scanned == count as u64, "the scan found {scanned}");
        self.reads(store)?;
        self.single_saves(store)?;
        self.pages(store)?;
        let changed: Vec<Player> = players.iter().take(BATCH).map(Player::later).collect();
        self.time("bulk update, a record", changed.len(), || store.save_many(&changed))?;
        self.workers(store)?;
        let gone: Vec<&Player> = players.iter().rev().take(DELETES.min(count)).collect();
        self.time("delete", gone.len(), || {
            gone.iter().try_for_each(|player| store.delete(&player.uuid))
        })?;
        ensure!(store.count()? == (count - gone.len()) as u64, "not all are deleted");
        Ok(self.rows)
    }

    fn reads(&mut self, store: &mut dyn PlayerStore) -> Result<()> {
        let mut random = SplitMix64::new(SEED);
        let drawn: Vec<&Player> = (0..BATCH).map(|_| draw(self.players, &mut random)).collect();
        let uuids: Vec<String> = drawn.iter().map(|player| player.uuid.clone()).collect();
        let sum = self.time("get many, a record", BATCH, || store.get_many(&uuids))?;
        let expected: u64 = drawn.iter().map(|player| player.score).sum();
        ensure!(sum == expected, "the scores are {sum}, not {expected}");
        let versions = self.time("versions, a record", BATCH, || store.versions(&uuids))?;
        ensure!(versions == BATCH as u64, "the versions are {versions} in all");
        let bytes = self.time("get", BATCH, || {
            uuids.iter().map(|uuid| Ok(store.get(uuid)?.0)).sum::<Result<usize>>()
        })?;
        ensure!(bytes > 0, "nothing was read");
        Ok(())
    }

    fn single_saves(&mut self, store: &mut dyn PlayerStore) -> Result<()> {
        let saved: Vec<Player> = self.players.iter().take(SAVES).map(Player::later).collect();
        self.time("single save", saved.len(), || {
            saved.iter().try_for_each(|player| store.save(player))
        })
    }

    /// The last page but one of the better half, by offset and from a place.
    fn pages(&mut self, store: &mut dyn PlayerStore) -> Result<()> {
        let least = self.players.len() as u64 / 2;
        let offset = (self.players.len() as u64 - least).saturating_sub(2 * PAGE as u64);
        // So that what was saved just now is in the index.
        store.offset_page(least, 0)?;
        let page = self.time("offset page", 1, || store.offset_page(least, offset))?;
        ensure!(page.len() == PAGE, "a page has {} records", page.len());
        store.seek(least, offset)?;
        let same = self.time("keyset page", 1, || store.keyset_page(least))?;
        ensure!(same == page, "the page from a place is another one");
        Ok(())
    }

    fn workers(&mut self, store: &mut dyn PlayerStore) -> Result<()> {
        let each = MIXED / WORKERS;
        let part = self.players.len() / WORKERS;
        let players = self.players;
        let own = |worker: usize| &players[worker * part..(worker + 1) * part];
        let stores = || (0..WORKERS).map(|_| store.another()).collect::<Result<Vec<_>>>();
        let (first, second) = (stores()?, stores()?);
        self.time("mixed by 8 workers, own keys", MIXED, || {
            in_threads(first, |worker, store| {
                let mut random = SplitMix64::new(SEED + worker as u64);
                for _ in 0..each / 2 {
                    store.get(&draw(own(worker), &mut random).uuid)?;
                    store.save(&draw(own(worker), &mut random).scored(random.below(1_000)))?;
                }
                Ok(())
            })
        })?;
        let conflicts = AtomicU64::new(0);
        self.time("mixed by 8 workers, shared keys", MIXED, || {
            in_threads(second, |worker, store| {
                let mut random = SplitMix64::new(SEED * 31 + worker as u64);
                for _ in 0..each / 2 {
                    let player = draw(&players[..SHARED.min(players.len())], &mut random);
                    while !update(store, player, &mut random)? {
                        conflicts.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            })
        })?;
        let value = conflicts.into_inner() as f64;
        let name = "conflicts on shared keys, in all";
        self.rows.push(Row { name, metric: "conflicts", unit: "saves", value });
        Ok(())
    }
}

/// Reads a player and saves another score, if nobody else came first.
fn update(store: &mut dyn PlayerStore, player: &Player, random: &mut SplitMix64) -> Result<bool> {
    let (_, version) = store.get(&player.uuid)?;
    store.update(&player.scored(random.below(1 << 40)), version)
}

fn draw<'p>(players: &'p [Player], random: &mut SplitMix64) -> &'p Player {
    &players[usize::try_from(random.below(players.len() as u64)).unwrap_or(0)]
}

fn in_threads(
    stores: Vec<Box<dyn PlayerStore>>,
    work: impl Fn(usize, &mut dyn PlayerStore) -> Result<()> + Sync,
) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = stores
            .into_iter()
            .enumerate()
            .map(|(worker, mut store)| scope.spawn(move || work(worker, store.as_mut())))
            .collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_stores_do_every_operation_alike() {
        let players = players(1_000);
        let folder = tempfile::tempdir().unwrap();
        let mut stores: [Box<dyn PlayerStore>; 2] = [
            Box::new(PlayerCollection::create(&folder.path().join(DURAMEN)).unwrap()),
            Box::new(PlayerTable::create(&folder.path().join(SQLITE)).unwrap()),
        ];
        for store in &mut stores {
            let rows = Pass { players: &players, rows: Vec::new() }.run(store.as_mut()).unwrap();
            assert_eq!(rows.len(), 16);
        }
    }
}
