//! Files of Parquet that are damaged, wherever they are.

use std::path::Path;

use duramen::{Database, ErrorKind, KeyKind};
use duramen_sql::{RecordFile, Session, SessionOptions};

/// A file with strings, numbers, lists and structs of many records.
fn parquet(folder: &Path) -> Vec<u8> {
    let path = folder.join("whole.parquet");
    let session = Session::new(Database::memory().unwrap(), SessionOptions::default());
    let query = format!(
        "COPY (SELECT CAST(value AS TEXT) AS _key, value AS n, value / 2.5 AS half,
                      'name of ' || (value % 7) AS name, [value, value + 1] AS list,
                      named_struct('odd', value % 2 = 1, 'text', repeat('x', value % 5)) AS of
               FROM generate_series(1, 300))
         TO '{}'",
        path.display()
    );
    session.query(&query).unwrap();
    read(&path)
}

#[expect(clippy::disallowed_methods, reason = "files of the user")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// How many records a file has, or what is wrong with it.
#[expect(clippy::disallowed_methods, reason = "files of the user")]
fn records(path: &Path, bytes: &[u8]) -> duramen::Result<usize> {
    std::fs::write(path, bytes).unwrap();
    let mut file = RecordFile::parquet(std::fs::File::open(path).unwrap(), "_key")?;
    let (mut found, mut json) = (0, Vec::new());
    while file.next(KeyKind::Text, &mut json)?.is_some() {
        json.clear();
        found += 1;
    }
    Ok(found)
}

/// Whatever the library's reader does at them, and it may panic.
#[test]
fn a_damaged_file_of_parquet_is_an_error_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = parquet(folder.path());
    let path = folder.path().join("damaged.parquet");
    assert_eq!(records(&path, &whole).unwrap(), 300);
    let mut refused = 0;
    for at in (0..whole.len()).step_by(13) {
        let mut bytes = whole.clone();
        bytes[at] ^= if at % 2 == 0 { 0xff } else { 1 };
        if let Err(error) = records(&path, &bytes) {
            assert_eq!(error.kind(), ErrorKind::Invalid, "byte {at}: {error}");
            refused += 1;
        }
    }
    assert!(refused > 0);
    for len in (0..whole.len()).step_by(83) {
        let error = records(&path, &whole[..len]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{len} bytes: {error}");
    }
}
