use proptest::prelude::*;

use super::*;
use crate::collection::Key;
use crate::json::{ParseOptions, Tape};
use crate::tree::cell_key::TreeId;
use crate::tree::schema::ROOT;

const KEY: &str = "id";

/// How objects are put that follow each other in a text.
#[derive(Debug, Clone, Copy)]
struct Feed {
    between: Between,
    keys: Option<KeyKind>,
    has_runs: bool,
    bytes_max: u64,
}

const LINES: Feed =
    Feed { between: Between::Lines, keys: None, has_runs: true, bytes_max: u64::MAX };

impl Feed {
    fn without_runs(self) -> Self {
        Self { has_runs: false, ..self }
    }

    /// All columns that come of it, encoded, and how many objects were put by runs.
    fn columns(self, text: &str) -> (Vec<String>, usize) {
        let mut builder = Builder::new(TreeId(1), None);
        builder.bear(ROOT, 0).unwrap();
        let path = match self.keys {
            Some(_) => builder.data.entry_or_add(ROOT),
            None => builder.data.element_or_add(ROOT),
        };
        let (path, mut rest, mut ran) = (path.unwrap(), text.as_bytes(), 0);
        while !rest.is_empty() {
            let bytes = match self.run(&mut builder, path, rest) {
                Some(run) => {
                    ran += run.objects;
                    run.bytes
                }
                None => self.put(&mut builder, path, rest),
            };
            rest = rest[bytes..].trim_ascii_start();
            rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        }
        builder.columns.gather_groups(&builder.data.schema);
        let batch = builder.columns.take_gathered();
        let columns = batch.columns.iter().map(|filled| {
            let (column, first_slot) = (filled.column, filled.first_slot);
            format!("{column:?} {first_slot} {:?}", filled.states.encoded())
        });
        (columns.collect(), ran)
    }

    fn run(self, builder: &mut Builder, path: PathId, text: &[u8]) -> Option<Ran> {
        let key = match self.keys {
            Some(keys) => Some((builder.data.schema.field(path, KEY.as_bytes())?, keys)),
            None => None,
        };
        let form = RunForm { between: self.between, key, bytes: self.bytes_max };
        self.has_runs.then(|| builder.put_run((path, 0), text, form)).flatten()
    }

    /// Puts one object as it is put without runs: its bytes.
    fn put(self, builder: &mut Builder, path: PathId, text: &[u8]) -> usize {
        let line = text.split(|byte| *byte == b'\n').next().unwrap().trim_ascii_end();
        let line = line.strip_suffix(b",").unwrap_or(line);
        let tape = Tape::parse(line, ParseOptions::default()).unwrap();
        let node = match self.keys {
            Some(keys) => {
                let written: serde_json::Value = serde_json::from_slice(line).unwrap();
                let written = match &written[KEY] {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let name = match keys.parse(&written).unwrap() {
                    Key::I64(key) => Datum::Int(key),
                    Key::U64(key) => Datum::Int(key.cast_signed()),
                    _ => Datum::Text { bytes: written.as_bytes(), plain: true },
                };
                builder.bear_entry(path, 0, name).unwrap()
            }
            None => builder.bear(path, 0).unwrap(),
        };
        if builder.put_guessed(node, text).unwrap().is_none() {
            builder.put(node, &tape, tape.root()).unwrap();
        }
        line.len()
    }

    /// Puts the objects of a text with runs and without: how many were put by runs.
    fn check(self, text: &str) -> usize {
        let ((with, ran), (without, _)) = (self.columns(text), self.without_runs().columns(text));
        assert_eq!(with, without);
        ran
    }
}

fn arb_scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<bool>().prop_map(|value| value.to_string()),
        4 => (-300_i64..300).prop_map(|value| value.to_string()),
        2 => any::<i64>().prop_map(|value| value.to_string()),
        2 => (0_u32..18).prop_map(|power| 10_i64.pow(power).to_string()),
        2 => "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
        4 => "[a-z]{0,20}".prop_map(|text| format!("\"{text}\"")),
        1 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        1 => (4_090_usize..4_100).prop_map(|len| format!("\"{}\"", "x".repeat(len))),
        1 => Just("null".to_owned()),
        1 => prop_oneof![Just("{}"), Just("[]"), Just("[1]"), Just("{\"a\":{}}")]
            .prop_map(str::to_owned),
    ]
}

/// Objects that have the same fields and are spelled alike, most often.
fn arb_objects() -> impl Strategy<Value = Vec<String>> {
    let names = prop_oneof![
        Just(vec!["id", "name"]),
        Just(vec!["name", "id"]),
        Just(vec!["id", "a name that no long word has room for", "e"]),
        Just(vec!["id"]),
    ];
    let spelling = prop_oneof![
        4 => Just((",", ":")),
        2 => Just((", ", ": ")),
        1 => Just((",", ": ")),
        1 => Just((" ,", " :")),
    ];
    (names, spelling, prop::collection::vec(prop::collection::vec(arb_scalar(), 3), 1..20))
        .prop_map(|(names, (comma, colon), objects)| {
            let object = |values: &Vec<String>| {
                let members = names.iter().zip(values);
                let members = members.map(|(name, value)| format!("\"{name}\"{colon}{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(comma))
            };
            objects.iter().map(object).collect()
        })
}

proptest! {
    #[test]
    fn a_run_puts_what_its_objects_put_one_by_one(
        objects in prop::collection::vec(arb_objects(), 1..6),
        bytes_max in prop_oneof![Just(u64::MAX), 1_u64..300],
        between in prop_oneof![
            Just((Between::Lines, "\n")), Just((Between::Lines, "\r\n")),
            Just((Between::Lines, " \n\n")), Just((Between::Commas, ",\n")),
        ],
    ) {
        let (between, separator) = between;
        let text = objects.concat().join(separator);
        Feed { between, bytes_max, ..LINES }.check(&text);
    }
}

/// Records of which each has a key made of its number.
fn records(count: u64, key: impl Fn(u64) -> String) -> String {
    let record = |number: u64| {
        let (key, place) = (key(number), ["near", "far", "somewhere else"][(number % 3) as usize]);
        format!("{{\"id\":{key},\"place\":\"{place}\",\"half\":{},\"is\":true}}\n", number / 2)
    };
    (0..count).map(record).collect()
}

#[test]
fn records_of_one_shape_are_put_by_runs_and_end_with_each_row_group() {
    let text = records(10_000, |number| number.to_string());
    let ran = LINES.check(&text);
    assert!((9_900..10_000).contains(&ran), "{ran}");
    for keys in [KeyKind::I64, KeyKind::U64] {
        let ran = Feed { keys: Some(keys), ..LINES }.check(&text);
        assert!((9_900..10_000).contains(&ran), "{ran}");
    }
    let spaced = text.replace(':', ": ").replace(',', ", ");
    assert!(LINES.check(&spaced) > 9_900);
}

#[test]
fn keys_of_other_forms_end_a_run() {
    let texts = Feed { keys: Some(KeyKind::Text), ..LINES };
    assert!(texts.check(&records(1_000, |number| format!("\"key {number}\""))) > 900);
    assert_eq!(texts.check(&records(100, |number| number.to_string())), 0);
    let integers = Feed { keys: Some(KeyKind::I64), ..LINES };
    let every_tenth_is_text = records(1_000, |number| match number % 10 {
        9 => format!("\"{number}\""),
        _ => format!("-{}", number + 1),
    });
    let ran = integers.check(&every_tenth_is_text);
    assert!((100..900).contains(&ran), "{ran}");
}

#[test]
fn shapes_that_take_turns_are_not_taken_for_runs() {
    let turns: String = (0..1_000)
        .map(|number| match number % 2 {
            0 => format!("{{\"id\":{number}}}\n"),
            _ => format!("{{\"id\":{number},\"odd\":1}}\n"),
        })
        .collect();
    assert_eq!(LINES.check(&turns), 0);
    assert_eq!(LINES.check(&"{\"id\":[7]}\n".repeat(1_000)), 0);
}
