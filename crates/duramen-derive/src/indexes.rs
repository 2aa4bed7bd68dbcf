//! The indexes that are declared on fields, and on the struct.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, GenericArgument, LitStr, PathArguments, Result, Token, Type};

/// Types of the standard library that serde stores as arrays.
const ARRAYS: [&str; 6] = ["Vec", "VecDeque", "LinkedList", "HashSet", "BTreeSet", "BinaryHeap"];

/// Types that are stored as what they have inside.
const AROUND: [&str; 4] = ["Option", "Box", "Rc", "Arc"];

/// An index that is declared.
pub(crate) struct Index {
    pub(crate) name: String,
    /// As the engine reads them.
    pub(crate) paths: Vec<String>,
    pub(crate) is_unique: bool,
}

/// The members that are stored, by which paths begin.
pub(crate) struct Members {
    pub(crate) names: Vec<String>,
    /// Whether a field is flattened, of which nobody here knows the members.
    pub(crate) has_others: bool,
}

impl Index {
    /// The index of a member.
    pub(crate) fn of_member(name: &str, is_unique: bool, has_elements: bool) -> Self {
        let elements = if has_elements { "[*]" } else { "" };
        let path = format!("{}{elements}", first_step(name));
        Self { name: name.to_owned(), paths: vec![path], is_unique }
    }

    /// Those that the attributes of a struct declare.
    pub(crate) fn of_struct(attributes: &[Attribute], members: &Members) -> Result<Vec<Self>> {
        let mut indexes = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| {
                indexes.push(Self::read(&meta, members)?);
                Ok(())
            })?;
        }
        Ok(indexes)
    }

    fn read(meta: &ParseNestedMeta<'_>, members: &Members) -> Result<Self> {
        let is_unique = meta.path.is_ident("unique");
        if !(is_unique || meta.path.is_ident("index")) || !meta.input.peek(syn::token::Paren) {
            return Err(meta.error(
                "expected index(name = \"...\", paths(\"...\")) or unique(...): a key, a version \
                 and an index of one field are marked on the field",
            ));
        }
        let (mut name, mut paths) = (None, Vec::new());
        meta.parse_nested_meta(|part| {
            if part.path.is_ident("name") {
                name = Some(part.value()?.parse::<LitStr>()?.value());
            } else if part.path.is_ident("paths") {
                let list;
                syn::parenthesized!(list in part.input);
                let texts =
                    list.parse_terminated(<LitStr as syn::parse::Parse>::parse, Token![,])?;
                for text in texts {
                    members.check(&text)?;
                    paths.push(text.value());
                }
            } else {
                return Err(part.error("expected name or paths"));
            }
            Ok(())
        })?;
        match name {
            Some(name) if !paths.is_empty() => Ok(Self { name, paths, is_unique }),
            Some(_) => Err(meta.error("the index has no path: add paths(\"...\")")),
            None => Err(meta.error("the index has no name: add name = \"...\"")),
        }
    }
}

impl Members {
    /// Refuses a path that begins with no member. One in brackets the engine alone reads.
    fn check(&self, path: &LitStr) -> Result<()> {
        let text = path.value();
        let first = text.split(['.', '[']).next().unwrap_or_default();
        if self.has_others || text.starts_with('[') || self.names.iter().any(|name| name == first) {
            return Ok(());
        }
        let message = format!(
            "no field is stored as {first:?}: a path has the names of members as serde writes them"
        );
        Err(Error::new(path.span(), message))
    }
}

/// Whether a type is written as one that serde stores as an array.
pub(crate) fn has_elements(kind: &Type) -> bool {
    match kind {
        Type::Array(_) | Type::Slice(_) => true,
        // As macros pass types on.
        Type::Group(group) => has_elements(&group.elem),
        Type::Paren(paren) => has_elements(&paren.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let is_in = |names: &[&str]| names.iter().any(|name| last.ident == name);
            let PathArguments::AngleBracketed(inside) = &last.arguments else { return false };
            let first = inside.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(kind) => Some(kind),
                _ => None,
            });
            is_in(&ARRAYS) || is_in(&AROUND) && first.is_some_and(has_elements)
        }),
        _ => false,
    }
}

/// The path of a member.
fn first_step(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    if is_plain {
        return name.to_owned();
    }
    let mut step = "[\"".to_owned();
    for letter in name.chars() {
        match letter {
            '"' | '\\' => step.extend(['\\', letter]),
            '\0'..='\x1f' => step.extend(format!("\\u{:04x}", u32::from(letter)).chars()),
            _ => step.push(letter),
        }
    }
    step + "\"]"
}
