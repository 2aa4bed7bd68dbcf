//! One run: its scale, its subjects, its scratch folder and its figures.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::arguments::Arguments;
use crate::contest::Contestant;
use crate::engine::DuramenStore;
use crate::figures::Figures;
use crate::machine::Machine;
use crate::probe::Probe;
use crate::rivals::{
    Cluster, POSTGRES, POSTGRES_STATEMENTS, PostgresStore, SQLITE, SqliteStore, Style, Trees,
};
use crate::sampling::Rounds;
use crate::subject::{DURAMEN, VersionedStore};
use crate::workloads::{Analytics, History};

/// A run of selected workloads.
pub(crate) struct Session {
    /// How much of everything.
    pub(crate) scale: Scale,
    /// What was found.
    pub(crate) figures: Figures,
    /// The device's syncs.
    pub(crate) probe: Probe,
    /// The history that V1 leaves for V2 to V6.
    pub(crate) history: Option<History>,
    /// The same history in stores that are opened again before they are read.
    pub(crate) opened: Option<History>,
    /// The subjects of A1 to A9, between them.
    pub(crate) analytics: Option<Analytics>,
    arguments: Arguments,
    cluster: Option<Arc<Cluster>>,
    folders: u32,
    folder: TempDir,
}

/// How much of everything a run does.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// Commits of V1.
    pub(crate) commits: u64,
    /// Reads of V2 in each round.
    pub(crate) reads: u64,
    /// Documents of the second half of V2w, and changes of each.
    pub(crate) trees: u32,
    /// Changes of each of them.
    pub(crate) changes_per_tree: u64,
    /// Numbers of writers of V1g.
    pub(crate) writers: Vec<u32>,
    /// Document bytes and commits of V7.
    pub(crate) documents: Vec<(u64, u64)>,
    /// History lengths of H.
    pub(crate) histories: Vec<u64>,
    /// Bytes of the document of S2.
    pub(crate) put_bytes: u64,
    /// Records of J1.
    pub(crate) records: u64,
    /// Records of A1 to A9, and rounds of each question.
    pub(crate) analytics: Vec<u64>,
    pub(crate) questions: usize,
    /// Players of B, and rounds over all of its operations.
    pub(crate) players: Vec<u64>,
    pub(crate) passes: Rounds,
    /// Records of K.
    pub(crate) keyed: u64,
    /// Documents of MT.
    pub(crate) small_documents: u64,
    /// Series of TM.
    pub(crate) tags: u64,
    /// Bytes of JSON that MEM puts, and changes that it commits then.
    pub(crate) loaded: (u64, u64),
    /// Journal up to which W's databases write no checkpoint.
    pub(crate) journal_bytes: u64,
    /// Commits of V7f to each document.
    pub(crate) flat_commits: u64,
    /// Points that T1 appends, a tenth of those of T2.
    pub(crate) points: u64,
    /// Rounds of comparisons.
    pub(crate) rounds: Rounds,
}

impl Scale {
    fn of(arguments: &Arguments) -> Self {
        let rounds = arguments.rounds();
        let mut scale = if arguments.quick { Self::quick(rounds) } else { Self::full(rounds) };
        if !arguments.workers.is_empty() {
            scale.writers.clone_from(&arguments.workers);
        }
        if !arguments.sizes.is_empty() {
            scale.histories.clone_from(&arguments.sizes);
            scale.analytics.clone_from(&arguments.sizes);
            let commits_for = |bytes: u64| (500_000_000 / bytes).clamp(50, 5_000);
            let sizes = arguments.sizes.iter().map(|bytes| (*bytes, commits_for(*bytes)));
            scale.documents = sizes.collect();
        }
        scale
    }

    fn full(rounds: Rounds) -> Self {
        Self {
            commits: 5_000,
            reads: 1_000,
            trees: 4_000,
            changes_per_tree: 25,
            writers: vec![1, 2, 8, 32],
            documents: vec![(2_400, 5_000), (100_000, 1_000), (1_000_000, 200), (10_000_000, 50)],
            histories: vec![200, 1_000, 10_000, 100_000, 1_000_000],
            put_bytes: 15_000_000,
            records: 1_000_000,
            analytics: vec![1_000_000],
            questions: 30,
            players: vec![1_000, 10_000, 100_000],
            passes: Rounds { warmups: 1, measured: 3 },
            keyed: 10_000_000,
            small_documents: 100_000,
            tags: 1_000_000,
            loaded: (2_000_000_000, 100_000),
            journal_bytes: 64 << 20,
            flat_commits: 1_000,
            points: 1_000_000,
            rounds,
        }
    }

    fn quick(rounds: Rounds) -> Self {
        Self {
            commits: 300,
            reads: 200,
            trees: 100,
            changes_per_tree: 10,
            writers: vec![1, 8],
            documents: vec![(2_400, 100), (20_000, 20)],
            histories: vec![200, 1_000],
            put_bytes: 1_500_000,
            records: 20_000,
            analytics: vec![20_000],
            questions: 5,
            players: vec![1_000],
            passes: Rounds { warmups: 0, measured: 1 },
            keyed: 20_000,
            small_documents: 2_000,
            tags: 5_000,
            loaded: (20_000_000, 1_000),
            journal_bytes: 256 << 10,
            flat_commits: 50,
            points: 20_000,
            rounds: Rounds { measured: rounds.measured.min(5), ..rounds },
        }
    }
}

/// Which ways of using a rival take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Styles {
    /// Loops inside the server and single statements.
    Both,
    /// One, where they do not differ.
    One,
}

impl Session {
    /// Makes the scratch folder and starts the rivals that are installed.
    pub(crate) fn start(arguments: Arguments) -> Result<Self> {
        let place = &arguments.data;
        fs::create_dir_all(place).with_context(|| format!("create {}", place.display()))?;
        let folder = tempfile::Builder::new().prefix("duramen-bench-").tempdir_in(place)?;
        // PostgreSQL may run as another user, who must be able to pass through.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        let cluster = start_cluster(&arguments, folder.path())?;
        let probe = Probe::create(folder.path())?;
        let scale = Scale::of(&arguments);
        Ok(Self {
            scale,
            figures: Figures::default(),
            probe,
            history: None,
            opened: None,
            analytics: None,
            arguments,
            cluster,
            folders: 0,
            folder,
        })
    }

    /// The command line.
    pub(crate) fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// A look at the machine.
    pub(crate) fn machine(&self) -> Result<Machine> {
        let mut rivals = vec![SqliteStore::version()];
        rivals.extend(self.cluster.iter().map(|cluster| cluster.version().to_owned()));
        Machine::look(self.folder.path(), rivals)
    }

    /// A new, empty folder's path.
    pub(crate) fn new_folder(&mut self, what: &str) -> PathBuf {
        self.folders += 1;
        self.folder.path().join(format!("{what}-{}", self.folders))
    }

    /// New, empty stores of all subjects that take part.
    pub(crate) fn contestants(&mut self, trees: Trees, styles: Styles) -> Result<Vec<Contestant>> {
        let mut contestants = Vec::new();
        if self.arguments.wants(DURAMEN) {
            let store = DuramenStore::open(self.new_folder(DURAMEN))?;
            contestants.push(Contestant::new(Box::new(store)));
        }
        if let Some(cluster) = self.cluster.clone() {
            let ways = [(Style::Loop, POSTGRES), (Style::Statements, POSTGRES_STATEMENTS)];
            for (style, name) in ways {
                let wanted = style == Style::Loop || styles == Styles::Both;
                if wanted && self.arguments.wants(name) {
                    let store = PostgresStore::create(&cluster, style, trees)?;
                    contestants.push(Contestant::new(Box::new(store)));
                }
            }
        }
        if self.arguments.wants(SQLITE) {
            let store = SqliteStore::create(self.new_folder(SQLITE), trees)?;
            contestants.push(Contestant::new(Box::new(store)));
        }
        Ok(contestants)
    }

    /// New, empty stores of the subjects that live in this process, with their folders.
    pub(crate) fn embedded(&mut self) -> Result<Vec<(PathBuf, Box<dyn VersionedStore>)>> {
        let mut stores: Vec<(PathBuf, Box<dyn VersionedStore>)> = Vec::new();
        if self.arguments.wants(DURAMEN) {
            let folder = self.new_folder(DURAMEN);
            stores.push((folder.clone(), Box::new(DuramenStore::open(folder)?)));
        }
        if self.arguments.wants(SQLITE) {
            let folder = self.new_folder(SQLITE);
            stores.push((folder.clone(), Box::new(SqliteStore::create(folder, Trees::One)?)));
        }
        Ok(stores)
    }
}

/// Opens a store of [`Session::embedded`] again, by its subject's name.
pub(crate) fn open_embedded(subject: &str, folder: PathBuf) -> Result<Box<dyn VersionedStore>> {
    match subject {
        DURAMEN => Ok(Box::new(DuramenStore::open(folder)?)),
        SQLITE => Ok(Box::new(SqliteStore::open(folder)?)),
        _ => bail!("`{subject}` is no subject that lives in this process"),
    }
}

fn start_cluster(arguments: &Arguments, folder: &Path) -> Result<Option<Arc<Cluster>>> {
    if !arguments.wants(POSTGRES) && !arguments.wants(POSTGRES_STATEMENTS) {
        return Ok(None);
    }
    if let Some(cluster) = Cluster::start(folder)? {
        return Ok(Some(Arc::new(cluster)));
    }
    let how = Cluster::HOW_TO_GET;
    if arguments.require_rivals {
        bail!("postgresql is not installed: {how}");
    }
    eprintln!("postgresql is skipped, as it is not installed: {how}");
    Ok(None)
}
