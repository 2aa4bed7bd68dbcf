//! Documents with so many paths that objects become maps, and that subtrees are stored whole.

use duramen_sim::Random;
use duramen_sim::json::Json;
use duramen_sim::model::{Document, Model};
use duramen_sim::plan::Plan;
use duramen_sim::samples::{Samples, Scale};

use super::{Subject, compare};

/// An object of `fields` fields with names of their own, all of this value.
fn object(prefix: &str, fields: usize, value: impl Fn(&str) -> Json) -> Json {
    let field = |index| {
        let name = format!("{prefix}{index}");
        let value = value(&name);
        (name, value)
    };
    Json::Object((0..fields).map(field).collect())
}

/// A document of objects in objects in which every place has a path of its own.
fn many_paths(outer: usize, middle: usize, inner: usize) -> Json {
    let leaf = |_: &str| Json::Number("1".to_owned());
    object("a", outer, |a| {
        object(&format!("{a}b"), middle, |b| object(&format!("{b}c"), inner, leaf))
    })
}

/// Edits the last of some versions of a document `cases` times, and compares it in between and at
/// the end; returns how many subtrees are stored whole then.
fn run(versions: Vec<Json>, seed: u64, cases: usize) -> u64 {
    let mut model = Model::new(Scale::SMALL);
    let mut random = Random::new(seed);
    let mut subject = Subject::new(256 << 20);
    for version in versions {
        let plan = Plan::put(&model, "many", &version);
        save(&mut subject, &mut model, &plan);
    }
    for case in 0..cases {
        let name = largest(&model);
        let mut versions = model.versions(&name).iter().rev();
        let mut next = versions.find_map(|version| version.json.clone()).unwrap();
        for _ in 0..10 {
            edit(&mut next, &format!("new{case}"), &mut random);
        }
        let plan = Plan::put(&model, &name, &next);
        save(&mut subject, &mut model, &plan);
        for _ in 0..5 {
            let plan = Plan::any(&model, random.bits());
            save(&mut subject, &mut model, &plan);
        }
        if case % 4 == 3 {
            subject.reopen(random.one_in(2));
        }
    }
    compare::values(subject.db(), &model, &subject.times);
    assert!(subject.db().check().unwrap().is_clean());
    subject.db().document(&largest(&model)).unwrap().stats().unwrap().opaque_nodes
}

/// The name that the document with the many paths has now.
fn largest(model: &Model) -> String {
    let size = |document: &Document| document.versions[0].text.len();
    let found = model.histories().max_by_key(|(_, document)| size(document));
    found.unwrap().0.to_owned()
}

fn save(subject: &mut Subject, model: &mut Model, plan: &Plan) {
    model.commit(plan);
    subject.carry_out(plan, model);
}

/// Edits a document, and adds an object with paths of its own somewhere.
fn edit(document: &mut Json, name: &str, random: &mut Random) {
    let mut samples = Samples::new(random, Scale::SMALL);
    samples.edit(document);
    let mut path = samples.path(document);
    let token = match document.at(&path) {
        Some(Json::Array(_)) => "-",
        Some(Json::Object(_)) => name,
        _ => return,
    };
    path.push(token.to_owned());
    let added = object(name, 3, |name| object(name, 2, |_| Json::Null));
    document.set(&path, added).unwrap();
}

#[test]
fn objects_become_maps_beyond_4096_paths() {
    for seed in 0..4 {
        assert_eq!(run(vec![many_paths(10, 20, 25)], seed, 8), 0);
    }
}

#[test]
fn subtrees_are_stored_whole_beyond_65536_paths() {
    // Objects whose paths come early may have fields later, so that paths run out at last.
    assert!(run(vec![many_paths(15, 250, 0), many_paths(15, 250, 18)], 1, 8) > 0);
}
