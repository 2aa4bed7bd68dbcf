use crate::{CommitOptions, Database, Document, Format, JsonPointer, Revision};

/// A small, deterministic source of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn value(&mut self, depth: u64) -> String {
        let number = self.below(5);
        match self.below(if depth < 3 { 14 } else { 9 }) {
            0 => "null".to_owned(),
            1 => number.is_multiple_of(2).to_string(),
            2 => format!("{number}.50"),
            3 => format!("-1e{number}00"),
            4 => format!("\"text {number}\\n\""),
            5 if number == 0 => format!("\"{}\"", "long ".repeat(1_000)),
            5..9 => number.to_string(),
            9..11 => {
                let values: Vec<_> = (0..number).map(|_| self.value(depth + 1)).collect();
                format!("[{}]", values.join(","))
            }
            _ => {
                let names = ["a", "b", "c", "d"].iter().skip(usize::from(number == 0));
                let fields: Vec<_> = names
                    .take(2 + usize::from(number > 1))
                    .map(|name| format!("\"{name}\":{}", self.value(depth + 1)))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }
        }
    }

    fn elements(&mut self, round: usize, depth: u64) -> Vec<String> {
        let element = |at| {
            let [x, y, z] = [self.value(depth), self.value(depth), self.value(depth)];
            format!("{{\"id\":\"{at} of {round}\",\"x\":{x},\"y\":{y},\"z\":{z}}}")
        };
        (0..300).map(element).collect()
    }
}

/// All that there is, with the numbers of nodes and the revisions that changed them.
fn told(document: &Document) -> (String, Vec<crate::NodeId>) {
    let head = document.head().unwrap();
    let (format, mut text) = (Format { metadata: true, ..Format::default() }, Vec::new());
    head.append_json(&JsonPointer::root(), &format, &mut text).unwrap();
    let changed = document.parts().1.changed(head.revision()).unwrap();
    (String::from_utf8(text).unwrap(), changed)
}

#[test]
fn elements_put_together_change_as_those_that_are_put_one_by_one() {
    let db = Database::memory().unwrap();
    let (together, single) =
        (db.create_document("together").unwrap(), db.create_document("single").unwrap());
    let (mut random, options) = (Random(5), CommitOptions::default());
    for round in 0..8 {
        let elements = random.elements(round, 0);
        let text = format!("[{}]", elements.join(","));
        together.put(&text, &options).unwrap();
        if round == 0 {
            single.put(&text, &options).unwrap();
        } else {
            let mut transaction = db.transaction();
            for (at, element) in elements.iter().enumerate() {
                let place = JsonPointer::parse(&format!("/{at}")).unwrap();
                transaction.set("single", &place, element.as_bytes()).unwrap();
            }
            transaction.commit(&options).unwrap();
        }
        assert_eq!(together.head().unwrap().to_json().unwrap(), text);
        assert_eq!(told(&together), told(&single), "round {round}");
        if round % 3 == 1 {
            db.checkpoint().unwrap();
        }
    }
}

#[test]
fn what_is_put_twice_in_a_transaction_and_is_as_it_was_is_no_change() {
    let db = Database::memory().unwrap();
    let document = db.create_document("d").unwrap();
    let mut random = Random(7);
    let (first, other) = (random.elements(0, 3), random.elements(1, 3));
    let text = |elements: &[String]| format!("[{}]", elements.join(","));
    document.put(text(&first), &CommitOptions::default()).unwrap();
    let mut transaction = db.transaction();
    transaction.put("d", text(&other).as_bytes()).unwrap();
    let mixed = [&first[..150], &other[150..]].concat();
    transaction.put("d", text(&mixed).as_bytes()).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    assert_eq!(document.head().unwrap().to_json().unwrap(), text(&mixed));
    let diff = document.diff(Revision(1), Revision(2)).unwrap();
    let places = diff.changes.iter().map(|change| change.pointer.tokens().next().unwrap());
    assert!(places.map(|at| at.parse::<usize>().unwrap()).all(|at| at >= 150));
    let mut transaction = db.transaction();
    transaction.put("d", text(&other).as_bytes()).unwrap();
    transaction.put("d", text(&mixed).as_bytes()).unwrap();
    let committed = transaction.commit(&CommitOptions::default()).unwrap();
    assert!(committed.revisions.is_empty(), "{committed:?}");
}
