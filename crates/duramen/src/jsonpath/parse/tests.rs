use super::*;
use crate::jsonpath::JsonPath;

fn error(text: &str) -> String {
    JsonPath::parse(text).unwrap_err().message().to_owned()
}

#[test]
fn errors_say_where_and_what_was_expected() {
    let cases = [
        ("", 1, "'$'"),
        ("a", 1, "'$'"),
        ("$.", 3, "a name or '*'"),
        ("$.a b", 4, "'.', '[' or the end"),
        ("$[", 3, "a name in quotes"),
        ("$['a'", 6, "',' or ']'"),
        ("$['a", 5, "the closing quote"),
        ("$['\u{e9}\\x']", 6, "escapes of JSON"),
        ("$[01]", 3, "leading zeros"),
        ("$[9007199254740992]", 3, "2^53 - 1"),
        ("$[?@.a ===1]", 10, "a query, a literal"),
        ("$[?@.a == foo]", 11, "put text in quotes"),
        ("$[?1]", 4, "compare it"),
        ("$[?@..a == 1]", 4, "count() or value()"),
        ("$[?!@.a == 1]", 9, "parentheses"),
        ("$[?count(1) > 1]", 10, "a query"),
        ("$[?length(@.a)]", 4, "compare it"),
        ("$[?match(@.a, 'x') == true]", 4, "cannot be compared"),
        ("$[?nonsense(@)]", 4, "no function \"nonsense\""),
        ("$[?(@.a]", 8, "')'"),
        ("$[?@.a == 1.]", 13, "a digit"),
        ("$[?match(@.a, '(((a{99}){99}){99})')]", 15, "smaller repetitions"),
    ];
    for (text, column, expected) in cases {
        let message = error(text);
        assert!(message.contains(&format!("at character {column},")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn nesting_beyond_its_limit_is_refused_wherever_it_is() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("$[?{}{inner}{}]", open.repeat(times), close.repeat(times))
    };
    for (open, inner, close) in [("(", "@", ")"), ("@[?", "@", "]"), ("!(", "@", ")")] {
        JsonPath::parse(&nested(open, inner, close, JSONPATH_DEPTH_MAX - 1)).unwrap();
        for times in [JSONPATH_DEPTH_MAX, 10_000] {
            let message = error(&nested(open, inner, close, times));
            assert!(message.contains("inside each other"), "{message}");
        }
    }
    let lengths = nested("length(", "@", ")", 5_000);
    assert!(error(&lengths).contains("inside each other"));
}

#[test]
fn queries_beyond_their_length_are_refused() {
    let text = "$".to_owned() + &"[0]".repeat(JSONPATH_BYTES_MAX / 3);
    assert!(text.len() <= JSONPATH_BYTES_MAX + 1);
    let message = error(&(text + "[0]"));
    assert!(message.contains("65536"), "{message}");
}

/// Every text made of the first part of a query and a piece that does not belong there.
#[test]
fn no_text_makes_reading_panic() {
    let query = "$..['a\\ud83d\\ude00',\"b\",*,-1:9:-2]\
                 [?!(@.a==1e-5||$.x)&&match(@[0],'[^\\\\p{Lu}-]+')].\u{263a}";
    JsonPath::parse(query).unwrap();
    let pieces =
        ["", "\u{0}", "'", "\\", "[", "?", "\u{1f600}", "9", "-", "\\ud83d", ")", "@", "\""];
    for (at, _) in query.char_indices() {
        for piece in pieces {
            for text in [
                format!("{}{piece}", &query[..at]),
                format!("{}{piece}{}", &query[..at], &query[at..]),
            ] {
                if let Err(error) = JsonPath::parse(&text) {
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
                }
            }
        }
    }
    for number in [
        "1e999999999999999999999999",
        "-0",
        "0.000000000000000000001",
        "123456789012345678901234567890",
    ] {
        JsonPath::parse(&format!("$[?@ == {number}]")).unwrap();
    }
}
