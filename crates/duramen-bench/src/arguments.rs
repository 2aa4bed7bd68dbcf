//! The command line.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

use crate::sampling::Rounds;
use crate::workloads::{WORKLOADS, Workload};

const EXAMPLES: &str = "\
Examples:
  duramen bench --list                   what there is
  duramen bench V1 V2                    two workloads
  duramen bench V --report               all whose id begins with V, with a page of charts
  duramen bench all --quick --out /tmp/r everything at a small size, within a minute
  duramen bench H --sizes 1000,1M        history lengths of your own
  duramen bench V7 --sizes 2400,100k     document sizes of your own
  duramen bench V7f --sizes 2400,1G      a document of 1 GB beside a small one
  duramen bench A1 A6 --sizes 10M        questions of SQL about 10,000,000 records
  duramen bench V1 --data /mnt/disk      on the device that lies there

Rivals run beside Duramen in the same rounds. A ratio above 1 means Duramen is ahead.";

/// Runs the workloads behind Duramen's published figures, with rivals, in interleaved rounds.
#[derive(Debug, Clone, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(name = "duramen bench", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Workloads, by id or by how their ids begin; `all` for all of them.
    #[arg(value_name = "ID", required_unless_present_any = ["list", "child"])]
    ids: Vec<String>,

    /// Lists the workloads and ends.
    #[arg(long)]
    pub(crate) list: bool,

    /// Where figures.jsonl, figures.csv, machine.json and report.html go.
    #[arg(long, value_name = "FOLDER", default_value = "bench-results")]
    pub(crate) out: PathBuf,

    /// Small sizes: all workloads within a minute, for a first look.
    #[arg(long)]
    pub(crate) quick: bool,

    /// A rival that is not installed is an error.
    #[arg(long)]
    pub(crate) require_rivals: bool,

    /// Writes report.html, one page with charts and without any reference to the network.
    #[arg(long)]
    pub(crate) report: bool,

    /// History lengths of H, document bytes of V7 and V7f, records of A1 to A9; `k`, `M` and `G`
    /// count thousands, millions and thousands of millions.
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) sizes: Vec<u64>,

    /// Measured rounds, each with every subject.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = parse_rounds)]
    iterations: usize,

    /// Rounds before them that do not count.
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmups: usize,

    /// Numbers of writers of V1g.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) workers: Vec<u32>,

    /// Runs these subjects only: duramen, postgresql, postgresql-statements, sqlite, parsed,
    /// duckdb, polars, chdb, datafusion, prometheus.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    store: Vec<String>,

    /// The releases of REL, each a file VERSION.json; `scripts/releases.sh` fetches them.
    #[arg(long, value_name = "FOLDER", default_value_os_t = releases_folder())]
    pub(crate) releases: PathBuf,

    /// Where stores are made while they are measured; removed at the end.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    pub(crate) data: PathBuf,

    /// One measurement in this fresh process, for its parent.
    #[arg(long, hide = true)]
    pub(crate) child: Option<String>,
}

impl Arguments {
    /// Rounds of every comparison.
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds { warmups: self.warmups, measured: self.iterations }
    }

    /// Whether a subject takes part.
    pub(crate) fn wants(&self, subject: &str) -> bool {
        self.store.is_empty() || self.store.iter().any(|name| name == subject)
    }

    /// The selected workloads, in the order of the list.
    pub(crate) fn selected(&self) -> Result<Vec<&'static Workload>> {
        for asked in &self.ids {
            if !WORKLOADS.iter().any(|workload| selects(asked, workload.id)) {
                bail!("no workload is called `{asked}`; `duramen bench --list` shows them");
            }
        }
        let chosen = |workload: &&Workload| self.ids.iter().any(|id| selects(id, workload.id));
        Ok(WORKLOADS.iter().filter(chosen).collect())
    }
}

/// Where `scripts/releases.sh` puts them.
fn releases_folder() -> PathBuf {
    cache_folder("releases")
}

/// Where scripts put what they fetch.
pub(crate) fn cache_folder(name: &str) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    cache.unwrap_or_else(home).join("duramen").join(name)
}

/// A whole id selects that workload alone, so that `V1` leaves `V1g` out.
fn selects(asked: &str, id: &str) -> bool {
    let is_id = WORKLOADS.iter().any(|workload| workload.id == asked);
    asked == "all" || asked == id || (!is_id && !asked.is_empty() && id.starts_with(asked))
}

fn parse_size(text: &str) -> Result<u64, String> {
    let units = [('k', 1_000), ('M', 1_000_000), ('g', 1_000_000_000), ('G', 1_000_000_000)];
    let found = units.iter().find_map(|(name, unit)| Some((text.strip_suffix(*name)?, *unit)));
    let (digits, unit) = found.unwrap_or((text, 1));
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is no number"))?;
    number.checked_mul(unit).filter(|size| *size > 0).ok_or(format!("`{text}` is out of range"))
}

fn parse_rounds(text: &str) -> Result<usize, String> {
    let rounds: usize = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if rounds >= 5 { Ok(rounds) } else { Err("a ratio needs at least five pairs".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(command: &[&str]) -> Vec<&'static str> {
        let words = [&["bench"], command].concat();
        let arguments = Arguments::try_parse_from(words).unwrap();
        arguments.selected().unwrap().iter().map(|workload| workload.id).collect()
    }

    #[test]
    fn an_id_selects_itself_and_a_prefix_all_that_begin_with_it() {
        assert_eq!(ids(&["V1"]), ["V1"]);
        assert_eq!(ids(&["V6", "V2"]), ["V2", "V6"]);
        assert!(ids(&["V"]).contains(&"V1g") && !ids(&["V"]).contains(&"H"));
        assert_eq!(ids(&["all"]).len(), WORKLOADS.len());
    }

    #[test]
    fn an_unknown_id_is_an_error() {
        let arguments = Arguments::try_parse_from(["bench", "V9"]).unwrap();
        assert!(arguments.selected().is_err());
    }

    #[test]
    fn sizes_have_units_and_rounds_a_minimum() {
        assert_eq!(parse_size("100k"), Ok(100_000));
        assert_eq!(parse_size("10M"), Ok(10_000_000));
        assert_eq!(parse_size("200"), Ok(200));
        assert_eq!(parse_size("1g"), parse_size("1G"));
        assert!(parse_size("0").is_err() && parse_size("1T").is_err());
        assert!(parse_rounds("4").is_err());
    }
}
