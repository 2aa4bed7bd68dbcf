//! What the attributes of a struct say of its fields.

use syn::{Data, DeriveInput, Error, Field, Ident, Result, Type};

use crate::indexes::{Index, Members, has_elements};
use crate::names::Case;
use crate::serde::Serde;

/// A field that has a part in the record.
pub(crate) struct Role {
    pub(crate) ident: Ident,
    pub(crate) kind: Type,
    /// The name of the member that it is stored as.
    pub(crate) name: String,
}

/// The fields that have a part.
pub(crate) struct Fields {
    pub(crate) key: Role,
    pub(crate) version: Option<Role>,
    /// Whether serde reads a member for the version.
    pub(crate) reads_version: bool,
    pub(crate) indexes: Vec<Index>,
}

/// The words of serde by which a field is no member of what is stored.
const UNSTORED: [&str; 3] = ["skip", "skip_serializing", "flatten"];

/// Those by which it is not read.
const UNREAD: [&str; 2] = ["skip", "skip_deserializing"];

impl Fields {
    pub(crate) fn read(input: &DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "a record is a struct with named fields"));
        };
        let case = Serde::read(&input.attrs)?.case()?;
        let (mut key, mut version, mut indexes) = (None, None, Vec::new());
        let mut members = Members { names: Vec::new(), has_others: false };
        let mut reads_version = true;
        for field in &data.fields {
            let Some(ident) = &field.ident else {
                return Err(Error::new(input.ident.span(), "the fields of a record have names"));
            };
            let words = Words::of(field)?;
            let serde = Serde::read(&field.attrs)?;
            words.check(ident, &serde)?;
            let role = role_of(field, (ident, case), &serde)?;
            members.has_others |= serde.any_of(&["flatten"]).is_some();
            if serde.any_of(&UNSTORED).is_none() && words.version.is_none() {
                members.names.push(role.name.clone());
            }
            indexes.extend(words.is_unique.map(|is_unique| {
                let is_as_typed = serde.any_of(&["with", "serialize_with"]).is_none();
                Index::of_member(&role.name, is_unique, is_as_typed && has_elements(&role.kind))
            }));
            match (&words.key, &words.version) {
                (Some(_), Some(both)) => {
                    return Err(Error::new(both.span(), "the key is not the version"));
                }
                (Some(word), None) => put_once(&mut key, role, word)?,
                (None, Some(word)) => {
                    reads_version = serde.any_of(&UNREAD).is_none();
                    put_once(&mut version, role, word)?;
                }
                (None, None) => {}
            }
        }
        let key = key.ok_or_else(|| {
            Error::new(input.ident.span(), "no field is the key: mark one with #[record(key)]")
        })?;
        indexes.extend(Index::of_struct(&input.attrs, &members)?);
        check_names(input, &indexes)?;
        Ok(Self { key, version, reads_version, indexes })
    }
}

fn role_of(field: &Field, (ident, case): (&Ident, Case), serde: &Serde) -> Result<Role> {
    Ok(Role { ident: ident.clone(), kind: field.ty.clone(), name: serde.name(ident, case)? })
}

fn put_once(place: &mut Option<Role>, role: Role, what: &Ident) -> Result<()> {
    if place.replace(role).is_some() {
        return Err(Error::new(what.span(), format!("a record has one {what}")));
    }
    Ok(())
}

/// Refuses two indexes of one name.
fn check_names(input: &DeriveInput, indexes: &[Index]) -> Result<()> {
    for (at, index) in indexes.iter().enumerate() {
        if indexes[..at].iter().any(|before| before.name == index.name) {
            let message = format!("two indexes have the name {:?}: rename one", index.name);
            return Err(Error::new(input.ident.span(), message));
        }
    }
    Ok(())
}

/// The words in the `record` attributes of a field.
#[derive(Default)]
struct Words {
    key: Option<Ident>,
    version: Option<Ident>,
    /// A field has one index, which is unique if any word says so.
    is_unique: Option<bool>,
    index: Option<Ident>,
}

impl Words {
    fn of(field: &Field) -> Result<Self> {
        let mut words = Self::default();
        let attributes = field.attrs.iter();
        for attribute in attributes.filter(|attribute| attribute.path().is_ident("record")) {
            attribute.parse_nested_meta(|meta| {
                let what = meta.path.require_ident()?.clone();
                match what.to_string().as_str() {
                    "key" => words.key = Some(what),
                    "version" => words.version = Some(what),
                    word @ ("index" | "unique") => {
                        words.is_unique =
                            Some(words.is_unique.unwrap_or(false) || word == "unique");
                        words.index = Some(what);
                    }
                    _ => return Err(meta.error("expected key, version, index or unique")),
                }
                Ok(())
            })?;
        }
        Ok(words)
    }

    /// Refuses a part for a field that is no member of what is stored.
    fn check(&self, ident: &Ident, serde: &Serde) -> Result<()> {
        let unread = serde.any_of(&["skip_deserializing"]);
        let unstored = serde.any_of(&UNSTORED);
        let what_is = [
            (&self.key, unstored.or(unread), "the key", "make another field the key"),
            (&self.index, unstored, "indexed", "take the index away"),
            (&self.version, serde.any_of(&["flatten"]), "the version", "make another one so"),
        ];
        for (part, without, is, instead) in what_is {
            let (Some(part), Some(without)) = (part, without) else { continue };
            let advice = if without == "flatten" && is == "indexed" {
                "put #[record(index(name = \"...\", paths(\"...\")))] with paths of its members on \
                 the struct"
            } else {
                instead
            };
            let message = format!(
                "field {ident} is {is}, but #[serde({without})] leaves no member of its own to \
                 be read: take that away, or {advice}"
            );
            return Err(Error::new(part.span(), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
