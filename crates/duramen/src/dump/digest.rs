//! The hash of what a dump says.

use sha2::{Digest, Sha256};

use super::{DumpItem, DumpSummary, DumpedPoints};
use crate::content_hash::ContentHash;
use crate::export::{ExportedFacts, ExportedRevision};
use crate::revision::Micros;
use crate::series::SeriesValue;

/// The SHA-256 of what a dump says: every text with its length before it, so that none can be taken
/// for two others.
#[derive(Debug, Default)]
pub(super) struct DumpDigest {
    sha256: Sha256,
    documents: u64,
    revisions: u64,
    series: u64,
    points: u64,
    /// Points on their way into the hash.
    buffer: Vec<u8>,
}

impl DumpDigest {
    pub(super) fn summary(&self) -> DumpSummary {
        let hash = ContentHash::from_bytes(self.sha256.clone().finalize().into());
        let Self { documents, revisions, series, points, .. } = *self;
        DumpSummary { documents, revisions, series, points, hash }
    }

    pub(super) fn add(&mut self, item: &DumpItem) {
        match item {
            DumpItem::Document { name, facts } => self.add_document(name, facts),
            DumpItem::Revision(revision) => self.add_revision(revision),
            DumpItem::SeriesRules(rules) => {
                self.bytes(b"rules");
                self.bytes(rules.as_bytes());
            }
            DumpItem::Series { name, record } => {
                self.series += 1;
                self.bytes(b"series");
                self.bytes(name.as_bytes());
                self.bytes(record.as_bytes());
            }
            DumpItem::Commits(commits) => {
                for commit in commits {
                    self.bytes(b"commit");
                    self.number(commit.0.0);
                    self.time(commit.1);
                }
            }
            DumpItem::Points(points) => self.add_points(points),
            DumpItem::Deletes { series, spans } => {
                for &(commit, first, last) in spans {
                    self.bytes(b"delete");
                    self.bytes(series.as_bytes());
                    self.number(commit.0);
                    self.time(first);
                    self.time(last);
                }
            }
        }
    }

    fn add_points(&mut self, dumped: &DumpedPoints) {
        let DumpedPoints { series, points, commits } = dumped;
        self.points += points.len() as u64;
        self.bytes(b"points");
        self.bytes(series.as_bytes());
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        for (point, commit) in points.iter().zip(commits) {
            buffer.extend(point.time.0.to_le_bytes());
            buffer.extend(commit.0.to_le_bytes());
            buffer.push(point.quality.0);
            match point.value {
                SeriesValue::F64(value) => buffer.extend(value.to_bits().to_le_bytes()),
                SeriesValue::F32(value) => buffer.extend(value.to_bits().to_le_bytes()),
                SeriesValue::I64(value) => buffer.extend(value.to_le_bytes()),
                SeriesValue::Bool(value) => buffer.push(u8::from(value)),
                SeriesValue::String(text) => {
                    buffer.extend((text.len() as u64).to_le_bytes());
                    buffer.extend(text.as_bytes());
                }
            }
        }
        self.bytes(&buffer);
        self.buffer = buffer;
    }

    fn add_document(&mut self, name: &str, facts: &ExportedFacts) {
        self.documents += 1;
        self.bytes(b"document");
        self.bytes(name.as_bytes());
        self.bytes(facts.options.to_json().as_bytes());
        self.number(facts.tags.len() as u64);
        for tag in &facts.tags {
            self.bytes(tag.name.as_bytes());
            self.number(tag.revision.0);
            self.bytes(tag.hash.as_bytes());
            self.text(tag.author.as_deref());
            self.text(tag.message.as_deref());
            // Dumps of before had no time there, and are as they were.
            if tag.timestamp != Micros(0) {
                self.time(tag.timestamp);
            }
        }
        for purge in &facts.purges {
            self.bytes(b"purge");
            self.bytes(purge.place.to_string().as_bytes());
            self.time(purge.timestamp);
            self.text(purge.author.as_deref());
            self.text(purge.message.as_deref());
        }
    }

    fn add_revision(&mut self, revision: &ExportedRevision) {
        self.revisions += 1;
        self.bytes(b"revision");
        self.number(revision.revision.0);
        self.time(revision.timestamp);
        self.text(revision.author.as_deref());
        self.text(revision.message.as_deref());
        // A deleted document has no hash.
        self.bytes(revision.hash.as_ref().map_or(&[], |hash| hash.as_bytes()));
        for key in &revision.counted {
            self.bytes(b"counted");
            self.bytes(key.as_bytes());
        }
        for (key, version) in &revision.versions {
            self.bytes(b"version");
            self.bytes(key.as_bytes());
            self.number(*version);
        }
        if let Some(hash) = revision.departed.hash() {
            self.bytes(b"departed");
            self.bytes(hash.as_bytes());
        }
    }

    fn number(&mut self, number: u64) {
        self.sha256.update(number.to_le_bytes());
    }

    fn time(&mut self, time: Micros) {
        self.number(time.0.cast_unsigned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.sha256.update(bytes);
    }

    fn text(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.bytes(text.unwrap_or_default().as_bytes());
    }
}
