//! Each rule can fail, and what looks like a breach but is none passes.

use super::{Files, Finding, check, layout, source};

fn rules(findings: &[Finding]) -> Vec<(usize, &'static str)> {
    findings.iter().map(|finding| (finding.line, finding.rule)).collect()
}

/// What the source `text` of an engine file breaks.
fn broken_by(text: &str) -> Vec<(usize, &'static str)> {
    rules(&source::check("crates/duramen/src/file.rs", text))
}

fn broken_at(path: &str, text: &str) -> Vec<(usize, &'static str)> {
    rules(&source::check(path, text))
}

fn workspace(files: &[(&str, &str)]) -> Vec<(usize, &'static str)> {
    let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    rules(&check(&files.iter().map(own).collect::<Files>()))
}

#[test]
fn clean_source_has_no_findings() {
    let text = "//! Purpose, see https://example.org//x.\n\n// It holds a{b}; `x`, that is why.\n\
                fn f(a: u8) -> u8 {\n    if a > 1 { a } else { 1 } // one at least\n}\n";
    assert_eq!(broken_by(text), []);
}

#[test]
fn source_that_does_not_parse_is_found() {
    assert_eq!(broken_by("fn f( {}"), [(1, "syntax")]);
    assert_eq!(broken_by("fn fn() {}"), [(1, "syntax")]);
}

#[test]
fn long_lib_is_found() {
    assert_eq!(broken_at("crates/duramen/src/lib.rs", &"\n".repeat(150)), []);
    assert_eq!(broken_at("crates/duramen/src/lib.rs", &"\n".repeat(151)), [(151, "rule 1")]);
    assert_eq!(broken_by(&"\n".repeat(151)), []);
}

#[test]
fn main_of_two_statements_is_found() {
    let text = "fn main() {\n    a();\n    b();\n}\n";
    assert_eq!(broken_at("crates/duramen-cli/src/main.rs", text), [(1, "rule 1")]);
    assert_eq!(broken_at("crates/duramen-cli/src/main.rs", "fn main() { a() }"), []);
    assert_eq!(broken_by(text), []);
}

#[test]
fn module_names_that_say_nothing_are_found() {
    for path in ["src/tree/mod.rs", "src/util.rs", "src/tree/helpers.rs"] {
        assert_eq!(layout::check_path(path).map(|finding| finding.rule), Some("rule 2"), "{path}");
    }
    assert_eq!(layout::check_path("src/journal.rs"), None);
}

#[test]
fn long_function_is_found() {
    let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    a();\n".repeat(lines - 2));
    assert_eq!(broken_by(&function(70)), []);
    assert_eq!(broken_by(&function(71)), [(1, "rule 9")]);
    assert_eq!(broken_by(&format!("impl A {{\n{}}}", function(71))), [(2, "rule 9")]);
    assert_eq!(broken_by(&format!("trait A {{\n{}}}", function(71))), [(2, "rule 9")]);
}

#[test]
fn six_arguments_are_found() {
    assert_eq!(broken_by("fn f(a: A, b: A, c: A, d: A, e: A) {}"), []);
    let six = "fn f(a: A, b: A, c: A, d: A, e: A, f: A) {}";
    assert_eq!(broken_by(six), [(1, "rule 9")]);
    assert_eq!(broken_by(&format!("impl S {{ {six} }}")), [(1, "rule 9")]);
    // The trait's own definition is where this is decided.
    assert_eq!(broken_by(&format!("impl T for S {{ {six} }}")), []);
}

#[test]
fn five_levels_are_found() {
    let inside = |body: &str| {
        format!(
            "fn f() {{ for a in b {{ while c {{ match d {{ _ => {{ loop {{\n{body}}} }} }} }} }} }}"
        )
    };
    assert_eq!(broken_by(&inside("e();")), []);
    assert_eq!(broken_by(&inside("if e { f(); }")), [(2, "rule 9")]);
    assert_eq!(broken_by(&inside("a.map(|b| { f(b) });")), [(2, "rule 9")]);
    assert_eq!(broken_by(&inside("fn inner() { if e { f(); } }")), []);
}

#[test]
fn else_if_stays_on_its_level() {
    let chain = "if a { b() } else if c { d() } else if e { f() } else if g { h() } else { i() }";
    assert_eq!(broken_by(&format!("fn f() {{ loop {{ loop {{ loop {{\n{chain} }} }} }} }}")), []);
}

#[test]
fn long_file_is_found() {
    assert_eq!(broken_by(&"\n".repeat(800)), []);
    assert_eq!(broken_by(&"\n".repeat(801)), [(801, "rule 10")]);
    assert_eq!(broken_at("crates/duramen/src/tree/tests.rs", &"\n".repeat(801)), []);
    let tests = "#[cfg(test)]\nmod tests {\n}\n";
    assert_eq!(broken_by(&format!("{}{tests}", "\n".repeat(800))), []);
}

#[test]
fn wide_and_foreign_lines_are_found() {
    assert_eq!(broken_by(&format!("// {}", "a".repeat(97))), []);
    assert_eq!(broken_by(&format!("\n// {}", "a".repeat(98))), [(2, "rule 10")]);
    assert_eq!(broken_by("// caf\u{e9}"), [(1, "rule 10")]);
}

#[test]
fn open_end_is_found() {
    for word in ["TODO", "FIXME", "XXX"] {
        assert_eq!(broken_by(&format!("\n// {word}: faster")), [(2, "rule 16")], "{word}");
        assert_eq!(broken_by(&format!("fn f() {{}} // {word}")), [(1, "rule 16")], "{word}");
    }
    assert_eq!(broken_by("// TODO: goes\n// when format 2 does."), []);
}

#[test]
fn banner_is_found() {
    assert_eq!(broken_by("// ----------"), [(1, "rule 16")]);
    assert_eq!(broken_by("// ==== types ===="), [(1, "rule 16")]);
    assert_eq!(broken_by("////////////"), [(1, "rule 16")]);
    assert_eq!(broken_by("//! | a | b |\n//! | --- | --- |"), []);
}

#[test]
fn code_in_comments_is_found() {
    assert_eq!(broken_by("\n// let a = b(c);"), [(2, "rule 16")]);
    assert_eq!(broken_by("// Why.\n// return Err(error);"), [(1, "rule 16")]);
    assert_eq!(broken_by("// if a {\n//     b()\n// }"), [(1, "rule 16")]);
    assert_eq!(broken_by("// fn f() {}"), [(1, "rule 16")]);
    assert_eq!(broken_by("/// let a = b(c);\nfn f() {}"), []);
    assert_eq!(broken_by("// This costs O(n);\n// that does not; both are f(x)."), []);
}

#[test]
fn comments_in_literals_are_text() {
    assert_eq!(broken_by("const A: &str = \"\n// TODO\n// -----\n\";"), []);
}

#[test]
fn long_inline_tests_are_found() {
    let tests =
        |lines: usize| format!("\n#[cfg(test)]\nmod tests {{\n{}}}", "\n".repeat(lines - 3));
    assert_eq!(broken_by(&tests(100)), []);
    assert_eq!(broken_by(&tests(101)), [(2, "rule 17")]);
}

#[test]
fn file_that_no_module_declares_is_found() {
    let declared = [
        ("crates/duramen/src/lib.rs", "mod a;\nmod c;"),
        ("crates/duramen/src/a.rs", "mod b;"),
        ("crates/duramen/src/a/b.rs", ""),
        ("crates/duramen/src/c.rs", ""),
        ("crates/duramen/tests/it/main.rs", "mod d;"),
        ("crates/duramen/tests/it/d.rs", ""),
    ];
    assert_eq!(workspace(&declared), []);
    for path in ["src/a/c.rs", "src/forgotten.rs", "tests/it/forgotten.rs", "tests/second.rs"] {
        let path = format!("crates/duramen/{path}");
        let found = workspace(&[&declared[..], &[(&path, "")]].concat());
        assert_eq!(found, [(1, "rule 17")], "{path}");
    }
}

#[test]
fn tests_that_cannot_fail_are_found() {
    let test = |body: &str| format!("#[test]\nfn t() {{\n    {body}\n}}");
    assert_eq!(broken_by(&test("matches!(a, B);")), [(3, "rule 18")]);
    assert_eq!(broken_by(&test("assert!(matches!(a, B));")), []);
    assert_eq!(broken_by(&format!("#[ignore]\n{}", test("a();"))), [(1, "rule 18")]);
    assert_eq!(broken_by(&format!("#[ignore = \"slow\"]\n{}", test("a();"))), []);
}

#[test]
fn dependencies_against_the_direction_are_found() {
    let found =
        |name: &str, manifest: &str| workspace(&[(&format!("crates/{name}/Cargo.toml"), manifest)]);
    let breach = [(2, "direction")];
    assert_eq!(found("duramen-cli", "[dependencies]\nduramen.workspace = true"), []);
    assert_eq!(found("duramen", "[dependencies]\nduramen-cli.workspace = true"), breach);
    assert_eq!(found("duramen-cli", "[dependencies]\nduramen-sim.workspace = true"), breach);
    assert_eq!(found("duramen", "[dev-dependencies]\nduramen-sim.workspace = true"), []);
    assert_eq!(found("duramen", "[dev-dependencies]\nduramen-cli.workspace = true"), breach);
    assert_eq!(found("duramen", "[dependencies]\ntokio = \"1\""), breach);
    assert_eq!(found("duramen-cli", "[dependencies]\ntokio = \"1\""), []);
    assert_eq!(found("duramen", "[dependencies]\na = { package = \"arrow-array\" }"), breach);
    assert_eq!(
        found("duramen-cli", "[target.'cfg(unix)'.dependencies]\ndatafusion = \"1\""),
        breach
    );
    assert_eq!(found("duramen-sim", "[dependencies]\nduramen-cli.workspace = true"), []);
    assert_eq!(found("duramen-new", "[dependencies]"), [(1, "direction")]);
}

#[test]
fn limit_that_its_page_does_not_tell_is_found() {
    let limits = |page: &str| {
        let code = "pub const A_MAX: u64 = u32::MAX as u64 - 1;\npub const B_MAX: u64 = 1 << 12;";
        workspace(&[
            ("crates/duramen/src/lib.rs", "mod limits;"),
            ("crates/duramen/src/limits.rs", code),
            ("docs/limits.md", page),
        ])
    };
    let (a, b) = ("| `A_MAX` | 4,294,967,294 |", "| `B_MAX` | 4,096 |");
    assert_eq!(limits(&format!("{a}\n{b}")), []);
    assert_eq!(limits(a), [(1, "rule 11")]);
    assert_eq!(limits(&format!("{a}\n| `B_MAX` | 4,095 |")), [(2, "rule 11")]);
    assert_eq!(limits(&format!("{a}\n{b}\n| `C_MAX` | 1 |")), [(3, "rule 11")]);
}

#[test]
fn error_kind_with_another_exit_code_is_found() {
    let errors = |page: &str| {
        workspace(&[
            ("crates/duramen/src/lib.rs", "mod error;"),
            ("crates/duramen/src/error.rs", "pub enum ErrorKind { NotFound, Conflict }"),
            ("docs/errors.md", page),
        ])
    };
    assert_eq!(errors("| 10 | `NotFound` |\n| 11 | `Conflict` |"), []);
    assert_eq!(errors("| 10 | `NotFound` |\n| 12 | `Conflict` |"), [(2, "rule 6")]);
    assert_eq!(errors("| 10 | `NotFound` |"), [(1, "rule 6")]);
}
