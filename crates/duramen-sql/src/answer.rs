//! What a query has to say.

use std::fmt;
use std::marker::PhantomData;
use std::pin::pin;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use duramen::{Error, Result, Revision};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::allowance::Allowance;
use crate::session::{self, Session};

/// The rows that a query finds, a few thousand at a time. It ends after the first error; dropping
/// it ends the query.
pub struct Answer<'s> {
    /// Its threads run as long as the session is there.
    pub(crate) session: PhantomData<&'s Session>,
    pub(crate) schema: SchemaRef,
    pub(crate) source: Source,
    pub(crate) allowance: Allowance,
    pub(crate) is_over: bool,
    /// Rows that were taken.
    pub(crate) rows: usize,
    /// What was saved before this tells of it, if it tells of a change.
    pub(crate) saved: Option<Revision>,
}

/// Where batches come from.
pub(crate) enum Source {
    Query {
        batches: mpsc::Receiver<Result<RecordBatch>>,
        task: JoinHandle<()>,
    },
    /// All that there is.
    Ready(Option<RecordBatch>),
}

impl fmt::Debug for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Answer<'_> {
    /// The names and types of its columns.
    pub fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

impl Iterator for Answer<'_> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = match &mut self.source {
            Source::Query { batches, task } => {
                match session::wait(&self.allowance, pin!(batches.recv())) {
                    Ok(None) => session::ended(&self.allowance, task).err().map(Err),
                    Ok(next) => next,
                    Err(error) => Some(Err(error)),
                }
            }
            Source::Ready(batch) => batch.take().map(Ok),
        };
        let next = next.map(|batch| batch.map_err(|error| saved(self.saved, error)));
        self.is_over = !matches!(next, Some(Ok(_)));
        if let Some(Ok(batch)) = &next {
            self.rows += batch.num_rows();
        }
        next
    }
}

/// An error of an answer that tells of a change: that was made all the same.
pub(crate) fn saved(saved: Option<Revision>, error: Error) -> Error {
    match saved {
        Some(revision) => {
            error.in_context(format_args!("revision {revision} is saved, but not RETURNING"))
        }
        None => error,
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if let Source::Query { task, .. } = &self.source {
            self.allowance.end();
            task.abort();
        }
    }
}
