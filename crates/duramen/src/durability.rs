//! What an acknowledged commit promises.

/// When a commit is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// When it is on the device: it survives a power loss.
    #[default]
    Sync,
    /// When it is handed to the operating system: it survives a killed process; the device may lag
    /// behind by this many milliseconds.
    Interval(u32),
}
