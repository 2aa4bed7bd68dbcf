//! What serde's attributes say of a struct or a field.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Ident, LitStr, Result};

use crate::names::Case;

/// The words of the serde attributes of a struct or a field.
pub(crate) struct Serde {
    words: Vec<(Ident, Meaning)>,
}

/// What stands behind a word.
enum Meaning {
    /// Nothing, or what is no text.
    Plain,
    /// As of `rename = "name"`.
    Text(LitStr),
    /// As of `rename(serialize = "name")`.
    Parts,
}

impl Serde {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut words = Vec::new();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            attribute.parse_nested_meta(|meta| {
                let meaning = Meaning::read(&meta)?;
                words.extend(meta.path.get_ident().map(|word| (word.clone(), meaning)));
                Ok(())
            })?;
        }
        Ok(Self { words })
    }

    /// The first of some words that is there.
    pub(crate) fn any_of(&self, wanted: &[&str]) -> Option<&Ident> {
        let mut words = self.words.iter().map(|(word, _)| word);
        words.find(|word| wanted.iter().any(|wanted| word == wanted))
    }

    /// The name that serde gives a field.
    pub(crate) fn name(&self, ident: &Ident, case: Case) -> Result<String> {
        let plain = ident.to_string();
        let plain = plain.strip_prefix("r#").unwrap_or(&plain);
        Ok(self.text("rename")?.map_or_else(|| case.apply(plain), LitStr::value))
    }

    /// The case in which serde writes the names of a struct's fields.
    pub(crate) fn case(&self) -> Result<Case> {
        let Some(named) = self.text("rename_all")? else { return Ok(Case::Snake) };
        Case::named(&named.value()).ok_or_else(|| {
            let message = "a record's fields cannot be renamed so: rename them one by one";
            Error::new(named.span(), message)
        })
    }

    /// The text that a word is set to.
    fn text(&self, wanted: &str) -> Result<Option<&LitStr>> {
        match self.words.iter().find(|(word, _)| word == wanted) {
            Some((_, Meaning::Text(text))) => Ok(Some(text)),
            Some((word, Meaning::Parts)) => {
                let message = "a record is read and written by the same names";
                Err(Error::new(word.span(), message))
            }
            Some((_, Meaning::Plain)) | None => Ok(None),
        }
    }
}

impl Meaning {
    fn read(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        if meta.input.peek(syn::Token![=]) {
            let value: syn::Expr = meta.value()?.parse()?;
            return Ok(match value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Self::Text(text),
                _ => Self::Plain,
            });
        }
        if meta.input.peek(syn::token::Paren) {
            meta.parse_nested_meta(|inner| Self::read(&inner).map(drop))?;
            return Ok(Self::Parts);
        }
        Ok(Self::Plain)
    }
}
