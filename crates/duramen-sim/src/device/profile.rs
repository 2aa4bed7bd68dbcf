//! What kind of disk is simulated.

use crate::Random;

/// How a disk treats writes that are not synced when the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Bytes in a sector, the unit that writes are torn at: 512 or 4,096.
    pub sector: u32,
    /// Whether a sector is either old or new, never a mix and never noise.
    pub atomic_sector: bool,
    /// Whether operations become durable in the order in which they were given.
    pub sequential: bool,
}

impl Profile {
    /// A disk that tears nothing smaller than a page and keeps the order.
    pub const KIND: Self = Self { sector: 4_096, atomic_sector: true, sequential: true };
    /// A disk that tears anywhere and in any order.
    pub const CRUEL: Self = Self { sector: 512, atomic_sector: false, sequential: false };

    /// A disk as found: most have atomic sectors, few keep the order.
    pub fn random(random: &mut Random) -> Self {
        Self {
            sector: random.choose(&[512, 4_096]),
            atomic_sector: !random.one_in(5),
            sequential: random.one_in(10),
        }
    }
}
