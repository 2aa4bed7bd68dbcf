//! What each change of a single place does to a value, the naive way.
//!
//! Whatever is refused is refused before anything is changed, but for a patch: what it did before
//! it failed stays.

use super::{Json, Refusal, index, tokens};

/// Deeper than this no document may be.
const DEPTH_MAX: usize = 512;

/// Where a new member goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In front of a member.
    Before,
    /// Behind a member.
    After,
    /// The first one in an array or object.
    First,
    /// The last one in an array or object.
    Last,
}

/// In front of the member at an index of the array or object that a path leads to.
type Slot = (Vec<String>, usize);
type Result<T = ()> = std::result::Result<T, Refusal>;

impl Json {
    /// Whether it is an object.
    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// How many arrays and objects lie inside each other in it.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Array(elements) => 1 + elements.iter().map(Self::depth).max().unwrap_or(0),
            Self::Object(fields) => {
                1 + fields.iter().map(|(_, value)| value.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Adds an element, or with a name a field that is not there.
    pub(crate) fn insert(
        &mut self,
        (side, at): (Side, &[String]),
        name: Option<&str>,
        value: Self,
    ) -> Result {
        let slot = self.slot(side, at)?;
        self.check_name(&slot.0, name)?;
        self.fill(&slot, name, value)
    }

    /// Adds an element at the end of an array.
    pub(crate) fn append(&mut self, array: &[String], value: Self) -> Result {
        let len = self.elements_at(array)?.len();
        self.fill(&(array.to_vec(), len), None, value)
    }

    /// Replaces elements of an array by others.
    pub(crate) fn splice(
        &mut self,
        array: &[String],
        (first, remove): (u64, u64),
        values: Self,
    ) -> Result {
        let len = self.elements_at(array)?.len();
        let range = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let (first, end) = (range(first), range(first.saturating_add(remove)));
        if end > len {
            return Err(Refusal::Missing);
        }
        check_depth(array, &values)?;
        let Self::Array(values) = values else { return Err(Refusal::Unfit) };
        let Some(Self::Array(elements)) = self.at_mut(array) else { return Err(Refusal::Missing) };
        elements.splice(first..end, values);
        Ok(())
    }

    /// Replaces what is there.
    pub(crate) fn replace(&mut self, at: &[String], value: Self) -> Result {
        check_depth(at, &value)?;
        *self.at_mut(at).ok_or(Refusal::Missing)? = value;
        Ok(())
    }

    /// Moves a value to another place.
    pub(crate) fn move_to(
        &mut self,
        from: &[String],
        (side, at): (Side, &[String]),
        name: Option<&str>,
    ) -> Result {
        let (token, source) = from.split_last().ok_or(Refusal::Root)?;
        self.at(from).ok_or(Refusal::Missing)?;
        let (mut container, mut place) = self.slot(side, at)?;
        if container.starts_with(from) {
            return Err(Refusal::Unfit);
        }
        let is_from_object = self.at(source).is_some_and(Self::is_object);
        let is_to_object = self.at(&container).is_some_and(Self::is_object);
        let name = name.or((is_from_object && is_to_object).then_some(token.as_str()));
        let is_same = container == source;
        if !(is_same && is_to_object && name == Some(token)) {
            self.check_name(&container, name)?;
        }
        let value = self.at(from).ok_or(Refusal::Missing)?.clone();
        if !is_same {
            check_depth(&child(&container), &value)?;
        }
        let from_index = self.at(source).and_then(|source| source.position(token));
        let from_index = from_index.ok_or(Refusal::Missing)?;
        self.remove(from)?;
        if is_same && place > from_index {
            place -= 1;
        }
        if !is_from_object && container.len() > source.len() && container.starts_with(source) {
            let step = index(&container[source.len()]).ok_or(Refusal::Missing)?;
            if step > from_index {
                container[source.len()] = (step - 1).to_string();
            }
        }
        self.fill(&(container, place), name, value)
    }

    /// Copies a value to another place.
    pub(crate) fn copy(
        &mut self,
        from: &[String],
        (side, at): (Side, &[String]),
        name: Option<&str>,
    ) -> Result {
        let value = self.at(from).ok_or(Refusal::Missing)?.clone();
        let slot = self.slot(side, at)?;
        let is_object = |path: &[String]| self.at(path).is_some_and(Self::is_object);
        let kept = from.split_last().filter(|(_, source)| is_object(source) && is_object(&slot.0));
        let name = name.or(kept.map(|(token, _)| token.as_str()));
        self.check_name(&slot.0, name)?;
        self.fill(&slot, name, value)
    }

    /// Gives a field another name.
    pub(crate) fn rename(&mut self, at: &[String], name: &str) -> Result {
        let (token, container) = at.split_last().ok_or(Refusal::Root)?;
        let fields = match self.at(container) {
            Some(Self::Object(fields)) => fields,
            Some(Self::Array(_)) => return Err(Refusal::Unfit),
            _ => return Err(Refusal::Missing),
        };
        let at = fields.iter().position(|(field, _)| field == token).ok_or(Refusal::Missing)?;
        if name != token {
            self.check_name(container, Some(name))?;
        }
        let Some(Self::Object(fields)) = self.at_mut(container) else {
            return Err(Refusal::Missing);
        };
        name.clone_into(&mut fields[at].0);
        Ok(())
    }

    /// Applies a JSON Merge Patch (RFC 7396).
    pub(crate) fn merge(&mut self, patch: &Self) {
        let Self::Object(members) = patch else {
            *self = patch.clone();
            return;
        };
        if !self.is_object() {
            *self = Self::Object(Vec::new());
        }
        let Self::Object(fields) = self else { return };
        for (name, patch) in members {
            if *patch == Self::Null {
                fields.retain(|(field, _)| field != name);
            } else if let Some((_, value)) = fields.iter_mut().find(|(field, _)| field == name) {
                value.merge(patch);
            } else {
                let mut value = Self::Null;
                value.merge(patch);
                fields.push((name.clone(), value));
            }
        }
    }

    /// Applies one operation of a JSON Patch (RFC 6902), any of them.
    pub(crate) fn apply_patch(&mut self, operation: &Self) -> Result {
        let text = |name: &str| match operation.child(name) {
            Some(Self::Text(text)) => text.clone(),
            other => panic!("{name} of a patch is {other:?}"),
        };
        let value = || operation.child("value").expect("an operation has a value").clone();
        let path = tokens(&text("path"));
        match text("op").as_str() {
            "add" => self.add_or_set(&path, value()),
            "remove" => self.remove(&path).map(drop),
            "replace" => self.replace(&path, value()),
            "move" => self.move_as_patch(&tokens(&text("from")), &path),
            "copy" => {
                let copied = self.at(&tokens(&text("from"))).ok_or(Refusal::Missing)?.clone();
                self.add_or_set(&path, copied)
            }
            "test" if *self.at(&path).ok_or(Refusal::Missing)? == value() => Ok(()),
            "test" => Err(Refusal::Taken),
            other => panic!("unexpected operation {other}"),
        }
    }

    fn move_as_patch(&mut self, from: &[String], to: &[String]) -> Result {
        self.at(from).ok_or(Refusal::Missing)?;
        if from == to {
            return Ok(());
        }
        if to.starts_with(from) {
            return Err(Refusal::Unfit);
        }
        // Within one array it is known beforehand whether there is such a place.
        if let (Some((token, target)), Some((_, source))) = (to.split_last(), from.split_last())
            && target == source
            && let Some(Self::Array(elements)) = self.at(source)
            && token != "-"
            && index(token).is_none_or(|at| at >= elements.len())
        {
            return Err(Refusal::Missing);
        }
        let value = self.remove(from)?;
        self.add_or_set(to, value)
    }

    fn add_or_set(&mut self, at: &[String], value: Self) -> Result {
        let Some((token, container)) = at.split_last() else { return self.set(at, value) };
        let len = match self.at(container) {
            Some(Self::Array(elements)) => elements.len(),
            Some(Self::Object(_)) => {
                check_depth(at, &value)?;
                return self.set(at, value);
            }
            _ => return Err(Refusal::Missing),
        };
        check_depth(at, &value)?;
        let place = if token == "-" { Some(len) } else { index(token) };
        let place = place.filter(|&place| place <= len).ok_or(Refusal::Missing)?;
        self.fill(&(container.to_vec(), place), None, value)
    }

    /// Where a member stands.
    fn position(&self, token: &str) -> Option<usize> {
        match self {
            Self::Array(elements) => index(token).filter(|&at| at < elements.len()),
            Self::Object(fields) => fields.iter().position(|(name, _)| name == token),
            _ => None,
        }
    }

    fn elements_at(&self, array: &[String]) -> Result<&[Self]> {
        match self.at(array) {
            Some(Self::Array(elements)) => Ok(elements),
            Some(Self::Object(_)) => Err(Refusal::Unfit),
            _ => Err(Refusal::Missing),
        }
    }

    fn slot(&self, side: Side, at: &[String]) -> Result<Slot> {
        if let Side::First | Side::Last = side {
            let len = self.at(at).and_then(Self::children).ok_or(Refusal::Missing)?;
            return Ok((at.to_vec(), if side == Side::First { 0 } else { len }));
        }
        let (token, container) = at.split_last().ok_or(Refusal::Root)?;
        let place = self.at(container).and_then(|container| container.position(token));
        let place = place.ok_or(Refusal::Missing)?;
        Ok((container.to_vec(), place + usize::from(side == Side::After)))
    }

    /// Refuses a name that a new member cannot have.
    fn check_name(&self, container: &[String], name: Option<&str>) -> Result {
        match (self.at(container), name) {
            (Some(Self::Array(_)), None) => Ok(()),
            (Some(object @ Self::Object(_)), Some(name)) => match object.child(name) {
                None => Ok(()),
                Some(_) => Err(Refusal::Taken),
            },
            _ => Err(Refusal::Unfit),
        }
    }

    /// Puts a new member at a place.
    fn fill(&mut self, (container, place): &Slot, name: Option<&str>, value: Self) -> Result {
        check_depth(&child(container), &value)?;
        match (self.at_mut(container), name) {
            (Some(Self::Array(elements)), _) => elements.insert(*place, value),
            (Some(Self::Object(fields)), Some(name)) => {
                fields.insert(*place, (name.to_owned(), value));
            }
            _ => return Err(Refusal::Missing),
        }
        Ok(())
    }
}

/// A path one step longer.
fn child(container: &[String]) -> Vec<String> {
    [container, &[String::new()]].concat()
}

fn check_depth(at: &[String], value: &Json) -> Result {
    if at.len() + value.depth() > DEPTH_MAX { Err(Refusal::Unfit) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, change: impl FnOnce(&mut Json) -> Result) -> String {
        let mut value = Json::parse(text);
        match change(&mut value) {
            Ok(()) => value.to_string(),
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    #[test]
    fn moves_count_places_without_what_they_move() {
        let moved = |text, from, side, to| {
            changed(text, |value| value.move_to(&tokens(from), (side, &tokens(to)), None))
        };
        assert_eq!(moved("[1,2,3]", "/0", Side::After, "/1"), "[2,1,3]");
        assert_eq!(moved("[1,[2]]", "/0", Side::Last, "/1"), "[[2,1]]");
        assert_eq!(moved(r#"{"a":1,"b":2}"#, "/a", Side::Last, ""), r#"{"b":2,"a":1}"#);
        assert_eq!(moved("[[1]]", "/0", Side::Last, "/0"), "Unfit");
    }

    #[test]
    fn merges_follow_the_standard() {
        let merged = |text, patch: &str| {
            changed(text, |value| {
                value.merge(&Json::parse(patch));
                Ok(())
            })
        };
        assert_eq!(merged(r#"{"a":"b"}"#, r#"{"a":null,"c":{"d":null}}"#), r#"{"c":{}}"#);
        assert_eq!(merged("[1]", r#"{"a":[null]}"#), r#"{"a":[null]}"#);
    }

    #[test]
    fn patches_fail_where_the_standard_says() {
        let patched =
            |text, patch: &str| changed(text, |value| value.apply_patch(&Json::parse(patch)));
        let moved = r#"{"op":"move","from":"/0","path":"/2"}"#;
        assert_eq!(patched("[1,2,3]", moved), "[2,3,1]");
        assert_eq!(patched("[1,2]", moved), "Missing");
        assert_eq!(patched("[1]", r#"{"op":"test","path":"/0","value":2}"#), "Taken");
        assert_eq!(patched("[1]", r#"{"op":"copy","from":"/0","path":"/-"}"#), "[1,1]");
    }
}
