//! SQL over every revision of a Duramen database.
//!
//! Each collection is a table, and so is each array in a document: nothing has to be declared.
//! Answers come as Arrow record batches, a few thousand rows at a time.
//!
//! ```
//! use duramen::{CommitOptions, Database, KeyKind};
//! use duramen_sql::{Format, Session, SessionOptions};
//!
//! let db = Database::memory()?;
//! let players = db.create_collection("players", KeyKind::Text)?;
//! players.put("ann", r#"{"score":3}"#, &CommitOptions::default())?;
//! players.put("ann", r#"{"score":5}"#, &CommitOptions::default())?;
//! let session = Session::new(db, SessionOptions::default());
//! let sql = "SELECT now.score - then.score AS won FROM players AS now
//!            JOIN players FOR SYSTEM_TIME AS OF 1 AS then ON now._key = then._key";
//! let mut out = Vec::new();
//! session.query(sql)?.write(Format::Csv, &mut out)?;
//! assert_eq!(String::from_utf8_lossy(&out), "won\n2\n");
//! # Ok::<(), duramen::Error>(())
//! ```

mod allowance;
mod answer;
mod any_list;
mod arithmetic;
mod array_agg;
mod as_of_join;
mod casts;
mod catalog;
mod change;
mod column_type;
mod constants;
mod copy;
mod csv_file;
mod declared;
mod depth;
mod dialect;
mod digits;
mod distinct_from;
mod exact;
mod failure;
mod fast;
mod field_names;
mod first_rows;
mod format;
mod from_first;
mod function;
mod grouping_sets;
mod growth;
mod guards;
mod headings;
mod ignored;
mod in_lists;
mod information;
mod interval_text;
mod intervals;
mod join_conditions;
mod joined;
mod json_function;
mod json_marks;
mod json_numbers;
mod json_operator;
mod lateral_values;
mod materialized;
mod merged;
mod modifiers;
mod moment;
mod named_windows;
mod natural;
mod null_joins;
mod objects;
mod operands;
mod orders;
mod outfile;
mod parameter;
mod passing;
mod portion;
mod projections;
mod pruning;
mod ranges;
mod read_once;
mod record_file;
mod record_json;
mod record_line;
mod record_load;
mod repairs;
mod repeated;
mod rewriting;
mod room;
mod rounding;
mod row_values;
mod scan;
mod script;
mod session;
mod sorted;
mod sought;
mod spelling;
mod spill;
mod standard;
mod statement;
mod subqueries;
mod syntax;
mod system_time;
mod table;
mod type_names;
mod unnest;
mod values;
mod version;
mod view;
mod windows;
mod words;
mod zeros;
mod zones;

pub use answer::Answer;
pub use copy::CopyProgress;
pub use csv_file::{CsvFile, CsvLine};
pub use datafusion::arrow;
pub use format::Format;
pub use function::functions;
pub use outfile::{FileStage, replace_file, replace_file_telling};
pub use parameter::Parameter;
pub use record_file::{FilePlaces, RecordFile};
pub use record_line::write_record;
pub use record_load::RecordLoad;
pub use script::{ScriptStatement, SqlText, statements};
pub use session::{Session, SessionOptions, THREAD_NAME};
pub use statement::{makes_table, writes};
