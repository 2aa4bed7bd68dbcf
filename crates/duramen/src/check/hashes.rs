//! Makes the content hashes again that checkpoints kept.

use crate::check::{CheckReport, Finding};
use crate::content_hash::ContentHash;
use crate::error::Result;
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::history::short;

impl CheckReport {
    /// Every revision whose hash was kept has the value that it had. There is at most one for each
    /// segment, and texts over a limit have none, so all of them are made again.
    pub(super) fn check_hashes(&mut self, place: &str, tree: &Tree) -> Result<()> {
        for kept in tree.kept_hashes()? {
            let (revision, expected) = kept?;
            self.hashes += 1;
            let place = format!("{place}, revision {revision}");
            let wrong = wrong_value(tree, revision, expected);
            // A compaction may drop it meanwhile, and the hash is read from what it replaced.
            if tree.check_kept(revision).is_err() {
                continue;
            }
            let wrong = self.found(&place, wrong)?.flatten();
            self.findings.extend(wrong.map(|message| Finding { place, message }));
        }
        Ok(())
    }
}

/// What is wrong with the value of a revision that had this hash, if anything is.
fn wrong_value(tree: &Tree, revision: Revision, expected: ContentHash) -> Result<Option<String>> {
    let wrong = |found: String| {
        Some(format!("it had the hash {expected} when a checkpoint wrote it, found {found}"))
    };
    let at = short(revision);
    if u64::from(at) != revision.0 || tree.row(revision).is_err() {
        return Ok(wrong("no such revision".to_owned()));
    }
    if tree.deleted_in(at)?.is_some() {
        return Ok(wrong("the document deleted".to_owned()));
    }
    let found = tree.content_hash(at)?;
    Ok(if found == expected { None } else { wrong(found.to_string()) })
}

#[cfg(test)]
mod tests;
