//! The catalogue of the series: a tree of its own, so that a million of them are in nobody's way
//! who looks for a document.
//!
//! Its value is `{"next":N,"tags":{NAME:RECORD, ...},"tiers":{NUMBER:NAME, ...},"rules":[...],
//! "dropped":{NUMBER:RECORD, ...}}`, the last two only if there ever was one. A record gives
//! the series its *number*, under which its points are kept; so a series that gets another name
//! stays what it is, and a name that is used again is another series. Those that do not keep
//! everything, or have rollups, stand among the *tiers* by their number, so that whoever writes
//! and merges points finds them; and with their last record among the *dropped* when they are
//! deleted, as their points are there as of earlier commits and go with time all the same; until
//! nothing is left of them.
//!
//! Invariants:
//! - no number is given twice: `next` only rises;
//! - documents and series share one namespace: who makes either has the turn of the documents'
//!   catalogue.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range};
use std::sync::{Arc, LazyLock};

use crate::engine::View;
use crate::engine::catalogue;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{JsonPointer, ParseOptions, Tape};
use crate::limits::ORDINALS_MAX;
use crate::node::{NodeId, Ordinal, PathId};
use crate::options::DocumentOptions;
use crate::order::{Item, OrderCursor};
use crate::revision::{CommitSequence, Micros, Revision};
use crate::series::definition::{SeriesInfo, series_number};
use crate::series::rules::{self, SeriesRule};
use crate::state::{Datum, Sequence};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::node;
use crate::tree::edit::Given;
use crate::tree::history::{Value, short};
use crate::tree::record_keys::KeyRange;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// Names and labels are entries of maps, so that they are no paths of the catalogue.
static OPTIONS: LazyLock<Arc<DocumentOptions>> = LazyLock::new(|| {
    let maps = ["$.tags", "$.tags{*}.labels", "$.tiers", "$.dropped", "$.dropped{*}.labels"];
    let maps = maps.map(|path| path.parse().expect("a label path"));
    Arc::new(DocumentOptions { maps: maps.into(), ..DocumentOptions::default() })
});

/// The options of the catalogue itself.
pub(crate) fn options() -> Arc<DocumentOptions> {
    Arc::clone(&OPTIONS)
}

/// The series of a name in a state of the catalogue.
pub(crate) fn find(tags: &Tree, name: &str, revision: u32) -> Result<Option<SeriesInfo>> {
    let Some(map) = map_of(tags, revision)? else { return Ok(None) };
    let entry = tags.entry_node(map, name.as_bytes(), revision)?;
    entry.map(|entry| read(tags, (name, entry), revision)).transpose()
}

/// Whether a series has a name in a state of the catalogue.
pub(crate) fn has(tags: &Tree, name: &str, revision: u32) -> Result<bool> {
    let Some(map) = map_of(tags, revision)? else { return Ok(false) };
    Ok(tags.entry_node(map, name.as_bytes(), revision)?.is_some())
}

/// How many series there are in a state of the catalogue.
pub(crate) fn count(tags: &Tree, revision: u32) -> Result<u64> {
    let Some((_, order)) = entries(tags, revision)? else { return Ok(0) };
    crate::order::len(&&tags.orders, order)
}

/// The map of all series in a state of the catalogue, and the order of its entries; none before
/// there was one.
fn entries(tags: &Tree, revision: u32) -> Result<Option<(NodeId, Sequence)>> {
    let Some(map) = map_of(tags, revision)? else { return Ok(None) };
    Ok(order_of(tags, map, revision)?.map(|order| (map, order)))
}

/// The ordinals of the entries of all series in a state of the catalogue, rising, and their path.
pub(crate) fn living(tags: &Tree, revision: u32) -> Result<Option<(PathId, Vec<Range<u64>>)>> {
    let Some((map, order)) = entries(tags, revision)? else { return Ok(None) };
    let Some(path) = tags.data.read().schema.path(map.path()).entry else { return Ok(None) };
    let mut all: Vec<Range<u64>> = Vec::new();
    let mut cursor = OrderCursor::new(order);
    while let Some(extent) = cursor.next(&&tags.orders)? {
        let ordinals = match extent.item(0) {
            Item::Ordinal(Ordinal(first)) => first..first.saturating_add(extent.items()),
            Item::Field(_) => return Err(wrong("a field among its entries")),
        };
        if ordinals.end > ORDINALS_MAX {
            return Err(wrong(&format!("entries of the ordinals {ordinals:?}")));
        }
        match all.last_mut() {
            Some(last) if last.end == ordinals.start => last.end = ordinals.end,
            _ => all.push(ordinals),
        }
    }
    all.sort_unstable_by_key(|ordinals| ordinals.start);
    Ok(Some((path, all)))
}

/// The series whose names begin with a text in a state of the catalogue, with their entries, rising
/// by name; none if there may be more than `most`.
pub(crate) fn begun_with(
    tags: &Tree,
    prefix: &str,
    revision: u32,
    most: usize,
) -> Result<Option<Vec<(String, NodeId)>>> {
    let Some(map) = map_of(tags, revision)? else { return Ok(Some(Vec::new())) };
    let Some((last, rest)) = prefix.as_bytes().split_last() else { return Ok(None) };
    // No byte of UTF-8 is the greatest one.
    let behind = [rest, &[last.saturating_add(1)]].concat();
    let range = KeyRange {
        low: Bound::Included(prefix.as_bytes().to_vec()),
        high: Bound::Excluded(behind),
    };
    let page = tags.entry_keys(map.path(), &range, false, most.saturating_add(1))?;
    if page.len() > most {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (name, ordinal) in page.iter() {
        if let Some(entry) = tags.entry_there(map.path(), ordinal, revision)? {
            found.push((String::from_utf8_lossy(name).into_owned(), entry));
        }
    }
    Ok(Some(found))
}

/// The last name of every series there ever was up to a state of the catalogue.
pub(crate) fn last_names(tags: &Tree, revision: u32) -> Result<BTreeMap<TreeId, String>> {
    let mut last: BTreeMap<TreeId, (u32, String)> = BTreeMap::new();
    let Some(map) = map_of(tags, revision)? else { return Ok(BTreeMap::new()) };
    let paths = {
        let schema = &tags.data.read().schema;
        let entries = schema.path(map.path()).entry;
        entries.and_then(|entries| Some((entries, schema.field(entries, b"number")?)))
    };
    let Some((entries, number)) = paths else { return Ok(BTreeMap::new()) };
    let all = KeyRange { low: Bound::Unbounded, high: Bound::Unbounded };
    for (name, ordinal) in tags.entry_keys(map.path(), &all, false, usize::MAX)?.iter() {
        let numbers = tags.read(|data| {
            // A name that comes back to a series has it again, though its number is not written.
            let mut sets = Vec::new();
            data.versions(node(entries, ordinal), revision, &mut |set, state| {
                if !state.is_absent() {
                    sets.push(set);
                }
                ControlFlow::Continue(())
            })?;
            let mut numbers = Vec::new();
            for set in sets {
                if let Datum::Int(own) = data.state(node(number, ordinal), set)? {
                    numbers.push((set, own.cast_unsigned()));
                }
            }
            Ok(numbers)
        })?;
        for (set, own) in numbers {
            let Some(series) = series_number(own) else { continue };
            let known = last.entry(series).or_default();
            if known.0 <= set {
                *known = (set, String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(last.into_iter().map(|(series, (_, name))| (series, name)).collect())
}

fn order_of(tags: &Tree, map: NodeId, revision: u32) -> Result<Option<Sequence>> {
    tags.read(|data| match data.state(map, revision)? {
        Datum::Map(sequence) => Ok(Some(sequence)),
        _ => Ok(None),
    })
}

/// Calls `visit` with the name and the entry of every series in a state of the catalogue.
pub(crate) fn each(
    tags: &Tree,
    revision: u32,
    visit: &mut dyn FnMut(&str, NodeId) -> Result<()>,
) -> Result<()> {
    let Some((map, order)) = entries(tags, revision)? else { return Ok(()) };
    each_of((tags, map), order, visit)
}

/// Calls `visit` with the name and the entry of those of a map in an order.
fn each_of(
    (tags, map): (&Tree, NodeId),
    order: Sequence,
    visit: &mut dyn FnMut(&str, NodeId) -> Result<()>,
) -> Result<()> {
    let mut cursor = OrderCursor::new(order);
    let mut name = String::new();
    while let Some(extent) = cursor.next(&&tags.orders)? {
        for index in 0..extent.items() {
            let entry = tags.read(|data| {
                let entry = data.item_node(map, true, extent.item(index))?;
                match data.key(data.address(entry).space, entry.ordinal().0)? {
                    Datum::Text { bytes, .. } => {
                        name.clear();
                        name.push_str(&String::from_utf8_lossy(bytes));
                        Ok(entry)
                    }
                    other => Err(wrong(&format!("{other:?} as a name")).into()),
                }
            })?;
            visit(&name, entry)?;
        }
    }
    Ok(())
}

/// The series of a number, if it does not keep everything, or has rollups; a deleted one as it was
/// last, without its name.
pub(crate) fn tiered(tags: &Tree, series: TreeId, revision: u32) -> Result<Option<SeriesInfo>> {
    if let Some(name) = tiered_name(tags, series, revision)? {
        return find(tags, &name, revision);
    }
    let Some(map) = member(tags, b"dropped", revision)? else { return Ok(None) };
    let entry = tags.entry_node(map, number_text(series).as_bytes(), revision)?;
    entry.map(|entry| read(tags, ("", entry), revision)).transpose()
}

/// Every such series.
pub(crate) fn all_tiered(tags: &Tree, revision: u32) -> Result<Vec<SeriesInfo>> {
    let mut names = Vec::new();
    each_entry(tags, member(tags, b"tiers", revision)?, revision, &mut |entry| {
        names.extend(text_of(tags, entry, revision)?);
        Ok(())
    })?;
    let found = names.into_iter().map(|name| find(tags, &name, revision));
    let mut all: Vec<SeriesInfo> = found.filter_map(Result::transpose).collect::<Result<_>>()?;
    each_entry(tags, member(tags, b"dropped", revision)?, revision, &mut |entry| {
        all.push(read(tags, ("", entry), revision)?);
        Ok(())
    })?;
    Ok(all)
}

/// The numbers of the series that were deleted and of which it is said what is kept.
pub(crate) fn dropped(tags: &Tree, revision: u32) -> Result<Vec<TreeId>> {
    let mut numbers = Vec::new();
    let Some(map) = member(tags, b"dropped", revision)? else { return Ok(numbers) };
    let Some(order) = order_of(tags, map, revision)? else { return Ok(numbers) };
    each_of((tags, map), order, &mut |number, _| {
        let number = number.parse().map_err(|_| wrong("a dropped series without a number"))?;
        numbers.push(TreeId(number));
        Ok(())
    })?;
    Ok(numbers)
}

fn each_entry(
    tags: &Tree,
    map: Option<NodeId>,
    revision: u32,
    visit: &mut dyn FnMut(NodeId) -> Result<()>,
) -> Result<()> {
    let Some(map) = map else { return Ok(()) };
    let Some(order) = order_of(tags, map, revision)? else { return Ok(()) };
    each_of((tags, map), order, &mut |_, entry| visit(entry))
}

fn tiered_name(tags: &Tree, series: TreeId, revision: u32) -> Result<Option<String>> {
    let Some(map) = member(tags, b"tiers", revision)? else { return Ok(None) };
    let entry = tags.entry_node(map, number_text(series).as_bytes(), revision)?;
    entry.map_or(Ok(None), |entry| text_of(tags, entry, revision))
}

fn text_of(tags: &Tree, at: NodeId, revision: u32) -> Result<Option<String>> {
    match tags.json_at(at, revision)? {
        Some(Value::String(text)) => Ok(Some(text.into())),
        _ => Err(wrong("something else than a name among its tiers")),
    }
}

/// The name of the entry that a series has among the tiers and the dropped ones.
fn number_text(series: TreeId) -> String {
    series.0.to_string()
}

/// What is kept of series by their names, in a state of the catalogue.
pub(crate) fn rules(tags: &Tree, revision: u32) -> Result<Vec<SeriesRule>> {
    let Some(at) = member(tags, b"rules", revision)? else { return Ok(Vec::new()) };
    let mut text = Vec::new();
    tags.append_json((at, revision), &Format::default(), &mut text)?;
    rules::from_json(&text)
}

/// What the catalogue says of the series of an entry.
pub(crate) fn read(
    tags: &Tree,
    (name, entry): (&str, NodeId),
    revision: u32,
) -> Result<SeriesInfo> {
    let mut text = Vec::new();
    tags.append_json((entry, revision), &Format::default(), &mut text)?;
    SeriesInfo::from_json(name, &text)
}

pub(super) fn map_of(tags: &Tree, revision: u32) -> Result<Option<NodeId>> {
    member(tags, b"tags", revision)
}

fn member(tags: &Tree, name: &[u8], revision: u32) -> Result<Option<NodeId>> {
    if revision == 0 {
        return Ok(None);
    }
    tags.read(|data| {
        let Some(path) = data.schema.field(ROOT, name) else { return Ok(None) };
        let found = node(path, 0);
        Ok((!data.state(found, revision)?.is_absent()).then_some(found))
    })
}

pub(super) fn wrong(what: &str) -> Error {
    let message = format!("the catalogue of the series has {what}, which it cannot have");
    Error::new(ErrorKind::Corrupt, message)
}

/// No series has this name.
pub(crate) fn no_series(name: &str) -> Error {
    let message =
        format!("there is no series {name:?}: \"duramen series ls\" lists those there are");
    Error::new(ErrorKind::NotFound, message)
}

impl View {
    /// The catalogue of the series and its newest revision as of a commit.
    pub(crate) fn series_tags(&self, at: CommitSequence) -> Result<(Arc<Tree>, u32)> {
        let tags = self.tree(TreeId::SERIES)?;
        let head = short(tags.head_at(at)?);
        Ok((tags, head))
    }

    /// The last commit up to one that changed the catalogue and was made by a time; 0 if none was.
    pub(crate) fn series_tags_by(
        &self,
        at: CommitSequence,
        time: Micros,
    ) -> Result<CommitSequence> {
        let tags = self.tree(TreeId::SERIES)?;
        match tags.first_after(time, tags.head_at(at)?)?.0 {
            0 | 1 => Ok(CommitSequence(0)),
            after => Ok(tags.row(Revision(after - 1))?.sequence),
        }
    }

    /// How many series there are as of a commit.
    pub(crate) fn series_count(&self, at: CommitSequence) -> Result<u64> {
        let (tags, head) = self.series_tags(at)?;
        count(&tags, head)
    }

    /// What is kept of series by their names, as of a commit.
    pub(crate) fn series_rules(&self, at: CommitSequence) -> Result<Vec<SeriesRule>> {
        let (tags, head) = self.series_tags(at)?;
        rules(&tags, head)
    }

    /// What the catalogue says of a series as of a commit.
    pub(crate) fn series_info(&self, name: &str, at: CommitSequence) -> Result<SeriesInfo> {
        let (tags, head) = self.series_tags(at)?;
        if let Some(info) = find(&tags, name, head)? {
            return Ok(info);
        }
        let told = self
            .catalogue(at)
            .and_then(|(names, head)| catalogue::missing_series(&names, name, head));
        Err(told.unwrap_or_else(|_| no_series(name)))
    }

    /// Whether a series has a name as of a commit, as far as that can be read.
    pub(crate) fn has_series(&self, name: &str, at: CommitSequence) -> bool {
        let found = self.series_tags(at).and_then(|(tags, head)| has(&tags, name, head));
        found.unwrap_or(false)
    }
}

/// The catalogue of the series while a transaction writes it.
impl Writer {
    /// Takes the next so many numbers of series; the first of them.
    pub(crate) fn take_series_numbers(&self, count: u64) -> Result<u64> {
        self.begin_series()?;
        let next = match member(&self.tree, b"next", self.revision)? {
            Some(next) => self.tree.json_at(next, self.revision)?,
            None => None,
        };
        let Some(Value::Integer(next @ 1..)) = next else {
            return Err(wrong(&format!("{next:?} as its next number")));
        };
        let first = next.cast_unsigned();
        if count == 0 {
            return Ok(first);
        }
        let after = first.saturating_add(count);
        if series_number(after).is_none() {
            let message = "no more series can be made in this database: load it into a new one";
            return Err(Error::new(ErrorKind::Full, message));
        }
        self.set_series_member("next", &after.to_string())?;
        Ok(first)
    }

    /// Makes the catalogue, unless it is there.
    fn begin_series(&self) -> Result<()> {
        if self.has_root() {
            return Ok(());
        }
        let root = br#"{"next":1,"tags":{},"tiers":{}}"#;
        self.put_root(&Tape::parse(root, ParseOptions::default())?)
    }

    fn set_series_member(&self, name: &str, text: &str) -> Result<()> {
        let mut pointer = JsonPointer::root();
        pointer.push(name);
        self.set(&pointer, Given::whole(&Tape::parse(text.as_bytes(), ParseOptions::default())?))
    }

    /// Writes what is kept of series by their names.
    pub(crate) fn put_series_rules(&self, rules: &[SeriesRule]) -> Result<()> {
        self.begin_series()?;
        self.set_series_member("rules", &rules::to_json(rules))
    }

    /// Writes what the catalogue is to say of a series.
    pub(crate) fn put_series(&self, info: &SeriesInfo) -> Result<()> {
        let text = info.to_json();
        let record = Tape::parse(text.as_bytes(), ParseOptions::default())?;
        self.set(&pointer("tags", &info.name), Given::whole(&record))?;
        let tier = pointer("tiers", &number_text(info.number));
        if info.definition.has_tiers() {
            let name = crate::json::escape::quoted(&info.name);
            let name = Tape::parse(name.as_bytes(), ParseOptions::default())?;
            return self.set(&tier, Given::whole(&name));
        }
        match tiered_name(&self.tree, info.number, self.revision)? {
            Some(_) => self.remove(&tier),
            None => Ok(()),
        }
    }

    /// Takes the name of a series out of the catalogue.
    pub(crate) fn remove_series(&self, info: &SeriesInfo) -> Result<()> {
        if info.definition.has_tiers() {
            self.remove(&pointer("tiers", &number_text(info.number)))?;
        }
        self.remove(&pointer("tags", &info.name))
    }

    /// Writes what is kept of a series that is not there any more.
    pub(crate) fn put_dropped_series(&self, info: &SeriesInfo) -> Result<()> {
        if member(&self.tree, b"dropped", self.revision)?.is_none() {
            self.set_series_member("dropped", "{}")?;
        }
        let text = info.to_json();
        let record = Tape::parse(text.as_bytes(), ParseOptions::default())?;
        self.set(&pointer("dropped", &number_text(info.number)), Given::whole(&record))
    }

    /// Has the catalogue say nothing of a series that was deleted.
    pub(crate) fn forget_dropped_series(&self, series: TreeId) -> Result<()> {
        let number = number_text(series);
        let Some(map) = member(&self.tree, b"dropped", self.revision)? else { return Ok(()) };
        match self.tree.entry_node(map, number.as_bytes(), self.revision)? {
            Some(_) => self.remove(&pointer("dropped", &number)),
            None => Ok(()),
        }
    }
}

fn pointer(map: &str, name: &str) -> JsonPointer {
    let mut pointer = JsonPointer::root();
    pointer.push(map);
    pointer.push(name);
    pointer
}

/// The newest revision of the catalogue, published or not.
pub(crate) fn newest(tags: &Tree) -> u32 {
    short(Revision(tags.data.read().rows.last()))
}
