//! Every limit of the engine, its unit last in its name. `docs/limits.md` lists them with the
//! error each one gives.

/// Ordinals of one element path: 40 bits.
pub const ORDINALS_MAX: u64 = 1 << 40;
/// Paths of one tree: beyond these a subtree is stored whole, as one opaque node.
pub const PATHS_MAX: u32 = 65_536;
/// Paths of one tree from which on every new object path is a map.
pub const PATHS_BEFORE_MAPS: u32 = 4_096;
/// Field names of one object path; an object with more is stored as a map.
pub const OBJECT_FIELDS_MAX: usize = 256;
/// Consecutive ordinals in one row group.
pub const ROW_GROUP_SLOTS: u64 = 4_096;
/// Changes in one run piece.
pub const RUN_PIECE_CHANGES_MAX: usize = 4_096;
/// Changes of a column from which on compaction begins a new span of its history: so many a read
/// goes back over at most, beside those that are not compacted yet.
pub const SPAN_CHANGES_MAX: usize = 32_768;
/// Bytes of run pieces from which on it does so too, if it repeats few states.
pub const SPAN_BYTES_MIN: usize = 64 << 10;
/// Segments beside which the young ones are left alone; one more, and compaction merges them.
pub const SEGMENTS_KEPT_MAX: usize = 7;
/// Levels below the young segments, each one segment.
pub const LEVELS_MAX: u8 = 4;
/// Bytes up to which merges that become due make one segment of several, 64 GiB.
pub const MERGED_BYTES_MAX: u64 = 64 << 30;
/// Cells up to which they do.
pub const MERGED_CELLS_MAX: u64 = 1 << 31;
/// Bytes of cells that one step of compaction merges.
pub const COMPACTION_STEP_BYTES: usize = 1 << 20;
/// Rows of one block of revision rows.
pub const REVISION_ROWS_MAX: usize = 1_024;
/// Extents of one order block.
pub const ORDER_BLOCK_EXTENTS_MAX: usize = 256;
/// Consecutive ordinals of one extent: 24 bits.
pub const EXTENT_ITEMS_MAX: u32 = (1 << 24) - 1;
/// Pairs of equal items that aligning two lists considers, above one for each item.
pub const ALIGNMENT_PAIRS_MAX: usize = 1 << 20;
/// Removed and inserted items up to which aligning two lists looks for the fewest.
pub const ALIGNMENT_EDITS_MAX: usize = 2_048;
/// Steps of that search, above 8 for each item.
pub const ALIGNMENT_STEPS_MAX: usize = 1 << 22;
/// Bytes of a string, number text or opaque subtree kept in its column; longer ones stand apart.
pub const INLINE_BYTES_MAX: usize = 4_096;
/// Bytes of a cell of first states of more than one slot: with its key it fits a block.
pub const BASE_BYTES_MAX: usize = 32_512;
/// The same where cutting at slots adds less than a quarter: a read of one value reads one cell.
pub const BASE_BYTES_WANTED: usize = 4_352;
/// Bytes of a cell's key.
pub const CELL_KEY_BYTES_MAX: usize = 10_240;
/// Bytes of one cell: the largest value and the header its encoding puts before it.
pub const CELL_BYTES_MAX: usize = 268_500_992;
/// Bytes of a block of several cells; a larger cell has a block of its own.
pub const BLOCK_BYTES_MAX: usize = 32 << 10;
/// The same of what takes more than one of these, such as the keys of a large collection.
pub const SMALL_BLOCK_BYTES_MAX: usize = 4 << 10;
/// Live segments of one database.
pub const SEGMENTS_MAX: usize = 65_536;

/// Beginnings of epochs that the manifest keeps, so that a place in a change feed of an earlier one
/// is known to be there still or lost.
pub const EPOCHS_KEPT_MAX: usize = 64;
/// Bytes of one value.
pub const VALUE_BYTES_MAX: usize = 256 << 20;
/// Bytes of one commit.
pub const COMMIT_BYTES_MAX: usize = 1 << 30;
/// Arrays and objects inside each other, in JSON and in a document.
pub const JSON_DEPTH_MAX: usize = 512;
/// Bytes of a document name.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of the unit and of the description of a series, and of the name and the value of a label.
pub const SERIES_NOTE_BYTES_MAX: usize = 4_096;
/// Points that a series gathers in memory before they are sorted for its readers; as many come
/// together when they are read.
pub const SERIES_TAIL_POINTS_MAX: usize = 4_096;
/// Points of one commit that are not gathered with those of others, but stay as they came.
pub const SERIES_PIECE_POINTS_MIN: usize = 512;
/// Points of a series that are read at once.
pub const SERIES_READ_POINTS: usize = 8_192;
/// Points that a range gives before the parts behind them are read on several processors.
pub const SERIES_LONG_RANGE_POINTS: usize = 1 << 18;
/// Cells of points in a part of a long range that is read on another processor.
pub const SERIES_PART_CELLS: usize = 4;
/// Bytes of points of such a part that are decoded ahead of the reader.
pub const SERIES_PART_BYTES_MAX: usize = 4 << 20;
/// Threads of a process that read scans, queries of records and ranges ahead of their readers.
pub const READ_AHEAD_THREADS_MAX: usize = 8;
/// Points of all series in one commit.
pub const SERIES_COMMIT_POINTS_MAX: usize = 1 << 26;
/// Files that points are staged in: as many threads stage points without waiting for each other.
pub const STAGING_STRIPES_MAX: usize = 16;
/// One in so many bytes of the journal at which a checkpoint is due is a bank of a staging file, of
/// which each has two.
pub const STAGING_JOURNAL_SHARE: usize = 16;
/// Bytes of a bank of a staging file, at the least and at the most.
pub const STAGING_BANK_BYTES_MIN: usize = 1 << 10;
/// See [`STAGING_BANK_BYTES_MIN`].
pub const STAGING_BANK_BYTES_MAX: usize = 1 << 22;
/// Series of which a bank of a staging file has points, at the most.
pub const STAGING_BANK_SERIES_MAX: usize = 1 << 15;
/// Points, commits or deleted spans that one item of a dump has.
pub const DUMP_ITEM_POINTS: usize = 1_024;
/// Bytes of text of the points of one item of a dump; a single one may have more.
pub const DUMP_ITEM_TEXT_BYTES: usize = 64 << 10;
/// Bytes of text of a first revision that exports, dumps and repairs hold in memory, or a sixteenth
/// of the database's memory if that is less; a longer one goes through piece by piece.
pub const EXPORT_HELD_BYTES_MAX: usize = 16 << 20;
/// Bytes of text of the records that departed from a collection that exports and dumps hold in
/// memory; a longer one goes through piece by piece.
pub const EXPORT_DEPARTED_BYTES_MAX: usize = 1 << 20;
/// The last commit that a dump may name, and its microseconds since 1970: later ones are still to
/// be made.
pub const DUMPED_COMMIT_MAX: u64 = 1 << 62;
/// Bytes of points that loading a dump keeps in memory before it writes them.
pub const LOADED_SERIES_BYTES: usize = 32 << 20;
/// Labels of one series.
pub const SERIES_LABELS_MAX: usize = 64;
/// Bytes of the key of a record.
pub const RECORD_KEY_BYTES_MAX: usize = 1_024;
/// Versions that a record is told to have had: it can have as many again.
pub(crate) const RECORD_VERSION_MAX: u64 = 1 << 62;
/// Bytes of the text of a path in a record.
pub const RECORD_PATH_BYTES_MAX: usize = 4_096;
/// Steps of a path in a record.
pub const RECORD_PATH_STEPS_MAX: usize = 64;
/// Bytes of the text of a filter over records.
pub const FILTER_BYTES_MAX: usize = 1 << 20;
/// Levels of `and`, `or` and `not` inside each other in a filter over records.
pub const FILTER_DEPTH_MAX: usize = 64;
/// Paths by which a query orders records.
pub const ORDER_PATHS_MAX: usize = 16;
/// Bytes of a value's sort key by which records are ordered: values that agree in them are ties.
pub const ORDER_VALUE_BYTES_MAX: usize = 1_024;
/// Bytes that a query keeps in memory of what it sorts or groups; more of it goes to a file.
pub const SORT_BYTES_MAX: usize = 32 << 20;
/// Records of one page of a query.
pub const QUERY_PAGE_RECORDS_MAX: usize = 10_000;

/// Bytes of the records of one page of a query, as JSON: the record that reaches them ends it.
pub const QUERY_PAGE_BYTES_MAX: usize = 32 << 20;
/// Paths that the options of a document declare something of.
pub const DECLARED_PATHS_MAX: usize = 1_024;
/// Bytes of the author, and of the message, of a commit.
pub const COMMIT_TEXT_BYTES_MAX: usize = 64 << 10;
/// Revisions of one tree.
pub const REVISIONS_MAX: u64 = u32::MAX as u64 - 1;
/// How long a transaction waits for another one that writes the same document.
pub const TURN_WAIT_MS: u64 = 10_000;
/// How often waiting for another process tries again.
pub const LOCK_RETRY_MS: u64 = 20;
/// How long a purge waits for readers of the segments that it is about to overwrite.
pub const PURGE_READERS_WAIT_MS: u64 = 1_000;
/// Journal since the last checkpoint from which on closing writes one, in bytes.
pub const CLOSING_CHECKPOINT_JOURNAL_BYTES: usize = 64 << 10;
/// How long the thread of a database waits before it tries again what failed, such as a checkpoint
/// on a full disk.
pub const BACKGROUND_RETRY_MS: u64 = 1_000;
/// Bytes that a database keeps for what gives room on a full device.
pub const RESERVE_BYTES_MAX: u64 = 1 << 20;
/// Of the room on a device when a database is opened, one in so many parts is for its journal.
pub const JOURNAL_ROOM_PARTS: u64 = 8;
/// Bytes that its journal may have however little room there is.
pub const SMALL_JOURNAL_BYTES: usize = 512 << 10;
/// How long a compaction waits for the room of files that it has removed.
pub const FREED_ROOM_WAIT_MS: u64 = 1_000;
/// How often it looks whether that is back.
pub const FREED_ROOM_RETRY_MS: u64 = 20;
/// Commits that are refused on a full device before one of them tries again to write a checkpoint.
pub const ROOM_WAIT_COMMITS_MAX: u32 = 16;
/// Bytes of JSON text up to which a checkpoint keeps the content hash of a document.
pub const KEPT_HASH_TEXT_BYTES_MAX: usize = 1 << 20;
/// Bytes of the name of an object's member.
pub const MEMBER_NAME_BYTES_MAX: usize = 32 << 10;
/// Shapes of one document: an object that would need one more is stored as a map.
pub const SHAPES_MAX: usize = 1 << 18;
/// Bytes of field names of one document: beyond these a subtree is stored whole, as one opaque
/// node.
pub const SCHEMA_TEXT_BYTES_MAX: usize = 64 << 20;
/// Bytes of a query (JSONPath).
pub const JSONPATH_BYTES_MAX: usize = 64 << 10;
/// Filters, parentheses and functions inside each other in a query, and groups in a pattern.
pub const JSONPATH_DEPTH_MAX: usize = 64;
/// Bytes that a compiled pattern of a query takes.
pub const JSONPATH_PATTERN_BYTES_MAX: usize = 1 << 20;
/// Bytes that a scrub reads in a second, unless it is told otherwise.
pub const SCRUB_BYTES_PER_SECOND: u64 = 20_000_000;
/// Changes of documents that a database remembers for those who follow all of them.
pub const RECENT_CHANGES_MAX: usize = 16_384;
/// Changes of documents that a feed looks up at once where it is behind those.
pub const FEED_PAGE_CHANGES: usize = 4_096;
/// How often a feed of a database opened for reading looks for what the writer has added.
pub const FEED_POLL_MS: u64 = 50;
/// Changes that a record's history tells of one version; of more it says that the record changed.
pub const RECORD_CHANGES_MAX: usize = 256;
/// How often a transaction that sees a snapshot is tried, unless it is told otherwise.
pub const TRANSACTION_ATTEMPTS: u32 = 8;
/// Bytes of keys of records and of names that a serializable transaction remembers to have read; of
/// what has the most of them it then remembers that it read all.
pub const TRANSACTION_READS_BYTES_MAX: usize = 8 << 20;
/// Indexes of one collection.
pub const INDEXES_MAX: usize = 64;
/// Paths of one index.
pub const INDEX_PATHS_MAX: usize = 8;
/// Bytes that an index keeps of the sort key of each value; longer ones are cut.
pub const INDEX_VALUE_BYTES_MAX: usize = 1_024;
/// Bytes of an entry of an index: its values, the ordinal of the record and the revision.
pub const INDEX_ENTRY_BYTES_MAX: usize = 8_204;
/// Entries of one cell of an index.
pub const INDEX_CELL_ENTRIES_MAX: usize = 128;
/// Entries of an index, beside those that were there before, from which on it may begin a new slab.
pub const INDEX_SLAB_ENTRIES_MIN: u64 = 8_192;
/// Points of one block of a series.
pub const SERIES_BLOCK_POINTS_MAX: usize = 32_768;
/// Bytes of text of one block of a series.
pub const SERIES_BLOCK_TEXT_BYTES_MAX: usize = 4 << 20;
/// Bytes of one value of a series of text.
pub const SERIES_TEXT_BYTES_MAX: usize = 64 << 10;
/// Rollups of one series.
pub const SERIES_ROLLUPS_MAX: usize = 8;
/// Rules of what is kept of series, by patterns of their names.
pub const SERIES_RULES_MAX: usize = 1_024;
/// Windows of a rollup that are written together.
pub const SERIES_ROLLUP_SLICE_WINDOWS: i64 = 32_768;
/// The same of a rollup of texts, two of which each window has.
pub const SERIES_TEXT_SLICE_WINDOWS: i64 = 256;
/// Points that a checkpoint reads for rollups that reach back less far than their series.
pub const SERIES_CATCH_UP_POINTS: usize = 1 << 24;
/// Deleted series without any points that one commit takes out of the catalogue.
pub const SERIES_FORGOTTEN_MAX: usize = 1_024;
/// Windows of one aggregation of a series.
pub const SERIES_WINDOWS_MAX: usize = 10_000_000;
/// Windows beside a span that are read for what fills its first and last windows.
pub const SERIES_FILL_WINDOWS: usize = 16;
/// Levels of objects and arrays of which there are columns; what is deeper is read as JSON.
pub const COLUMN_LEVELS_MAX: usize = 32;
/// Bytes of groups and distinct values that an aggregate over encoded columns keeps; SQL answers a
/// query with more by way of rows.
pub const AGGREGATE_BYTES_MAX: usize = 8 << 20;
