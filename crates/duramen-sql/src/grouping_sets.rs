//! `ROLLUP` and `CUBE` of lists in brackets, which the planner knows as lists of sets only, and
//! those behind a list, `GROUP BY a, b WITH ROLLUP`, which it passes over.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    GroupByWithModifier, SelectItem, Value, ValueWithSpan,
};

/// Parts of a `CUBE` at most, which is of twice as many sets for each: the planner has as many.
const CUBE_PARTS_MAX: usize = 12;

/// The sets that a `ROLLUP` or `CUBE` stands for, if a part of it has not just one column, or if it
/// is one among sets.
pub(crate) fn of(grouping: &Expr) -> Option<Expr> {
    let sets = match grouping {
        Expr::Rollup(parts) | Expr::Cube(parts) if has_lists(parts) || are_repeated(parts) => {
            expanded(grouping)?
        }
        Expr::GroupingSets(sets) => {
            let inner: Vec<Option<Expr>> = sets.iter().map(|set| among_sets(set)).collect();
            let is_repeated = |of: &Vec<Expr>| set(vec![of]).len() < of.len();
            if inner.iter().all(Option::is_none) && !sets.iter().any(is_repeated) {
                return None;
            }
            let mut all = Vec::new();
            for (set, inner) in sets.iter().zip(inner) {
                match inner {
                    Some(inner) => all.extend(expanded(&inner)?),
                    None => all.push(self::set(vec![set])),
                }
            }
            all
        }
        _ => return None,
    };
    Some(Expr::GroupingSets(sets))
}

/// All sets of a `ROLLUP` or `CUBE`, if they are not too many.
fn expanded(grouping: &Expr) -> Option<Vec<Vec<Expr>>> {
    match grouping {
        Expr::Rollup(parts) => {
            let ends = (0..=parts.len()).rev();
            Some(ends.map(|end| set(parts[..end].iter().collect())).collect())
        }
        Expr::Cube(parts) if parts.len() <= CUBE_PARTS_MAX => {
            let all = (0..1_usize << parts.len()).rev();
            Some(all.map(|which| set(chosen(parts, which))).collect())
        }
        _ => None,
    }
}

/// A `ROLLUP` or `CUBE` that is one among sets, where the parser takes it for a function.
fn among_sets(set: &[Expr]) -> Option<Expr> {
    let [Expr::Function(Function { name, args: FunctionArguments::List(list), .. })] = set else {
        return None;
    };
    let grouping = match name.to_string().to_ascii_lowercase().as_str() {
        "rollup" => Expr::Rollup,
        "cube" => Expr::Cube,
        _ => return None,
    };
    let part = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(columns))) => Some(columns.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(vec![column.clone()]),
        _ => None,
    };
    list.args.iter().map(part).collect::<Option<Vec<_>>>().map(grouping)
}

/// Has the numbers of columns in sets be what is listed there, as they are in a list without sets.
/// What stands behind a `*` has no number yet.
pub(crate) fn by_number(group_by: &mut GroupByExpr, listed: &[SelectItem]) {
    let GroupByExpr::Expressions(columns, _) = group_by else { return };
    let listed = listed.iter().map_while(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let listed: Vec<&Expr> = listed.collect();
    for column in columns {
        let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = column else {
            continue;
        };
        for part in sets.iter_mut().flatten() {
            let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = part else {
                continue;
            };
            let place = number.parse().ok().and_then(|number: usize| number.checked_sub(1));
            if let Some(expr) = place.and_then(|place| listed.get(place)) {
                *part = (*expr).clone();
            }
        }
    }
}

/// Has a list of columns with `WITH ROLLUP` or `WITH CUBE` behind it grouped by sets of them, and
/// `()` by the set of none.
pub(crate) fn spell(group_by: &mut GroupByExpr) {
    let GroupByExpr::Expressions(columns, modifiers) = group_by else { return };
    for column in columns.iter_mut() {
        if matches!(column, Expr::Tuple(of_none) if of_none.is_empty()) {
            *column = Expr::GroupingSets(vec![Vec::new()]);
        }
    }
    let grouping = match modifiers.as_slice() {
        [GroupByWithModifier::Rollup] => Expr::Rollup,
        [GroupByWithModifier::Cube] => Expr::Cube,
        _ => return,
    };
    let parts = std::mem::take(columns).into_iter().map(|column| vec![column]);
    *columns = vec![grouping(parts.collect())];
    modifiers.clear();
}

fn has_lists(parts: &[Vec<Expr>]) -> bool {
    parts.iter().any(|part| part.len() != 1)
}

/// Whether a part is there twice, which the planner takes for two columns of one name.
fn are_repeated(parts: &[Vec<Expr>]) -> bool {
    (1..parts.len()).any(|at| parts[..at].contains(&parts[at]))
}

/// The parts whose bits are set, of which the first one has the highest.
fn chosen(parts: &[Vec<Expr>], which: usize) -> Vec<&Vec<Expr>> {
    let is_in = |at: &usize| which >> (parts.len() - 1 - at) & 1 == 1;
    (0..parts.len()).filter(is_in).map(|at| &parts[at]).collect()
}

/// The columns of some parts, each once.
fn set(parts: Vec<&Vec<Expr>>) -> Vec<Expr> {
    let mut columns: Vec<Expr> = Vec::new();
    for column in parts.into_iter().flatten() {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn lists_in_brackets_are_grouped_by_together() {
        for (text, sets) in [
            ("ROLLUP ((a, b), c)", Some("GROUPING SETS ((a, b, c), (a, b), ())")),
            ("CUBE ((a, b), c)", Some("GROUPING SETS ((a, b, c), (a, b), (c), ())")),
            ("ROLLUP ((a, b), (a, c))", Some("GROUPING SETS ((a, b, c), (a, b), ())")),
            ("ROLLUP (a, b)", None),
            ("ROLLUP (a, b, (a))", Some("GROUPING SETS ((a, b), (a, b), (a), ())")),
            ("GROUPING SETS ((a, b, a), ())", Some("GROUPING SETS ((a, b), ())")),
            ("CUBE (a, b)", None),
            ("a, b WITH ROLLUP", Some("ROLLUP (a, b)")),
            ("a WITH CUBE", Some("CUBE (a)")),
            ("()", Some("GROUPING SETS (())")),
            (
                "GROUPING SETS (ROLLUP ((a, b), c), (c))",
                Some("GROUPING SETS ((a, b, c), (a, b), (), (c))"),
            ),
            ("GROUPING SETS ((a), ())", None),
        ] {
            let text = format!("SELECT 1 FROM t GROUP BY {text}");
            let mut parsed = Parser::parse_sql(&GenericDialect {}, &text).unwrap();
            crate::spelling::rewrite(&mut parsed);
            let expected = sets.map_or(text, |sets| format!("SELECT 1 FROM t GROUP BY {sets}"));
            assert_eq!(parsed[0].to_string(), expected);
        }
    }
}
