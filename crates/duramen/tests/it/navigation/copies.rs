//! Full copies of every revision of a document, with the ids of its values: what navigation is
//! compared with. Histories come from random changes.

use std::collections::BTreeSet;

use duramen::{
    CommitOptions, Database, Document, Format, JsonPointer, NodeId, Outcome, Revision, Target,
};

/// A deterministic source of numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 1).unwrap() % bound
    }

    pub(crate) fn choose<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    fn value(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => "null".into(),
            1 => r#""x""#.into(),
            2 | 3 => self.below(9).to_string(),
            4 | 5 => {
                let len = self.below(4);
                let items: Vec<String> = (0..len).map(|_| self.value(depth - 1)).collect();
                format!("[{}]", items.join(","))
            }
            _ => {
                let names = ["a", "b", "c", "d"];
                let first = self.below(4);
                let len = self.below(4);
                let fields: Vec<String> = names[first.min(4 - len)..][..len]
                    .iter()
                    .map(|name| format!("\"{name}\":{}", self.value(depth - 1)))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }
        }
    }
}

/// One value of a copy.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) node: NodeId,
    pub(crate) pointer: JsonPointer,
    pub(crate) name: Option<String>,
    pub(crate) kind: String,
    /// Its compact text.
    pub(crate) text: String,
    /// Its own state: the text of a scalar, the ids of children.
    pub(crate) own: String,
    /// That and the states of all below.
    pub(crate) whole: String,
    /// Places of the children in the copy.
    pub(crate) children: Vec<usize>,
    pub(crate) parent: Option<usize>,
}

/// A revision's values in document order.
#[derive(Debug, Default)]
pub(crate) struct Copy(pub(crate) Vec<Value>);

impl Copy {
    pub(crate) fn take(document: &Document, revision: u64) -> Self {
        let format = Format { metadata: true, ..Format::default() };
        let mut text = Vec::new();
        let snapshot = document.at(Revision(revision)).unwrap();
        snapshot.append_json(&JsonPointer::root(), &format, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut reader = Reader { rest: &text, values: Vec::new() };
        reader.value(None, (None, JsonPointer::root()));
        assert_eq!(reader.rest, "");
        Self(reader.values)
    }

    pub(crate) fn find(&self, node: NodeId) -> Option<&Value> {
        self.0.iter().find(|value| value.node == node)
    }
}

/// Reads JSON printed with metadata.
struct Reader<'t> {
    rest: &'t str,
    values: Vec<Value>,
}

impl<'t> Reader<'t> {
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn until(&mut self, ends: &[char]) -> &'t str {
        let (found, rest) = self.rest.split_at(self.rest.find(ends).unwrap());
        self.rest = rest;
        found
    }

    fn member(&mut self, name: &str) -> &'t str {
        assert!(self.skip(&format!("\"{name}\":")), "{name} at {:.40}", self.rest);
        let value = self.until(&[',']);
        assert!(self.skip(","));
        value
    }

    fn value(&mut self, parent: Option<usize>, (name, pointer): (Option<String>, JsonPointer)) {
        assert!(self.skip("{"));
        let node = NodeId::from_number(self.member("node").parse().unwrap());
        let kind = self.member("kind").trim_matches('"').to_owned();
        if self.rest.starts_with("\"children\"") {
            self.member("children");
        }
        self.member("created");
        self.member("changed");
        assert!(self.skip("\"value\":"));
        let at = self.values.len();
        let empty = String::new;
        self.values.push(Value {
            node,
            pointer,
            name,
            kind,
            text: empty(),
            own: empty(),
            whole: empty(),
            children: Vec::new(),
            parent,
        });
        let text = if self.skip("[") {
            self.children(at, ']')
        } else if self.skip("{") {
            self.children(at, '}')
        } else {
            self.until(&['}']).to_owned()
        };
        assert!(self.skip("}"));
        let ids: Vec<NodeId> =
            self.values[at].children.iter().map(|&child| self.values[child].node).collect();
        let below: String = self.values[at]
            .children
            .iter()
            .map(|&child| self.values[child].whole.clone())
            .collect();
        let value = &mut self.values[at];
        value.own = if text.starts_with(['[', '{']) {
            format!("{}{ids:?}", value.kind)
        } else {
            text.clone()
        };
        value.whole = format!("{node}{}({below})", value.own);
        value.text = text;
    }

    /// Reads the children of a container up to its end; its text.
    fn children(&mut self, at: usize, end: char) -> String {
        let mut texts = Vec::new();
        while !self.rest.starts_with(end) {
            let mut pointer = self.values[at].pointer.clone();
            let name = (end == '}').then(|| {
                let name = self.until(&[':']).trim_matches('"').to_owned();
                assert!(self.skip(":"));
                name
            });
            pointer.push(name.clone().unwrap_or_else(|| texts.len().to_string()));
            let child = self.values.len();
            self.values[at].children.push(child);
            let key = name.as_ref().map_or(String::new(), |name| format!("\"{name}\":"));
            self.value(Some(at), (name, pointer));
            texts.push(key + &self.values[child].text);
            self.skip(",");
        }
        assert!(self.skip(&end.to_string()));
        format!("{}{}{end}", if end == ']' { '[' } else { '{' }, texts.join(","))
    }
}

/// A document with copies of all its revisions; copy 0 is that before the first.
pub(crate) struct Specimen {
    pub(crate) database: Database,
    pub(crate) document: Document,
    pub(crate) copies: Vec<Copy>,
}

impl Specimen {
    pub(crate) fn new(database: Database, first: &str) -> Self {
        let document = database.create_document("d").unwrap();
        let mut specimen = Self { database, document, copies: vec![Copy::default()] };
        specimen.put(first, "begin");
        specimen
    }

    pub(crate) fn put(&mut self, text: &str, message: &str) {
        let options = options(message);
        let outcome = self.document.put(text, &options).unwrap();
        self.committed(&outcome);
    }

    fn committed(&mut self, outcome: &Outcome) {
        if outcome.is_committed() {
            let revision = outcome.revision().0;
            assert_eq!(revision, self.copies.len() as u64);
            self.copies.push(Copy::take(&self.document, revision));
        }
    }

    pub(crate) fn head(&self) -> usize {
        self.copies.len() - 1
    }

    /// Changes something, or checkpoints.
    pub(crate) fn change(&mut self, random: &mut Random) {
        let revision = self.copies.len();
        let copy = self.copies.last().unwrap();
        let pointer = random.choose(&copy.0).pointer.clone();
        let options = options(&format!("change {revision}"));
        match random.below(15) {
            12.. => self.change_twice(&pointer, random),
            0 => self.database.checkpoint().unwrap(),
            1 => {
                let text = random.choose(&self.copies[1..]).0[0].text.clone();
                self.put(&text, "back");
            }
            2..5 if !pointer.is_root() => {
                let outcome = self.document.remove(&pointer, &options).unwrap();
                self.committed(&outcome);
            }
            5..8 => {
                let mut pointer = pointer;
                let value = copy.0.iter().find(|value| value.pointer == pointer).unwrap();
                match value.kind.as_str() {
                    "array" => pointer.push("-"),
                    "object" => pointer.push(*random.choose(&["a", "b", "c", "d", "e"])),
                    _ => {}
                }
                let outcome = self.document.set(&pointer, random.value(2), &options).unwrap();
                self.committed(&outcome);
            }
            _ => {
                let outcome = self.document.set(&pointer, random.value(3), &options).unwrap();
                self.committed(&outcome);
            }
        }
    }

    /// Sets and removes places in one commit, some of which were gone before.
    fn change_twice(&mut self, pointer: &JsonPointer, random: &mut Random) {
        let gone = random.choose(&self.copies[1..]).0.clone();
        let places = [pointer.clone(), random.choose(&gone).pointer.clone()];
        let mut transaction = self.database.transaction();
        for place in &places {
            // What leads nowhere any more ends the attempt.
            if transaction.set("d", place, random.value(2).as_bytes()).is_err() {
                return;
            }
            if !place.is_root() && random.below(3) > 0 {
                transaction.remove("d", place).unwrap();
            }
        }
        let committed = transaction.commit(&options("twice")).unwrap();
        if let Some((_, revision)) = committed.revisions.first() {
            assert_eq!(revision.0, self.copies.len() as u64);
            self.copies.push(Copy::take(&self.document, revision.0));
        }
    }

    /// Changes something below a container, which stays one; sets what is a scalar.
    pub(crate) fn change_below(&mut self, top: &JsonPointer, random: &mut Random) {
        let copy = self.copies.last().unwrap();
        let text = format!("{top}/");
        let below = copy.0.iter().filter(|value| value.pointer.to_string().starts_with(&text));
        let below: Vec<JsonPointer> = below.map(|value| value.pointer.clone()).collect();
        let kind = copy.0.iter().find(|value| value.pointer == *top).unwrap().kind.clone();
        let options = options("below");
        let outcome = if below.len() > 12 || (!below.is_empty() && random.below(3) == 0) {
            self.document.remove(random.choose(&below), &options)
        } else if !below.is_empty() && random.below(2) == 0 {
            self.document.set(random.choose(&below), random.value(2), &options)
        } else {
            let mut at = top.clone();
            match kind.as_str() {
                "array" => at.push("-"),
                "object" => at.push(*random.choose(&["a", "b", "c", "d", "e"])),
                _ => {}
            }
            let depth = if kind == "number" { 0 } else { 2 };
            let value = if depth == 0 { random.below(99).to_string() } else { random.value(depth) };
            self.document.set(&at, value, &options)
        };
        self.committed(&outcome.unwrap());
    }

    /// All ids of all revisions.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let nodes = self.copies.iter().flat_map(|copy| copy.0.iter().map(|value| value.node));
        let nodes: BTreeSet<NodeId> = nodes.collect();
        nodes.into_iter().collect()
    }

    /// The states of a node by revision, from 0.
    pub(crate) fn states(
        &self,
        node: NodeId,
        state: impl Fn(&Value) -> String,
    ) -> Vec<Option<String>> {
        self.copies.iter().map(|copy| copy.find(node).map(&state)).collect()
    }
}

pub(crate) fn options(message: &str) -> CommitOptions {
    CommitOptions { message: Some(message.into()), ..CommitOptions::default() }
}

pub(crate) fn target(pointer: &JsonPointer) -> Target {
    Target::Pointer(pointer.clone())
}
