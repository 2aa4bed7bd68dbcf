//! The stores that Duramen is measured against, set up as their manuals advise for this use.

mod analytics;
mod cluster;
mod postgres;
mod sqlite;

pub(crate) use analytics::{ANALYTICS, AnalyticsEngine, SERIES_RIVALS};
pub(crate) use cluster::Cluster;
pub(crate) use postgres::{POSTGRES, POSTGRES_STATEMENTS, PostgresStore, Style};
pub(crate) use sqlite::{SQLITE, SqliteStore};

/// How many documents a rival's history table is indexed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trees {
    /// One: an index on the time alone.
    One,
    /// Many: an index on document and time.
    Many,
}

impl Trees {
    fn index_columns(self) -> &'static str {
        match self {
            Self::One => "valid_from",
            Self::Many => "id, valid_from",
        }
    }
}
