//! Two processes at once, and a process that is stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use duramen::{CommitOptions, Database, IndexDefinition, KeyKind};

fn duramen(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duramen"));
    command.args(arguments).current_dir(folder);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    duramen(folder, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// An import that waits for lines, and so holds the database `db` open for writing.
struct Importer {
    child: Child,
    input: ChildStdin,
    errors: BufReader<std::process::ChildStderr>,
}

impl Importer {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, &["import", "db", "doc", "--ndjson", "-"])
    }

    fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = duramen(folder, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        assert_eq!(line, "created the database db\n");
        Self { child, input, errors }
    }

    /// Ends its input and gives its exit code and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input);
        let mut said = String::new();
        self.errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

#[test]
fn second_writer_is_told_which_process_holds_the_database() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.json"), "1").unwrap();
    let importer = Importer::start(folder.path());

    let put = run(folder.path(), &["put", "db", "doc", "one.json"]);
    assert_eq!(put.status.code(), Some(16));
    let holder = importer.child.id().to_string();
    assert!(text(&put.stderr).contains(&holder), "{} does not name {holder}", text(&put.stderr));

    let listed = run(folder.path(), &["ls", "db"]);
    assert!(listed.status.success(), "reading works beside the writer: {}", text(&listed.stderr));
    assert_eq!(importer.end().0, Some(0));
}

#[test]
fn second_writer_waits_as_long_as_it_was_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.json"), "1").unwrap();
    let importer = Importer::start(folder.path());
    let arguments = ["put", "db", "doc", "one.json", "--wait", "60"];
    let mut put = duramen(folder.path(), &arguments).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(put.try_wait().unwrap(), None);
    assert_eq!(importer.end().0, Some(0));
    assert!(put.wait().unwrap().success());
}

/// It was once told at once that there is no database.
#[test]
fn second_writer_waits_for_a_load_that_makes_the_database() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.json"), "1").unwrap();
    std::fs::write(folder.path().join("two.json"), "2").unwrap();
    assert!(run(folder.path(), &["put", "from", "doc", "one.json"]).status.success());
    let dump = run(folder.path(), &["dump", "from"]).stdout;

    let mut load = duramen(folder.path(), &["load", "db", "-"]);
    let mut load = load.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    while !folder.path().join("db/MANIFEST.unfinished").exists() {
        assert_eq!(load.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let arguments = ["put", "db", "doc", "two.json", "--wait", "60"];
    let mut put = duramen(folder.path(), &arguments).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(put.try_wait().unwrap(), None);
    load.stdin.take().unwrap().write_all(&dump).unwrap();
    assert!(load.wait().unwrap().success());
    assert!(put.wait().unwrap().success());
    assert_eq!(text(&run(folder.path(), &["get", "db", "doc"]).stdout), "2\n");
}

#[test]
fn import_that_fails_at_once_leaves_no_database_unless_another_process_makes_one() {
    let folder = tempfile::tempdir().unwrap();
    let fail = |mut importer: Importer| {
        importer.input.write_all(b"{\n").unwrap();
        let (code, said) = importer.end();
        assert_eq!(code, Some(12), "{said}");
        assert!(said.starts_with("removed the database db again"), "{said}");
    };
    fail(Importer::start(folder.path()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    std::fs::write(folder.path().join("one.json"), "1").unwrap();
    let mut importer = Importer::start(folder.path());
    let arguments = ["put", "db", "doc", "one.json", "--wait", "60"];
    let mut put = duramen(folder.path(), &arguments).stderr(Stdio::null()).spawn().unwrap();
    // It waits by now, most likely.
    std::thread::sleep(std::time::Duration::from_millis(200));
    importer.input.write_all(b"{\n").unwrap();
    assert_eq!(importer.end().0, Some(12));
    assert!(put.wait().unwrap().success());
    assert_eq!(text(&run(folder.path(), &["get", "db", "doc"]).stdout), "1\n");
}

#[test]
fn interrupted_import_goes_on_where_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (1..=1000).map(|number| format!("{{\"a\":{number}}}")).collect();
    let lines = lines.join("\n");
    std::fs::write(folder.path().join("all.ndjson"), &lines).unwrap();
    let mut importer = Importer::start(folder.path());
    importer.input.write_all(lines.as_bytes()).unwrap();
    let id = importer.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());

    let (code, said) = importer.end();
    assert_eq!(code, Some(130), "{said}");
    let (_, safe) = said.trim_end().rsplit_once("--skip ").unwrap();
    let told = match safe {
        "1" => "the first of the lines is safe".to_owned(),
        _ => format!("the first {safe} lines are safe"),
    };
    assert!(said.contains(&told), "{said}");
    let stored = run(folder.path(), &["--json", "ls", "db"]);
    if safe == "0" {
        assert_eq!(text(&stored.stdout), "");
    } else {
        assert!(text(&stored.stdout).contains(&format!("\"revision\":{safe},")));
    }

    let rest = ["import", "db", "doc", "--ndjson", "all.ndjson", "--skip", safe];
    assert!(run(folder.path(), &rest).status.success());
    let values = run(folder.path(), &["--json", "history", "db", "doc", "/a"]);
    let values = text(&values.stdout);
    assert_eq!(values.lines().count(), 1000);
    for (index, line) in values.lines().enumerate() {
        let revision = 1000 - index;
        assert!(line.starts_with(&format!("{{\"first\":{revision},\"last\":{revision},")));
        assert!(line.ends_with(&format!("\"value\":{revision}}}")));
    }
}

#[test]
fn interrupted_import_of_records_says_how_many_are_in() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (1..=25_000).map(|number| format!("{{\"id\":{number}}}")).collect();
    let arguments = ["records", "import", "db", "c", "-", "--key", "id", "--keys", "i64"];
    let mut importer = Importer::start_with(folder.path(), &arguments);
    importer.input.write_all(lines.join("\n").as_bytes()).unwrap();
    let id = importer.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());

    let (code, said) = importer.end();
    assert_eq!(code, Some(130), "{said}");
    let told = said.lines().find_map(|line| line.split_once(" records are in"));
    let (count, _) = told.unwrap();
    let stored = run(folder.path(), &["records", "query", "db", "c", "--count"]);
    assert_eq!(text(&stored.stdout).trim(), count, "{said}");
}

#[test]
fn watching_follows_another_process_until_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut importer = Importer::start(folder.path());
    let mut watch = duramen(folder.path(), &["watch", "db", "--from", "beginning"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut token = String::new();
    for value in 1..=20 {
        importer.input.write_all(format!("{{\"a\":{value}}}\n").as_bytes()).unwrap();
        importer.input.flush().unwrap();
    }
    // An import commits what it has read when there is nothing more.
    assert_eq!(importer.end().0, Some(0));
    for revision in 1..=20 {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(&format!("\"revision\":{revision},")), "{line}");
        token = line.split('"').nth(3).unwrap().to_owned();
    }
    let id = watch.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = watch.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("go on with --from {token}")), "{said}");
}

/// An index that a crash had left half made was not listed, and could not be dropped.
#[test]
fn index_of_which_the_making_was_interrupted_is_listed_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let making = std::thread::spawn(move || {
        let db = Database::open(&path, duramen::Options::default()).unwrap();
        let records = db.create_collection("c", KeyKind::Text).unwrap();
        records.put("a", r#"{"n":1}"#, &CommitOptions::default()).unwrap();
        let by_n = IndexDefinition::new("by-n", &["n"]).unwrap().unique();
        // As a crash in the middle of it.
        records.create_index_with(&by_n, &mut |_| std::panic::resume_unwind(Box::new(())))
    });
    assert!(making.join().is_err());
    let said = |arguments: &[&str]| text(&run(folder.path(), arguments).stdout);
    assert_eq!(said(&["index", "ls", "db", "c"]), "by-n  n  unique  unfinished\n");
    let json = r#"{"name":"by-n","paths":["n"],"unique":true,"unfinished":true}"#;
    assert_eq!(said(&["index", "ls", "db", "c", "--json"]).trim_end(), json);
    assert_eq!(said(&["index", "drop", "db", "c", "by-n"]), "c: dropped the index by-n\n");
    assert_eq!(said(&["index", "ls", "db", "c"]), "");
}

/// It once ended with 0, as if all had been read.
#[test]
fn reader_that_goes_away_ends_the_command_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("[{}1]", "\"text\",".repeat(100_000));
    std::fs::write(folder.path().join("long.json"), long).unwrap();
    assert!(run(folder.path(), &["put", "db", "doc", "long.json"]).status.success());

    let mut get = duramen(folder.path(), &["get", "db", "doc"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(get.stdout.take());
    let output = get.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(141), ""));
}

/// What was saved was once told as if it had failed.
#[test]
fn a_change_that_cannot_be_told_is_said_to_be_saved() {
    let full = || std::fs::File::options().write(true).open("/dev/full");
    // Not every system has one.
    if full().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.json"), "1").unwrap();
    let told = |arguments: &[&str]| {
        let ended = duramen(folder.path(), arguments).stdout(full().unwrap()).output().unwrap();
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(15), "{arguments:?}: {said}");
        assert!(said.contains("cannot write to standard output"), "{said}");
        said.contains("what was changed is saved all the same")
    };
    assert!(told(&["init", "db"]));
    assert!(told(&["put", "db", "doc", "one.json"]));
    assert!(told(&["backup", "db", "backups"]));
    assert!(told(&["restore", "backups", "restored"]));
    let mut shell = duramen(folder.path(), &["shell", "db"]);
    let shell = shell.stdin(Stdio::piped()).stdout(full().unwrap()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"set doc '' 2\n").unwrap();
    let said = text(&child.wait_with_output().unwrap().stderr);
    assert!(said.contains("what was changed is saved all the same"), "{said}");
    assert!(!told(&["get", "db", "doc"]));
    assert!(!told(&["--help"]));
    assert_eq!(text(&run(folder.path(), &["get", "restored", "doc"]).stdout), "1\n");
}

/// It was once a panic, and nothing was saved.
#[test]
fn a_change_is_made_though_nothing_can_be_told_of_it() {
    let full = || std::fs::File::options().write(true).open("/dev/full");
    if full().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("points.csv"), "time,a\n2024-01-01,1\n").unwrap();
    let code = |arguments: &[&str]| {
        let (reader, gone) = std::io::pipe().unwrap();
        drop(reader);
        let to_full = duramen(folder.path(), arguments).stderr(full().unwrap()).output().unwrap();
        let to_nobody = duramen(folder.path(), arguments).stderr(gone).output().unwrap();
        assert_eq!(to_full.status.code(), to_nobody.status.code(), "{arguments:?}");
        to_full.status.code()
    };
    assert_eq!(code(&["records", "put", "db", "c", "k", r#"{"a":1}"#]), Some(0));
    assert_eq!(text(&run(folder.path(), &["get", "db", "c"]).stdout), "{\"k\":{\"a\":1}}\n");
    assert_eq!(code(&["records", "get", "db", "c", "k", "nokey"]), Some(10));
    assert_eq!(code(&["series", "append", "points", "s", "1", "--create"]), Some(0));
    assert_eq!(code(&["series", "import", "points", "points.csv", "--create"]), Some(0));
    assert_eq!(code(&["set", "db", "missing", "/a", "1"]), Some(10));
    assert_eq!(code(&["histroy"]), Some(2));
    assert_eq!(code(&["get", "db"]), Some(2));
}

/// What was missing was once told, and not that the others could not be written.
#[test]
fn a_full_standard_output_is_told_before_what_the_command_failed_of() {
    let full = || std::fs::File::options().write(true).open("/dev/full");
    if full().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["records", "put", "db", "c", "k", "{}"]).status.success());
    let mut get = duramen(folder.path(), &["records", "get", "db", "c", "k", "nokey"]);
    let ended = get.stdout(full().unwrap()).output().unwrap();
    assert_eq!(ended.status.code(), Some(15), "{}", text(&ended.stderr));
}

/// As CSV and Arrow it once was told as what could not be written, and nothing else.
#[test]
fn a_change_by_sql_that_cannot_be_told_is_said_to_be_saved_in_every_format() {
    let full = || std::fs::File::options().write(true).open("/dev/full");
    if full().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let make = ["sql", "db", "CREATE TABLE t (_key BIGINT)"];
    assert!(run(folder.path(), &make).status.success());
    let formats = ["table", "json", "ndjson", "csv", "parquet", "arrow"];
    for (key, format) in formats.iter().enumerate() {
        let insert = format!("INSERT INTO t (_key) VALUES ({key}) RETURNING _key");
        let long = "SELECT value, repeat('x', 200) AS text FROM generate_series(1, 2000)";
        for (query, is_change) in [(insert.as_str(), true), ("SELECT 1", false), (long, false)] {
            let arguments = ["sql", "db", query, "--format", format];
            let ended = duramen(folder.path(), &arguments).stdout(full().unwrap()).output();
            let ended = ended.unwrap();
            let said = text(&ended.stderr);
            assert_eq!(ended.status.code(), Some(15), "{format}: {query}: {said}");
            assert!(said.contains("cannot write to standard output"), "{format}: {said}");
            let is_told = said.contains("what was changed is saved all the same");
            assert_eq!(is_told, is_change, "{format}: {query}: {said}");
        }
    }
    let count = run(folder.path(), &["sql", "db", "SELECT count(*) FROM t", "--format", "csv"]);
    assert_eq!(text(&count.stdout), "count(*)\n6\n");
}

#[test]
fn interrupted_load_of_a_long_text_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = duramen(folder.path(), &["put", "db", "doc", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let rows = "{\"a\":1,\"b\":\"two\"},".repeat(1 << 16);
    input.write_all(b"[").unwrap();
    // The load has begun once more was taken than is read ahead.
    for _ in 0..3 {
        input.write_all(rows.as_bytes()).unwrap();
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    // It may have ended by now.
    let _ = input.write_all(rows.as_bytes()).and_then(|()| input.write_all(rows.as_bytes()));
    drop(input);
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.ends_with("duramen: interrupted: nothing was stored\n"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{said}");

    std::fs::write(folder.path().join("whole.json"), format!("[{}0]", rows.repeat(2))).unwrap();
    assert!(run(folder.path(), &["put", "db", "doc", "whole.json"]).status.success());
    let stored = run(folder.path(), &["query", "db", "doc", "$[131071].b"]);
    assert_eq!(text(&stored.stdout), "/131071/b  \"two\"\n");
    assert_eq!(run(folder.path(), &["check", "db"]).status.code(), Some(0));
}

/// Sends a signal to a process.
fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

/// Waits until something is so.
fn wait_until(child: &mut Child, mut is: impl FnMut() -> bool) {
    while !is() {
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// One in the middle of a revision of many values once was noted, and looked at behind that.
#[test]
fn ctrl_c_ends_a_dump_at_once_and_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("[{}1]", "{\"a\":1,\"b\":\"two\"},".repeat(400_000));
    std::fs::write(folder.path().join("long.json"), long).unwrap();
    assert!(run(folder.path(), &["put", "db", "doc", "long.json"]).status.success());
    std::fs::write(folder.path().join("dump"), "before").unwrap();
    let mut dump = duramen(folder.path(), &["dump", "db", "--out", "dump"]);
    let mut dump = dump.stderr(Stdio::piped()).spawn().unwrap();
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    wait_until(&mut dump, || names().iter().any(|name| name.starts_with(".duramen-")));
    signal(&dump, "-INT");
    let ended = dump.wait_with_output().unwrap();
    let said = "duramen: interrupted: dump is as it was\n";
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(130), said));
    assert_eq!(names(), ["db", "dump", "long.json"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("dump")).unwrap(), "before");
}

/// It once was asked for between revisions alone, of which the first may have millions of values.
#[test]
fn ctrl_c_ends_a_repair_at_once_and_leaves_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("[{}1]", "{\"a\":1,\"b\":\"two\"},".repeat(400_000));
    std::fs::write(folder.path().join("long.json"), long).unwrap();
    assert!(run(folder.path(), &["put", "db", "doc", "long.json"]).status.success());
    let mut repair = duramen(folder.path(), &["repair", "db", "--to", "new"]);
    let mut repair = repair.stderr(Stdio::piped()).spawn().unwrap();
    wait_until(&mut repair, || folder.path().join("new/journal").exists());
    signal(&repair, "-INT");
    let ended = repair.wait_with_output().unwrap();
    let said = "duramen: interrupted: there is no database in new\n";
    assert_eq!((ended.status.code(), text(&ended.stderr).as_str()), (Some(130), said));
    let left = std::fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// It once was seen only once something came.
#[test]
fn ctrl_c_ends_what_waits_for_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("one.json"), "1").unwrap();
    assert!(run(folder.path(), &["put", "db", "doc", "one.json"]).status.success());
    let start = |arguments: &[&str]| {
        let mut command = duramen(folder.path(), arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let end = |mut child: Child| {
        // Its standard input stays open.
        let input = child.stdin.take();
        std::thread::sleep(std::time::Duration::from_millis(300));
        signal(&child, "-INT");
        let ended = child.wait_with_output().unwrap();
        drop(input);
        assert_eq!(ended.status.code(), Some(130), "{}", text(&ended.stderr));
        text(&ended.stderr)
    };
    let said = end(start(&["put", "db", "doc", "-"]));
    assert_eq!(said, "duramen: interrupted\n");
    let said = end(start(&["series", "import", "db", "-", "--create"]));
    assert_eq!(said, "duramen: interrupted: nothing was written\n");
    let mut records = start(&["records", "import", "db", "c", "-", "--key", "id"]);
    records.stdin.as_mut().unwrap().write_all(b"{\"id\":1}\n{\"id\":2").unwrap();
    let said = end(records);
    assert!(said.ends_with("duramen: interrupted\n"), "{said}");
    let stored = run(folder.path(), &["records", "query", "db", "c", "--count"]);
    assert_eq!(text(&stored.stdout), "1\n");
    let said = end(start(&["--json", "sql", "db", "-"]));
    assert_eq!(said, "{\"error\":{\"kind\":\"Interrupted\",\"message\":\"interrupted\"}}\n");
}

/// It was once stopped when the terminal was closed.
#[test]
fn what_nohup_runs_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let command = command.args(["-c", "trap '' HUP; exec \"$0\" import db doc --ndjson -"]);
    let command = command.arg(env!("CARGO_BIN_EXE_duramen")).current_dir(folder.path());
    let mut import = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_until(&mut import, || folder.path().join("db/MANIFEST").exists());
    signal(&import, "-HUP");
    import.stdin.take().unwrap().write_all(b"1\n2\n").unwrap();
    assert_eq!(import.wait().unwrap().code(), Some(0));
    let stored = run(folder.path(), &["get", "db", "doc"]);
    assert_eq!(text(&stored.stdout), "2\n");
}
