//! What attributes say, and what they cannot.

use syn::parse_quote;

use super::*;

fn error(input: &DeriveInput) -> String {
    Fields::read(input).err().map(|error| error.to_string()).unwrap_or_default()
}

fn indexes(fields: &Fields) -> Vec<(&str, Vec<&str>, bool)> {
    let told = fields.indexes.iter().map(|index| {
        let paths = index.paths.iter().map(String::as_str).collect();
        (index.name.as_str(), paths, index.is_unique)
    });
    told.collect()
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
    assert_eq!(fields.version.as_ref().unwrap().name, "type");
    assert_eq!(
        indexes(&fields),
        [("of/team", vec![r#"["of/team"]"#], false), ("mailAddress", vec!["mailAddress"], true),]
    );
}

#[test]
fn an_index_is_of_the_elements_where_the_type_is_written_as_one_that_has_some() {
    let fields = Fields::read(&parse_quote! {
        struct Post {
            #[record(key)]
            id: u64,
            #[record(index)]
            tags: Vec<String>,
            #[record(unique)]
            #[serde(rename = "a \"b\"\n")]
            places: Option<std::collections::BTreeSet<[u8; 2]>>,
            #[record(index)]
            pair: Box<[u64]>,
            #[record(index)]
            #[serde(with = "hex")]
            digest: Vec<u8>,
            #[record(index)]
            title: Option<String>,
        }
    })
    .unwrap();
    let wanted = [
        ("tags", vec!["tags[*]"], false),
        ("a \"b\"\n", vec![r#"["a \"b\"\u000a"][*]"#], true),
        ("pair", vec!["pair[*]"], false),
        ("digest", vec!["digest"], false),
        ("title", vec!["title"], false),
    ];
    assert_eq!(indexes(&fields), wanted);
}

#[test]
fn indexes_of_several_paths_are_declared_on_the_struct() {
    let fields = Fields::read(&parse_quote! {
        #[record(index(name = "by_world_score", paths("world", "score")))]
        #[record(unique(paths("items[*].sku",), name = "sku"))]
        #[serde(rename_all = "camelCase")]
        struct Player {
            #[record(key)]
            id: u64,
            world: String,
            score: u64,
            #[serde(rename = "items")]
            things: Vec<Item>,
        }
    })
    .unwrap();
    let wanted =
        [("by_world_score", vec!["world", "score"], false), ("sku", vec!["items[*].sku"], true)];
    assert_eq!(indexes(&fields), wanted);
}

#[test]
fn indexes_that_cannot_be_are_refused_with_what_to_do() {
    let of = |index: &str| {
        let index: proc_macro2::TokenStream = index.parse().unwrap();
        error(&parse_quote! {
            #[record(#index)]
            struct S {
                #[record(key)]
                id: u64,
                #[record(index)]
                team: String,
                #[serde(skip)]
                cache: u64,
                #[record(version)]
                version: u64,
            }
        })
    };
    for (index, wanted) in [
        (r#"index(name = "a", paths("team", "scor"))"#, r#"no field is stored as "scor""#),
        (r#"index(name = "a", paths("cache"))"#, r#"no field is stored as "cache""#),
        (r#"index(name = "a", paths("version"))"#, r#"no field is stored as "version""#),
        (r#"index(name = "a")"#, "no path"),
        (r#"index(paths("team"))"#, "no name"),
        (r#"index(name = "team", paths("team"))"#, r#"two indexes have the name "team""#),
        ("index", "expected index(name"),
        ("key", "expected index(name"),
        (r#"unique(names = "a")"#, "expected name or paths"),
    ] {
        assert!(of(index).contains(wanted), "{index}: {}", of(index));
    }
    assert_eq!(of(r#"index(name = "a", paths(r"team.x[*]", "[\"id\"]"))"#), "");
}

/// Such an index was empty for ever, and such a key read as another one.
#[test]
fn parts_of_fields_that_are_not_stored_are_refused() {
    let of = |record: &str, serde: &str| {
        let [record, serde]: [proc_macro2::TokenStream; 2] =
            [record, serde].map(|text| text.parse().unwrap());
        error(&parse_quote! {
            struct S {
                #[record(key)]
                id: u64,
                #[record(#record)]
                #[serde(#serde)]
                part: u64,
            }
        })
    };
    for serde in ["skip", "default, skip_serializing", "flatten"] {
        for record in ["index", "unique"] {
            let told = of(record, serde);
            assert!(told.contains("field part is indexed, but #[serde("), "{told}");
        }
        let told = of("key", serde);
        assert!(told.contains("field part is the key, but"), "{told}");
        assert!(told.contains("make another field the key"), "{told}");
    }
    assert!(of("index", "flatten").contains("paths(\"...\")"));
    assert!(of("key", "skip_deserializing").contains("#[serde(skip_deserializing)]"));
    assert!(of("version", "flatten").contains("is the version"));
    for (record, serde) in [
        ("index", "skip_deserializing"),
        ("index", r#"skip_serializing_if = "is_zero""#),
        ("version", "skip"),
    ] {
        assert_eq!(of(record, serde), "", "{record} {serde}");
    }
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
