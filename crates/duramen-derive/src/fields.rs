//! What the attributes of a struct say of its fields.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Data, DeriveInput, Error, Field, Ident, LitStr, Result, Type};

use crate::names::Case;

/// A field that has a part in the record.
pub(crate) struct Role {
    pub(crate) ident: Ident,
    pub(crate) kind: Type,
    /// The name of the member that it is stored as.
    pub(crate) name: String,
}

/// An index that is declared on a field.
pub(crate) struct Index {
    /// The JSON Pointer of the member, from the record.
    pub(crate) path: String,
    pub(crate) is_unique: bool,
}

/// The fields that have a part.
pub(crate) struct Fields {
    pub(crate) key: Role,
    pub(crate) version: Option<Role>,
    pub(crate) indexes: Vec<Index>,
}

impl Fields {
    pub(crate) fn read(input: &DeriveInput) -> Result<Self> {
        let Data::Struct(data) = &input.data else {
            return Err(Error::new(input.ident.span(), "a record is a struct with named fields"));
        };
        let case = case_of(&input.attrs)?;
        let (mut key, mut version, mut indexes) = (None, None, Vec::new());
        for field in &data.fields {
            let Some(ident) = field.ident.clone() else {
                return Err(Error::new(input.ident.span(), "the fields of a record have names"));
            };
            let name = name_of(field, &ident, case)?;
            let mut index = None;
            for what in words_of(field)? {
                let role =
                    || Role { ident: ident.clone(), kind: field.ty.clone(), name: name.clone() };
                match what.to_string().as_str() {
                    "key" => put_once(&mut key, role(), &what)?,
                    "version" => put_once(&mut version, role(), &what)?,
                    // A field has one index, which is unique if any word says so.
                    word @ ("index" | "unique") => {
                        index = Some(index.unwrap_or(false) || word == "unique");
                    }
                    _ => {
                        let message = "expected key, version, index or unique";
                        return Err(Error::new(what.span(), message));
                    }
                }
            }
            indexes.extend(index.map(|is_unique| {
                let escaped = name.replace('~', "~0").replace('/', "~1");
                Index { path: format!("/{escaped}"), is_unique }
            }));
        }
        let key = key.ok_or_else(|| {
            Error::new(input.ident.span(), "no field is the key: mark one with #[record(key)]")
        })?;
        Ok(Self { key, version, indexes })
    }
}

fn put_once(place: &mut Option<Role>, role: Role, what: &Ident) -> Result<()> {
    if place.replace(role).is_some() {
        return Err(Error::new(what.span(), format!("a record has one {what}")));
    }
    Ok(())
}

/// The words in the `record` attributes of a field.
fn words_of(field: &Field) -> Result<Vec<Ident>> {
    let mut words = Vec::new();
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("record")) {
        attribute.parse_nested_meta(|meta| {
            words.push(meta.path.require_ident()?.clone());
            Ok(())
        })?;
    }
    Ok(words)
}

/// The name that serde gives a field.
fn name_of(field: &Field, ident: &Ident, case: Case) -> Result<String> {
    let renamed = of_serde(&field.attrs, "rename")?;
    let plain = ident.to_string();
    let plain = plain.strip_prefix("r#").unwrap_or(&plain);
    Ok(renamed.map_or_else(|| case.apply(plain), |renamed| renamed.value()))
}

fn case_of(attributes: &[Attribute]) -> Result<Case> {
    let Some(named) = of_serde(attributes, "rename_all")? else { return Ok(Case::Snake) };
    Case::named(&named.value()).ok_or_else(|| {
        Error::new(named.span(), "a record's fields cannot be renamed so: rename them one by one")
    })
}

/// Reads over what a word of an attribute is set to, if it is.
fn pass_value(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(syn::Token![=]) {
        meta.value()?.parse::<syn::Expr>()?;
    }
    Ok(())
}

/// What serde's attributes say by one word, such as `rename = "name"`.
fn of_serde(attributes: &[Attribute], word: &str) -> Result<Option<LitStr>> {
    let mut found = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            let is_wanted = meta.path.is_ident(word);
            if meta.input.peek(syn::Token![=]) {
                let value: syn::Expr = meta.value()?.parse()?;
                if let (true, syn::Expr::Lit(literal)) = (is_wanted, &value)
                    && let syn::Lit::Str(text) = &literal.lit
                {
                    found = Some(text.clone());
                }
            } else if meta.input.peek(syn::token::Paren) {
                if is_wanted {
                    let message = "a record is read and written by the same names";
                    return Err(Error::new(Span::call_site(), message));
                }
                meta.parse_nested_meta(|inner| pass_value(&inner))?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn error(input: &DeriveInput) -> String {
        Fields::read(input).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn fields_are_found_by_what_they_are_and_named_as_serde_names_them() {
        let fields = Fields::read(&parse_quote! {
            #[derive(Record)]
            #[serde(rename_all = "camelCase", deny_unknown_fields, bound(serialize = "T: X"))]
            struct Player<T> {
                #[record(key)]
                player_id: String,
                #[record(index)]
                #[serde(default, rename = "of/team")]
                team: T,
                #[record(unique, index)]
                mail_address: String,
                #[record(version)]
                r#type: u64,
            }
        })
        .unwrap();
        assert_eq!(
            (fields.key.name.as_str(), fields.key.ident.to_string().as_str()),
            ("playerId", "player_id")
        );
        assert_eq!(fields.version.unwrap().name, "type");
        let indexes: Vec<_> =
            fields.indexes.iter().map(|index| (index.path.as_str(), index.is_unique)).collect();
        assert_eq!(indexes, [("/of~1team", false), ("/mailAddress", true)]);
    }

    #[test]
    fn what_is_no_record_is_refused_with_what_to_do() {
        assert!(
            error(&parse_quote!(
                enum E {
                    A,
                }
            ))
            .contains("struct with named fields")
        );
        assert!(
            error(&parse_quote!(
                struct S(u64);
            ))
            .contains("have names")
        );
        assert!(
            error(&parse_quote!(
                struct S {
                    a: u64,
                }
            ))
            .contains("#[record(key)]")
        );
        let two = parse_quote!(
            struct S {
                #[record(key)]
                a: u64,
                #[record(key)]
                b: u64,
            }
        );
        assert!(error(&two).contains("one key"));
        let wrong = parse_quote!(
            struct S {
                #[record(kye)]
                a: u64,
            }
        );
        assert!(error(&wrong).contains("expected key, version, index or unique"));
        let case = parse_quote!(
            #[serde(rename_all = "aLtErNaTe")]
            struct S {
                #[record(key)]
                a: u64,
            }
        );
        assert!(error(&case).contains("one by one"));
    }
}
