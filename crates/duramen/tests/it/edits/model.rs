//! A JSON value with the order of its members, and what each change does to it, the naive way.

use std::fmt;

/// A value. Scalars are their text; strings and names have no escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Json {
    Scalar(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// The tokens of a pointer.
pub(super) type Path = Vec<String>;

/// A place in front of a member: the container, and the index.
pub(super) type Slot = (Path, usize);

/// The change is to be refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused;

type Result<T> = std::result::Result<T, Refused>;

#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    Before,
    After,
    First,
    Last,
}

impl Json {
    pub(super) fn parse(text: &str) -> Self {
        let (value, rest) = read(text);
        assert_eq!(rest, "");
        value
    }

    /// The places of all values, the root first.
    pub(super) fn places(&self) -> Vec<Path> {
        let mut places = vec![Vec::new()];
        for (token, child) in self.members() {
            let below = child.places().into_iter();
            places.extend(below.map(|path| [vec![token.clone()], path].concat()));
        }
        places
    }

    fn members(&self) -> Vec<(String, &Json)> {
        match self {
            Self::Scalar(_) => Vec::new(),
            Self::Array(list) => {
                (0..).zip(list).map(|(i, v): (usize, _)| (i.to_string(), v)).collect()
            }
            Self::Object(list) => list.iter().map(|(name, value)| (name.clone(), value)).collect(),
        }
    }

    /// The same without regard to the order of members.
    pub(super) fn sorted(&self) -> Self {
        match self {
            Self::Scalar(_) => self.clone(),
            Self::Array(list) => Self::Array(list.iter().map(Self::sorted).collect()),
            Self::Object(list) => {
                let mut list: Vec<_> = list.iter().map(|(n, v)| (n.clone(), v.sorted())).collect();
                list.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Object(list)
            }
        }
    }

    fn len(&self) -> Result<usize> {
        match self {
            Self::Scalar(_) => Err(Refused),
            Self::Array(list) => Ok(list.len()),
            Self::Object(list) => Ok(list.len()),
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    fn index(&self, token: &str) -> Result<usize> {
        let found = match self {
            Self::Scalar(_) => None,
            Self::Array(list) => token.parse().ok().filter(|&index| index < list.len()),
            Self::Object(list) => list.iter().position(|(name, _)| name == token),
        };
        found.ok_or(Refused)
    }

    pub(super) fn at(&self, path: &[String]) -> Result<&Json> {
        let Some((token, rest)) = path.split_first() else { return Ok(self) };
        let index = self.index(token)?;
        match self {
            Self::Scalar(_) => Err(Refused),
            Self::Array(list) => list[index].at(rest),
            Self::Object(list) => list[index].1.at(rest),
        }
    }

    fn at_mut(&mut self, path: &[String]) -> Result<&mut Json> {
        let Some((token, rest)) = path.split_first() else { return Ok(self) };
        let index = self.index(token)?;
        match self {
            Self::Scalar(_) => Err(Refused),
            Self::Array(list) => list[index].at_mut(rest),
            Self::Object(list) => list[index].1.at_mut(rest),
        }
    }

    fn take(&mut self, index: usize) -> Json {
        match self {
            Self::Scalar(_) => unreachable!("a scalar has no members"),
            Self::Array(list) => list.remove(index),
            Self::Object(list) => list.remove(index).1,
        }
    }

    fn give(&mut self, index: usize, name: Option<&str>, value: Json) {
        match self {
            Self::Scalar(_) => unreachable!("a scalar has no members"),
            Self::Array(list) => list.insert(index, value),
            Self::Object(list) => list.insert(index, (name.unwrap().to_owned(), value)),
        }
    }

    pub(super) fn slot(&self, place: Place, path: &[String]) -> Result<Slot> {
        let (Place::Before | Place::After) = place else {
            let len = self.at(path)?.len()?;
            return Ok((path.to_vec(), if matches!(place, Place::First) { 0 } else { len }));
        };
        let (token, container) = path.split_last().ok_or(Refused)?;
        let index = self.at(container)?.index(token)?;
        Ok((container.to_vec(), index + usize::from(matches!(place, Place::After))))
    }

    fn check_name(&self, container: &[String], name: Option<&str>) -> Result<()> {
        let container = self.at(container)?;
        match (container.is_object(), name) {
            (false, None) => Ok(()),
            (true, Some(name)) if container.index(name).is_err() => Ok(()),
            _ => Err(Refused),
        }
    }

    pub(super) fn insert(&mut self, slot: &Slot, name: Option<&str>, value: Json) -> Result<()> {
        self.check_name(&slot.0, name)?;
        self.at_mut(&slot.0)?.give(slot.1, name, value);
        Ok(())
    }

    pub(super) fn set(&mut self, path: &[String], value: Json) -> Result<()> {
        if let Ok(there) = self.at_mut(path) {
            *there = value;
            return Ok(());
        }
        let (token, container) = path.split_last().ok_or(Refused)?;
        let container = self.at_mut(container)?;
        let len = container.len()?;
        if !container.is_object() && token != "-" && *token != len.to_string() {
            return Err(Refused);
        }
        container.give(len, Some(token), value);
        Ok(())
    }

    pub(super) fn replace(&mut self, path: &[String], value: Json) -> Result<()> {
        *self.at_mut(path)? = value;
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &[String]) -> Result<Json> {
        let (token, container) = path.split_last().ok_or(Refused)?;
        let container = self.at_mut(container)?;
        let index = container.index(token)?;
        Ok(container.take(index))
    }

    pub(super) fn splice(
        &mut self,
        path: &[String],
        (index, remove): (usize, usize),
        new: Json,
    ) -> Result<()> {
        let Json::Array(list) = self.at_mut(path)? else { return Err(Refused) };
        let Json::Array(new) = new else { return Err(Refused) };
        if index + remove > list.len() {
            return Err(Refused);
        }
        list.splice(index..index + remove, new);
        Ok(())
    }

    /// The name that a moved or copied value has at a place if none is given.
    pub(super) fn kept_name(&self, from: &[String], slot: &Slot) -> Option<String> {
        let (token, source) = from.split_last()?;
        let keeps = self.at(source).ok()?.is_object() && self.at(&slot.0).ok()?.is_object();
        keeps.then(|| token.clone())
    }

    pub(super) fn relocate(
        &mut self,
        from: &[String],
        slot: Slot,
        name: Option<&str>,
    ) -> Result<()> {
        let (token, source) = from.split_last().ok_or(Refused)?;
        if slot.0.starts_with(from) {
            return Err(Refused);
        }
        let kept = self.kept_name(from, &slot);
        let name = name.or(kept.as_deref());
        let is_same = slot.0 == source;
        if !(is_same && self.at(source)?.is_object() && name == Some(token)) {
            self.check_name(&slot.0, name)?;
        }
        let index = self.at(source)?.index(token)?;
        let is_array = !self.at(source)?.is_object();
        let value = self.remove(from)?;
        let (mut container, mut place) = slot;
        if is_same && place > index {
            place -= 1;
        }
        if is_array && container.len() > source.len() && container.starts_with(source) {
            let step = &mut container[source.len()];
            let at: usize = step.parse().unwrap();
            *step = (at - usize::from(at > index)).to_string();
        }
        self.at_mut(&container)?.give(place, name, value);
        Ok(())
    }

    pub(super) fn rename(&mut self, path: &[String], name: &str) -> Result<()> {
        let (token, container) = path.split_last().ok_or(Refused)?;
        let index = self.at(container)?.index(token)?;
        if token != name {
            self.check_name(container, Some(name))?;
        }
        let Json::Object(list) = self.at_mut(container)? else { return Err(Refused) };
        name.clone_into(&mut list[index].0);
        Ok(())
    }

    pub(super) fn merge(&mut self, with: &Json) {
        let Json::Object(fields) = with else {
            *self = with.clone();
            return;
        };
        if !self.is_object() {
            *self = Json::Object(Vec::new());
        }
        for (name, value) in fields {
            let path = [name.clone()];
            if *value == Json::Scalar("null".to_owned()) {
                let _ = self.remove(&path).is_ok();
                continue;
            }
            let mut merged = self.at(&path).unwrap_or(&Json::Scalar("null".to_owned())).clone();
            merged.merge(value);
            self.set(&path, merged).unwrap();
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(text) => f.write_str(text),
            Self::Array(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", list.join(","))
            }
            Self::Object(list) => {
                let list: Vec<String> = list.iter().map(|(n, v)| format!("\"{n}\":{v}")).collect();
                write!(f, "{{{}}}", list.join(","))
            }
        }
    }
}

/// Reads a compact value without escapes, and gives what follows it.
fn read(text: &str) -> (Json, &str) {
    match text.as_bytes()[0] {
        b'[' => {
            let (mut list, mut rest) = (Vec::new(), &text[1..]);
            while !rest.starts_with(']') {
                let (value, after) = read(rest);
                list.push(value);
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            (Json::Array(list), &rest[1..])
        }
        b'{' => {
            let (mut list, mut rest) = (Vec::new(), &text[1..]);
            while let Some(name) = rest.strip_prefix('"') {
                let (name, after) = name.split_once("\":").unwrap();
                let (value, after) = read(after);
                list.push((name.to_owned(), value));
                rest = after.strip_prefix(',').unwrap_or(after);
            }
            (Json::Object(list), &rest[1..])
        }
        b'"' => {
            let end = text[1..].find('"').unwrap() + 2;
            (Json::Scalar(text[..end].to_owned()), &text[end..])
        }
        _ => {
            let end = text.find([',', ']', '}']).unwrap_or(text.len());
            (Json::Scalar(text[..end].to_owned()), &text[end..])
        }
    }
}
