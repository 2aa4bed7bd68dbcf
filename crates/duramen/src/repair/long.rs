//! First revisions whose values are too long to be held in memory: they are printed twice, the
//! second time into a bulk load.

use sha2::{Digest, Sha256};

use crate::bulk::{BulkOptions, Departed, RecordVersions};
use crate::content_hash::ContentHash;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::repair::Step;
use crate::repair::print::{Output, Printer, Root};
use crate::repair::rewrite::Rewrite;
use crate::repair::versions::Versions;
use crate::revision::Revision;
use crate::threads::piped;
use crate::tree::history::short;

/// A revision that was printed.
pub(super) struct Printed {
    pub(super) root: Root,
    /// Its text, but for what was too long to be held.
    pub(super) text: Vec<u8>,
    pub(super) is_long: bool,
    sha256: Sha256,
}

impl Printed {
    /// Prints a revision; of a text of more bytes than that, nothing is held.
    pub(super) fn of(printer: &mut Printer<'_>, revision: u32, bytes_max: usize) -> Result<Self> {
        let (mut text, mut sha256, mut is_long) = (Vec::new(), Sha256::new(), false);
        let mut take = |text: &mut Vec<u8>| {
            if is_long || text.len() > bytes_max {
                is_long = true;
                sha256.update(&*text);
                text.clear();
            }
            Ok(())
        };
        let root = printer.print(revision, &mut Output { text: &mut text, take: &mut take })?;
        Ok(Self { root, text, is_long, sha256 })
    }

    /// One that is lost.
    pub(super) fn lost() -> Self {
        Self { root: Root::Lost, text: Vec::new(), is_long: false, sha256: Sha256::new() }
    }

    pub(super) fn hash(&self) -> ContentHash {
        let sha256 = self.sha256.clone().chain_update(&self.text);
        ContentHash::from_bytes(sha256.finalize().into())
    }
}

impl Rewrite<'_> {
    /// Loads a first revision as it is printed once more. False if it may not be there: what could
    /// be stored once may be over a limit now.
    pub(super) fn load(
        &self,
        (printer, revision): (&mut Printer<'_>, Revision),
        (versions, commit): (Option<&Versions<'_>>, &CommitOptions),
        step: &mut Step<'_>,
    ) -> Result<bool> {
        let versions = match versions {
            Some(versions) => self.first_versions(revision, versions)?,
            None => RecordVersions::default(),
        };
        // What it lacks was counted when it was printed first.
        let lost = printer.lost.clone();
        let options = BulkOptions { commit: commit.clone(), ..BulkOptions::default() };
        let loaded = piped(
            |out| {
                let mut take = |text: &mut Vec<u8>| {
                    let written = out.write_all(text);
                    text.clear();
                    written.map_err(|error| Error::io("cannot hand the value over", error))
                };
                let mut text = Vec::new();
                let mut output = Output { text: &mut text, take: &mut take };
                printer.print(short(revision), &mut output)?;
                take(&mut text)
            },
            |text| {
                let mut go_on = |_| super::go_on(step);
                let target = (self.name, &versions);
                self.database.bulk_load_versions(target, text, &options, &mut go_on)
            },
        );
        printer.lost = lost;
        match loaded {
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(false),
            loaded => loaded.map(|_| true),
        }
    }

    /// The versions that records have in the first revision, as far as any are known.
    fn first_versions(
        &self,
        revision: Revision,
        versions: &Versions<'_>,
    ) -> Result<RecordVersions> {
        // That it counted says that it is not the first version.
        let counted = self.counted(revision)?.into_iter().map(|key| (key, 2));
        let known = versions.at(revision)?.into_iter().filter_map(|(key, known)| {
            let known = known.filter(|known| *known > 1)?;
            Some((key.to_owned(), known))
        });
        let departed = if self.is_last(revision) {
            Departed::ByName(versions.gone(revision)?)
        } else {
            Departed::Nothing
        };
        Ok(RecordVersions { by_name: counted.chain(known).collect(), are_there: false, departed })
    }
}
