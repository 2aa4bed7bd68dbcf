use proptest::prelude::*;

use super::*;

fn rewritten(text: &str) -> String {
    let mut out = Vec::new();
    write_number(classify(text.as_bytes()), &mut out);
    String::from_utf8(out).unwrap()
}

fn compared(a: &str, b: &str) -> Ordering {
    compare(classify(a.as_bytes()), classify(b.as_bytes())).unwrap()
}

/// The digits of up to 15 bytes, and anything behind them.
fn check_leading_digits(text: &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let expected = (1..16).contains(&digits).then(|| (text[..digits].parse().unwrap(), digits));
    let found = leading_digits(&[text.as_bytes(), b",\"a\":\"b\"}"].concat());
    assert_eq!(found, expected, "{text}");
}

#[test]
fn digits_are_read_whatever_comes_behind_them() {
    for digits in 0..20 {
        for tail in ["", "}", ".5", "e7", "/", ":", "\u{1}", "\u{7f}", "\u{fe}\u{e9}", "x9", " 1"] {
            check_leading_digits(&("98765432109876543210"[..digits].to_owned() + tail));
            check_leading_digits(&("0".repeat(digits) + tail));
        }
    }
    assert_eq!(leading_digits(b"1234567"), None);
    assert_eq!(leading_digits(b"12345678,\"short\""), Some((12_345_678, 8)));
    assert_eq!(leading_digits(b"12345678,"), None);
}

#[test]
fn each_number_takes_the_first_form_that_is_exact() {
    let decimal = |mantissa, scale| Datum::Decimal { mantissa, scale };
    let cases = [
        ("0", Datum::Int(0)),
        ("-1", Datum::Int(-1)),
        ("9223372036854775807", Datum::Int(i64::MAX)),
        ("-9223372036854775808", Datum::Int(i64::MIN)),
        ("9223372036854775808", Datum::Digits(b"9223372036854775808")),
        ("-9223372036854775809", Datum::Digits(b"-9223372036854775809")),
        ("-0", Datum::Digits(b"-0")),
        ("1.10", decimal(110, 2)),
        ("0.5", decimal(5, 1)),
        ("-0.5", decimal(-5, 1)),
        ("0.00", decimal(0, 2)),
        ("-0.00", Datum::Digits(b"-0.00")),
        ("-0.0", Datum::Float(-0.0)),
        ("0.000000000000000001", decimal(1, 18)),
        ("0.999999999999999999", decimal(999_999_999_999_999_999, 18)),
        ("9.999999999999999999", Datum::Digits(b"9.999999999999999999")),
        ("0.0000000000000000001", Datum::Digits(b"0.0000000000000000001")),
        ("0.00012345678901234567", Datum::Float(0.000_123_456_789_012_345_67)),
        ("1e-7", Datum::Float(1e-7)),
        ("1e+22", Datum::Float(1e22)),
        ("1e22", Datum::Digits(b"1e22")),
        ("1E22", Datum::Digits(b"1E22")),
        ("1e400", Datum::Digits(b"1e400")),
        ("123456789012345678901234567890", Datum::Digits(b"123456789012345678901234567890")),
    ];
    for (text, form) in cases {
        assert_eq!(classify(text.as_bytes()), form, "{text}");
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn text_that_is_no_json_number_stays_what_it_is() {
    for text in ["", "-", "00", "01.5", "-00", "1.", ".5", "+1", "NaN", "inf", "-inf", "1_0", "x"] {
        assert_eq!(classify(text.as_bytes()), Datum::Digits(text.as_bytes()), "{text}");
    }
}

/// Which floats are held as floats is part of the disk format, and so is how they are written.
#[test]
fn floats_are_written_as_they_always_were() {
    let cases = [
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (0.000_01, "0.00001"),
        (0.000_001, "1e-6"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (5e-324, "5e-324"),
        (-0.0, "-0.0"),
        (0.1 + 0.2, "0.30000000000000004"),
    ];
    for (value, text) in cases {
        let mut out = Vec::new();
        write_number(Datum::Float(value), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}

#[test]
fn numbers_compare_by_value_across_forms() {
    let rising = [
        "-1e400",
        "-123456789012345678901234567890",
        "-9223372036854775808",
        "-1.5",
        "-1e-400",
        "0",
        "1e-400",
        "5e-324",
        "0.1",
        "0.1000000000000000000000000001",
        "0.10000000000000001",
        "1",
        "1.10",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775807.5",
        "9223372036854775808",
        "1e22",
        "123456789012345678901234567890",
        "1e400",
        "1e99999999999999999999",
        "1e100000000000000000000",
    ];
    for (i, a) in rising.iter().enumerate() {
        for (j, b) in rising.iter().enumerate() {
            assert_eq!(compared(a, b), i.cmp(&j), "{a} and {b}");
        }
    }
}

/// Exponents beyond 128 bits were taken for one and the same.
#[test]
fn numbers_compare_by_value_however_long_their_exponents_are() {
    let nines = "9".repeat(45);
    let rising = [
        format!("-1e1{nines}"),
        format!("-1e{nines}"),
        format!("-2e-{nines}"),
        format!("-1e-{nines}"),
        format!("1e-1{nines}"),
        format!("1e-{nines}"),
        format!("0.2e-{}8", &nines[1..]),
        format!("10e-{nines}"),
        "1e-170141183460469231731687303715884105729".to_owned(),
        "1e-170141183460469231731687303715884105728".to_owned(),
        "1".to_owned(),
        "1e170141183460469231731687303715884105726".to_owned(),
        "1e170141183460469231731687303715884105727".to_owned(),
        "1e170141183460469231731687303715884105728".to_owned(),
        format!("1e{}8", &nines[1..]),
        format!("1e{nines}"),
        format!("1.5e{nines}"),
        format!("100e{nines}"),
        format!("1e1{nines}"),
    ];
    for (i, a) in rising.iter().enumerate() {
        for (j, b) in rising.iter().enumerate() {
            assert_eq!(compared(a, b), i.cmp(&j), "{a} and {b}");
        }
    }
    let tens = "0".repeat(45);
    for (a, b) in [
        (format!("1e1{tens}"), format!("10e{nines}")),
        (format!("0.001e1{tens}"), format!("1e{}7", &nines[1..])),
        (format!("1e+000{nines}"), format!("1.0E{nines}")),
        (format!("-1e-1{tens}"), format!("-0.1e-{nines}")),
        (format!("0e{nines}"), "0".to_owned()),
        (
            "1e-170141183460469231731687303715884105728".to_owned(),
            "0.1e-170141183460469231731687303715884105727".to_owned(),
        ),
        (
            "0.01e-170141183460469231731687303715884105726".to_owned(),
            "1e-170141183460469231731687303715884105728".to_owned(),
        ),
        (format!("0.{}1e1{tens}", "0".repeat(44)), format!("1e{}55", &nines[2..])),
    ] {
        assert_eq!(compared(&a, &b), Ordering::Equal, "{a} and {b}");
    }
}

#[test]
fn spellings_of_one_value_are_equal() {
    for equal in [
        &["0", "-0", "0.00", "-0.0", "0e99", "-0E-400"][..],
        &["1", "1.0", "1e0", "10e-1", "0.1e+1", "0.00000000000000000001E20"],
        &["100", "1e2", "1E+2", "100.000000000000000000000"],
        &["-1.5", "-1.50", "-15e-1", "-0.15e1"],
    ] {
        for a in equal {
            for b in equal {
                assert_eq!(compared(a, b), Ordering::Equal, "{a} and {b}");
            }
        }
    }
}

#[test]
fn only_numbers_compare() {
    let text = Datum::Text { bytes: b"1", plain: true };
    assert_eq!(compare(text, Datum::Int(1)), None);
    assert_eq!(compare(Datum::Float(1.0), Datum::Null), None);
    assert_eq!(compare(Datum::Absent, Datum::Absent), None);
}

/// The number times 10^1100, as a sign and 2,300 digits: slow, and plainly right.
fn written_out(text: &str) -> (bool, Vec<u8>) {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let point = 1200 - exponent.parse::<isize>().unwrap();
    let mut digits = vec![b'0'; 2300];
    for (at, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let place = point + at.cast_signed() - whole.len().cast_signed();
        digits[place.cast_unsigned()] = digit;
    }
    (negative && digits.iter().any(|digit| *digit != b'0'), digits)
}

fn compared_plainly(a: &str, b: &str) -> Ordering {
    match (written_out(a), written_out(b)) {
        ((false, a), (false, b)) => a.cmp(&b),
        ((true, a), (true, b)) => b.cmp(&a),
        ((true, _), (false, _)) => Ordering::Less,
        ((false, _), (true, _)) => Ordering::Greater,
    }
}

const ANY_NUMBER: &str = "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?";
const SMALL_NUMBER: &str = "-?(0|[1-9]0{0,2}|[1-9])(\\.[01]{1,3})?([eE][+-]?[0-2])?";
const DECIMAL_NUMBER: &str = "-?(0|[1-9][0-9]{0,9})\\.[0-9]{1,10}";

proptest! {
    #[test]
    fn writing_gives_the_text_that_was_classified(
        text in prop_oneof![ANY_NUMBER, SMALL_NUMBER, DECIMAL_NUMBER]
    ) {
        prop_assert_eq!(rewritten(&text), text);
    }

    #[test]
    fn every_finite_float_is_held_as_a_decimal_or_float(value in any::<f64>()) {
        prop_assume!(value.is_finite());
        let mut text = Vec::new();
        write_number(Datum::Float(value), &mut text);
        let form = classify(&text);
        prop_assert!(!matches!(form, Datum::Digits(_)), "{:?}", form);
    }

    #[test]
    fn comparing_agrees_with_the_numbers_written_out(
        a in prop_oneof![ANY_NUMBER, SMALL_NUMBER],
        b in prop_oneof![ANY_NUMBER, SMALL_NUMBER],
    ) {
        prop_assert_eq!(compared(&a, &b), compared_plainly(&a, &b));
    }

    #[test]
    fn spellings_agree_with_the_numbers_written_out(a in SMALL_NUMBER, b in SMALL_NUMBER) {
        prop_assert_eq!(compared(&a, &b), compared_plainly(&a, &b));
    }

    #[test]
    fn floats_compare_as_their_texts_do(a in any::<f64>(), b in any::<f64>(), ulps in 0_u64..3) {
        prop_assume!(a.is_finite() && b.is_finite());
        let near = f64::from_bits(a.to_bits().saturating_sub(ulps));
        for b in [b, near] {
            let [a, b] = [a, b].map(|value| zmij::Buffer::new().format_finite(value).to_owned());
            prop_assert_eq!(compared(&a, &b), compared_plainly(&a, &b));
        }
    }

    #[test]
    fn any_bytes_are_classified_and_compared_without_panic(
        a in prop::collection::vec(any::<u8>(), 0..12),
        b in "[-+.eE0-9]{0,12}",
    ) {
        let (a, b) = (classify(&a), classify(b.as_bytes()));
        let there = compare(a, b).unwrap();
        prop_assert_eq!(compare(b, a), Some(there.reverse()));
    }
}
