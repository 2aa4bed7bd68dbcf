//! On what a run was made: `machine.json`.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::files;

/// The machine, the versions and the settings of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    cores: usize,
    memory_bytes: u64,
    kernel: String,
    file_system: String,
    /// Where stores were made.
    data: String,
    rust: &'static str,
    duramen: &'static str,
    rivals: Vec<String>,
    durability: &'static str,
    command: Vec<String>,
}

impl Machine {
    /// Looks at this machine; `data` is where stores are made.
    pub(crate) fn look(data: &Path, rivals: Vec<String>) -> Result<Self> {
        let read = |path: &str| files::read_text(Path::new(path)).unwrap_or_default();
        let data = data.canonicalize()?;
        Ok(Self {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            cores: std::thread::available_parallelism()?.get(),
            memory_bytes: memory_bytes(&read("/proc/meminfo")).unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system(&read("/proc/self/mounts"), &data).unwrap_or_default(),
            data: data.display().to_string(),
            rust: env!("DURAMEN_BENCH_RUSTC"),
            duramen: env!("CARGO_PKG_VERSION"),
            rivals,
            durability: "each figure names its own; `sync` is fdatasync before the answer",
            command: std::env::args().collect(),
        })
    }

    /// Whether syncs cost nothing because the data lies in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file_system.starts_with("tmpfs") || self.file_system.starts_with("ramfs")
    }

    /// Writes `machine.json`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(files::write(&folder.join("machine.json"), &text)?)
    }

    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let Self { cpu, cores, kernel, file_system, .. } = self;
        let memory = self.memory_bytes >> 30;
        format!("{cpu}, {cores} cores, {memory} GiB, Linux {kernel}, {file_system}")
    }
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let kibibytes = field(meminfo, "MemTotal")?;
    Some(kibibytes.split(' ').next()?.parse::<u64>().ok()? * 1024)
}

/// Type, device and options of the mount that holds a path.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let parts = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (device, at, kind) = (words.next()?, words.next()?, words.next()?);
        let options = words.next()?;
        path.starts_with(at).then(|| (at.len(), format!("{kind} on {device} ({options})")))
    });
    parts.max_by_key(|(len, _)| *len).map(|(_, found)| found)
}

/// Bytes of memory of this process: `VmRSS` now, `VmHWM` the most at any time.
pub(crate) fn process_bytes(what: &str) -> Result<f64> {
    let status = files::read_text(Path::new("/proc/self/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kibibytes: f64 =
        kibibytes.with_context(|| format!("no {what} in /proc/self/status"))?.parse()?;
    Ok(kibibytes * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_is_that_of_the_longest_mount() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw,nosuid 0 0\n";
        let found = file_system(mounts, Path::new("/tmp/x"));
        assert_eq!(found.as_deref(), Some("tmpfs on tmpfs (rw,nosuid)"));
        let found = file_system(mounts, Path::new("/tmpfile"));
        assert_eq!(found.as_deref(), Some("ext4 on /dev/vda (rw)"));
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(memory_bytes("MemTotal:       2048 kB\n"), Some(2_097_152));
    }
}
