//! Rules over the tree of files and crates: 2, 17 and the direction of dependencies.

use std::collections::BTreeSet;

use super::{Files, Finding, sources};

const BANNED_MODULES: &[&str] =
    &["common", "util", "utils", "core", "manager", "helper", "helpers", "misc"];

/// The crates that ship, each with the ones of the workspace that it may name.
const SHIPPED: &[(&str, &[&str])] = &[
    ("duramen-derive", &[]),
    ("duramen-kernel", &[]),
    ("duramen-mapping", &[]),
    ("duramen", &["duramen-derive", "duramen-kernel", "duramen-mapping"]),
    ("duramen-sql", &["duramen"]),
    ("duramen-backends", &["duramen"]),
    ("duramen-server", &["duramen", "duramen-sql", "duramen-backends"]),
    ("duramen-cli", &["duramen", "duramen-sql", "duramen-backends", "duramen-server"]),
];
/// The crates that see all of the others and that only tests may see.
const UNSHIPPED: &[&str] = &["duramen-sim", "duramen-bench", "duramen-schedules"];

/// Whether only `duramen-sql` may name the crate `name`.
fn belongs_to_sql(name: &str) -> bool {
    name == "datafusion" || name == "arrow" || name.starts_with("arrow-")
}

/// Rule 2: a module is a noun in a file of its name.
pub(super) fn check_path(path: &str) -> Option<Finding> {
    let file = path.rsplit('/').next()?;
    let stem = file.strip_suffix(".rs")?;
    if stem == "mod" {
        return Some(Finding::new(path, 1, "rule 2", "name the file after its module"));
    }
    let what = format!("`{stem}` says nothing about what is in it");
    BANNED_MODULES.contains(&stem).then(|| Finding::new(path, 1, "rule 2", what))
}

/// Rule 17: a file that no module declares is never compiled, and its tests never run. A crate has
/// one integration binary, `tests/it`.
pub(super) fn check_modules(files: &Files) -> Vec<Finding> {
    sources(files).filter_map(|(path, _)| check_module(files, path)).collect()
}

fn check_module(files: &Files, path: &str) -> Option<Finding> {
    let (_, inside) = path.strip_prefix("crates/")?.split_once('/')?;
    let (folder, file) = path.rsplit_once('/')?;
    let stem = file.strip_suffix(".rs")?;
    if inside.starts_with("tests/") && !inside.starts_with("tests/it/") {
        let what = "a second integration binary: make it a module of tests/it/main.rs";
        return Some(Finding::new(path, 1, "rule 17", what));
    }
    let is_root = ["src/lib.rs", "src/main.rs", "tests/it/main.rs"].contains(&inside)
        || inside.starts_with("src/bin/");
    if is_root || !(inside.starts_with("src/") || inside.starts_with("tests/")) {
        return None;
    }
    let parents = [format!("{folder}.rs"), format!("{folder}/lib.rs"), format!("{folder}/main.rs")];
    let declared = parents
        .iter()
        .filter_map(|parent| files.get(parent))
        .any(|text| declared_modules(text).contains(stem));
    (!declared).then(|| Finding::new(path, 1, "rule 17", "no module declares this file"))
}

/// The modules that a file declares and that stand in files of their own.
fn declared_modules(text: &str) -> BTreeSet<String> {
    let items = syn::parse_file(text).map(|file| file.items).unwrap_or_default();
    let modules = items.into_iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

/// The direction of dependencies that `docs/design.md` fixes.
pub(super) fn check_directions(files: &Files) -> Vec<Finding> {
    let manifests = files.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some((path, name, text))
    });
    manifests.flat_map(|(path, name, text)| check_direction(path, name, text)).collect()
}

fn check_direction(path: &str, name: &str, text: &str) -> Vec<Finding> {
    let Some((_, may_name)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) else {
        let known = UNSHIPPED.contains(&name);
        let what = "this crate has no place in the direction of dependencies yet";
        return if known { Vec::new() } else { vec![Finding::new(path, 1, "direction", what)] };
    };
    let manifest: toml::Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(path, 1, "syntax", error.to_string())],
    };
    let mut findings = Vec::new();
    for dependency in dependencies(&manifest) {
        let line = text.lines().position(|line| line.starts_with(&dependency.key)).unwrap_or(0) + 1;
        if let Some(what) = objection(name, may_name, &dependency) {
            findings.push(Finding::new(path, line, "direction", what));
        }
    }
    findings
}

/// Why the crate `name` may not have `dependency`.
fn objection(name: &str, may_name: &[&str], dependency: &Dependency) -> Option<String> {
    let other = dependency.package.as_str();
    let is_ours = other == "duramen" || other.starts_with("duramen-");
    let for_tests = dependency.for_tests && UNSHIPPED.contains(&other);
    if is_ours && !may_name.contains(&other) && !for_tests {
        return Some(format!("`{name}` may not depend on `{other}`"));
    }
    if name == "duramen" && other == "tokio" {
        return Some("the engine is synchronous: it does not name tokio".to_owned());
    }
    (name != "duramen-sql" && belongs_to_sql(other))
        .then(|| format!("only `duramen-sql` names `{other}`"))
}

struct Dependency {
    key: String,
    package: String,
    for_tests: bool,
}

/// The dependencies of every kind and every platform.
fn dependencies(manifest: &toml::Table) -> Vec<Dependency> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let platforms = platforms.into_iter().flat_map(|table| table.values());
    let mut found = Vec::new();
    for part in platforms.filter_map(toml::Value::as_table).chain([manifest]) {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let table = part.get(kind).and_then(toml::Value::as_table);
            found.extend(table.into_iter().flatten().map(|(key, value)| Dependency {
                key: key.clone(),
                package: renamed(value).unwrap_or(key).to_owned(),
                for_tests: kind == "dev-dependencies",
            }));
        }
    }
    found
}

fn renamed(dependency: &toml::Value) -> Option<&str> {
    dependency.get("package")?.as_str()
}
