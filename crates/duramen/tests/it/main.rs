//! Integration tests of the engine's public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ahead;
mod backups;
mod collections;
mod concurrency;
mod copies;
mod cut_histories;
mod damage;
mod declared;
mod departed;
mod documents;
mod dumps;
mod edits;
mod export;
mod feed_tokens;
mod feeds;
mod format;
mod full_groups;
mod golden;
mod indexes;
mod jsonpath;
mod large_groups;
mod lifecycle;
mod limits;
mod lives;
mod long_values;
mod looked_up;
mod memory;
mod missing;
mod navigation;
mod patches;
mod regressions;
mod repair;
mod retention;
mod salvaged;
mod scrub;
mod staged_records;
mod tags;
mod transact;
mod turnover;
#[cfg(feature = "typed")]
mod typed;
#[cfg(feature = "typed")]
mod typed_reads;
#[cfg(feature = "typed")]
mod typed_transactions;
mod unused;
mod written_over;
