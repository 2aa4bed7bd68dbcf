//! Where the revisions come from: files, or the lines of one file.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use duramen::{Error, ErrorKind, Result};
use serde::de::IgnoredAny;

use crate::input;

/// One JSON text.
pub(super) struct Item {
    pub(super) json: Vec<u8>,
    /// The file that it is the whole of.
    pub(super) file: Option<PathBuf>,
    /// What people call the place that it comes from.
    place: String,
}

impl Item {
    /// Whether it is a blank line.
    pub(super) fn is_blank(&self) -> bool {
        self.file.is_none() && self.json.iter().all(u8::is_ascii_whitespace)
    }

    /// Gives it to `load`. A blank line is passed over.
    pub(super) fn give(&self, load: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        if self.is_blank() {
            return Ok(());
        }
        load(self).map_err(|error| self.advised(error).in_context(&self.place))
    }

    /// An error of its text, with what to do where the file is probably meant otherwise.
    fn advised(&self, error: Error) -> Error {
        const OPENS: [&[u8]; 2] = [b"{", b"["];
        if self.file.is_some() || !OPENS.contains(&self.json.trim_ascii()) {
            return input::advised(error, &self.json);
        }
        let message = format!(
            "{}: with --ndjson each line is a text of its own: leave it out where the file is one",
            error.message()
        );
        Error::new(error.kind(), message)
    }
}

/// A sequence of JSON texts. What was loaded or passed over is counted, blank lines included, so
/// that the count is the line number as well.
pub(super) struct Source {
    position: u64,
    kind: Kind,
}

enum Kind {
    Files(Vec<PathBuf>),
    Lines {
        name: String,
        path: PathBuf,
        lines: Box<dyn BufRead>,
    },
    /// All lines as the elements of one array; how many were read.
    Array {
        path: PathBuf,
        elements: u64,
    },
}

impl Source {
    pub(super) fn of_files(files: &[PathBuf]) -> Self {
        Self { position: 0, kind: Kind::Files(files.to_vec()) }
    }

    pub(super) fn of_lines(path: &Path) -> Result<Self> {
        let (name, lines) = (input::name(path), input::lines(path)?);
        Ok(Self { position: 0, kind: Kind::Lines { name, path: path.to_path_buf(), lines } })
    }

    pub(super) fn of_array(path: &Path) -> Self {
        Self { position: 0, kind: Kind::Array { path: path.to_path_buf(), elements: 0 } }
    }

    /// How many lines became elements of one array; none if each is a revision.
    pub(super) fn elements(&self) -> Option<u64> {
        match self.kind {
            Kind::Array { elements, .. } => Some(elements),
            Kind::Files(_) | Kind::Lines { .. } => None,
        }
    }

    /// How many texts were loaded or passed over.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// How many there are, if that is known.
    pub(super) fn total(&self) -> Option<u64> {
        match &self.kind {
            Kind::Files(files) => u64::try_from(files.len()).ok(),
            Kind::Lines { .. } | Kind::Array { .. } => None,
        }
    }

    /// What is counted.
    pub(super) fn unit(&self) -> &'static str {
        match &self.kind {
            Kind::Files(_) => "files",
            Kind::Lines { .. } | Kind::Array { .. } => "lines",
        }
    }

    /// Passes over `count` texts; there have to be so many.
    pub(super) fn skip(&mut self, count: u64) -> Result<()> {
        while self.position < count {
            let there_is_one = match &self.kind {
                Kind::Files(files) => self.position < u64::try_from(files.len()).unwrap_or(0),
                Kind::Lines { .. } | Kind::Array { .. } => self.next()?.is_some(),
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

    /// Counts a text that was loaded or passed over.
    pub(super) fn count(&mut self) {
        self.position += 1;
    }

    /// Reads the next text, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Item>> {
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
            Kind::Array { path, elements } => {
                if self.position > 0 {
                    return Ok(None);
                }
                let json;
                (json, *elements) = read_array(path)?;
                Ok(Some(Item { json, file: None, place: input::name(path) }))
            }
        }
    }
}

/// The lines of a file as one array, and their number. A line break stands where the file has one,
/// so that an error tells the line.
fn read_array(path: &Path) -> Result<(Vec<u8>, u64)> {
    let mut lines = input::lines(path)?;
    let (mut json, mut elements) = (Vec::new(), 0);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let length = lines.read_until(b'\n', &mut line);
        if length.map_err(|error| input::failure(path, error))? == 0 {
            break;
        }
        json.extend((number > 1).then_some(b'\n'));
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        // Alone, or `1,2` would be two elements.
        if let Err(error) = serde_json::from_slice::<IgnoredAny>(text) {
            let message = format!("{}, line {number}: {error}", input::name(path));
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        json.push(if elements == 0 { b'[' } else { b',' });
        json.extend_from_slice(text);
        elements += 1;
    }
    json.extend_from_slice(if elements == 0 { b"[]" } else { b"]" });
    Ok((json, elements))
}
