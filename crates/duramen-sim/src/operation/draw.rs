//! Draws operations that make sense for what is there; some of them fail.

use duramen::{DocumentOptions, ErrorKind, Retention, Revision};

use super::{Kind, Operation};
use crate::edit::{Edit, Shape};
use crate::json::{Json, pointer};
use crate::model::Staging;
use crate::plan::NAMES;
use crate::random::Random;
use crate::samples::Samples;

const TAGS: [&str; 3] = ["v1", "latest", "2024-Q1 \u{e9}"];
/// So many revisions before the newest are looked at for those whose undoing has a known end.
const UNDONE_MAX: u64 = 8;

impl Operation {
    /// Draws one of a kind for the document `name`; it may be one that fails.
    pub(crate) fn draw(kind: Kind, name: &str, staging: &Staging, random: &mut Random) -> Self {
        let scale = staging.model().scale();
        let value = staging.value(name).unwrap_or(&Json::Null);
        let place = |random: &mut Random| Samples::new(random, scale).any_path(value);
        let edit = |shape, random: &mut Random| draw_edit(shape, name, staging, random);
        match kind {
            Kind::Create => Self::Create,
            Kind::Put => Self::Put { value: next_value(name, staging, random).to_string() },
            Kind::Set => Self::Set {
                at: pointer(&place(random)),
                value: Samples::new(random, scale).small().to_string(),
            },
            Kind::Remove => Self::Remove { at: pointer(&place(random)) },
            Kind::Expect => {
                Self::Expect { revision: Revision(staging.head(name) + random.below(6) / 5) }
            }
            Kind::Get => {
                let path = place(random);
                let value = value.at(&path).map(Json::to_string).unwrap_or_default();
                Self::Get { at: pointer(&path), value }
            }
            Kind::Insert => edit(Shape::Insert, random),
            Kind::Append => edit(Shape::Append, random),
            Kind::Splice => edit(Shape::Splice, random),
            Kind::Replace => edit(Shape::Replace, random),
            Kind::Move => edit(Shape::Move, random),
            Kind::Copy => edit(Shape::Copy, random),
            Kind::RenameField => edit(Shape::RenameField, random),
            Kind::Merge => edit(Shape::Merge, random),
            Kind::Patch => edit(Shape::Patch, random),
            Kind::SetAll => edit(Shape::SetAll, random),
            Kind::RemoveAll => edit(Shape::RemoveAll, random),
            Kind::Undo => draw_undo(name, staging, random),
            Kind::UndoEarlier => draw_undo_earlier(name, staging, random),
            Kind::Revert => draw_revert(name, staging, random),
            Kind::Delete => Self::Delete,
            Kind::Rename => Self::Rename { to: another_name(name, staging, random) },
            Kind::Exchange => draw_exchange(name, staging, random),
            Kind::Declare => Self::Declare { options: draw_options(name, staging, random) },
            Kind::Retain if keeps_head(name, staging) && random.one_in(2) => Self::Delete,
            Kind::Retain => Self::Retain { keep: draw_retention(name, staging, random) },
            Kind::Tag => Self::Tag {
                tag: draw_tag(name, staging, random, false),
                revision: draw_revision(name, staging, random),
            },
            Kind::MoveTag | Kind::Untag if !has_tags(name, staging) && !random.one_in(8) => {
                Self::draw(Kind::Tag, name, staging, random)
            }
            Kind::MoveTag => Self::MoveTag {
                tag: draw_tag(name, staging, random, true),
                revision: draw_revision(name, staging, random),
            },
            Kind::Untag => Self::Untag { tag: draw_tag(name, staging, random, true) },
            Kind::Import => draw_import(name, staging, random),
        }
    }
}

/// Draws the undoing of the newest revision, or of one that cannot be undone.
///
/// Only of the newest revision, and with nothing changed since, is it known without nodes
/// what undoing it makes.
fn draw_undo(name: &str, staging: &Staging, random: &mut Random) -> Operation {
    let head = staging.head(name);
    let others = [0, 1.min(head), head + 1];
    let is_other = random.one_in(8) || staging.is_touched(name);
    let is_known = |revision: &u64| *revision != head || !staging.is_touched(name);
    let other = Some(random.choose(&others)).filter(is_known).unwrap_or(0);
    let drawn = Revision(if is_other { other } else { head });
    let is_open = |revision| staging.is_open(name, revision);
    let has_open = is_open(drawn) || is_open(Revision(drawn.0.saturating_sub(1)));
    Operation::Undo { revision: if has_open { Revision(0) } else { drawn } }
}

/// Draws the undoing of a revision before the newest, rather one that goes well.
fn draw_undo_earlier(name: &str, staging: &Staging, random: &mut Random) -> Operation {
    let is_good = |undone: &Undone| undone.1.is_ok();
    let (good, bad): (Vec<Undone>, Vec<Undone>) = undone(name, staging).partition(is_good);
    let wanted = if good.is_empty() || random.one_in(4) { bad } else { good };
    if wanted.is_empty() {
        return draw_undo(name, staging, random);
    }
    Operation::UndoEarlier { revision: random.choose(&wanted).0 }
}

type Undone = (Revision, Result<Json, ErrorKind>);

/// What undoing each of the latest revisions before the newest makes, as far as it is known.
fn undone(name: &str, staging: &Staging) -> impl Iterator<Item = Undone> {
    let head = staging.head(name);
    (head.saturating_sub(UNDONE_MAX)..head)
        .map(Revision)
        .filter_map(move |revision| Some((revision, staging.undone_earlier(name, revision)?)))
}

/// Whether an earlier revision of a document is known to be undone well.
pub(crate) fn has_undoable(name: &str, staging: &Staging) -> bool {
    undone(name, staging).any(|(_, undone)| undone.is_ok())
}

fn draw_revert(name: &str, staging: &Staging, random: &mut Random) -> Operation {
    let revision = Revision(random.below(staging.head(name) + 2));
    if staging.is_open(name, revision) {
        return Operation::Revert { revision: Revision(0) };
    }
    let back = staging.value_at(name, revision);
    match back.filter(|&back| Some(back) == staging.value(name)) {
        // It may be of other nodes now, which would make a revision.
        Some(_) => Operation::Revert { revision: Revision(0) },
        None => Operation::Revert { revision },
    }
}

/// Draws a change of a single place. One that comes to the same value is replaced: whether it
/// is a revision depends on whether what is there now is the same or only looks the same.
fn draw_edit(shape: Shape, name: &str, staging: &Staging, random: &mut Random) -> Operation {
    let scale = staging.model().scale();
    let value = staging.value(name);
    if value.is_none() && shape == Shape::Patch {
        let patch = r#"[{"op":"test","path":"","value":null}]"#.to_owned();
        return Operation::Edit(Edit::Patch { patch });
    }
    let edit = Edit::draw(shape, value.unwrap_or(&Json::Null), random, scale);
    let Some(value) = value else { return Operation::Edit(edit) };
    let mut next = value.clone();
    if edit.apply(&mut next).is_ok() && next == *value {
        return Operation::Put { value: next.altered().to_string() };
    }
    Operation::Edit(edit)
}

/// A name for a document, rather one that is free.
fn another_name(name: &str, staging: &Staging, random: &mut Random) -> String {
    let free: Vec<&str> = NAMES.into_iter().filter(|name| !staging.is_there(name)).collect();
    if free.is_empty() || random.one_in(4) {
        let other = random.choose(&NAMES);
        return random.choose(&[name, other]).to_owned();
    }
    random.choose(&free).to_owned()
}

/// Draws an exchange if there is something to exchange names with.
fn draw_exchange(name: &str, staging: &Staging, random: &mut Random) -> Operation {
    let others = NAMES.into_iter().filter(|&other| other != name && staging.is_there(other));
    let others: Vec<&str> = others.collect();
    if others.is_empty() {
        return Operation::Rename { to: another_name(name, staging, random) };
    }
    Operation::Exchange { with: random.choose(&others).to_owned() }
}

fn draw_options(name: &str, staging: &Staging, random: &mut Random) -> DocumentOptions {
    let path = |text: &str| text.parse().expect("a label path");
    let mut options = DocumentOptions::default();
    if random.one_in(8) {
        options.keep = draw_retention(name, staging, random);
    } else if let Some(facts) = staging.facts(name) {
        options.keep = facts.options.keep;
    }
    for at in ["$", "$[*]", "$.a", "$.b[*].name", "$.c"] {
        match random.below(6) {
            0 => drop(options.ids.insert(path(at), random.choose(&["id", "a", "name"]).to_owned())),
            1 => drop(options.maps.insert(path(at))),
            _ => {}
        }
    }
    options
}

/// Whether a document is there and keeps its newest revision only: all of it goes if it is deleted.
fn keeps_head(name: &str, staging: &Staging) -> bool {
    let keeps = staging.facts(name).is_some_and(|facts| facts.options.keep == Retention::Head);
    keeps && staging.value(name).is_some()
}

fn draw_retention(name: &str, staging: &Staging, random: &mut Random) -> Retention {
    match random.below(12) {
        _ if staging.model().keeps_all() => Retention::All,
        0..8 if staging.is_deleted(name) => Retention::Head,
        0..6 => Retention::All,
        6 => Retention::Head,
        _ => Retention::Last(2 + random.below(8)),
    }
}

pub(crate) fn has_tags(name: &str, staging: &Staging) -> bool {
    staging.facts(name).is_some_and(|facts| !facts.tags.is_empty())
}

/// A tag, mostly one that the document has or one that it has not.
fn draw_tag(name: &str, staging: &Staging, random: &mut Random, has: bool) -> String {
    let facts = staging.facts(name);
    let is_set = |tag: &str| facts.is_some_and(|facts| facts.tags.contains_key(tag));
    let wanted: Vec<&str> = TAGS.into_iter().filter(|tag| is_set(tag) == has).collect();
    let choices = if wanted.is_empty() || random.one_in(6) { &TAGS[..] } else { &wanted };
    random.choose(choices).to_owned()
}

fn draw_revision(name: &str, staging: &Staging, random: &mut Random) -> Option<Revision> {
    let head = staging.head(name);
    let revision = if random.one_in(8) { head + 1 } else { 1 + random.below(head.max(1)) };
    let drawn = Some(Revision(revision)).filter(|&drawn| !staging.is_open(name, drawn));
    drawn.filter(|_| !random.one_in(4))
}

fn draw_import(name: &str, staging: &Staging, random: &mut Random) -> Operation {
    if !staging.has_whole_history(name) {
        // An export begins with 1 again, so that it is another history.
        return Operation::Put { value: next_value(name, staging, random).to_string() };
    }
    let is_live = staging.value(name).is_some();
    let revision = match random.below(8) {
        0 if is_live => Operation::Delete,
        1..=3 if is_live => draw_edit(Shape::Patch, name, staging, random),
        _ => Operation::Put { value: next_value(name, staging, random).to_string() },
    };
    Operation::Import { revision: Box::new(revision) }
}

/// The next whole value of a document: an edit of it, an older one, or another.
fn next_value(name: &str, staging: &Staging, random: &mut Random) -> Json {
    let scale = staging.model().scale();
    let choice = random.below(16);
    let Some(value) = staging.value(name).filter(|_| choice > 0) else {
        return Samples::new(random, scale).document();
    };
    let versions = staging.versions(name);
    let mut next = match choice {
        1 => return value.clone(),
        2..=4 if !versions.is_empty() => {
            let older = random.choose(versions).json.clone();
            older.unwrap_or_else(|| value.clone())
        }
        _ => value.clone(),
    };
    if choice > 3 {
        Samples::new(random, scale).edit(&mut next);
    }
    next
}
