use serde_json::Value;

use super::*;
use crate::json::tape::{Item, TapeIndex};

const STRICT: ParseOptions = ParseOptions { strict: true };

const CATALOGUE: &str = r#"{
  "application/3gpp-ims+xml": { "source": "iana", "compressible": true },
  "application/atom+xml": {
    "source": "iana", "compressible": true, "extensions": ["atom"], "quality": 0.80
  },
  "caf\u00e9 \"\\\/\b\f\n\r\t": [], "": {}, "stra%e": "\ud83c\udf33 %"
}"#;
const FEATURE: &str = r#"[{"type":"Feature","properties":{"mag":2,"place":"4km W of Castaic, CA",
"time":1517966773840,"tz":-480,"felt":null,"alert":null,"status":"automatic","tsunami":0,"sig":62,
"code":"37868143","nst":7,"dmin":0.04214,"rms":0.35,"gap":174,"title":"M 2.0 - 4km W"},
"geometry":{"type":"Point","coordinates":[-118.6661682,34.4908333,20.43]},"id":"ci37868143",
"n":[1E+2,-0.0,1e-7,-0,9223372036854775808,true,false,[[[]]],{"a":{"b":{}}}]}]"#;

#[rustfmt::skip]
const FORBIDDEN: &[&[u8]] = &[
    b"[1,]", b"[,1]", b"[1,,2]", b"[1 2]", b"[", b"]", b"[1", b"[1}", b"[1:2]", b"[\"a\":1]",
    b"{", b"}", b"{]", b"{,}", b"{\"a\"}", b"{\"a\":}", b"{\"a\":1,}", b"{\"a\" 1}", b"{a:1}",
    b"{'a':1}", b"{1:1}", b"{\"a\":1 \"b\":2}", b"{\"a\":1", b"{\"a\"", b"{\"a\":1]", b"tru",
    b"True", b"nul", b"nan", b"NaN", b"Infinity", b"-Infinity", b"undefined", b"truex", b"01",
    b"-01", b"00", b"1.", b".1", b"-.1", b"1.e1", b"1e", b"1e+", b"1E-", b"-", b"+1", b"--1",
    b"0x1", b"1_0", b"1e1.5", b"1.2.3", b"-a", b"0e", b"\xef\xbc\x91", b"\"", b"\"a", b"\"\\",
    b"\"\\\"", b"\"\\x\"", b"\"\\U0041\"", b"\"\\u\"", b"\"\\u00\"", b"\"\\u00g0\"",
    b"\"\\u+041\"", b"\"\\ud800\"", b"\"\\udc00\"", b"\"\\ud800\\ud800\"", b"\"\\ud800\\u0041\"",
    b"\"\\ud800\\n\"", b"\"\\ud800x\"", b"\"\\ud800\\\"", b"\"\\ud800\\u", b"\"\n\"", b"\"\t\"",
    b"\"\0\"", b"\"\x1f\"", b"'a'", b"\0", b"1\0", b"[1]\0", b"\x0b1", b"\x0c1", b"1\xc2\xa0",
    b"\xe2\x80\xa81", b"//\n1", b"1/**/", b"# 1", b"1 2", b"[][]", b"\"a\"\"b\"", b"\xef\xbb",
    b"\xef\xbb\xbf\xef\xbb\xbf1", b"1\xef\xbb\xbf", b"<a>", b"*", b"\"\xff\"", b"\"\xc0\x80\"",
    b"\"\xed\xa0\x80\"", b"\"\xf4\x90\x80\x80\"", b"\"\xe9\"",
];

/// The samples with a two-, a three- and a four-byte character for each percent sign.
fn samples() -> [String; 2] {
    [CATALOGUE, FEATURE].map(|text| text.replace('%', "\u{df} \u{65e5}\u{1f333}"))
}

fn parse(text: &[u8]) -> Result<Tape<'_>> {
    read(text, ParseOptions::default(), JSON_DEPTH_MAX)
}

fn written(text: &[u8]) -> String {
    let tape = parse(text).unwrap();
    let mut out = Vec::new();
    tape.write(tape.root(), &mut out);
    String::from_utf8(out).unwrap()
}

fn message(text: impl AsRef<[u8]>) -> String {
    let error = parse(text.as_ref()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.message().strip_prefix("JSON is invalid at ").unwrap().to_owned()
}

/// The value that a tape describes, read through its interface alone.
fn value_at(tape: &Tape<'_>, index: TapeIndex) -> Value {
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match tape.item(index) {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(value),
        Item::Number(text) => serde_json::from_slice(text).unwrap(),
        Item::Text { bytes, .. } => Value::String(string(bytes)),
        Item::Array { len } => {
            assert_eq!(tape.elements(index).len(), len as usize);
            tape.elements(index).map(|element| value_at(tape, element)).collect()
        }
        Item::Object { len } => {
            assert_eq!(tape.fields(index).len(), len as usize);
            let field = |(name, value)| match name {
                Item::Text { bytes, .. } => (string(bytes), value_at(tape, value)),
                other => panic!("a name is no text: {other:?}"),
            };
            tape.fields(index).map(field).collect()
        }
    }
}

#[test]
fn what_the_rfc_allows_is_read_and_written_compactly() {
    let cases = [
        ("null", "null"),
        (" true\n", "true"),
        ("\t[ ]\r", "[]"),
        ("{ }", "{}"),
        ("\u{feff}[1]", "[1]"),
        ("[1 , 2,[3] ]", "[1,2,[3]]"),
        (r#"{"a" : {"b":[ {}, [] ]}, "c":1 }"#, r#"{"a":{"b":[{},[]]},"c":1}"#),
        ("[-0,0.10,1E5,1e+5,123456789012345678901]", "[-0,0.10,1E5,1e+5,123456789012345678901]"),
        (r#""\u0000\u001F\u0022\u005c\u002F\u0041""#, r#""\u0000\u001f\"\\/A""#),
        (r#""\ud834\uDD1E \uffff \u00E9""#, "\"\u{1d11e} \u{ffff} \u{e9}\""),
        ("\"\u{7f}\u{80}\u{2028}\u{10ffff}\"", "\"\u{7f}\u{80}\u{2028}\u{10ffff}\""),
        (
            r#"{"":"","a\nb":"long enough for several words"}"#,
            r#"{"":"","a\nb":"long enough for several words"}"#,
        ),
    ];
    for (text, compact) in cases {
        assert_eq!(written(text.as_bytes()), compact);
    }
}

#[test]
fn what_the_rfc_forbids_is_refused() {
    for text in FORBIDDEN {
        let shown = String::from_utf8_lossy(text);
        assert!(parse(text).is_err(), "{shown}");
        let bare = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        assert!(serde_json::from_slice::<Value>(bare).is_err(), "{shown}");
    }
}

#[test]
fn an_error_tells_line_column_and_reason() {
    let cases = [
        ("", "line 1, column 1: the text is empty, expected a value"),
        ("\u{feff}", "line 1, column 1: the text is empty, expected a value"),
        (" \n ", "line 2, column 2: the text is empty, expected a value"),
        ("[1,\n 2 3]", "line 2, column 4: expected ',' or ']', found '3'"),
        ("{\"a\":1]", "line 1, column 7: expected ',' or '}', found ']'"),
        ("{\"\u{17e}\u{1f333}\" 1}", "line 1, column 7: expected ':', found '1'"),
        ("{a:1}", "line 1, column 2: expected a name in quotes, found 'a'"),
        ("[1,]", "line 1, column 4: expected a value, found ']'"),
        ("[", "line 1, column 2: expected a value, found the end"),
        ("[tru]", "line 1, column 2: expected a value, found 't'"),
        ("1 x", "line 1, column 3: expected the end after the value, found 'x'"),
        ("[1.x]", "line 1, column 4: expected a digit, found 'x'"),
        ("-", "line 1, column 2: expected a digit, found the end"),
        ("\0", "line 1, column 1: expected a value, found U+0000"),
        ("\"a\0\"", "line 1, column 3: U+0000 in a string must be written as an escape"),
        ("\"a\n\"", "line 1, column 3: U+000A in a string must be written as an escape"),
        ("\"ab", "line 1, column 4: expected the quote that ends a string, found the end"),
        ("\"\\", "line 1, column 3: expected an escaped character, found the end"),
        ("\"\\x\"", "line 1, column 3: no escape is written \\ and 'x'"),
        ("\"\\u12\"", "line 1, column 6: expected four hexadecimal digits after \\u, found '\"'"),
        ("[\"ab\\ud800\"]", "line 1, column 5: a surrogate without its other half"),
        ("\"\\udc00\\ud800\"", "line 1, column 2: a surrogate without its other half"),
    ];
    for (text, expected) in cases {
        assert_eq!(message(text), expected, "{text:?}");
    }
    let not_utf8 = "line 2, column 3: the text is not UTF-8 from here on";
    assert_eq!(message(b"[\n\"\xc3\xa9\xff\"]"), not_utf8);
}

#[test]
fn nesting_is_read_down_to_the_limit_and_refused_beyond() {
    // The third nests two levels, and the empty list is one more.
    let deep_pairs = (" [ 1 , {\"b\":[],\"a\":", "}]", 255);
    for (begin, end, most) in [("[", "]", 512), ("{\"a\":", "}", 512), deep_pairs] {
        let nested = |times: usize| format!("{}1{}", begin.repeat(times), end.repeat(times));
        assert!(parse(nested(most).as_bytes()).is_ok());
        let error = message(nested(most + 1));
        assert!(error.ends_with("nested deeper than 512 levels"), "{error}");
    }
    let endless = "[".repeat(3_000_000);
    assert_eq!(message(endless), "line 1, column 513: nested deeper than 512 levels");
}

#[test]
fn the_last_of_equal_names_wins_in_the_place_of_the_first() {
    let cases = [
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        (
            r#"{"a":1,"a":[{"x":0,"x":[1,{"y":2}]}],"b":"c"}"#,
            r#"{"a":[{"x":[1,{"y":2}]}],"b":"c"}"#,
        ),
        (r#"[{"a":{"z":[9]},"\u0061":null},{"a":1}]"#, r#"[{"a":null},{"a":1}]"#),
        (r#"{"o":{"a":1,"b":[],"b":[[]],"a":2,"a":{}},"p":1}"#, r#"{"o":{"a":{},"b":[[]]},"p":1}"#),
        (r#"{"":1,"":2}"#, r#"{"":2}"#),
    ];
    for (text, expected) in cases {
        assert_eq!(written(text.as_bytes()), expected);
    }
    let many: Vec<String> = (0..1000).map(|i| format!("\"n{}\":[{i}]", i % 600)).collect();
    let value = value_of(&format!("{{{},\"end\":0}}", many.join(",")));
    let object = value.as_object().unwrap();
    assert_eq!(
        (object.len(), &object["n5"][0], &object["n599"][0]),
        (601, &605.into(), &599.into())
    );
}

fn value_of(text: &str) -> Value {
    let tape = parse(text.as_bytes()).unwrap();
    value_at(&tape, tape.root())
}

#[test]
fn strict_reading_refuses_equal_names_with_their_place() {
    let cases = [
        (r#"{"a":1,"b":2,"a":3}"#, r#"line 1, column 14: the object has the name "a" twice"#),
        ("{\"a\":1,\n \"\\u0061\":3}", r#"line 2, column 2: the object has the name "a" twice"#),
        (
            r#"[{"\"":1,"c":{"\"":1},"\"":0}]"#,
            r#"line 1, column 23: the object has the name "\"" twice"#,
        ),
    ];
    for (text, expected) in cases {
        let error = read(text.as_bytes(), STRICT, JSON_DEPTH_MAX).unwrap_err();
        assert!(error.message().ends_with(expected), "{error}");
        assert!(parse(text.as_bytes()).is_ok());
    }
    assert!(read(CATALOGUE.as_bytes(), STRICT, JSON_DEPTH_MAX).is_ok());
}

#[test]
fn values_over_the_limit_are_refused() {
    assert!(check_length(7, VALUE_BYTES_MAX).is_ok());
    let error = check_length(7, VALUE_BYTES_MAX + 1).unwrap_err().locate(b"[1,\n\n  2]");
    let expected = "JSON is invalid at line 3, column 3: a value of more than 268435456 bytes";
    assert_eq!(error.message(), expected);
}

#[test]
fn equal_values_are_written_alike_and_others_are_not() {
    let spaced = b" {\"\\u0061\" : [1, \"x/\"],\n\"b\":{}}";
    assert_eq!(written(br#"{"a":[1,"x\/"],"b":{}}"#), written(spaced));
    let different = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "0.0",
        "\"0\"",
        "\"\"",
        "[]",
        "{}",
        "[[]]",
        "[{}]",
        "[0]",
        "[0,1]",
        "[1,0]",
        "[[0],1]",
        "[[0,1]]",
        r#"{"a":1,"b":2}"#,
        r#"{"b":2,"a":1}"#,
        r#"["a",1,"b",2]"#,
        r#"{"a":{"b":2}}"#,
        r#"["ab","c"]"#,
        r#"["a","bc"]"#,
    ];
    let texts: std::collections::BTreeSet<_> =
        different.iter().map(|text| written(text.as_bytes())).collect();
    assert_eq!(texts.len(), different.len());
}

#[test]
fn a_tape_gives_what_another_parser_reads() {
    for text in samples() {
        let reference: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value_of(&text), reference);
        assert_eq!(value_of(&written(text.as_bytes())), reference);
    }
}

#[test]
fn texts_say_whether_they_can_be_printed_as_they_are() {
    let tape = parse(br#"["a","\u0061\/","\n","\"","\u00e9"]"#).unwrap();
    let plain: Vec<bool> = tape
        .elements(tape.root())
        .map(|index| matches!(tape.item(index), Item::Text { plain: true, .. }))
        .collect();
    assert_eq!(plain, [true, true, false, false, true]);
}

#[test]
fn children_of_a_scalar_or_another_container_are_none() {
    let tape = parse(br#"[{"a":1},2]"#).unwrap();
    let [object, number] = tape.elements(tape.root()).collect::<Vec<_>>()[..] else {
        panic!("two elements");
    };
    assert_eq!(tape.fields(tape.root()).count(), 0);
    assert_eq!(tape.elements(object).count() + tape.elements(number).count(), 0);
}

#[test]
fn a_tape_takes_not_much_more_memory_than_its_nodes() {
    let dense = format!("[{}]", vec!["1"; 100_000].join(","));
    let turning = format!("[{}{:?},{:?}]", "1,".repeat(5000), "x".repeat(300_000), "y");
    let rows = format!("[{}]", vec![r#"{"id":17,"name":"abc","on":true}"#; 20_000].join(","));
    for (text, most) in [(&dense, 1.2), (&rows, 1.2), (&turning, 60.0)] {
        let mut tape = parse(text.as_bytes()).unwrap();
        let nodes = tape.nodes_mut();
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = nodes.capacity() as f64 / nodes.len() as f64;
        assert!(ratio < most, "{ratio}");
    }
}

/// The generator `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }
}

fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    const PIECES: [&[u8]; 24] = [
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"0",
        b"-",
        b".",
        b"e",
        b"\\u",
        b"\\ud83c",
        b"\\udf33",
        b"null",
        b"\xc3",
        b"\xa9",
        b"\0",
        b"\n",
        b"\"a\":",
        b",\"a\":1",
        b"1e400",
        b"[]",
    ];
    let at = random.below(text.len() + 1);
    let end = (at + random.below(12)).min(text.len());
    match random.below(5) {
        0 if at < text.len() => text[at] ^= 1 << random.below(8),
        1 => drop(text.drain(at..end)),
        2 => drop(text.splice(at..at, text[at..end].to_vec())),
        3 => text.truncate(at.max(text.len().saturating_sub(random.below(30)))),
        _ => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].iter().copied())),
    }
}

#[test]
fn damaged_text_never_panics_and_is_judged_as_another_parser_does() {
    let mut random = Random(7);
    let samples = samples();
    let mut accepted = 0;
    for round in 0..20_000 {
        let mut text = samples[round % 2].as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            mutate(&mut text, &mut random);
        }
        let shown = || String::from_utf8_lossy(&text).into_owned();
        match (parse(&text), serde_json::from_slice::<Value>(&text)) {
            (Ok(tape), Ok(reference)) => {
                accepted += 1;
                assert_eq!(value_at(&tape, tape.root()), reference, "{}", shown());
            }
            (Err(_), Err(_)) => {}
            // A number beyond the floats is a number, too.
            (Ok(_), Err(error)) => {
                assert!(error.to_string().contains("number out of range"), "{error}: {}", shown());
            }
            (Err(error), Ok(_)) => panic!("{error}: {}", shown()),
        }
    }
    assert!((1000..19_000).contains(&accepted), "{accepted}");
}
