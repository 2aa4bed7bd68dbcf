//! Every way to read a document, against the copies that the model keeps.

use std::collections::BTreeMap;
use std::sync::Arc;

use duramen::{
    ChangeKind, Database, Document, ErrorKind, Format, JsonPointer, LogQuery, Micros, Moment,
    Revision, Snapshot, Tag, ValueRun,
};
use duramen_sim::Random;
use duramen_sim::json::{Json, pointer, tokens};
use duramen_sim::model::{self, Listed, Model, Version};
use duramen_sim::samples::{Samples, Scale};

/// One document of the engine and what it should be.
struct Pair<'a> {
    document: Document,
    model: &'a model::Document,
    versions: &'a [Arc<Version>],
    times: Vec<Micros>,
    listed: Listed,
}

/// The timestamps of the revisions of commits.
type Times = BTreeMap<u64, Micros>;

/// The newest revision of one document.
pub(crate) fn head(db: &Database, model: &Model, name: &str) {
    if !model.documents().contains_key(name) {
        assert_eq!(db.document(name).unwrap_err().kind(), ErrorKind::NotFound);
        return;
    }
    let versions = model.versions(name);
    let document = db.document(name).unwrap();
    assert_eq!(document.head_revision().unwrap(), Revision(versions.len() as u64), "{name}");
    match versions.last() {
        Some(version) if version.json.is_some() => {
            assert_eq!(document.head().unwrap().to_json().unwrap(), version.text);
        }
        _ => assert_eq!(document.head().unwrap_err().kind(), ErrorKind::NotFound),
    }
}

/// The newest revisions of all documents.
pub(crate) fn heads(db: &Database, model: &Model) {
    let is_live = |name: &&String| !model.documents()[*name].is_deleted();
    let names: Vec<&String> = model.documents().keys().filter(is_live).collect();
    assert_eq!(db.documents().unwrap().iter().collect::<Vec<_>>(), names);
    let deleted: Vec<String> =
        db.deleted_documents().unwrap().into_iter().map(|deleted| deleted.name).collect();
    let expected = model.documents().keys().filter(|name| !is_live(name));
    assert!(deleted.iter().eq(expected), "{deleted:?}");
    assert_eq!(db.stats().unwrap().sequence.0, model.sequence());
    for name in names {
        head(db, model, name);
    }
    for (name, expected) in model.documents() {
        facts(&db.document(name).unwrap(), expected);
    }
}

/// What is declared and the tags, and the document as of each.
fn facts(document: &Document, expected: &model::Document) {
    let model::Facts { tags, options } = &expected.facts;
    assert_eq!(document.options().unwrap(), *options, "{}", document.name());
    let found = document.tags().unwrap();
    let of = |tag: &Tag| (tag.revision, tag.hash, tag.author.clone(), tag.message.clone());
    let told: Vec<_> = found.iter().map(|tag| (tag.name.clone(), of(tag))).collect();
    let same = |tag: &model::Tag| (tag.revision, tag.hash, tag.author.clone(), tag.message.clone());
    let tagged: Vec<_> = tags.iter().map(|(name, tag)| (name.clone(), same(tag))).collect();
    assert_eq!(told, tagged, "{}", document.name());
    for (name, tag) in tags {
        let text = document.at_tag(name).unwrap().to_json().unwrap();
        assert_eq!(text, expected.versions[index(tag.revision)].text, "{name}");
    }
}

/// One thing, chosen at random.
pub(crate) fn something(db: &Database, model: &Model, times: &Times, random: &mut Random) {
    let Some((name, expected)) = model.some_history(random) else { return };
    Pair::new(db, name, expected, times).something(random);
}

/// Every revision of every document, and many other things.
pub(crate) fn everything(db: &Database, model: &Model, times: &Times) {
    heads(db, model);
    let snapshot = db.snapshot();
    let mut random = Random::new(0);
    for (name, expected) in model.histories() {
        let pair = Pair::new(db, name, expected, times);
        let versions = &expected.versions;
        pair.compare_revisions(name);
        let read = snapshot.document(name).and_then(|read| read.to_json());
        let expected = &versions[versions.len() - 1];
        match &expected.json {
            Some(_) => assert_eq!(read.unwrap(), expected.text),
            None => assert_eq!(read.unwrap_err().kind(), ErrorKind::NotFound),
        }
        assert_eq!(pair.document.timestamps().unwrap(), pair.times[pair.first() - 1..]);
        for _ in 0..30 {
            pair.something(&mut random);
        }
    }
}

/// What holds even where subtrees are stored whole: values, differences, times and logs.
pub(crate) fn values(db: &Database, model: &Model, times: &Times) {
    heads(db, model);
    let mut random = Random::new(0);
    for (name, expected) in model.histories() {
        let pair = Pair::new(db, name, expected, times);
        pair.compare_revisions(name);
        for _ in 0..10 {
            pair.compare_times(&mut random);
            pair.compare_log(&mut random);
            pair.compare_diff(&mut random);
            pair.compare_places(&mut random);
        }
    }
}

/// The first and the last revision of a value, and its text.
type Run = ((usize, usize), String);

impl<'a> Pair<'a> {
    fn new(db: &Database, name: &str, model: &'a model::Document, times: &Times) -> Self {
        let document = db.document(name).unwrap();
        let versions = &model.versions;
        let times = versions.iter().map(|version| times[&version.sequence]).collect();
        let listed = listed(&document);
        model.kept.check(&listed).unwrap_or_else(|what| panic!("{name}: {what}"));
        Self { document, model, versions, times, listed }
    }

    /// The revision that the history begins with.
    fn first(&self) -> usize {
        index(self.listed.first) + 1
    }

    fn is_there(&self, revision: usize) -> bool {
        self.listed.revisions.contains(&(revision as u64))
    }

    /// Every revision; nothing is there where it was deleted.
    fn compare_revisions(&self, name: &str) {
        for (number, version) in (1..).map(Revision).zip(self.versions) {
            let read = self.document.at(number).and_then(|snapshot| snapshot.to_json());
            match &version.json {
                Some(_) if self.is_there(index(number) + 1) => {
                    assert_eq!(read.unwrap(), version.text, "{name} at {number}");
                }
                _ => assert_eq!(read.unwrap_err().kind(), ErrorKind::NotFound, "{name}"),
            }
        }
    }

    fn something(&self, random: &mut Random) {
        let has_value = self.versions[self.first() - 1..].iter().any(|v| v.json.is_some());
        match random.below(9) {
            0 => self.compare_times(random),
            1 => self.compare_log(random),
            // All that is there of its history is that it was deleted.
            _ if !has_value => {}
            2 | 3 => self.compare_diff(random),
            4 | 5 => self.compare_history(random),
            6 => self.compare_node(random),
            _ => self.compare_formats(random),
        }
    }

    fn at(&self, revision: usize) -> Snapshot {
        self.document.at(Revision(revision as u64)).unwrap()
    }

    /// The value at a revision in which it was there.
    fn json(&self, revision: usize) -> &'a Json {
        self.versions[revision - 1].json.as_ref().unwrap()
    }

    /// A revision in which it was there, of those that the history has.
    fn revision(&self, random: &mut Random) -> usize {
        let first = self.first();
        let drawn = first + random.index(self.versions.len() - first + 1);
        let has_value = |&revision: &usize| self.versions[revision - 1].json.is_some();
        let mut found = (drawn..=self.versions.len()).chain(first..drawn);
        found.find(has_value).expect("a revision with a value")
    }

    /// A revision and a path that leads somewhere in it.
    fn place(&self, random: &mut Random) -> (usize, Vec<String>) {
        let revision = self.revision(random);
        let path = Samples::new(random, Scale::SMALL).path(self.json(revision));
        (revision, path)
    }

    fn compare_times(&self, random: &mut Random) {
        let index = random.index(self.times.len());
        let time = Micros(self.times[index].0 + nudge(random));
        let visible = self.times.iter().filter(|&&other| other <= time).count();
        match self.document.at_time(time) {
            Ok(snapshot) => {
                assert_eq!(snapshot.revision(), Revision(visible as u64), "{time:?}");
                assert_eq!(snapshot.timestamp().unwrap(), self.times[visible - 1]);
                assert_eq!(snapshot.to_json().unwrap(), self.versions[visible - 1].text);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound);
                // When those before the first were followed by others is not known any more.
                let is_gone = visible < self.first() || self.versions[visible - 1].json.is_none();
                assert!(is_gone, "{visible}: {error}");
            }
        }
        let beyond = Revision(self.versions.len() as u64 + 1);
        assert_eq!(self.document.at(beyond).unwrap_err().kind(), ErrorKind::NotFound);
    }

    /// Any of the revisions that the history has, from 0.
    fn revision_index(&self, random: &mut Random) -> usize {
        let skipped = self.first() - 1;
        skipped + random.index(self.times.len() - skipped)
    }

    fn compare_log(&self, random: &mut Random) {
        let moment = |random: &mut Random| {
            let index = self.revision_index(random);
            random.one_in(2).then(|| {
                if random.one_in(2) {
                    Moment::Revision(Revision(index as u64 + 1))
                } else {
                    Moment::Time(Micros(self.times[index].0 + nudge(random)))
                }
            })
        };
        let query = LogQuery {
            limit: random.one_in(2).then(|| random.index(5)),
            before: random.one_in(3).then(|| Revision(random.below(12))),
            from: moment(random),
            to: moment(random),
            author: random.one_in(2).then(|| random.choose(&["ann", "bob", "eve"]).to_owned()),
            ..LogQuery::default()
        };
        let expected = (1..=self.versions.len())
            .rev()
            .filter(|&r| self.is_there(r) && self.is_listed(&query, r));
        let expected: Vec<usize> = expected.take(query.limit.unwrap_or(usize::MAX)).collect();
        let log: Vec<_> = self.document.log(&query).unwrap().map(Result::unwrap).collect();
        let listed: Vec<usize> = log.iter().map(|entry| index(entry.revision) + 1).collect();
        assert_eq!(listed, expected, "{query:?}");
        for entry in &log {
            let index = index(entry.revision);
            assert_eq!(entry.timestamp, self.times[index]);
            assert!(entry.committed >= entry.timestamp);
            assert_eq!(entry.author, self.versions[index].author);
            assert_eq!(entry.message, self.versions[index].message);
        }
        assert!(log.windows(2).all(|pair| pair[0].sequence > pair[1].sequence));
    }

    fn is_listed(&self, query: &LogQuery, revision: usize) -> bool {
        let (number, time) = (Revision(revision as u64), self.times[revision - 1]);
        let from = match query.from {
            None => true,
            Some(Moment::Revision(from)) => number >= from,
            Some(Moment::Time(from)) => time >= from,
        };
        let to = match query.to {
            None => true,
            Some(Moment::Revision(to)) => number <= to,
            Some(Moment::Time(to)) => time <= to,
        };
        let author = &self.versions[revision - 1].author;
        from && to
            && query.before.is_none_or(|before| number < before)
            && query.author.as_ref().is_none_or(|wanted| author.as_ref() == Some(wanted))
    }

    /// The patch, applied by the letter, gives the other revision.
    fn compare_diff(&self, random: &mut Random) {
        let a = self.revision(random);
        let b = match random.below(3) {
            0 => (a + 1).min(self.versions.len()),
            1 => a.saturating_sub(1).max(self.first()),
            _ => self.revision(random),
        };
        if self.versions[b - 1].json.is_none() {
            return;
        }
        let diff = self.document.diff(Revision(a as u64), Revision(b as u64)).unwrap();
        let patch = diff.to_json_patch();
        let Json::Array(operations) = Json::parse(&patch) else { panic!("{patch}") };
        let mut operations = operations.iter();
        let mut value = self.json(a).clone();
        for change in diff.changes.iter().filter(|c| c.kind != ChangeKind::Reordered) {
            let place = tokens(&change.pointer.to_string());
            let is_there = change.kind != ChangeKind::Added;
            let before = value.at(&place).filter(|_| is_there).map(Json::sorted);
            let told = change.before.as_ref().map(|text| Json::parse(text).sorted());
            assert_eq!(told, before, "{change:?} of {a} to {b}: {patch}");
            value.patch(operations.next().unwrap());
        }
        assert_eq!(operations.next(), None, "{patch}");
        // A patch cannot say in which order the members of an object stand.
        assert_eq!(value.sorted(), self.json(b).sorted(), "{a} to {b}: {patch}");
        // The same text can be of other nodes: elements that were removed and came again.
        assert!(!diff.changes.is_empty() || self.json(a) == self.json(b), "{a} to {b}");
    }

    fn compare_history(&self, random: &mut Random) {
        let (revision, path) = self.place(random);
        let at = JsonPointer::parse(&pointer(&path)).unwrap();
        let mut history = self.at(revision).history(&at).unwrap();
        let mut runs: Vec<ValueRun> = Vec::new();
        history.page(1 + random.index(3), &mut runs).unwrap();
        runs.extend(history.map(Result::unwrap));
        let shown = |run: &ValueRun| (index(run.first) + 1, index(run.last) + 1);
        assert!(runs.iter().all(|run| run.first <= run.last), "{path:?}: {runs:?}");
        assert!(
            runs.windows(2).all(|pair| pair[0].first > pair[1].last),
            "{path:?} of {revision}: {runs:?}"
        );
        let value = self.json(revision).at(&path).unwrap().to_string();
        let here = runs.iter().find(|run| (run.first.0..=run.last.0).contains(&(revision as u64)));
        let here = here.unwrap_or_else(|| panic!("{path:?} of {revision}: {runs:?}"));
        assert_eq!(here.value.to_string(), value, "{path:?} of {revision}: {runs:?}");
        if self.json(revision).at_names(&path).is_some() {
            let runs: Vec<_> = runs.iter().map(|run| (shown(run), run.value.to_string())).collect();
            let expected = self.runs(&path);
            if !self.model.has_map {
                assert_eq!(runs, expected, "{path:?} of {revision}");
                return;
            }
            // What was a field of an object that was declared a map later is an entry, another
            // node, once it was removed and set again, though in one commit.
            let is_part = |run: &Run, whole: &Run| {
                whole.0.0 <= run.0.0 && run.0.1 <= whole.0.1 && whole.1 == run.1
            };
            let is_known = |run: &Run| expected.iter().any(|whole| is_part(run, whole));
            assert!(runs.iter().all(is_known), "{path:?} of {revision}: {runs:?}");
            let certain = self.model.presence(&path, revision - 1);
            let mut certain = expected.iter().filter(|run| certain.contains(&(run.0.0 - 1)));
            let is_told = |whole: &Run| runs.iter().any(|run| is_part(run, whole));
            assert!(certain.all(is_told), "{path:?} of {revision}: {runs:?}");
        }
    }

    /// The runs of what a path of names leads to, newest first.
    fn runs(&self, path: &[String]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut before: Option<&Json> = None;
        for revision in self.first()..=self.versions.len() {
            let value = self.versions[revision - 1].at_names(path);
            match (value, runs.last_mut()) {
                (Some(_), Some(run)) if value == before => run.0.1 = revision,
                (Some(value), _) => runs.push(((revision, revision), value.to_string())),
                (None, _) => {}
            }
            before = value;
        }
        runs.reverse();
        runs
    }

    fn compare_node(&self, random: &mut Random) {
        let (revision, path) = self.place(random);
        let at = JsonPointer::parse(&pointer(&path)).unwrap();
        let value = self.json(revision).at(&path).unwrap();
        let node = self.at(revision).node(&at).unwrap();
        assert_eq!(node.kind.name(), value.kind(), "{path:?} of {revision}");
        assert_eq!(node.children, value.children().map(|len| len as u64), "{path:?}");
        assert!(node.created.0 >= 1 && node.created <= node.changed, "{path:?}: {node:?}");
        assert!(node.changed.0 <= revision as u64, "{path:?}: {node:?}");
        if self.json(revision).at_names(&path).is_none() {
            return;
        }
        let runs = self.runs(&path);
        let run = runs.iter().find(|((first, last), _)| (*first..=*last).contains(&revision));
        let ((first, last), _) = *run.unwrap();
        let oldest = runs[runs.len() - 1].0.0 as u64;
        assert!(self.model.has_map || node.created.0 <= oldest, "{path:?}: {node:?} {runs:?}");
        if self.model.has_map {
            // Where its value is the same it may be another node, as said above.
            return;
        }
        for other in [first, last] {
            assert_eq!(self.at(other).node(&at).unwrap().id, node.id, "{path:?} of {other}");
        }
        if value.children().is_none() {
            assert!(node.changed.0 <= first as u64, "{path:?} of {revision}: {node:?} {runs:?}");
        }
    }

    /// Pointers lead into subtrees that are stored whole; ids and history end there.
    fn compare_places(&self, random: &mut Random) {
        let (revision, path) = self.place(random);
        let at = JsonPointer::parse(&pointer(&path)).unwrap();
        let value = self.json(revision).at(&path).unwrap();
        let (snapshot, mut out) = (self.at(revision), Vec::new());
        snapshot.append_json(&at, &Format::default(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), value.to_string(), "{path:?}");
        match snapshot.node(&at) {
            Ok(node) => assert_eq!(node.kind.name(), value.kind(), "{path:?} of {revision}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported, "{path:?}"),
        }
    }

    fn compare_formats(&self, random: &mut Random) {
        let revision = self.revision(random);
        let path = Samples::new(random, Scale::SMALL).any_path(self.json(revision));
        let format = Format {
            pretty: random.one_in(2),
            max_level: random.one_in(2).then(|| random.index(5)),
            max_children: random.one_in(2).then(|| random.below(5)),
            ..Format::default()
        };
        let at = JsonPointer::parse(&pointer(&path)).unwrap();
        let (snapshot, mut out) = (self.at(revision), Vec::new());
        let result = if random.one_in(2) {
            snapshot.append_json(&at, &format, &mut out)
        } else {
            snapshot.write_json(&at, &format, &mut out)
        };
        match self.json(revision).at(&path) {
            None => assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound, "{path:?}"),
            Some(value) => {
                result.unwrap();
                let expected = value.render(&format);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{path:?} {format:?}");
            }
        }
    }
}

/// What a document says of its history.
fn listed(document: &Document) -> Listed {
    let log = document.log(&LogQuery::default()).unwrap();
    let revisions = log.map(|entry| entry.unwrap().revision.0).collect();
    Listed { first: document.first_revision().unwrap(), revisions }
}

/// After a compaction of everything: what the retention lets go is gone, and no more.
pub(crate) fn compacted(db: &Database, model: &Model) {
    let mut model = model.clone();
    for name in model.documents().keys().cloned().collect::<Vec<_>>() {
        let listed = listed(&db.document(&name).unwrap());
        model.compacted(&name, &listed).unwrap_or_else(|what| panic!("{name}: {what}"));
    }
}

/// Where the copy of a revision is.
fn index(revision: Revision) -> usize {
    usize::try_from(revision.0).unwrap() - 1
}

/// A microsecond before, none, or one after.
fn nudge(random: &mut Random) -> i64 {
    random.choose(&[-1, 0, 1])
}
