use super::super::tests::Random;
use super::*;

type Cells = Vec<(Vec<u8>, Vec<u8>)>;

fn parts(cells: &Cells) -> (Vec<Record>, Vec<u8>) {
    let (mut records, mut data) = (Vec::new(), Vec::new());
    for (key, cell) in cells {
        let at = u16::try_from(data.len()).unwrap().into();
        let key_len = u16::try_from(key.len()).unwrap().into();
        records.push(Record { at, key_len });
        data.extend_from_slice(key);
        data.extend_from_slice(cell);
    }
    (records, data)
}

fn random_entries(random: &mut Random) -> Cells {
    let like = vec![7; random.below(30)];
    let count = 4 + random.below(200);
    let mut cells = Cells::new();
    for number in 0..count as u64 {
        let rest = random.below(4);
        let key = [like.clone(), number.to_be_bytes()[6..].to_vec(), random.bytes(rest)];
        let cell = if random.below(4) == 0 { random.next() } else { number };
        cells.push((key.concat(), cell.to_le_bytes().to_vec()));
    }
    cells
}

fn find(cells: &Cells, key: &[u8]) -> Option<[u8; CELL_BYTES]> {
    let found = cells.iter().find(|(other, _)| other == key)?;
    found.1.as_slice().try_into().ok()
}

#[test]
fn what_is_lengthened_is_what_was_shortened() {
    let mut random = Random(3);
    for _ in 0..300 {
        let cells = random_entries(&mut random);
        let (records, data) = parts(&cells);
        let shortened = shorten(&records, &data).unwrap();
        let body = [records.as_bytes(), &data].concat();
        let short = ShortCells::parse(shortened.into(), records.len()).unwrap();
        assert_eq!(short.lengthen().unwrap(), body);
        for (key, cell) in &cells {
            assert_eq!(short.find(key).unwrap().unwrap(), *cell.as_slice());
            let beyond = [key.as_slice(), &[0; 9]].concat();
            assert_eq!(short.find(&beyond), Ok(None));
            assert_eq!(
                short.find(&key[..key.len() - 1]).unwrap(),
                find(&cells, &key[..key.len() - 1])
            );
        }
        assert_eq!((short.find(&[]), short.find(&[0xff; 40])), (Ok(None), Ok(None)));
    }
}

#[test]
fn numbered_entries_take_the_digits_that_change() {
    let entry =
        |number: u64| (format!("{number:040}").into_bytes(), (5 + number).to_le_bytes().to_vec());
    let (records, data) = parts(&(1_000..1_060).map(entry).collect());
    let shortened = shorten(&records, &data).unwrap();
    assert!(shortened.len() < 40 + 60 * 2 + 16, "{} bytes", shortened.len());
}

#[test]
fn other_cells_are_left_as_they_are() {
    let mut random = Random(4);
    let cells = random_entries(&mut random);
    let (records, data) = parts(&cells[..3].to_vec());
    assert_eq!(shorten(&records, &data), None, "too few");
    for length in [0, 7, 9] {
        let mut cells = cells.clone();
        cells[2].1.resize(length, 0);
        let (records, data) = parts(&cells);
        assert_eq!(shorten(&records, &data), None, "a cell of {length} bytes");
    }
}

#[test]
fn what_was_not_shortened_is_refused_or_has_as_many_cells() {
    let mut random = Random(5);
    for _ in 0..2_000 {
        let cells = random_entries(&mut random);
        let (records, data) = parts(&cells);
        let mut shortened = shorten(&records, &data).unwrap();
        let lengthen =
            |body: &[u8], cells| ShortCells::parse(Bytes::copy_from_slice(body), cells)?.lengthen();
        assert_eq!(lengthen(&shortened, usize::MAX), None);
        match random.below(3) {
            0 => shortened.truncate(random.below(shortened.len() as u64)),
            1 => shortened.push(0),
            _ => {
                let at = random.below(shortened.len() as u64);
                shortened[at] ^= 1 + random.bytes(1)[0] % 255;
            }
        }
        if let Some(short) = ShortCells::parse(shortened.clone().into(), records.len()) {
            for (key, _) in &cells {
                let _ = short.find(key);
            }
        }
        if let Some(body) = lengthen(&shortened, records.len()) {
            assert!(body.len() >= records.len() * (RECORD_BYTES + CELL_BYTES));
            assert!(body.len() <= BLOCK_BYTES_MAX);
        }
    }
}
