//! The house rules that a machine can check, over every source file of the workspace.
//!
//! Formatting, lints and the width of most lines belong to rustfmt and clippy. What is left is
//! here, as rules over one file ([`source`]), over the tree of files and crates ([`layout`]), and
//! over the pages that list what the code defines ([`pages`]).

mod layout;
mod pages;
mod source;
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The text of each file by its path from the workspace's root, with `/` between names.
type Files = BTreeMap<String, String>;

/// A place that breaks a rule.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.what)
    }
}

/// Every rule over every file.
fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources(files) {
        findings.extend(source::check(path, text));
        findings.extend(layout::check_path(path));
    }
    findings.extend(layout::check_modules(files));
    findings.extend(layout::check_directions(files));
    findings.extend(pages::check(files));
    findings
}

/// The files of Rust source.
fn sources(files: &Files) -> impl Iterator<Item = (&String, &String)> {
    files.iter().filter(|(path, _)| path.strip_suffix(".rs").is_some())
}

/// The workspace's files that a rule reads; what is built and what is hidden is not among them.
fn read(root: &Path, folder: &Path, files: &mut Files) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                read(root, &path, files)?;
            }
        } else if ["rs", "toml", "md"].iter().any(|kind| path.extension() == Some(kind.as_ref())) {
            let names = path.iter().skip(root.iter().count()).map(|name| name.to_string_lossy());
            files.insert(names.collect::<Vec<_>>().join("/"), std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[test]
fn workspace_keeps_the_house_rules() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Files::new();
    read(&root, &root, &mut files).unwrap();
    assert!(files.contains_key("crates/duramen/src/lib.rs"), "{root:?} is not the workspace");
    let findings: Vec<String> = check(&files).iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "{} findings\n{}", findings.len(), findings.join("\n"));
}
