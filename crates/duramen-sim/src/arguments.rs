//! The command line.

use crate::suites::{Replay, seed_of};
use crate::{Profile, Random};

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// Every suite.
    Suites { tier: Tier, fresh: u64 },
    /// All suites in turn with fresh seeds for so many hours.
    Run { hours: f64, fresh: u64 },
    /// One round again.
    Replay(Replay),
    /// Planted defects must be found.
    Teeth,
    /// Power losses in a build with a planted defect; for the parent process.
    Bite,
    /// A round that does not end; for the parent process.
    Hang,
    /// Writes the corpus of the decoders.
    Corpus { folder: String },
    /// Commits until it is killed; for the parent process.
    Child { folder: String, durability: String, seed: u64 },
}

/// How much is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// On every push: minutes.
    A,
    /// At night: hours.
    B,
}

/// What kind of disk is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// Drawn from the seed.
    Random,
    Cruel,
    Kind,
}

/// How it is called.
pub(crate) const USAGE: &str = "\
Usage:
  duramen-sim suites [--tier a|b] [--fresh TEXT]   every suite; half of the seeds follow from TEXT
  duramen-sim run --hours N [--fresh TEXT]         all suites in turn, with fresh seeds, for N hours
  duramen-sim power-loss --seed N [--profile cruel|kind]   one round again
  duramen-sim error --seed N                       one failing operation again
  duramen-sim image --seed N                       one crash point with its images again
  duramen-sim damaged --seed N                     one damaged file again
  duramen-sim fuzz --seed N                        inputs of one decoder again
  duramen-sim full-disk --seed N                   one full file system again
  duramen-sim corpus FOLDER                        inputs for `cargo fuzz` to begin with
  duramen-sim backup --seed N                      one round of backups again
  duramen-sim bank --seed N                        one round of transfers again
  duramen-sim records --seed N                     one life of collections again
  duramen-sim series --seed N                      one life of series again
  duramen-sim versions --seed N                    one record with N versions
  duramen-sim clients --seed N                     one history of concurrent clients again
  duramen-sim kills --seed N                       one database whose processes are killed again
  duramen-sim teeth                                planted defects, in a build that has them";

impl Command {
    /// Reads the words after the program's name.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let fresh = |text: Option<&str>| text.map_or_else(arbitrary, seed_of);
        match words {
            ["suites", rest @ ..] => {
                let tier = match option(rest, "--tier") {
                    None | Some("a") => Tier::A,
                    Some("b") => Tier::B,
                    Some(_) => return None,
                };
                Some(Self::Suites { tier, fresh: fresh(option(rest, "--fresh")) })
            }
            ["run", rest @ ..] => {
                let hours: f64 = option(rest, "--hours")?.parse().ok()?;
                if !hours.is_finite() || hours < 0.0 {
                    return None;
                }
                Some(Self::Run { hours, fresh: fresh(option(rest, "--fresh")) })
            }
            ["teeth"] => Some(Self::Teeth),
            ["bite"] => Some(Self::Bite),
            ["hang"] => Some(Self::Hang),
            ["corpus", folder] => Some(Self::Corpus { folder: (*folder).to_owned() }),
            ["child", folder, durability, seed] => Some(Self::Child {
                folder: (*folder).to_owned(),
                durability: (*durability).to_owned(),
                seed: seed.parse().ok()?,
            }),
            words => Replay::parse(words).map(Self::Replay),
        }
    }
}

/// The word after `name`.
fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.windows(2).find(|pair| pair[0] == name).map(|pair| pair[1])
}

/// A number that differs from run to run.
fn arbitrary() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    Random::new(RandomState::new().hash_one(0)).bits()
}

impl Tier {
    /// How many times the rounds of tier A.
    pub(crate) fn scale(self) -> u64 {
        match self {
            Self::A => 1,
            Self::B => 50,
        }
    }
}

impl Disk {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Cruel, Self::Kind].into_iter().find(|disk| disk.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Cruel => "cruel",
            Self::Kind => "kind",
        }
    }

    /// The profile, unless the seed draws it.
    pub(crate) fn profile(self) -> Option<Profile> {
        match self {
            Self::Random => None,
            Self::Cruel => Some(Profile::CRUEL),
            Self::Kind => Some(Profile::KIND),
        }
    }
}
