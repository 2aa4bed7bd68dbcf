//! Where the revisions come from: files, or the lines of one file.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use duramen::{Error, ErrorKind, Result};

use crate::input;

/// One JSON text.
pub(super) struct Item {
    pub(super) json: Vec<u8>,
    /// The file that it is the whole of.
    pub(super) file: Option<PathBuf>,
    /// What people call the place that it comes from.
    place: String,
}

/// A sequence of JSON texts. What was loaded or passed over is counted, blank lines included, so
/// that the count is the line number as well.
pub(super) struct Source {
    position: u64,
    kind: Kind,
}

enum Kind {
    Files(Vec<PathBuf>),
    Lines { name: String, path: PathBuf, lines: Box<dyn BufRead> },
}

impl Source {
    pub(super) fn open(files: &[PathBuf], ndjson: Option<&Path>) -> Result<Self> {
        let kind = match ndjson {
            None => Kind::Files(files.to_vec()),
            Some(path) => Kind::Lines {
                name: input::name(path),
                path: path.to_path_buf(),
                lines: input::lines(path)?,
            },
        };
        Ok(Self { position: 0, kind })
    }

    /// How many texts were loaded or passed over.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// How many there are, if that is known.
    pub(super) fn total(&self) -> Option<u64> {
        match &self.kind {
            Kind::Files(files) => u64::try_from(files.len()).ok(),
            Kind::Lines { .. } => None,
        }
    }

    /// What is counted.
    pub(super) fn unit(&self) -> &'static str {
        match &self.kind {
            Kind::Files(_) => "files",
            Kind::Lines { .. } => "lines",
        }
    }

    /// Passes over `count` texts; there have to be so many.
    pub(super) fn skip(&mut self, count: u64) -> Result<()> {
        while self.position < count {
            let there_is_one = match &self.kind {
                Kind::Files(files) => self.position < u64::try_from(files.len()).unwrap_or(0),
                Kind::Lines { .. } => self.next()?.is_some(),
            };
            if !there_is_one {
                let (position, unit) = (self.position, self.unit());
                let message = format!("there are only {position} {unit} to skip, not {count}");
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            self.position += 1;
        }
        Ok(())
    }

    /// Gives the next text to `load`; false if there is none. A text counts once it is loaded.
    pub(super) fn load_next(&mut self, load: impl FnOnce(&Item) -> Result<()>) -> Result<bool> {
        let Some(item) = self.next()? else { return Ok(false) };
        if !item.json.iter().all(u8::is_ascii_whitespace) || item.file.is_some() {
            load(&item).map_err(|error| error.in_context(&item.place))?;
        }
        self.position += 1;
        Ok(true)
    }

    fn next(&mut self) -> Result<Option<Item>> {
        let index = usize::try_from(self.position).unwrap_or(usize::MAX);
        match &mut self.kind {
            Kind::Files(files) => {
                let Some(path) = files.get(index) else { return Ok(None) };
                let (json, file) = (input::read(path)?, Some(path.clone()));
                Ok(Some(Item { json, file, place: input::name(path) }))
            }
            Kind::Lines { name, path, lines } => {
                let mut json = Vec::new();
                let length = lines
                    .read_until(b'\n', &mut json)
                    .map_err(|error| input::failure(path, error))?;
                while json.last().is_some_and(|byte| b"\r\n".contains(byte)) {
                    json.pop();
                }
                let place = format!("{name}, line {}", self.position + 1);
                Ok((length > 0).then_some(Item { json, file: None, place }))
            }
        }
    }
}
