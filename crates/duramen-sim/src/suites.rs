//! The suites: each runs many rounds, one per seed, and reports what failed.

mod backups;
mod bank;
mod clients;
mod damaged;
mod errors;
mod exhaustive;
mod full_disk;
mod fuzz;
mod kills;
mod long_run;
mod machine;
mod power_loss;
mod records;
mod series;
mod teeth;
mod versions;
mod watchdog;

use std::collections::BTreeSet;

pub(crate) use fuzz::write_corpus;
pub(crate) use kills::child;
pub(crate) use long_run::long_run;
pub(crate) use teeth::{power_losses as bite, run as teeth};
pub(crate) use watchdog::hang;

use crate::arguments::{Disk, Tier};
use crate::expectation::Check;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{Random, random};

/// Seeds that once failed: they are replayed for ever.
const STORED: &str = include_str!("../fixtures/seeds.txt");

/// Runs every suite; returns how many failed.
pub(crate) fn all(tier: Tier, fresh: u64) -> usize {
    let scale = tier.scale();
    let passed = [
        canary().print(),
        watchdog::suite().print(),
        damaged::suite(200_000 * scale, fresh).print(),
        fuzz::suite(120 * scale, fresh).print(),
        stored().print(),
        power_losses(20_000 * scale, fresh, Disk::Random).print(),
        exhaustive::suite(30_000).print(),
        errors::suite(400 * scale, fresh).print(),
        determinism(50 * scale, fresh).print(),
        bank::suite(500 * scale, fresh).print(),
        clients::suite(200 * scale, fresh).print(),
        records::suite(500 * scale, fresh).print(),
        series::suite(500 * scale, fresh).print(),
        backups::suite(200 * scale, fresh).print(),
        kills::suite(500 * scale, fresh).print(),
        full_disk::suite(18).print(),
        versions::suite(1_000_000).print(),
    ];
    passed.into_iter().filter(|passed| !passed).count()
}

/// Rounds of a hundred whose database must have aged.
const COMPACTED_PERCENT: u64 = 30;

/// Half of the seeds are always the same, half follow from `fresh`.
fn seeds(count: u64, fresh: u64) -> Vec<u64> {
    let mut random = Random::new(fresh);
    let drawn = (0..count / 2).map(|_| random.bits() >> 16);
    (0..count - count / 2).chain(drawn).collect()
}

/// Suite 4: power losses with and without crashes in the recovery from them.
pub(crate) fn power_losses(count: u64, fresh: u64, disk: Disk) -> Report {
    let suite = Suite { compacted_percent_min: COMPACTED_PERCENT, ..Suite::gated("power-loss") };
    run(suite, &seeds(count, fresh), &|seed| Replay::PowerLoss { seed, disk }.round())
}

/// One round that a line of output names, to be run again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Replay {
    PowerLoss { seed: u64, disk: Disk },
    Error { seed: u64 },
    Image { seed: u64 },
    Damaged { seed: u64 },
    Fuzz { seed: u64 },
    FullDisk { seed: u64 },
    Backup { seed: u64 },
    Bank { seed: u64 },
    Clients { seed: u64 },
    Kills { seed: u64 },
    Records { seed: u64 },
    Series { seed: u64 },
    Versions { seed: u64 },
}

impl Replay {
    /// Runs the round; what fails says how to run it again.
    pub(crate) fn round(self) -> Check<Tally> {
        let result = match self {
            Self::PowerLoss { seed, disk } => power_loss::round(seed, disk.profile()),
            Self::Error { seed } => errors::round(seed),
            Self::Image { seed } => exhaustive::round(seed),
            Self::Damaged { seed } => damaged::round(seed),
            Self::Fuzz { seed } => fuzz::round(seed),
            Self::FullDisk { seed } => full_disk::round(seed),
            Self::Backup { seed } => backups::round(seed),
            Self::Bank { seed } => bank::round(seed),
            Self::Clients { seed } => clients::round(seed),
            Self::Kills { seed } => kills::round(seed),
            Self::Records { seed } => records::round(seed),
            Self::Series { seed } => series::round(seed),
            Self::Versions { seed } => versions::round(seed),
        };
        result.map_err(|what| format!("{what}\nREPRODUCE: duramen-sim {self}"))
    }

    /// Reads what `Display` writes.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let (suite, rest) = words.split_first()?;
        let (seed, rest) = match rest {
            ["--seed", seed, rest @ ..] => (seed.parse().ok()?, rest),
            _ => return None,
        };
        match (*suite, rest) {
            ("power-loss", []) => Some(Self::PowerLoss { seed, disk: Disk::Random }),
            ("power-loss", ["--profile", disk]) => {
                Some(Self::PowerLoss { seed, disk: Disk::parse(disk)? })
            }
            ("error", []) => Some(Self::Error { seed }),
            ("image", []) => Some(Self::Image { seed }),
            ("damaged", []) => Some(Self::Damaged { seed }),
            ("fuzz", []) => Some(Self::Fuzz { seed }),
            ("full-disk", []) => Some(Self::FullDisk { seed }),
            ("backup", []) => Some(Self::Backup { seed }),
            ("bank", []) => Some(Self::Bank { seed }),
            ("clients", []) => Some(Self::Clients { seed }),
            ("kills", []) => Some(Self::Kills { seed }),
            ("records", []) => Some(Self::Records { seed }),
            ("series", []) => Some(Self::Series { seed }),
            ("versions", []) => Some(Self::Versions { seed }),
            _ => None,
        }
    }
}

impl std::fmt::Display for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PowerLoss { seed, disk: Disk::Random } => write!(f, "power-loss --seed {seed}"),
            Self::PowerLoss { seed, disk } => {
                write!(f, "power-loss --seed {seed} --profile {}", disk.name())
            }
            Self::Error { seed } => write!(f, "error --seed {seed}"),
            Self::Image { seed } => write!(f, "image --seed {seed}"),
            Self::Damaged { seed } => write!(f, "damaged --seed {seed}"),
            Self::Fuzz { seed } => write!(f, "fuzz --seed {seed}"),
            Self::FullDisk { seed } => write!(f, "full-disk --seed {seed}"),
            Self::Backup { seed } => write!(f, "backup --seed {seed}"),
            Self::Bank { seed } => write!(f, "bank --seed {seed}"),
            Self::Clients { seed } => write!(f, "clients --seed {seed}"),
            Self::Kills { seed } => write!(f, "kills --seed {seed}"),
            Self::Records { seed } => write!(f, "records --seed {seed}"),
            Self::Series { seed } => write!(f, "series --seed {seed}"),
            Self::Versions { seed } => write!(f, "versions --seed {seed}"),
        }
    }
}

fn stored() -> Report {
    let lines: Vec<&str> =
        STORED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let numbers: Vec<u64> = (0..lines.len() as u64).collect();
    run(Suite::new("stored-seeds"), &numbers, &|number| {
        let line = usize::try_from(number).ok().and_then(|at| lines.get(at)).unwrap_or(&"");
        let words: Vec<&str> = line.split_whitespace().collect();
        let replay = Replay::parse(&words).ok_or_else(|| format!("seeds.txt has {line:?}"))?;
        replay.round()
    })
}

/// Suite 22: a seed fixes every operation on the device.
fn determinism(count: u64, fresh: u64) -> Report {
    run(Suite::new("determinism"), &seeds(count, fresh), &|seed| {
        let first = power_loss::round(seed, None)?;
        let second = power_loss::round(seed, None)?;
        if first.trace != second.trace {
            let (first, second) = (first.trace, second.trace);
            return Err(format!("seed {seed} gave the traces {first:#x} and {second:#x}"));
        }
        Ok(second)
    })
}

/// Suite 24: a failure and a panic are reported as such.
fn canary() -> Report {
    let planted = run(Suite::new("canary"), &[0, 1, 2], &|seed| match seed {
        0 => Ok(Tally::default()),
        1 => Err("planted failure".to_owned()),
        _ => panic!("planted panic"),
    });
    let caught = planted.failures.len();
    let mut report = run(Suite::new("canary"), &[0], &|_| match caught {
        2 => Ok(Tally { seen: BTreeSet::from(["failure", "panic"]), ..Tally::default() }),
        _ => Err(format!("{caught} of 2 planted failures were reported")),
    });
    report.rounds = planted.rounds;
    report
}

/// A seed out of a text, such as the name of a commit.
pub(crate) fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0xd0, |seed, byte| random::mix(seed ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reproduction_line_reads_as_it_is_written() {
        for line in ["power-loss --seed 7 --profile cruel", "power-loss --seed 8", "error --seed 9"]
        {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(Replay::parse(&words).unwrap().to_string(), line);
        }
        assert!(Replay::parse(&["power-loss", "--seed", "x"]).is_none());
    }

    #[test]
    fn half_of_the_seeds_follow_from_the_commit() {
        let (one, other) = (seeds(10, seed_of("a1")), seeds(10, seed_of("a2")));
        assert_eq!(one[..5], other[..5]);
        assert!(one[5..].iter().all(|seed| !other.contains(seed)));
    }

    #[test]
    fn failures_and_panics_are_counted() {
        assert!(canary().failures.is_empty());
    }

    #[test]
    fn some_rounds_of_each_suite_pass() {
        for report in [
            power_losses(120, 1, Disk::Cruel),
            power_losses(120, 1, Disk::Kind),
            errors::suite(40, 1),
            exhaustive::suite(200),
            damaged::suite(2_000, 1),
            fuzz::suite(2, 1),
            determinism(4, 1),
            bank::suite(20, 1),
            clients::suite(2, 1),
            records::suite(20, 1),
            series::suite(20, 1),
        ] {
            let wrong: Vec<_> = report.wrong().collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", report.suite.name);
        }
    }
}
