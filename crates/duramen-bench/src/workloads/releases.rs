//! MIME and REL: real documents as they were released, kept as one document with a revision for
//! each, and what that takes on the disk.
//!
//! MIME is beside one archive of the same texts; REL is beside the texts themselves, which are
//! fetched apart because of their size. Every revision is read again after compaction.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use duramen::{CommitOptions, Database, Options, Revision};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::figures::Measure;
use crate::files;
use crate::session::Session;
use crate::subject::DURAMEN;

const NAME: &str = "releases";
static REGISTRY: &[u8] = include_bytes!("../../../../examples/data/mime-db.ndjson.zst");
/// The texts as they are.
const TEXT: &str = "text";
/// `zstd -19 --long=27` of the texts one after the other.
const ARCHIVE: &str = "zstd-19-long";
const ARCHIVE_LEVEL: i32 = 19;
const ARCHIVE_WINDOW_LOG: u32 = 27;

#[derive(Deserialize)]
struct Line {
    document: Box<RawValue>,
}

/// Runs MIME.
pub(crate) fn registry(session: &mut Session) -> Result<()> {
    let mut lines = String::new();
    zstd::stream::read::Decoder::new(REGISTRY)?.read_to_string(&mut lines)?;
    let line = |line: &str| Ok(serde_json::from_str::<Line>(line)?.document.get().to_owned());
    let texts = lines.lines().map(line).collect::<Result<Vec<String>>>()?;
    let archive = archive(&texts)?;
    measure(session, "MIME", &texts, (ARCHIVE, archive))
}

/// The bytes of one archive of the texts.
fn archive(texts: &[String]) -> Result<u64> {
    let mut archive = zstd::stream::write::Encoder::new(Vec::new(), ARCHIVE_LEVEL)?;
    archive.long_distance_matching(true)?;
    archive.window_log(ARCHIVE_WINDOW_LOG)?;
    texts.iter().try_for_each(|text| archive.write_all(text.as_bytes()))?;
    Ok(archive.finish()?.len() as u64)
}

/// Runs REL.
pub(crate) fn large(session: &mut Session) -> Result<()> {
    let folder = session.arguments().releases.clone();
    let texts = read_releases(&folder)?;
    if texts.is_empty() {
        let what =
            format!("{} has no releases: fetch them with scripts/releases.sh", folder.display());
        if session.arguments().require_rivals {
            bail!("{what}");
        }
        eprintln!("REL is skipped, as {what}");
        return Ok(());
    }
    let bytes = texts.iter().map(|text| text.len() as u64).sum();
    measure(session, "REL", &texts, (TEXT, bytes))
}

/// The texts of the files `VERSION.json` in a folder, oldest version first.
fn read_releases(folder: &Path) -> Result<Vec<String>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(version) = name.strip_suffix(".json").and_then(parse_version) else { continue };
        let text = files::read_text(&path).with_context(|| format!("read {}", path.display()))?;
        found.insert(version, text.trim_end().to_owned());
    }
    Ok(found.into_values().collect())
}

fn parse_version(text: &str) -> Option<Vec<u64>> {
    text.split('.').map(|number| number.parse().ok()).collect()
}

/// Puts the texts one after the other and adds what they take, before and after compaction.
fn measure(
    session: &mut Session,
    workload: &'static str,
    texts: &[String],
    (rival, rival_bytes): (&'static str, u64),
) -> Result<()> {
    let folder = session.new_folder(DURAMEN);
    let database = Database::open(&folder, Options::default())?;
    let document = database.create_document(NAME)?;
    let mut revisions = Vec::new();
    for text in texts {
        // A release that changed nothing makes no revision.
        revisions.push(document.put(text, &CommitOptions::default())?.revision());
    }
    database.checkpoint()?;
    let mut add = |case: &str| -> Result<()> {
        let journal = files::space(&folder.join("journal"))?;
        let space = files::space(&folder)?.since(journal);
        let samples = [(DURAMEN, vec![space.apparent as f64]), (rival, vec![rival_bytes as f64])];
        session.figures.add(&Measure::cost(workload, "bytes", "bytes").case(case), &samples);
        Ok(())
    };
    add("checkpointed")?;
    database.compact(&mut |_, _| ControlFlow::Continue(()))?;
    add("compacted")?;
    let text_bytes: u64 = texts.iter().map(|text| text.len() as u64).sum();
    let measure = Measure::cost(workload, "text_bytes", "bytes").case("all releases");
    session.figures.add(&measure, &[(TEXT, vec![text_bytes as f64])]);
    for (revision, text) in revisions.into_iter().zip(texts) {
        let Revision(number) = revision;
        ensure!(document.at(revision)?.to_json()? == *text, "revision {number} has another text");
    }
    drop(document);
    database.close()?;
    Ok(std::fs::remove_dir_all(folder)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_come_in_the_order_of_their_versions() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["5.10.0", "5.9.1", "6.0.0"] {
            let file = folder.path().join(format!("{version}.json"));
            files::write(&file, format!("\"{version}\"\n").as_bytes()).unwrap();
        }
        files::write(&folder.path().join("LICENSE"), b"CC0").unwrap();
        let texts = read_releases(folder.path()).unwrap();
        assert_eq!(texts, ["\"5.9.1\"", "\"5.10.0\"", "\"6.0.0\""]);
        assert!(read_releases(&folder.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn an_archive_takes_what_repeats_once() {
        let numbers: Vec<String> = (0..2_000_u64).map(|n| n.pow(3).to_string()).collect();
        let text = numbers.join(",");
        let once = archive(std::slice::from_ref(&text)).unwrap();
        assert!(archive(&vec![text; 20]).unwrap() < once + once / 10);
    }
}
