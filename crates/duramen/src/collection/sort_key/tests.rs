use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::json::ParseOptions;
use crate::json::equality::are_equal;

fn key(json: &str) -> Vec<u8> {
    let tape = Tape::parse(json.as_bytes(), ParseOptions::default()).unwrap();
    let mut key = Vec::new();
    append_parsed(&tape, tape.root(), &mut key);
    key
}

/// Values in their order.
const RISING: [&str; 61] = [
    "null",
    "false",
    "true",
    "-1e9999999999999999999999999999999999999999",
    "-1e400",
    "-12345678901234567890123",
    "-12345678901234567890122.9",
    "-101",
    "-100",
    "-10",
    "-1.01",
    "-1",
    "-0.1",
    "-1e-400",
    "0",
    "1e-10000000000000000000000000000000000000000",
    "1e-9999999999999999999999999999999999999999",
    "1e-170141183460469231731687303715884105729",
    "1e-99999999999",
    "1e-400",
    "1e-98",
    "1e-97",
    "1e-96",
    "0.05",
    "0.1",
    "0.101",
    "1",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "1e94",
    "1e95",
    "1e96",
    "1e400",
    "1e99999999999",
    "1e170141183460469231731687303715884105727",
    "1e9999999999999999999999999999999999999999",
    "1.5e9999999999999999999999999999999999999999",
    "1e10000000000000000000000000000000000000000",
    r#""""#,
    r#""\u0000""#,
    r#""\u0000\u0000""#,
    r#""\u0001""#,
    r#""a""#,
    r#""a\u0000""#,
    r#""a\u0000b""#,
    r#""ab""#,
    r#""b""#,
    r#""\uffff""#,
    r#""\ud800\udc00""#,
    "[]",
    "[null]",
    "[1]",
    "[1,1]",
    "[2]",
    "[[]]",
    "{}",
    r#"{"a":1}"#,
    r#"{"a":1,"b":1}"#,
    r#"{"a":2}"#,
];

#[test]
fn values_are_in_their_order() {
    let mut missing = Vec::new();
    append_missing(&mut missing);
    let keys: Vec<_> = std::iter::once(missing).chain(RISING.map(key)).collect();
    for (index, pair) in keys.windows(2).enumerate() {
        assert!(pair[0] < pair[1], "before {}", RISING[index]);
    }
}

#[test]
fn equal_values_have_one_key() {
    let equal = [
        ["1", "1.0", "1e0", "0.1e1", "10e-1", "1.00000000000000000000000000"],
        ["0", "-0", "0.0", "0e9", "-0.00e-3", "0E+99999999999999999999999"],
        ["-1200", "-1.2e3", "-12e2", "-1200.00", "-0.0012E+6", "-1200e0"],
    ];
    for texts in equal {
        assert!(texts.iter().all(|text| key(text) == key(texts[0])), "{texts:?}");
    }
    assert_eq!(key(r#"{"a":1,"b":[1.0]}"#), key(r#"{"b":[1],"a":1e0}"#));
    assert_eq!(key(r#""\u0061""#), key(r#""a""#));
}

#[test]
fn the_class_is_that_of_the_value() {
    let classes = [
        ("null", SortClass::Null),
        ("false", SortClass::Boolean),
        ("true", SortClass::Boolean),
        ("-1", SortClass::Number),
        ("0", SortClass::Number),
        ("1", SortClass::Number),
        (r#""""#, SortClass::Text),
        ("[]", SortClass::Array),
        ("{}", SortClass::Object),
    ];
    for (json, class) in classes {
        let key = key(json);
        assert_eq!(SortClass::of(&key), class);
        assert!(key[0] >= class.first_byte() && key[0] < class.end_byte(), "{json}");
    }
    let mut missing = Vec::new();
    append_missing(&mut missing);
    assert_eq!(SortClass::of(&missing), SortClass::Missing);
}

/// A number as a sign, digits, and the power of ten of the last one.
fn numbers() -> impl Strategy<Value = String> {
    let exponent = prop_oneof![-5_i64..5, -120_i64..120];
    let plain = (any::<bool>(), "(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?");
    (plain, proptest::option::of(exponent)).prop_map(|((is_negative, digits), exponent)| {
        let sign = if is_negative { "-" } else { "" };
        exponent.map_or_else(
            || format!("{sign}{digits}"),
            |exponent| format!("{sign}{digits}e{exponent}"),
        )
    })
}

/// The digits of a number of [`numbers`] in units of 10 to the power of -200, padded.
fn in_units(text: &str) -> (bool, String) {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().unwrap();
    let zeros = 200 + exponent - i64::try_from(fraction.len()).unwrap();
    let digits = format!("{whole}{fraction}{}", "0".repeat(usize::try_from(zeros).unwrap()));
    (is_negative, format!("{digits:0>500}"))
}

fn naive(a: &str, b: &str) -> Ordering {
    let ((minus_a, a), (minus_b, b)) = (in_units(a), in_units(b));
    let is_zero = |digits: &str| digits.bytes().all(|digit| digit == b'0');
    let sign = |minus: bool, digits: &str| match (is_zero(digits), minus) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    let (sign_a, sign_b) = (sign(minus_a, &a), sign(minus_b, &b));
    sign_a.cmp(&sign_b).then_with(|| if sign_a < 0 { b.cmp(&a) } else { a.cmp(&b) })
}

fn values() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        (-3_i64..3).prop_map(|value| value.to_string()),
        numbers(),
        "[a-b\u{0}]{0,3}".prop_map(|text: String| crate::json::escape::quoted(&text)),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn keys_of_numbers_compare_as_their_decimals(a in numbers(), b in numbers()) {
        prop_assert_eq!(key(&a).cmp(&key(&b)), naive(&a, &b), "{} {}", a, b);
    }

    #[test]
    fn the_form_that_keeps_a_number_does_not_matter(text in numbers()) {
        let mut of_state = Vec::new();
        assert!(append_scalar(number::classify(text.as_bytes()), &mut of_state));
        prop_assert_eq!(of_state, key(&text));
    }

    #[test]
    fn keys_are_equal_just_if_the_values_are(a in values(), b in values()) {
        let parse = |text: &str| {
            Tape::parse(text.as_bytes(), ParseOptions::default()).unwrap().into_owned()
        };
        let (x, y) = (parse(&a), parse(&b));
        let same = are_equal((&x, x.root()), (&y, y.root()));
        prop_assert_eq!(key(&a) == key(&b), same, "{} {}", a, b);
        if !same {
            prop_assert!(!key(&a).starts_with(&key(&b)), "{} {}", a, b);
        }
    }

    #[test]
    fn keys_of_strings_are_between_their_prefix_and_its_end(
        a in "[a\u{0}\u{ff}]{0,3}",
        b in "[a\u{0}\u{ff}]{0,3}",
    ) {
        let (mut text, mut low) = (Vec::new(), Vec::new());
        append_text(a.as_bytes(), &mut text);
        append_prefix(b.as_bytes(), &mut low);
        let mut high = low.clone();
        high.push(0xff);
        let is_between = text >= low && text < high;
        prop_assert_eq!(is_between, a.starts_with(&b), "{:?} {:?}", a, b);
    }
}
