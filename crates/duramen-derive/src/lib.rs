//! `#[derive(Record)]` for Duramen's typed collections: `duramen` with its feature `typed` exports
//! the macro and documents it with the trait that it implements.

mod fields;
mod indexes;
mod names;
mod serde;

use proc_macro::TokenStream;
use quote::quote;
use syn::{DeriveInput, parse_macro_input};

use fields::Fields;
use indexes::Index;

/// Implements `duramen::TypedRecord` for a struct with named fields.
///
/// - `#[record(key)]`: the field that is the record's key. There has to be exactly one.
/// - `#[record(version)]`: the field, a `u64`, that has the record's version; it is not stored.
/// - `#[record(index)]`, `#[record(unique)]`: an index on the field, with the name of its member.
///   On a field whose type is written as `Vec`, `VecDeque`, `HashSet`, `BTreeSet`, an array or a
///   slice, or as an `Option`, `Box`, `Rc` or `Arc` of one, it is an index of the elements, by
///   which `contains` is answered; a unique one refuses that two records have an element in
///   common. With serde's `with` or `serialize_with` on the field it is of the member, whatever
///   its type is.
/// - `#[record(index(name = "by_world_score", paths("world", "score")))]` on the struct, or
///   `unique` in the place of `index`: an index by the values at paths, those that count first in
///   front. Paths have the names of members as they are stored; `address.city` is in a member,
///   `items[*].sku` in the elements of one.
///
/// Fields have the names that serde gives them, by `rename` and `rename_all`. A key, a version or
/// an index is an error on a field that serde flattens, and a key or an index on one that it skips:
/// it would be of a member that is not stored.
///
/// A struct with type parameters is a record where serde can store each of these; one that is the
/// type of the key is bound by `duramen::RecordKey`.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = Fields::read(&input).map(|fields| implement(&input, &fields));
    implemented.unwrap_or_else(syn::Error::into_compile_error).into()
}

fn implement(input: &DeriveInput, fields: &Fields) -> proc_macro2::TokenStream {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    // Serde's derive asks the same of each parameter.
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(::duramen::Stored));
    }
    let (generics, arguments, bounds) = generics.split_for_impl();
    let (key, key_type) = (&fields.key.ident, &fields.key.kind);
    let key_member = &fields.key.name;
    let indexes = fields.indexes.iter().map(|Index { name, paths, is_unique }| {
        quote! {
            ::duramen::IndexDeclaration {
                name: #name,
                paths: &[#(#paths),*],
                is_unique: #is_unique,
            }
        }
    });
    let version = fields.version.as_ref().map(|version| {
        let (field, member, is_read) = (&version.ident, &version.name, fields.reads_version);
        quote! {
            const VERSION_MEMBER: ::core::option::Option<&'static str> =
                ::core::option::Option::Some(#member);

            const READS_VERSION: bool = #is_read;

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

            const KEY_MEMBER: ::core::option::Option<&'static str> =
                ::core::option::Option::Some(#key_member);

            fn key(&self) -> #key_type {
                ::core::clone::Clone::clone(&self.#key)
            }

            #version
        }
    }
}
