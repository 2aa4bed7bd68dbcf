//! `duramen records query`: records by what is in them.

use std::io::{self, Write};

use clap::Args;
use duramen::{Explanation, Filter, Group, Order, Query as Asked, RecordPath};
use serde::Serialize;
use serde_json::value::RawValue;

use super::CollectionAt;
use super::line::Line;
use crate::Result;
use crate::arguments::list::List;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records query shop.duramen players 'world = \"nether\" and score between 3 and 9'
  duramen records query shop.duramen players 'not (tags contains \"new\")' --order score:desc,name
  duramen records query shop.duramen players 'address.city prefix \"U\"' --select name,address.city
  duramen records query shop.duramen players 'team is missing or team is null' --count
  duramen records query shop.duramen players --group world --at 2024-05-01
  duramen records query shop.duramen players 'score > 3' --order score --explain
  duramen records query shop.duramen players --order score:desc --page-size 20
  duramen records query shop.duramen players --order score:desc --page-size 20 --page CURSOR

A filter compares values at paths (name, address.city, tags[*]) with JSON values by =, !=, <, <=,
>, >=, between .. and, in (..), prefix, contains, is null and is missing, and joins that by and, or,
not and parentheses. A comparison is false where there is no value. An order is a path with :desc,
:nulls-first or :nulls-last behind it.";

/// Find the records of a collection by what is in them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Query {
    #[command(flatten)]
    collection: CollectionAt,
    /// What has to be true of a record; all records without one
    #[arg(value_name = "FILTER")]
    filter: Option<Filter>,
    /// In this order, such as score:desc,name
    #[arg(long, value_name = "PATH[:desc],...")]
    #[arg(conflicts_with_all = ["count", "distinct", "group"])]
    order: Vec<List<Order>>,
    /// At most this many records, values or groups
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<u64>,
    /// Without the first so many
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    #[arg(allow_negative_numbers = true)]
    offset: u64,
    /// Only the values at these paths
    #[arg(long, value_name = "PATH,...")]
    select: Option<Vec<List<RecordPath>>>,
    /// Print how many there are
    #[arg(long, group = "what")]
    count: bool,
    /// Print the values at this path, each once
    #[arg(long, value_name = "PATH", group = "what")]
    distinct: Option<RecordPath>,
    /// Print how many there are with each value at this path
    #[arg(long, value_name = "PATH", group = "what")]
    group: Option<RecordPath>,
    /// Print how they are found, and what that reads
    #[arg(long, group = "what")]
    explain: bool,
    /// Print a page of at most this many, then where the pages beside it are
    #[arg(long, value_name = "COUNT", group = "what", conflicts_with_all = ["limit", "offset"])]
    #[arg(allow_negative_numbers = true)]
    page_size: Option<usize>,
    /// The page that a cursor printed with another page leads to
    // What is in the way of --page-size would waive that it is required.
    #[arg(long, value_name = "CURSOR", requires = "page_size")]
    #[arg(conflicts_with_all = ["limit", "offset", "count", "distinct", "group", "explain"])]
    page: Option<String>,
}

impl Query {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let records = self.collection.open(session)?;
        let asked = self.asked();
        if self.count {
            output.record(&Count { count: records.count_query(&asked)? })?;
        } else if let Some(path) = &self.distinct {
            for value in self.some(records.distinct(&asked, path)?) {
                output.record(&Counted::new(Group { value: Some(value?), count: 0 })?)?;
            }
        } else if let Some(path) = &self.group {
            for group in self.some(records.group_count(&asked, path)?) {
                output.record(&Counted::new(group?)?)?;
            }
        } else if self.explain {
            output.record(&Explained::new(records.explain(&asked)?))?;
        } else if let Some(size) = self.page_size {
            let page = records.page(&asked, self.page.as_deref(), size)?;
            for record in page.records {
                output.record(&Line::new(record)?)?;
            }
            output.record(&Pages { previous: page.previous, next: page.next })?;
        } else {
            for record in records.query(&asked)? {
                output.record(&Line::new(record?)?)?;
            }
        }
        Ok(Success::Done)
    }

    /// The values or groups that are asked for.
    fn some<T>(&self, all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        all.skip(count(self.offset)).take(self.limit.map_or(usize::MAX, count))
    }

    fn asked(&self) -> Asked {
        let mut asked = Asked::new();
        // Of values and groups these say how many, not of how many records.
        let is_of_records = self.distinct.is_none() && self.group.is_none();
        let (limit, offset) = if is_of_records { (self.limit, self.offset) } else { (None, 0) };
        asked = asked.offset(offset);
        asked = self.filter.iter().cloned().fold(asked, Asked::filter);
        asked =
            self.order.iter().flat_map(|List(order)| order).cloned().fold(asked, Asked::order_by);
        asked = limit.into_iter().fold(asked, Asked::limit);
        match &self.select {
            Some(paths) => {
                asked.select(paths.iter().flat_map(|List(paths)| paths).map(ToString::to_string))
            }
            None => asked,
        }
    }
}

#[derive(Debug, Serialize)]
struct Count {
    count: u64,
}

impl Record for Count {
    fn print(&self, _: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.count)
    }
}

/// A value, with how many records have it if that was asked.
#[derive(Debug, Serialize)]
struct Counted {
    /// None where there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "is_zero")]
    count: u64,
}

impl Counted {
    fn new(group: Group) -> Result<Self> {
        let value = group.value.map(RawValue::from_string).transpose().map_err(io::Error::from)?;
        Ok(Self { value, count: group.count })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Record for Counted {
    fn print(&self, _: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let value = self.value.as_ref().map_or("missing", |value| value.get());
        match self.count {
            0 => writeln!(out, "{value}"),
            count => writeln!(out, "{count:>8}  {value}"),
        }
    }
}

#[derive(Debug, Serialize)]
struct Explained {
    steps: Vec<String>,
    row_groups: u64,
    ruled_out: u64,
    scanned: u64,
    records: u64,
    entries: u64,
    sorted: u64,
    found: u64,
}

impl Explained {
    fn new(explanation: Explanation) -> Self {
        let counts = explanation.counts;
        Self {
            steps: explanation.steps,
            row_groups: counts.row_groups,
            ruled_out: counts.ruled_out,
            scanned: counts.scanned,
            records: counts.records,
            entries: counts.entries,
            sorted: counts.sorted,
            found: counts.found,
        }
    }
}

impl Record for Explained {
    fn print(&self, _: &Palette, out: &mut dyn Write) -> io::Result<()> {
        self.steps.iter().try_for_each(|step| writeln!(out, "{step}"))
    }
}

/// The cursors of the pages beside one.
#[derive(Debug, Serialize)]
struct Pages {
    previous: Option<String>,
    next: Option<String>,
}

impl Record for Pages {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let h = palette.heading;
        for (name, cursor) in [("previous", &self.previous), ("next", &self.next)] {
            if let Some(cursor) = cursor {
                writeln!(out, "{h}{name}{h:#} page: --page {cursor}")?;
            }
        }
        Ok(())
    }
}
