//! `#[derive(Record)]` for Duramen's typed collections: `duramen` with its feature `typed` exports
//! the macro and documents it with the trait that it implements.

mod fields;
mod names;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_macro_input};

use fields::{Fields, Index};

/// Implements `duramen::TypedRecord` for a struct with named fields.
///
/// - `#[record(key)]`: the field that is the record's key. There has to be exactly one.
/// - `#[record(version)]`: the field, a `u64`, that has the record's version; it is not stored.
/// - `#[record(index)]`, `#[record(unique)]`: an index on the field.
///
/// Fields have the names that serde gives them, by `rename` and `rename_all`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = Fields::read(&input).map(|fields| implement(&input, &fields));
    implemented.unwrap_or_else(syn::Error::into_compile_error).into()
}

fn implement(input: &DeriveInput, fields: &Fields) -> proc_macro2::TokenStream {
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let (key, key_type) = (&fields.key.ident, &fields.key.kind);
    let indexes = fields.indexes.iter().map(|Index { path, is_unique }| {
        quote! { ::duramen::IndexDeclaration { path: #path, is_unique: #is_unique } }
    });
    let version = fields.version.as_ref().map(|version| {
        let (field, member) = (&version.ident, &version.name);
        quote! {
            const VERSION_MEMBER: ::core::option::Option<&'static str> =
                ::core::option::Option::Some(#member);

            fn version(&self) -> u64 {
                self.#field
            }

            fn set_version(&mut self, version: u64) {
                self.#field = version;
            }
        }
    });
    quote! {
        impl #generics ::duramen::TypedRecord for #name #arguments #bounds {
            type Key = #key_type;

            const INDEXES: &'static [::duramen::IndexDeclaration] = &[#(#indexes),*];

            fn key(&self) -> #key_type {
                ::core::clone::Clone::clone(&self.#key)
            }

            #version
        }
    }
}
