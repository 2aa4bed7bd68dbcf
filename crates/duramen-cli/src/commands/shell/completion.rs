//! What the tab key offers: commands, options, documents, places and files.

use std::rc::Rc;

use clap::{Arg, Command, CommandFactory};
use duramen::{Format, JsonPointer, Snapshot, Target};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use serde_json::Value;

use super::BUILT_IN;
use super::setting::{Setting, innermost, is};
use super::words::{quoted, split};
use crate::arguments::{Arguments, Keys};

/// How many members of an object or array are looked at.
const MEMBERS_MAX: u64 = 10_000;

/// The names by which help calls the value of an argument that is a place.
const PLACES: &[&str] = &["POINTER", "PLACE", "JSONPATH"];

pub(super) struct Completion {
    setting: Rc<Setting>,
    files: FilenameCompleter,
}

impl Completion {
    pub(super) fn new(setting: Rc<Setting>) -> Self {
        Self { setting, files: FilenameCompleter::new() }
    }

    /// What can stand for `partial` behind `words`; none if it is a file.
    fn candidates(&self, words: &[String], partial: &str) -> Option<Vec<String>> {
        let Some(name) = words.first() else { return Some(commands()) };
        match name.as_str() {
            "use" => return Some(self.documents()),
            "help" => return Some(commands()),
            "at" => return Some(self.moments(words)),
            _ => {}
        }
        let root = Arguments::command();
        let Some(command) = root.find_subcommand(name) else { return Some(Vec::new()) };
        let (command, names) = innermost(command, words);
        let words = words.get(names.len() - 1..).unwrap_or_default();
        if partial.starts_with('-') {
            return Some(options(command));
        }
        if command.has_subcommands() {
            return Some(
                command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect(),
            );
        }
        let Some(argument) = self.argument(command, words) else { return Some(Vec::new()) };
        let values = argument.get_possible_values();
        if !values.is_empty() {
            return Some(values.iter().map(|value| value.get_name().to_owned()).collect());
        }
        if is(argument, "FILE") || is(argument, "FOLDER") {
            return None;
        }
        if is(argument, "DOC") || is(argument, "COLLECTION") {
            return Some(self.documents());
        }
        if is(argument, "REVISION|TIME|TAG") || is(argument, "TAG") {
            return Some(self.moments(words));
        }
        let is_place = PLACES.iter().any(|name| is(argument, name));
        Some(if is_place { self.places(words, partial) } else { Vec::new() })
    }

    /// The argument that the next word is.
    fn argument<'a>(&self, command: &'a Command, words: &[String]) -> Option<&'a Arg> {
        let mut before = words.iter().skip(1);
        let mut count = 0;
        let mut asked = None;
        while let Some(word) = before.next() {
            asked = None;
            let Some(name) = word.strip_prefix("--") else {
                count += 1;
                continue;
            };
            let option = command.get_opts().find(|option| option.get_long() == Some(name));
            if let Some(option) = option.filter(|option| option.get_action().takes_values())
                && before.next().is_none()
            {
                asked = Some(option);
            }
        }
        let mut positionals = command.get_positionals().filter(|argument| {
            !is(argument, "DB") && self.setting.named_by(argument, None).is_none()
        });
        asked.or_else(|| positionals.nth(count))
    }

    fn documents(&self) -> Vec<String> {
        self.setting.documents().unwrap_or_default()
    }

    /// The document that a command is about.
    fn document(&self, words: &[String]) -> Option<String> {
        self.setting.document().or_else(|| words.get(1).cloned())
    }

    fn moments(&self, words: &[String]) -> Vec<String> {
        let name = self.document(words);
        let tags = name.and_then(|name| self.setting.tags(&name).ok()).unwrap_or_default();
        tags.into_iter().chain(["head".to_owned()]).collect()
    }

    fn places(&self, words: &[String], partial: &str) -> Vec<String> {
        let name = self.document(words);
        let snapshot = name.and_then(|name| self.setting.snapshot(&name).ok());
        snapshot.map_or_else(Vec::new, |(snapshot, keys)| places(&snapshot, keys, partial))
    }
}

fn commands() -> Vec<String> {
    let root = Arguments::command();
    let known = root.get_subcommands().map(Command::get_name);
    BUILT_IN.iter().map(|(name, _)| *name).chain(known).map(str::to_owned).collect()
}

fn options(command: &Command) -> Vec<String> {
    let names = command.get_arguments().filter_map(Arg::get_long);
    names.map(|name| format!("--{name}")).collect()
}

/// The places one level below what `partial` names whole.
fn places(snapshot: &Snapshot, keys: Keys, partial: &str) -> Vec<String> {
    if partial.starts_with('$') {
        let parent = partial.rfind('.').map_or(partial, |end| &partial[..end]);
        let Some(pointer) = simple_path(parent) else { return Vec::new() };
        let names = members(snapshot, &pointer).into_iter().filter(|name| is_simple(name));
        return names.map(|name| format!("{parent}.{name}")).collect();
    }
    let parent = partial.rfind('/').map_or("", |end| &partial[..end]);
    let Ok(parent) = JsonPointer::parse(parent) else { return Vec::new() };
    let Target::Pointer(parent) = keys.stored(&parent.into()) else { return Vec::new() };
    let place = |name: String| {
        let mut pointer = parent.clone();
        pointer.push(name);
        keys.shown(&pointer).to_string()
    };
    members(snapshot, &parent).into_iter().map(place).collect()
}

/// The names or indexes that an object or array has.
fn members(snapshot: &Snapshot, pointer: &JsonPointer) -> Vec<String> {
    let format =
        Format { max_level: Some(1), max_children: Some(MEMBERS_MAX), ..Format::default() };
    let mut text = Vec::new();
    if snapshot.append_json(pointer, &format, &mut text).is_err() {
        return Vec::new();
    }
    match serde_json::from_slice(&text) {
        Ok(Value::Object(members)) => members.into_iter().map(|(name, _)| name).collect(),
        Ok(Value::Array(elements)) => (0..elements.len()).map(|index| index.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// The pointer that a path of plain names and indexes stands for.
fn simple_path(text: &str) -> Option<JsonPointer> {
    let mut pointer = JsonPointer::root();
    let mut rest = text.strip_prefix('$')?;
    while !rest.is_empty() {
        let end = rest[1..].find(['.', '[']).map_or(rest.len(), |end| end + 1);
        let (segment, after) = rest.split_at(end);
        let index = segment.strip_prefix('[').and_then(|index| index.strip_suffix(']'));
        let index = index.filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
        let name = segment.strip_prefix('.').filter(|name| is_simple(name));
        pointer.push(index.or(name)?);
        rest = after;
    }
    Some(pointer)
}

/// Whether a name needs no quotes in a path of RFC 9535 (`member-name-shorthand`).
fn is_simple(name: &str) -> bool {
    let is_letter = |character: char| {
        character.is_ascii_alphabetic() || character == '_' || !character.is_ascii()
    };
    name.starts_with(is_letter)
        && name.chars().all(|character| is_letter(character) || character.is_ascii_digit())
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let mut found = split(&line[..position]);
        let last = if found.ends_between { None } else { found.words.pop() };
        let start = last.as_ref().map_or(position, |word| word.start);
        let partial = last.map_or_else(String::new, |word| word.text);
        let words: Vec<String> = found.words.into_iter().map(|word| word.text).collect();
        let Some(candidates) = self.candidates(&words, &partial) else {
            return self.files.complete_path(line, position);
        };
        let mut candidates: Vec<String> =
            candidates.into_iter().filter(|candidate| candidate.starts_with(&partial)).collect();
        candidates.sort_unstable();
        let pair = |text: String| Pair { replacement: typed(&text), display: text };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

/// A candidate as it is typed; a path of plain names needs no quotes in this shell.
fn typed(candidate: &str) -> String {
    if candidate.starts_with('$') { candidate.to_owned() } else { quoted(candidate) }
}

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Hinter for Completion {
    type Hint = String;
}

#[cfg(test)]
mod tests {
    use duramen::{CommitOptions, Database};

    use super::*;

    #[test]
    fn places_are_found_one_level_below() {
        let document = Database::memory().unwrap().create_document("d").unwrap();
        let json = r#"{"open":{"mon":1,"a/b":2,"a b":3},"list":[[1],[2]]}"#;
        document.put(json, &CommitOptions::default()).unwrap();
        let head = document.head().unwrap();
        let sorted = |partial| {
            let mut found = places(&head, Keys::default(), partial);
            found.sort_unstable();
            found
        };
        assert_eq!(sorted(""), ["/list", "/open"]);
        assert_eq!(sorted("/o"), ["/list", "/open"]);
        assert_eq!(sorted("/open/"), ["/open/a b", "/open/a~1b", "/open/mon"]);
        assert_eq!(sorted("/list/0/"), ["/list/0/0"]);
        assert_eq!(sorted("$"), ["$.list", "$.open"]);
        assert_eq!(sorted("$.open.m"), ["$.open.mon"]);
        assert!(sorted("$[?@.a]").is_empty());
        assert!(sorted("/open/mon/").is_empty());
        assert!(sorted("/missing/").is_empty());
    }

    #[test]
    fn only_a_path_of_plain_names_is_followed() {
        let pointer = |text| simple_path(text).map(|pointer| pointer.to_string());
        assert_eq!(pointer("$.a[0].b_1").as_deref(), Some("/a/0/b_1"));
        assert_eq!(pointer("$").as_deref(), Some(""));
        for text in ["", "$..a", "$.a[*]", "$['a']", "$.1", "$[", "$x"] {
            assert_eq!(pointer(text), None, "{text}");
        }
    }
}
