//! A throwaway `PostgreSQL` server: made by `initdb`, reached through a Unix socket, gone at the
//! end.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use postgres::{Client, Config, NoTls};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::files;
use crate::stopwatch::Stopwatch;

const SUPERUSER: &str = "bench";
const PORT: u16 = 5432;
const START_SECONDS_MAX: f64 = 60.0;
const STOP_SECONDS_MAX: f64 = 60.0;

/// The settings of every figure; the rest is `PostgreSQL`'s default.
const SETTINGS: [&str; 5] = [
    "listen_addresses=",
    "fsync=on",
    "synchronous_commit=on",
    "shared_buffers=1GB",
    "max_connections=100",
];

/// A running server that stops when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    server: Child,
    data: PathBuf,
    socket: TempDir,
    version: String,
    databases: AtomicU32,
    _folder: TempDir,
}

impl Cluster {
    /// For the line that says it is skipped.
    pub(crate) const HOW_TO_GET: &str =
        "`apt-get install postgresql`, or put initdb and postgres on the PATH";

    /// Starts a server with its data in a new folder below `under`; `None` if it is not installed.
    pub(crate) fn start(under: &Path) -> Result<Option<Self>> {
        let Some(programs) = Programs::find() else { return Ok(None) };
        let account = Account::to_run_as()?;
        let folder = account.own_folder(under)?;
        let socket = account.own_folder(&std::env::temp_dir())?;
        let data = folder.path().join("data");
        programs.make_cluster(&account, &data)?;
        let server = programs.serve(&account, &data, socket.path())?;
        let databases = AtomicU32::new(0);
        let version = programs.version()?;
        let mut cluster = Self { server, data, socket, version, databases, _folder: folder };
        cluster.wait_until_ready()?;
        Ok(Some(cluster))
    }

    /// The server's version.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The folder of the cluster's files.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Makes an empty database and returns its name.
    pub(crate) fn create_database(&self) -> Result<String> {
        let name = format!("bench_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.connect("postgres")?.batch_execute(&format!("CREATE DATABASE {name}"))?;
        Ok(name)
    }

    /// Removes a database with its files.
    pub(crate) fn drop_database(&self, name: &str) -> Result<()> {
        let drop = format!("DROP DATABASE {name} WITH (FORCE)");
        Ok(self.connect("postgres")?.batch_execute(&drop)?)
    }

    /// Opens a connection.
    pub(crate) fn connect(&self, database: &str) -> Result<Client, postgres::Error> {
        Config::new()
            .host_path(self.socket.path())
            .port(PORT)
            .user(SUPERUSER)
            .dbname(database)
            .connect(NoTls)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let watch = Stopwatch::start();
        while let Err(error) = self.connect("postgres") {
            let exited = self.server.try_wait()?.is_some();
            if exited || watch.seconds() > START_SECONDS_MAX {
                let log = log_tail(&self.data);
                return Err(error).with_context(|| format!("postgres did not start: {log}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        // SIGINT is PostgreSQL's fast shutdown: sessions end, the data is checkpointed.
        let asked = pid.is_some_and(|pid| kill_process(pid, Signal::INT).is_ok());
        let watch = Stopwatch::start();
        while asked && watch.seconds() < STOP_SECONDS_MAX {
            if !matches!(self.server.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn log_tail(data: &Path) -> String {
    let log = files::read_text(&data.with_extension("log")).unwrap_or_default();
    let mut lines: Vec<_> = log.lines().rev().take(3).collect();
    lines.reverse();
    lines.join("; ")
}

/// Where the programs are.
#[derive(Debug)]
struct Programs {
    folder: PathBuf,
}

impl Programs {
    fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
            .map(|found| found.flatten().map(|entry| entry.path().join("bin")).collect())
            .unwrap_or_default();
        versions.sort();
        let complete = |folder: &PathBuf| {
            ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
        };
        let mut folders = std::env::split_paths(&path).chain(versions.into_iter().rev());
        Some(Self { folder: folders.find(complete)? })
    }

    fn version(&self) -> Result<String> {
        let said = Command::new(self.folder.join("postgres")).arg("--version").output()?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    fn make_cluster(&self, account: &Account, data: &Path) -> Result<()> {
        let mut initdb = account.command(&self.folder.join("initdb"));
        let owner = format!("--username={SUPERUSER}");
        initdb.args(["--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]);
        let done = initdb.arg(owner).arg("-D").arg(data).stdin(Stdio::null()).output()?;
        if !done.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(())
    }

    fn serve(&self, account: &Account, data: &Path, socket: &Path) -> Result<Child> {
        let log = files::create(&data.with_extension("log"))?;
        let mut server = account.command(&self.folder.join("postgres"));
        server.arg("-D").arg(data).arg("-k").arg(socket).args(["-p", &PORT.to_string()]);
        for setting in SETTINGS {
            server.args(["-c", setting]);
        }
        server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        server.spawn().context("start postgres")
    }
}

/// Whom the server runs as: `PostgreSQL` refuses to run as root.
#[derive(Debug)]
struct Account {
    switch_to: Option<(u32, u32)>,
}

impl Account {
    fn to_run_as() -> Result<Self> {
        if fs::metadata("/proc/self")?.uid() != 0 {
            return Ok(Self { switch_to: None });
        }
        let accounts = files::read_text(Path::new("/etc/passwd"))?;
        let find = |name: &str| accounts.lines().find_map(|line| ids_of(line, name));
        let ids = find("postgres").or_else(|| find("nobody"));
        let ids = ids.context("root cannot run postgres and has no account to switch to")?;
        Ok(Self { switch_to: Some(ids) })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = self.switch_to {
            command.uid(user).gid(group).current_dir("/");
        }
        command
    }

    fn own_folder(&self, under: &Path) -> Result<TempDir> {
        let folder = tempfile::Builder::new().prefix("duramen-bench-pg-").tempdir_in(under)?;
        if let Some((user, group)) = self.switch_to {
            chown(folder.path(), Some(user), Some(group))?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700))?;
        Ok(folder)
    }
}

/// User and group of a line of `/etc/passwd`, if it is that account's.
fn ids_of(line: &str, name: &str) -> Option<(u32, u32)> {
    let mut fields = line.split(':');
    let found = fields.next()? == name;
    let _password = fields.next()?;
    let ids = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    found.then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_lines_are_read_by_name() {
        let line = "postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash";
        assert_eq!(ids_of(line, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(line, "nobody"), None);
        assert_eq!(ids_of("broken", "broken"), None);
    }
}
