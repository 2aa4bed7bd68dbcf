use super::*;

#[test]
fn texts_of_keys_are_in_the_order_of_the_keys_and_lead_back_to_them() {
    let signed = [i64::MIN, i64::MIN + 1, -10, -9, -1, 0, 1, 9, 10, i64::MAX].map(Key::I64);
    let unsigned = [0, 1, 9, 10, u64::MAX - 1, u64::MAX].map(Key::U64);
    let uuids = [0, 1, 1 << 64, u128::MAX].map(Key::Uuid);
    let texts = ["\u{1}", "a", "aa", "b", "\u{e9}"].map(Key::from);
    let kinds = [
        (KeyKind::I64, &signed[..]),
        (KeyKind::U64, &unsigned[..]),
        (KeyKind::Uuid, &uuids[..]),
        (KeyKind::Text, &texts[..]),
    ];
    for (kind, keys) in kinds {
        let texts: Vec<_> = keys.iter().map(|key| kind.text_of(key).unwrap()).collect();
        assert!(texts.is_sorted() && texts.len() == keys.len(), "{texts:?}");
        for (key, text) in keys.iter().zip(&texts) {
            assert_eq!(kind.key_of(text.as_bytes()).unwrap(), *key);
            assert_eq!(kind.parse(&key.to_string()).unwrap(), *key);
        }
    }
}

#[test]
fn what_has_a_key_is_what_is_read_as_one() {
    let long = "k".repeat(RECORD_KEY_BYTES_MAX + 1);
    let texts: [&[u8]; 12] = [
        b"",
        b"k",
        &long.as_bytes()[1..],
        long.as_bytes(),
        b"\xff",
        b"00000000000000000042",
        b"18446744073709551615",
        b"-0000000000000000001",
        b"-9223372036854775808",
        b"f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        b"F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6",
        b"f81d4fae07dec011d00a765000a0c91e6bf6",
    ];
    for (kind, had) in
        [(KeyKind::Text, 9), (KeyKind::I64, 2), (KeyKind::U64, 2), (KeyKind::Uuid, 1)]
    {
        let read = texts.map(|text| kind.key_of(text).is_ok());
        assert_eq!(texts.map(|text| kind.has(text)), read, "{kind}");
        assert_eq!(read.iter().filter(|read| **read).count(), had, "{kind}");
    }
}

#[test]
fn places_are_shown_and_taken_by_the_keys_that_people_write() {
    let stored =
        |kind: KeyKind, text: &str| kind.stored_target(&Target::parse(text).unwrap()).to_string();
    let shown = |kind: KeyKind, text: &str| kind.shown_pointer(&JsonPointer::parse(text).unwrap());
    for (text, place) in [
        ("/5/a", "/00000000000000000005/a"),
        ("/-3", "/-9223372036854775805"),
        ("/-9223372036854775805/a~1b", "/-0000000000000000003/a~1b"),
        ("", ""),
    ] {
        assert_eq!(stored(KeyKind::I64, text), place);
        assert_eq!(shown(KeyKind::I64, place).to_string(), text);
    }
    let digits = "/00000000000000000005/a";
    assert_eq!(stored(KeyKind::U64, digits), digits);
    for text in ["/x/5", "#12", "$['5']"] {
        assert_eq!(stored(KeyKind::I64, text), text);
    }
    assert_eq!(stored(KeyKind::Text, "/5/a"), "/5/a");
    assert_eq!(shown(KeyKind::Text, digits).to_string(), digits);
    let uuid = "/F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6";
    assert_eq!(stored(KeyKind::Uuid, uuid), uuid.to_lowercase());
}

#[test]
fn an_error_names_places_by_the_keys_that_people_write() {
    let message = r#""/-9223372036854775805/a" is not there: "/x" or "/00000000000000000005""#;
    let error = || Error::new(ErrorKind::NotFound, message);
    let told = KeyKind::I64.shown_error(error());
    assert_eq!(told.message(), r#""/-3/a" is not there: "/x" or "/5""#);
    assert_eq!(KeyKind::Text.shown_error(error()).message(), message);
}

#[test]
fn integers_fit_the_other_integer_type_where_it_has_them() {
    assert!(KeyKind::U64.text_of(&Key::I64(7)).is_ok());
    assert!(KeyKind::I64.text_of(&Key::U64(7)).is_ok());
    assert!(KeyKind::U64.text_of(&Key::I64(-7)).is_err());
    assert!(KeyKind::I64.text_of(&Key::U64(u64::MAX)).is_err());
}

#[test]
fn keys_that_are_empty_too_long_or_of_another_type_are_refused() {
    let long = "k".repeat(RECORD_KEY_BYTES_MAX + 1);
    for (kind, text) in [
        (KeyKind::Text, ""),
        (KeyKind::Text, long.as_str()),
        (KeyKind::I64, "x"),
        (KeyKind::U64, "-1"),
        (KeyKind::Uuid, "f81d4fae7dec11d0a76500a0c91e6bf6"),
        (KeyKind::Uuid, "f81d4fae-7dec-11d0-a765-00a0c91e6bfg"),
    ] {
        assert_eq!(kind.parse(text).unwrap_err().kind(), ErrorKind::Invalid, "{kind} {text}");
    }
    assert!(KeyKind::Text.parse(&long[1..]).is_ok());
    let other = KeyKind::Uuid.text_of(&Key::from("a")).unwrap_err();
    assert_eq!(other.message(), "the key a is not of the collection's key type, uuid");
    assert!(KeyKind::I64.key_of(b"7").is_err(), "not the text of a key");
    let long = KeyKind::I64.parse(&"x".repeat(100_000)).unwrap_err();
    assert!(long.message().len() < 200, "it is cut: {long}");
    assert!("int".parse::<KeyKind>().is_err());
}
