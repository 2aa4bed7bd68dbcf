//! Which series are meant: by a pattern of their names, their labels and their type.

use std::collections::BTreeMap;

use crate::series::definition::SeriesDefinition;
use crate::series::value::ValueType;

/// Which series are meant: all of them, unless something is asked for.
///
/// ```
/// use duramen::{Database, SeriesDefinition, SeriesFilter, ValueType};
///
/// let db = Database::memory()?;
/// for name in ["boiler/7/temp", "boiler/7/level", "boiler/8/temp"] {
///     db.create_series(name, &SeriesDefinition::new(ValueType::F64))?;
/// }
/// let found = db.find_series(&SeriesFilter::glob("boiler/*/temp"))?;
/// let names: Vec<_> = found.iter().map(|series| series.name.as_str()).collect();
/// assert_eq!(names, ["boiler/7/temp", "boiler/8/temp"]);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesFilter {
    /// A pattern of the whole name: `?` stands for a character and `*` for any number of them, none
    /// of them `/`; `**` for any number of any characters. Nothing else has a meaning.
    pub glob: Option<String>,
    /// Labels that are there with these values.
    pub labels: BTreeMap<String, String>,
    /// The type of the values.
    pub value_type: Option<ValueType>,
}

impl SeriesFilter {
    /// The series whose names are of a pattern.
    pub fn glob(pattern: impl Into<String>) -> Self {
        Self { glob: Some(pattern.into()), ..Self::default() }
    }

    /// The pattern of names; without one all names are taken.
    pub(crate) fn name_pattern(&self) -> NamePattern<'_> {
        NamePattern::new(self.glob.as_deref().unwrap_or("**"))
    }

    pub(crate) fn takes(&self, definition: &SeriesDefinition) -> bool {
        let has = |(name, value): (&String, &String)| definition.labels.get(name) == Some(value);
        self.value_type.is_none_or(|wanted| wanted == definition.value_type)
            && self.labels.iter().all(has)
    }
}

/// A pattern of names, with what tells quickly of most names that it does not take them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamePattern<'g> {
    glob: &'g str,
    /// What every name begins with that it takes.
    pub(crate) prefix: &'g str,
    /// The longest text behind that which every one of them has.
    part: &'g str,
    /// What every one of them ends with.
    suffix: &'g str,
    /// How many `/` every one of them has, where it takes no other number.
    slashes: Option<usize>,
}

impl<'g> NamePattern<'g> {
    pub(crate) fn new(glob: &'g str) -> Self {
        const WILD: [char; 2] = ['*', '?'];
        let prefix = glob.split(WILD).next().unwrap_or_default();
        let behind = glob.get(prefix.len()..).unwrap_or_default();
        let part = behind.split(WILD).max_by_key(|part| part.len()).unwrap_or_default();
        let suffix = glob.rsplit(WILD).next().unwrap_or_default();
        let slashes = (!glob.contains("**")).then(|| slashes_of(glob));
        Self { glob, prefix, part, suffix, slashes }
    }

    /// The longest text that every name has in it.
    pub(crate) fn text(&self) -> &'g str {
        if self.part.len() >= self.prefix.len() { self.part } else { self.prefix }
    }

    pub(crate) fn takes(&self, name: &str) -> bool {
        name.ends_with(self.suffix)
            && self.slashes.is_none_or(|wanted| slashes_of(name) == wanted)
            && is_like(self.glob.as_bytes(), name.as_bytes())
    }
}

fn slashes_of(text: &str) -> usize {
    memchr::memchr_iter(b'/', text.as_bytes()).count()
}

/// Where a `*` began, to go on from if what follows it does not fit.
#[derive(Clone, Copy)]
struct Star {
    pattern: usize,
    name: usize,
    /// Whether it stands for `/` too.
    is_deep: bool,
}

/// Whether a name is of a pattern. Only the last star of each kind is ever tried again, so it takes
/// no more than length by length.
fn is_like(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let (mut star, mut deep): (Option<Star>, Option<Star>) = (None, None);
    loop {
        let rest = pattern.get(at..).unwrap_or_default();
        let next = name.get(in_name).copied();
        if rest.starts_with(b"*") {
            let is_deep = rest.starts_with(b"**");
            at += if is_deep { 2 } else { 1 };
            let found = Star { pattern: at, name: in_name, is_deep };
            if is_deep {
                (star, deep) = (None, Some(found));
            } else {
                star = Some(found);
            }
            continue;
        }
        match (rest.first(), next) {
            (None, None) => return true,
            (Some(b'?'), Some(byte)) if byte != b'/' => {
                (at, in_name) = (at + 1, in_name + character_len(name, in_name));
                continue;
            }
            (Some(wanted), Some(byte)) if *wanted == byte => {
                (at, in_name) = (at + 1, in_name + 1);
                continue;
            }
            _ => {}
        }
        let retried = [star, deep].into_iter().flatten().find_map(|tried| {
            let byte = *name.get(tried.name)?;
            (tried.is_deep || byte != b'/').then_some(Star { name: tried.name + 1, ..tried })
        });
        let Some(retried) = retried else { return false };
        (at, in_name) = (retried.pattern, retried.name);
        if retried.is_deep {
            (star, deep) = (None, Some(retried));
        } else {
            star = Some(retried);
        }
    }
}

/// Bytes of the character that begins at a place.
fn character_len(name: &[u8], at: usize) -> usize {
    let behind = name.get(at + 1..).unwrap_or_default();
    1 + behind.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_level_and_double_stars_do_not() {
        let cases = [
            ("a/b", "a/b", true),
            ("a/b", "a/bc", false),
            ("", "", true),
            ("*", "abc", true),
            ("*", "a/b", false),
            ("**", "a/b/c", true),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/b/c", false),
            ("a/**/c", "a/b/b/c", true),
            ("**/temp", "boiler/7/temp", true),
            ("**/temp", "boiler/7/temp/x", false),
            ("**7*", "boiler/7/temp", false),
            ("**7**", "boiler/7/temp", true),
            ("*.*.x", "a.b.c.x", true),
            ("**a*b", "a/xab", true),
            ("**/a*c/*d", "x/ab/d/abc/d", true),
            ("?", "\u{e9}", true),
            ("?", "/", false),
            ("??", "a?", true),
            ("a?c", "a?c", true),
            ("[ab]", "[ab]", true),
            ("*a", "b", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(is_like(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
            assert_eq!(NamePattern::new(pattern).takes(name), expected, "{pattern} {name}");
        }
    }
}
