//! Prints values as JSON, whole or to a writer.

use std::io::Write;
use std::sync::atomic::Ordering;

use crate::error::{Error, ErrorKind, Result};
use crate::node::NodeId;
use crate::threads;
use crate::tree::data;
use crate::tree::group::Fault;
use crate::tree::schema;
use crate::tree::serialize::{Format, ManyItems, Serializer, Stop};
use crate::tree::{Faults, Tree};

mod pieces;

/// Bytes that are printed under the lock at once, and before they are handed to a writer.
const PRINT_BYTES: usize = 64 << 10;

/// Why printing stopped.
enum Printed {
    Whole,
    /// There are as many bytes as there should be.
    Full,
    /// These come next.
    Many(ManyItems),
}

/// Where text goes.
struct Output<'o> {
    text: &'o mut Vec<u8>,
    /// Bytes of text that are taken away.
    enough: usize,
    take: &'o mut dyn FnMut(&mut Vec<u8>) -> Result<()>,
}

impl Output<'_> {
    /// Has the text taken away if that is enough.
    fn settle(&mut self) -> Result<()> {
        if self.text.len() >= self.enough { (self.take)(self.text) } else { Ok(()) }
    }
}

impl Tree {
    /// Prints a subtree at a revision.
    pub(crate) fn write_json(
        &self,
        (root, revision): (NodeId, u32),
        format: &Format,
        out: &mut dyn Write,
    ) -> Result<()> {
        let erasures = self.erasures();
        let mut take = |text: &mut Vec<u8>| {
            if self.erasures() != erasures {
                return Err(erased());
            }
            out.write_all(text).map_err(|error| Error::io("cannot write the output", error))?;
            text.clear();
            Ok(())
        };
        let mut text = Vec::new();
        let mut output = Output { text: &mut text, enough: PRINT_BYTES, take: &mut take };
        let printed = self.print_shared(&mut Serializer::new(root, format), revision, &mut output);
        if self.erasures() != erasures {
            return Err(erased());
        }
        printed?;
        take(&mut text)
    }

    /// The whole value at a revision.
    pub(crate) fn to_json(&self, revision: u32) -> Result<Vec<u8>> {
        let bytes = self.printed_bytes.load(Ordering::Relaxed);
        let mut text = Vec::with_capacity(bytes + bytes / 16);
        let root = data::node(schema::ROOT, 0);
        self.append_json((root, revision), &Format::default(), &mut text)?;
        self.printed_bytes.store(text.len(), Ordering::Relaxed);
        Ok(text)
    }

    /// Appends a subtree at a revision to `out`.
    pub(crate) fn append_json(
        &self,
        (root, revision): (NodeId, u32),
        format: &Format,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        loop {
            let erasures = self.erasures();
            let mut serializer = Serializer::new(root, format);
            let mut output = Output { text: out, enough: usize::MAX, take: &mut |_| Ok(()) };
            let printed = self.print_shared(&mut serializer, revision, &mut output);
            // What began before something was erased may have parts of it.
            if self.erasures() == erasures {
                return printed;
            }
            out.truncate(start);
        }
    }

    /// Prints the rest of a value; threads share what is long in it.
    fn print_shared(
        &self,
        serializer: &mut Serializer<'_>,
        revision: u32,
        output: &mut Output<'_>,
    ) -> Result<()> {
        if threads::count() > 1 {
            serializer.share();
        }
        while let Some(many) = self.print_alone(serializer, revision, output)? {
            pieces::print((self, revision), &many, output)?;
            serializer.pass(&many);
        }
        Ok(())
    }

    /// Prints the rest of a value, or until many items come next.
    fn print_alone(
        &self,
        serializer: &mut Serializer<'_>,
        revision: u32,
        output: &mut Output<'_>,
    ) -> Result<Option<ManyItems>> {
        loop {
            let text = (&mut *output.text, output.enough);
            let many = match self.print(serializer, revision, text)? {
                Printed::Whole => return Ok(None),
                Printed::Full => None,
                Printed::Many(many) => Some(many),
            };
            output.settle()?;
            if many.is_some() {
                return Ok(many);
            }
        }
    }

    /// Prints until there are so many bytes, or many items come next.
    fn print(
        &self,
        serializer: &mut Serializer<'_>,
        revision: u32,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Result<Printed> {
        let (mut faults, mut printed) = (Faults::default(), out.len());
        loop {
            let stop = {
                let data = self.data.read();
                let enough = limit.min(out.len().saturating_add(PRINT_BYTES));
                serializer.run(&data, revision, out, enough)
            };
            if out.len() > printed {
                (faults, printed) = (Faults::default(), out.len());
            }
            match stop {
                Ok(Stop::Done) => return Ok(Printed::Whole),
                Ok(Stop::Full) if out.len() < limit => {}
                Ok(Stop::Full) => return Ok(Printed::Full),
                Ok(Stop::Many(many)) => return Ok(Printed::Many(many)),
                Ok(Stop::Order) => serializer.advance(&self.orders)?,
                Ok(Stop::Measure(sequence)) => serializer.measure(sequence, &self.orders)?,
                Ok(Stop::Apart(blob, kind)) => {
                    serializer.write_apart((blob, kind), &self.blobs, out)?;
                }
                Err(Fault::Load(load)) => faults.load(self, *load)?,
                Err(Fault::Error(error)) => return Err(error),
            }
        }
    }
}

#[cold]
fn erased() -> Error {
    let message = "a value was purged while the document was read: read it again";
    Error::new(ErrorKind::Busy, message)
}
