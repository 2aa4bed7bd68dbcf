//! Reads a text of any length into a document under construction.
//!
//! A value is parsed once all of it is at hand. An array that goes on behind what is at hand, and
//! an object that is longer than what is held at a time, is gone into: its children are read one
//! after the other, by the same rule. So memory follows the longest value that is neither.
//!
//! What is known of an object only at its end is then not known at its begin. Paths of the fields
//! of such an object get their numbers as the names come, and it becomes a map when the 257th
//! does, as one that outgrows its shape (`docs/decisions/0030`).

use rustc_hash::FxHashSet;

use crate::bulk::records::Records;
use crate::bulk::run::Between;
use crate::bulk::sink::{Loaded, LongMap, Sink};
use crate::bulk::{BulkOptions, Departed, RecordVersions};
use crate::collection::KeyKind;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Cut, Item as Json, NextValue, ParseOptions, TextStream};
use crate::limits::{JSON_DEPTH_MAX, OBJECT_FIELDS_MAX};
use crate::node::{NodeId, PathId};
use crate::order::Item;
use crate::state::Datum;
use crate::transaction::{check_versions, count_of};
use crate::tree::compare::{Extents, check_member_name};
use crate::tree::data::node;
use crate::tree::records::version_field;
use crate::tree::schema::ROOT;

/// The reading of one text.
pub(super) struct Loader<'a, 'r> {
    stream: TextStream<'r>,
    sink: Sink<'a>,
    parse: ParseOptions,
    is_lines: bool,
    versions: &'a RecordVersions,
    maps: Vec<LongMap>,
}

/// The members so far of an object that is gone into.
#[derive(Debug, Default)]
struct Members {
    fields: Vec<PathId>,
    seen: FxHashSet<PathId>,
    /// The path of entries and the first of them, from when the object is a map.
    entries: Option<(PathId, u64)>,
}

impl<'a, 'r> Loader<'a, 'r> {
    pub(super) fn new(
        stream: TextStream<'r>,
        sink: Sink<'a>,
        (options, versions): (&BulkOptions, &'a RecordVersions),
    ) -> Self {
        let (parse, is_lines) = (options.parse, options.lines);
        Self { stream, sink, parse, is_lines, versions, maps: Vec::new() }
    }

    /// Reads the text to its end.
    pub(super) fn run(mut self) -> Result<Loaded> {
        if let Some(keys) = self.sink.builder.key_kind() {
            return self.collection(keys);
        }
        let has_departed = !matches!(self.versions.departed, Departed::Nothing);
        if self.versions.are_there && (!self.versions.by_name.is_empty() || has_departed) {
            let message = "versions are given, but only the records of a collection have some";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let root = self.sink.builder.bear(ROOT, 0)?;
        if self.is_lines {
            self.lines(root)?;
        } else {
            self.begin()?;
            self.value(root, 0)?;
            self.end()?;
        }
        self.sink.end(self.stream.consumed(), self.maps)
    }

    fn begin(&mut self) -> Result<()> {
        if self.stream.skip_space()?.is_none() {
            return self.stream.empty();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.stream.skip_space()?.is_some() {
            return self.stream.expected("the end after the value");
        }
        Ok(())
    }

    /// Reads the value of a collection, and what departed from it.
    fn collection(mut self, keys: KeyKind) -> Result<Loaded> {
        let records = Records::begin(&mut self.sink.builder)?;
        let versions = self.versions;
        self.begin()?;
        if !matches!(versions.departed, Departed::Alone) {
            self.records((records, keys))?;
            records.place(&mut self.sink.builder)?;
        }
        match &versions.departed {
            Departed::Nothing => {}
            Departed::ByName(departed) => {
                for (name, &count) in departed {
                    self.depart((records, keys), name.as_bytes(), count)?;
                }
            }
            Departed::Behind | Departed::Alone => self.departed((records, keys))?,
        }
        self.end()?;
        records.end_departed(self.sink, self.stream.consumed(), self.maps)
    }

    /// Reads records under the texts of their keys.
    fn records(&mut self, (records, keys): (Records, KeyKind)) -> Result<()> {
        if self.stream.text().first() != Some(&b'{') {
            return self.stream.expected("the object of records that the value of a collection is");
        }
        self.stream.consume(1);
        let mut given = 0;
        let mut is_end = self.skip_space()? == Some(b'}');
        while !is_end {
            let (name, _, bytes) = self.name(0)?;
            let key = keys.key_of(&name)?;
            let record = records.bear(&mut self.sink.builder, &keys.name_of(&key)?)?;
            let version = str::from_utf8(&name).ok();
            if let Some(&version) = version.and_then(|name| self.versions.by_name.get(name)) {
                let field = version_field(&mut self.sink.builder.data, record.path())?;
                let state = Datum::Int(version.cast_signed());
                self.sink.builder.set(node(field, record.ordinal().0), state);
                given += 1;
            }
            self.end_name(bytes)?;
            if self.stream.text().first() != Some(&b'{') {
                return self.stream.expected("the object that a record is");
            }
            self.value(record, 1)?;
            is_end = self.is_end(b'}', "',' or '}'")?;
        }
        self.stream.consume(1);
        if self.versions.are_there && given < self.versions.by_name.len() {
            let message = "versions are given of records that are not there";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// Reads how many versions records had that departed, under the texts of their keys.
    fn departed(&mut self, of: (Records, KeyKind)) -> Result<()> {
        if self.skip_space()? != Some(b'{') {
            return self.stream.expected("the object of records that departed");
        }
        self.stream.consume(1);
        let mut is_end = self.skip_space()? == Some(b'}');
        while !is_end {
            let (name, _, bytes) = self.name(0)?;
            self.end_name(bytes)?;
            let count = self.count()?;
            self.depart(of, &name, count)?;
            self.sink.end_value(self.stream.consumed())?;
            is_end = self.is_end(b'}', "',' or '}'")?;
        }
        self.stream.consume(1);
        Ok(())
    }

    fn depart(
        &mut self,
        (records, keys): (Records, KeyKind),
        name: &[u8],
        count: u64,
    ) -> Result<()> {
        check_versions(&String::from_utf8_lossy(name), count)?;
        let key = keys.key_of(name)?;
        records.depart(&mut self.sink.builder, &keys.name_of(&key)?, count)
    }

    /// Reads a number of versions.
    fn count(&mut self) -> Result<u64> {
        loop {
            if let NextValue::Whole(tape, bytes) = self.stream.next_value((self.parse, 1))? {
                let count = count_of(&tape, tape.root());
                let Some(count) = count else {
                    return self.stream.expected("a number of versions");
                };
                self.stream.consume(bytes);
                return Ok(count);
            }
            self.stream.check_length()?;
            self.stream.read_on()?;
        }
    }

    /// Reads each line as an element of the array `root`.
    fn lines(&mut self, root: NodeId) -> Result<()> {
        let path = self.sink.builder.data.element_or_add(root.path());
        let Some(path) = path else { return Err(too_many_paths()) };
        let first = self.sink.builder.next(path);
        while self.stream.skip_space()?.is_some() {
            let parent = root.ordinal().0;
            if !self.sink.put_run(&mut self.stream, (path, parent), (Between::Lines, None))? {
                let element = self.sink.builder.bear(path, parent)?;
                self.value(element, 1)?;
            }
            self.stream.end_line()?;
        }
        let sequence = self.sink.builder.sequence(path, first)?;
        self.sink.builder.set(root, Datum::Array(sequence));
        Ok(())
    }

    /// Goes on behind white space, but not into the next line where lines matter.
    fn skip_space(&mut self) -> Result<Option<u8>> {
        if self.is_lines {
            return self.stream.skip_blanks();
        }
        self.stream.skip_space()
    }

    /// Makes a node the value that comes next, which is inside of `depth` containers.
    fn value(&mut self, node: NodeId, depth: usize) -> Result<()> {
        let mut is_whole = false;
        loop {
            if let Some(bytes) = self.sink.builder.put_guessed(node, self.stream.text())? {
                return self.end_value(bytes);
            }
            match self.stream.next_value((self.parse, depth))? {
                NextValue::Whole(tape, bytes) => {
                    self.sink.builder.put(node, &tape, tape.root())?;
                    let room = tape.into_room();
                    self.stream.reuse(room);
                    return self.end_value(bytes);
                }
                NextValue::Cut(cut) => {
                    let text = self.stream.text();
                    // Of an array nothing has to be known before its elements.
                    let is_array = text.first() == Some(&b'[');
                    let is_long = is_array || text.len() >= self.sink.bounds.whole;
                    if cut.is_container && is_long && !is_whole {
                        if self.container(node, cut, depth)? {
                            return Ok(());
                        }
                        // There is no room for its paths, so it is kept as one text.
                        is_whole = true;
                    }
                    self.stream.check_length()?;
                    self.stream.read_on()?;
                }
            }
        }
    }

    fn end_value(&mut self, bytes: usize) -> Result<()> {
        if self.is_lines && self.sink.builder.guesses.may_span_lines() {
            self.stream.check_line(bytes)?;
        }
        self.stream.consume(bytes);
        self.sink.end_value(self.stream.consumed())
    }

    /// Goes into a container; false if it has to be kept whole.
    fn container(&mut self, node: NodeId, cut: Cut, depth: usize) -> Result<bool> {
        if depth >= JSON_DEPTH_MAX {
            return self.stream.too_deep();
        }
        match self.stream.text().first() {
            Some(b'[') => self.array(node, depth),
            _ => self.object(node, cut, depth),
        }
    }

    fn array(&mut self, array: NodeId, depth: usize) -> Result<bool> {
        let Some(path) = self.sink.builder.data.element_or_add(array.path()) else {
            return Ok(false);
        };
        let first = self.sink.builder.next(path);
        self.stream.consume(1);
        let mut is_end = self.skip_space()? == Some(b']');
        while !is_end {
            if !self.run_on((path, array.ordinal().0))? {
                let element = self.sink.builder.bear(path, array.ordinal().0)?;
                self.value(element, depth + 1)?;
            }
            is_end = self.is_end(b']', "',' or ']'")?;
        }
        self.stream.consume(1);
        let sequence = self.sink.builder.sequence(path, first)?;
        self.sink.builder.set(array, Datum::Array(sequence));
        Ok(true)
    }

    /// Reads the elements of an array that come next if they are likely to be alike: whether there
    /// were any.
    fn run_on(&mut self, at: (PathId, u64)) -> Result<bool> {
        // What is between them may be in the next line.
        Ok(!self.is_lines && self.sink.put_run(&mut self.stream, at, (Between::Commas, None))?)
    }

    /// Whether the end of a container comes, else goes on behind a comma.
    fn is_end(&mut self, end: u8, expected: &'static str) -> Result<bool> {
        match self.skip_space()? {
            Some(b',') => {
                self.stream.consume(1);
                self.skip_space()?;
                Ok(false)
            }
            Some(byte) if byte == end => Ok(true),
            _ => self.stream.expected(expected),
        }
    }

    fn object(&mut self, object: NodeId, cut: Cut, depth: usize) -> Result<bool> {
        let path = object.path();
        let mut members = Members::default();
        let is_map = self.sink.builder.is_declared_map(path)
            || self.sink.builder.data.schema.path(path).always_map
            || cut.children > OBJECT_FIELDS_MAX;
        if is_map {
            let Some(entries) = self.sink.builder.data.entry_or_add(path) else { return Ok(false) };
            members.entries = Some((entries, self.sink.builder.next(entries)));
        }
        self.stream.consume(1);
        let mut is_end = self.skip_space()? == Some(b'}');
        while !is_end {
            let member = self.member(object, &mut members, depth)?;
            self.value(member, depth + 1)?;
            is_end = self.is_end(b'}', "',' or '}'")?;
        }
        self.stream.consume(1);
        self.end_object(object, members)?;
        Ok(true)
    }

    /// Reads a name and its colon: the node of the member that it names.
    fn member(&mut self, object: NodeId, members: &mut Members, depth: usize) -> Result<NodeId> {
        let (name, plain, bytes) = self.name(depth)?;
        let (path, ordinal) = (object.path(), object.ordinal().0);
        let member = if members.entries.is_none()
            && let Some(field) = self.sink.builder.data.field_or_add(path, &name)
        {
            if !members.seen.insert(field) {
                return self.stream.repeated(&name);
            }
            members.fields.push(field);
            node(field, ordinal)
        } else {
            let field = self.sink.builder.data.schema.field(path, &name);
            if field.is_some_and(|field| members.seen.contains(&field)) {
                return self.stream.repeated(&name);
            }
            let (entries, _) = if let Some(entries) = members.entries {
                entries
            } else {
                let entries =
                    self.sink.builder.data.entry_or_add(path).ok_or_else(too_many_paths)?;
                *members.entries.insert((entries, self.sink.builder.next(entries)))
            };
            let name = Datum::Text { bytes: &name, plain };
            self.sink.builder.bear_entry(entries, ordinal, name)?
        };
        self.end_name(bytes)?;
        Ok(member)
    }

    /// Goes on behind a name of so many bytes and its colon.
    fn end_name(&mut self, bytes: usize) -> Result<()> {
        self.stream.consume(bytes);
        if self.skip_space()? != Some(b':') {
            return self.stream.expected("':'");
        }
        self.stream.consume(1);
        self.skip_space()?;
        Ok(())
    }

    /// The name that comes next, whether it needs no escapes, and its bytes in the text.
    fn name(&mut self, depth: usize) -> Result<(Vec<u8>, bool, usize)> {
        if self.stream.text().is_empty() {
            self.stream.read_on()?;
        }
        if self.stream.text().first() != Some(&b'"') {
            return self.stream.expected("a name in quotes");
        }
        loop {
            if let NextValue::Whole(tape, bytes) = self.stream.next_value((self.parse, depth))?
                && let Json::Text { bytes: name, plain } = tape.item(tape.root())
            {
                check_member_name(name)?;
                return Ok((name.to_vec(), plain, bytes));
            }
            self.stream.check_length()?;
            self.stream.read_on()?;
        }
    }

    fn end_object(&mut self, object: NodeId, members: Members) -> Result<()> {
        let Members { fields, entries, .. } = members;
        if entries.is_none() && self.sink.builder.data.schema.has_room_for_shape(&fields) {
            self.sink.builder.set_object(object, &fields);
            return Ok(());
        }
        let mut order = Extents::default();
        for &field in &fields {
            order.push_item(Item::Field(field));
        }
        let sequence = match entries {
            Some((path, first)) if fields.is_empty() => self.sink.builder.sequence(path, first)?,
            Some((path, first)) => {
                (first..self.sink.builder.next(path)).for_each(|ordinal| order.push(ordinal));
                self.sink.builder.columns.sequence(&order.0)?
            }
            None => {
                let entries = self.sink.builder.data.entry_or_add(object.path());
                entries.ok_or_else(too_many_paths)?;
                self.sink.builder.columns.sequence(&order.0)?
            }
        };
        if let Some((path, first)) = entries {
            let entries = self.sink.builder.next(path) - first;
            self.maps.push(LongMap { path, ordinal: object.ordinal().0, entries });
        }
        self.sink.builder.set(object, Datum::Map(sequence));
        Ok(())
    }
}

fn too_many_paths() -> Error {
    let message = "an object too long to be held in memory would need more paths than a document \
                   has: declare it a map (--map)";
    Error::new(ErrorKind::Full, message)
}
