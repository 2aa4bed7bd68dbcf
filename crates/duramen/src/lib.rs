//! Duramen: an embeddable database engine that keeps every revision of JSON documents,
//! readable at the speed of the present.
//!
//! ```
//! use duramen::{CommitOptions, Database, JsonPointer, Revision};
//!
//! let db = Database::memory()?;
//! let players = db.create_document("players")?;
//! players.put(r#"{"ann":{"score":1}}"#, &CommitOptions::default())?;
//! players.set(&JsonPointer::parse("/ann/score")?, "2", &CommitOptions::default())?;
//!
//! assert_eq!(players.at(Revision(1))?.to_json()?, r#"{"ann":{"score":1}}"#);
//! let patch = players.diff(Revision(1), Revision(2))?.to_json_patch();
//! assert_eq!(patch, r#"[{"op":"replace","path":"/ann/score","value":2}]"#);
//! # Ok::<(), duramen::Error>(())
//! ```

mod alignment;
mod backup;
mod blame;
mod bulk;
mod check;
mod clock;
mod collection;
mod columns;
mod condition;
mod content_hash;
mod cursor;
mod damage;
mod database;
mod document;
mod dump;
mod durability;
mod encoding;
mod engine;
mod error;
mod export;
mod feed;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod index;
pub mod io;
mod journal;
mod json;
mod jsonpath;
mod key_text;
mod label_path;
mod lexical;
pub mod limits;
mod log;
mod manifest;
mod memory;
mod node;
mod options;
mod order;
mod patch;
mod position;
mod purge;
mod repair;
mod retention;
mod revision;
#[cfg(shuttle)]
pub mod schedules;
mod scrub;
mod segment;
mod series;
mod small_file;
mod snapshot;
mod staging;
mod state;
mod store;
mod subsequence;
mod sync;
mod target;
#[cfg(duramen_teeth)]
mod teeth;
mod threads;
mod timeline;
mod transaction;
mod tree;
#[cfg(feature = "typed")]
mod typed;
mod wire;

pub use backup::{
    Backup, BackupFolder, BackupOptions, BackupReport, Destination, Pruned, RestorePoint, Restored,
};
pub use blame::{Blame, BlameEntry, BlameOptions};
pub use bulk::{BulkOptions, BulkProgress};
pub use check::{CheckReport, Finding};
pub use clock::{Clock, SystemClock};
pub use collection::{
    Collection, CollectionSnapshot, Explanation, Filter, FilterValue, Group, Groups, IndexProgress,
    IndexStats, Key, KeyKind, Order, Page, Query, QueryCounts, Record, RecordBlame, RecordHistory,
    RecordPath, RecordVersion, Records, Saved, Scan, ScanOptions, Ties,
};
pub use columns::{
    AggregateColumn, AggregatePlan, AggregateValue, AggregateWork, Aggregates, ColumnChunk,
    ColumnField, ColumnKinds, ColumnRows, ColumnValue, Columns, Comparison, ElementRows, FloatSum,
    Measure, Measured, RangeOfInt, RowFilter, Sum, ValueKind, ValueTest,
};
pub use condition::{Condition, Spell, When};
pub use content_hash::ContentHash;
pub use cursor::{Cursor, Descendants};
pub use database::{Counters, Database, DatabaseSnapshot, DatabaseStats, MemoryShare};
pub use document::{Commit, DeletedDocument, Document, DocumentStats, Outcome, Tag};
pub use dump::{Dump, DumpItem, DumpLoad, DumpSummary, DumpedPoints};
pub use durability::Durability;
pub use engine::options::{CommitOptions, Options};
pub use error::{Error, ErrorKind, Result};
pub use export::{
    DepartedRecords, ExportedContent, ExportedFacts, ExportedRevision, HistoryExport, HistoryImport,
};
pub use feed::{Batch, Event, Feed, KeyFilter, Operation, ResumeToken, WatchFrom, WatchOptions};
pub use index::{IndexDefinition, IndexOptions};
pub use json::{ArrayIndex, JsonPointer, ParseOptions};
pub use jsonpath::{JsonPath, Match, Matches};
pub use label_path::LabelPath;
pub use log::{Log, LogEntry, LogQuery, Moment};
pub use node::{NodeId, NodeKind, Ordinal, PathId};
pub use options::DocumentOptions;
pub use position::Position;
pub use purge::{Purge, PurgeOptions};
pub use repair::{Lost, RepairProgress, RepairReport};
pub use retention::Retention;
pub use revision::{CommitSequence, Micros, Revision};
pub use scrub::{ScrubOptions, ScrubPosition, ScrubProgress, ScrubReport};
pub use series::{
    Aggregate, AggregateOptions, Fill, Hold, Interpolation, Lossy, Point, Points, Qualities,
    Quality, QualityFilter, RangeOptions, Rollup, Series, SeriesCursor, SeriesDefinition,
    SeriesFilter, SeriesGrid, SeriesInfo, SeriesRange, SeriesRule, SeriesSnapshot, SeriesStats,
    SeriesValue, Texts, Thinning, TopOptions, ValueType, Values, WindowColumn, WindowTable,
    Windows,
};
pub use snapshot::{History, Node, Snapshot};
pub use target::Target;
pub use timeline::{NodeChanges, Timeline};
pub use transaction::{Committed, TransactOptions, Transaction};
pub use tree::{
    Change, ChangeKind, Diff, DiffCounts, DiffOptions, DiffStat, Format, MemberMove, MovedFrom,
    NodeChange, Scope, Value, ValueRun, nearest,
};

#[cfg(feature = "typed")]
pub use duramen_derive::Record;
#[cfg(feature = "typed")]
pub use typed::{
    IndexDeclaration, RecordKey, Stored, TypedCollection, TypedHistory, TypedPage, TypedRecord,
    TypedRecords, TypedScan, TypedSnapshot, TypedTransaction, TypedValues, TypedVersion,
};
