//! The records of B.

use crate::random::SplitMix64;
use crate::stopwatch::unix_micros;

const SEED: u64 = 42;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
pub(super) const NETHER: &str = "world_nether";
const WORLD: &str = "world";

/// A player.
#[derive(Debug, Clone)]
pub(super) struct Player {
    pub(super) uuid: String,
    pub(super) name: String,
    pub(super) score: u64,
    pub(super) world: &'static str,
    pub(super) active: bool,
    /// Milliseconds since the Unix epoch.
    pub(super) created_at: i64,
}

/// The players of the workload.
pub(super) fn players(count: u64) -> Vec<Player> {
    let mut random = SplitMix64::new(SEED);
    let now = unix_micros() / 1_000;
    (0..count)
        .map(|index| Player {
            uuid: uuid(&mut random),
            name: name(&mut random),
            score: index,
            world: if index.is_multiple_of(3) { NETHER } else { WORLD },
            active: index.is_multiple_of(2),
            created_at: now - (count - index).cast_signed() * DAY_MS,
        })
        .collect()
}

impl Player {
    /// Its text, made part by part: a format string would take a good part of the bulk insert.
    pub(super) fn json(&self) -> String {
        let Self { uuid, name, score, world, active, created_at } = self;
        let (score, created_at) = (score.to_string(), created_at.to_string());
        let members = [
            (r#"{"uuid":""#, uuid.as_str()),
            (r#"","name":""#, name),
            (r#"","score":"#, &score),
            (r#","world":""#, world),
            (r#"","active":"#, if *active { "true" } else { "false" }),
            (r#","created_at":"#, &created_at),
        ];
        let mut json = String::with_capacity(160);
        for (name, value) in members {
            json.push_str(name);
            json.push_str(value);
        }
        json.push('}');
        json
    }

    /// The same a moment later.
    pub(super) fn later(&self) -> Self {
        Self { created_at: self.created_at + 1, active: !self.active, ..self.clone() }
    }

    pub(super) fn scored(&self, score: u64) -> Self {
        Self { score, ..self.clone() }
    }
}

fn uuid(random: &mut SplitMix64) -> String {
    let hex = format!("{:016x}{:016x}", random.next(), random.next());
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}

fn name(random: &mut SplitMix64) -> String {
    let letters = 3 + random.below(8);
    (0..letters).map(|_| char::from(b'A' + u8::try_from(random.below(26)).unwrap_or(0))).collect()
}
