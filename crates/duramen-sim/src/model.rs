//! What a database should hold, kept the naive way: every revision of every document in full.
//!
//! The model also chooses what to do next. A choice is made of a seed and of what the documents
//! hold, so that it stays one that makes sense when what came before it is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use duramen::{ErrorKind, Revision};

use crate::json::{Json, Refusal, pointer};
use crate::random::Random;
use crate::samples::{Samples, Scale};

/// The documents of a database.
#[derive(Debug, Clone)]
pub struct Model {
    scale: Scale,
    documents: BTreeMap<String, Vec<Arc<Version>>>,
}

/// One revision of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Version {
    /// Its value.
    pub json: Json,
    /// The same as compact JSON.
    pub text: String,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
}

/// One call of a change, and what should come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The document.
    pub name: String,
    /// What is done to it.
    pub call: Call,
    /// The kind of the error, if it is one.
    pub expected: Result<(), ErrorKind>,
}

/// What is done to a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// It is made, without a revision.
    Create,
    /// A whole value is saved.
    Put(String),
    /// What a pointer names is set.
    Set(String, String),
    /// What a pointer names is removed.
    Remove(String),
    /// It is expected to be at a revision.
    Expect(Revision),
    /// What a pointer names is read, and should be this.
    Get(String, String),
}

/// The timestamp that a commit is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Time {
    /// None.
    Now,
    /// One after all that were.
    Past,
    /// That of this document's last revision: too early.
    LastOf(String),
    /// One that has not come.
    Future,
}

/// One change of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The calls; a single one outside a transaction.
    pub steps: Vec<Step>,
    /// Whether the calls are made in a transaction.
    pub is_transaction: bool,
    /// Whether it is rolled back at the end.
    pub is_rolled_back: bool,
    /// Outside a transaction: the revision the change is said to be based on.
    pub based_on: Option<Revision>,
    /// The timestamp it is given.
    pub time: Time,
    /// Who makes it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// The documents that get a revision, or the kind of the error.
    pub expected: Result<Vec<(String, Revision)>, ErrorKind>,
}

/// The documents that a plan touched; none where there is no value yet.
type Staged = BTreeMap<String, Option<Json>>;

const DOCUMENTS: [&str; 4] = ["a", "b/c", "\u{e9}", "many"];

impl Model {
    /// An empty database; documents will have this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale, documents: BTreeMap::new() }
    }

    /// The documents by name, each with its revisions from the first on.
    pub fn documents(&self) -> &BTreeMap<String, Vec<Arc<Version>>> {
        &self.documents
    }

    /// The revisions of a document that has some.
    pub fn some_document(&self, random: &mut Random) -> Option<(&str, &[Arc<Version>])> {
        let used = self.documents.iter().filter(|(_, versions)| !versions.is_empty());
        let used: Vec<_> = used.collect();
        let (name, versions) = used.get(random.index(used.len().max(1)))?;
        Some((name.as_str(), versions.as_slice()))
    }

    /// Saves a value as a document of this name.
    pub fn put(&mut self, name: &str, json: Json) -> Plan {
        let call = Call::Put(json.to_string());
        let mut plan = Plan {
            steps: vec![Step { name: name.to_owned(), call, expected: Ok(()) }],
            is_transaction: true,
            is_rolled_back: false,
            based_on: None,
            time: Time::Now,
            author: None,
            message: None,
            expected: Ok(Vec::new()),
        };
        let staged = [(name.to_owned(), Some(json))].into();
        plan.expected = Ok(self.commit(staged, &plan));
        plan
    }

    /// Chooses a change and makes it.
    pub fn change(&mut self, seed: u64, is_transaction: bool) -> Plan {
        let mut random = Random::new(seed);
        let mut staged = Staged::new();
        let mut plan = Plan {
            steps: Vec::new(),
            is_transaction,
            is_rolled_back: is_transaction && random.one_in(4),
            based_on: None,
            time: Time::Now,
            author: random.one_in(2).then(|| random.choose(&["ann", "bob"]).to_owned()),
            message: random.one_in(3).then(|| format!("change {}", random.below(5))),
            expected: Ok(Vec::new()),
        };
        let steps = if is_transaction { 1 + random.below(8) } else { 1 };
        let mut moved = BTreeSet::new();
        for _ in 0..steps {
            let step = self.step(&mut random, is_transaction, &mut staged);
            if staged.get(&step.name).is_some_and(|value| self.differs(&step.name, value.as_ref()))
            {
                moved.insert(step.name.clone());
            }
            plan.steps.push(step);
        }
        self.keep_away(&moved, &mut plan, &mut staged);
        self.choose_frame(&mut random, &mut plan, &staged);
        if plan.expected.is_ok() && !plan.is_rolled_back {
            let changed = self.commit(staged, &plan);
            plan.expected = Ok(changed);
        }
        plan
    }

    /// Changes documents that were changed and changed back: whether that is a revision depends
    /// on whether elements were removed and others put in their place that only look the same.
    fn keep_away(&self, moved: &BTreeSet<String>, plan: &mut Plan, staged: &mut Staged) {
        for name in moved {
            if self.differs(name, staged[name].as_ref()) {
                continue;
            }
            let back = staged.insert(name.clone(), None).flatten();
            let value = Json::Array(vec![Json::Null, back.unwrap_or(Json::Null)]);
            let call = Call::Put(value.to_string());
            plan.steps.push(Step { name: name.clone(), call, expected: Ok(()) });
            staged.insert(name.clone(), Some(value));
        }
    }

    /// Chooses what surrounds the calls, and whether that fails.
    fn choose_frame(&self, random: &mut Random, plan: &mut Plan, staged: &Staged) {
        let step = &plan.steps[0];
        if !plan.is_transaction {
            let head = self.head(&step.name);
            if step.call == Call::Create {
                plan.expected = step.expected.map(|()| Vec::new());
                return;
            }
            plan.based_on = random.one_in(4).then_some(Revision(head + random.below(2)));
            plan.expected = match plan.based_on {
                _ if !self.documents.contains_key(&step.name) => Err(ErrorKind::NotFound),
                Some(revision) if revision.0 != head => Err(ErrorKind::Conflict),
                _ => step.expected.map(|()| Vec::new()),
            };
            if plan.expected.is_err() {
                return;
            }
        }
        let changed: Vec<&String> = staged
            .iter()
            .filter(|(name, value)| self.differs(name, value.as_ref()))
            .map(|c| c.0)
            .collect();
        let is_anything =
            !changed.is_empty() || staged.keys().any(|name| !self.documents.contains_key(name));
        let last_of = changed.iter().find(|name| self.head(name) > 0);
        plan.time = match (random.below(8), last_of) {
            (0 | 1, _) => Time::Past,
            (2, Some(name)) => Time::LastOf((*name).clone()),
            (3, _) => Time::Future,
            _ => Time::Now,
        };
        if is_anything
            && !plan.is_rolled_back
            && matches!(plan.time, Time::LastOf(_) | Time::Future)
        {
            plan.expected = Err(ErrorKind::Invalid);
        }
    }

    fn head(&self, name: &str) -> u64 {
        self.documents.get(name).map_or(0, |versions| versions.len() as u64)
    }

    fn differs(&self, name: &str, value: Option<&Json>) -> bool {
        let head = self.documents.get(name).and_then(|versions| versions.last());
        value != head.map(|version| &version.json)
    }

    fn commit(&mut self, staged: Staged, plan: &Plan) -> Vec<(String, Revision)> {
        let mut changed = Vec::new();
        for (name, value) in staged {
            let differs = self.differs(&name, value.as_ref());
            let versions = self.documents.entry(name.clone()).or_default();
            let Some(json) = value.filter(|_| differs) else { continue };
            let text = json.to_string();
            let (author, message) = (plan.author.clone(), plan.message.clone());
            versions.push(Arc::new(Version { json, text, author, message }));
            changed.push((name, Revision(versions.len() as u64)));
        }
        changed
    }

    /// Chooses a call and makes it in the staged documents.
    fn step(&self, random: &mut Random, is_transaction: bool, staged: &mut Staged) -> Step {
        let name = random.choose(&DOCUMENTS).to_owned();
        if !staged.contains_key(&name)
            && let Some(versions) = self.documents.get(&name)
        {
            let head = versions.last().map(|version| version.json.clone());
            staged.insert(name.clone(), head);
        }
        let is_there = staged.contains_key(&name);
        let value = staged.get(&name).cloned().flatten();
        let choice = random.below(if is_transaction { 14 } else { 11 });
        let call = match (choice, &value) {
            (0, _) => Call::Create,
            (11, _) => Call::Expect(Revision(self.head(&name) + random.below(6) / 5)),
            (1..=4, _) => Call::Put(self.next_value(random, &name, value.as_ref()).to_string()),
            (choice, _) => self.place(random, choice, value.as_ref().unwrap_or(&Json::Null)),
        };
        let expected = match &call {
            Call::Create if is_there => Err(ErrorKind::Conflict),
            Call::Create => {
                staged.insert(name.clone(), None);
                Ok(())
            }
            Call::Put(text) => {
                // Outside a transaction it takes a document that is there.
                if is_there || is_transaction {
                    staged.insert(name.clone(), Some(Json::parse(text)));
                }
                Ok(())
            }
            _ if !is_there => Err(ErrorKind::NotFound),
            Call::Expect(revision) if revision.0 == self.head(&name) => Ok(()),
            Call::Expect(_) => Err(ErrorKind::Conflict),
            _ => change(&call, staged.entry(name.clone()).or_default()),
        };
        Step { name, call, expected }
    }

    /// The next whole value of a document: an edit of it, an older one, or another.
    fn next_value(&self, random: &mut Random, name: &str, value: Option<&Json>) -> Json {
        let versions = self.documents.get(name).map_or(&[][..], Vec::as_slice);
        let choice = random.below(16);
        let Some(value) = value.filter(|_| choice > 0) else {
            return Samples::new(random, self.scale).document();
        };
        let mut next = match choice {
            1 => return value.clone(),
            2..=4 if !versions.is_empty() => random.choose(versions).json.clone(),
            _ => value.clone(),
        };
        if choice > 3 {
            Samples::new(random, self.scale).edit(&mut next);
        }
        next
    }

    /// A call that names a place of a document.
    fn place(&self, random: &mut Random, choice: u64, value: &Json) -> Call {
        let mut samples = Samples::new(random, self.scale);
        let path = samples.any_path(value);
        let at = pointer(&path);
        match choice {
            5..=8 => Call::Set(at, samples.small().to_string()),
            12 | 13 => Call::Get(at, value.at(&path).map(Json::to_string).unwrap_or_default()),
            _ => Call::Remove(at),
        }
    }
}

/// Makes a call that names a place.
fn change(call: &Call, value: &mut Option<Json>) -> Result<(), ErrorKind> {
    let kind = |refusal| match refusal {
        Refusal::Missing => ErrorKind::NotFound,
        Refusal::Root => ErrorKind::Invalid,
    };
    match call {
        Call::Set(at, text) if at.is_empty() => {
            *value = Some(Json::parse(text));
            Ok(())
        }
        Call::Remove(at) if at.is_empty() => Err(ErrorKind::Invalid),
        Call::Set(at, text) => {
            let value = value.as_mut().ok_or(ErrorKind::NotFound)?;
            value.set(&crate::json::tokens(at), Json::parse(text)).map_err(kind)
        }
        Call::Remove(at) => {
            let value = value.as_mut().ok_or(ErrorKind::NotFound)?;
            value.remove(&crate::json::tokens(at)).map(drop).map_err(kind)
        }
        Call::Get(at, _) => {
            let found =
                value.as_ref().and_then(|value| value.at(&crate::json::tokens(at)).cloned());
            found.map(drop).ok_or(ErrorKind::NotFound)
        }
        Call::Create | Call::Put(_) | Call::Expect(_) => unreachable!("these name no place"),
    }
}
