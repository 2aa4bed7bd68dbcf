//! The pages that list what the code defines list all of it, and as it is: rules 6 and 11.

use std::collections::BTreeMap;

use super::{Files, Finding};

const LIMITS: &str = "docs/limits.md";
const ERRORS: &str = "docs/errors.md";
/// The exit code of the first error kind; the others follow in their order.
const FIRST_EXIT_CODE: usize = 10;

pub(super) fn check(files: &Files) -> Vec<Finding> {
    let text = |path: &str| files.get(path).map_or("", String::as_str);
    let mut findings = check_limits(text("crates/duramen/src/limits.rs"), text(LIMITS));
    findings.extend(check_errors(text("crates/duramen/src/error.rs"), text(ERRORS)));
    findings
}

/// The cells of each row of the tables in `page` whose cell `column` holds a `name`, by that name.
fn rows(page: &str, column: usize) -> BTreeMap<&str, (usize, Vec<&str>)> {
    let rows = page.lines().enumerate().filter_map(|(index, line)| {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let name = cells.get(column)?.strip_prefix('`')?.strip_suffix('`')?;
        Some((name, (index + 1, cells)))
    });
    rows.collect()
}

fn check_limits(code: &str, page: &str) -> Vec<Finding> {
    let mut rows = rows(page, 0);
    let mut findings = Vec::new();
    for item in syn::parse_file(code).map(|file| file.items).unwrap_or_default() {
        let syn::Item::Const(limit) = item else { continue };
        let name = limit.ident.to_string();
        let Some((line, cells)) = rows.remove(name.as_str()) else {
            findings.push(Finding::new(LIMITS, 1, "rule 11", format!("`{name}` is missing")));
            continue;
        };
        let documented = cells[1].replace(',', "").parse().ok();
        if documented.is_none() || documented != value(&limit.expr) {
            let what = format!("`{name}` is {:?} in limits.rs", value(&limit.expr));
            findings.push(Finding::new(LIMITS, line, "rule 11", what));
        }
    }
    let stale = |(name, (line, _)): (&str, (usize, _))| {
        Finding::new(LIMITS, line, "rule 11", format!("limits.rs has no `{name}`"))
    };
    findings.extend(rows.into_iter().map(stale));
    findings
}

/// The value of a constant expression, as far as limits are written.
fn value(expr: &syn::Expr) -> Option<u128> {
    match expr {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(number), .. }) => {
            number.base10_parse().ok()
        }
        syn::Expr::Cast(cast) => value(&cast.expr),
        syn::Expr::Paren(inner) => value(&inner.expr),
        syn::Expr::Path(path) if path.path.segments.first()?.ident == "u32" => {
            Some(u128::from(u32::MAX))
        }
        syn::Expr::Binary(binary) => {
            let (left, right) = (value(&binary.left)?, value(&binary.right)?);
            match binary.op {
                syn::BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                syn::BinOp::Sub(_) => left.checked_sub(right),
                syn::BinOp::Mul(_) => left.checked_mul(right),
                _ => None,
            }
        }
        _ => None,
    }
}

fn check_errors(code: &str, page: &str) -> Vec<Finding> {
    let items = syn::parse_file(code).map(|file| file.items).unwrap_or_default();
    let kinds = items.into_iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == "ErrorKind" => Some(item.variants),
        _ => None,
    });
    let rows = rows(page, 1);
    let mut findings = Vec::new();
    for (index, kind) in kinds.into_iter().flatten().enumerate() {
        let (name, code) = (kind.ident.to_string(), (FIRST_EXIT_CODE + index).to_string());
        let row = rows.get(name.as_str());
        if row.is_none_or(|(_, cells)| cells[0] != code) {
            let line = row.map_or(1, |(line, _)| *line);
            let what = format!("`{name}` has the exit code {code}");
            findings.push(Finding::new(ERRORS, line, "rule 6", what));
        }
    }
    findings
}
