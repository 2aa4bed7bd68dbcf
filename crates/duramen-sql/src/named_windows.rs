//! Windows that have a name.
//!
//! `DataFusion` knows their names in a list of columns, and there only where nothing is added to
//! one: `OVER (w ORDER BY a)` would have no partitions, and behind `QUALIFY` and `ORDER BY` an
//! aggregate would be none of a window (55). So each is written where it is used.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitMut,
    VisitorMut, WindowSpec, WindowType,
};
use duramen::{Error, ErrorKind, Result};

/// Puts windows in the places of their names.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) -> Result<()> {
    match parsed.visit(&mut Selects) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Selects;

impl VisitorMut for Selects {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return ControlFlow::Continue(());
        };
        let mut names = Names { defined: &select.named_window, queries: 0 };
        query.order_by.visit(&mut names)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let mut names = Names { defined: &select.named_window, queries: 0 };
        select.projection.visit(&mut names)?;
        select.qualify.visit(&mut names)
    }
}

/// The windows that a SELECT defines, which its subqueries do not see.
struct Names<'s> {
    defined: &'s [NamedWindowDefinition],
    /// In how many subqueries it is.
    queries: usize,
}

impl VisitorMut for Names<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let over = match expr {
            Expr::Function(function) if self.queries == 0 => &mut function.over,
            _ => return ControlFlow::Continue(()),
        };
        let spec = match over {
            Some(WindowType::NamedWindow(name)) => named(name, self.defined),
            Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some() => {
                whole(spec, self.defined)
            }
            _ => return ControlFlow::Continue(()),
        };
        match spec {
            Ok(spec) => {
                *over = Some(WindowType::WindowSpec(spec));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// The window of a name, which may be made of those defined before it.
fn named(name: &Ident, defined: &[NamedWindowDefinition]) -> Result<WindowSpec> {
    let found = defined.iter().position(|NamedWindowDefinition(known, _)| known == name);
    let Some(at) = found else {
        return Err(wrong(format!("there is no window {name} here: WINDOW {name} AS (..)")));
    };
    let (before, NamedWindowDefinition(_, window)) = (&defined[..at], &defined[at]);
    match window {
        NamedWindowExpr::NamedWindow(other) => named(other, before),
        NamedWindowExpr::WindowSpec(spec) => whole(spec, before),
    }
}

/// A window with all that the one has which it begins with.
fn whole(spec: &WindowSpec, defined: &[NamedWindowDefinition]) -> Result<WindowSpec> {
    let Some(name) = &spec.window_name else { return Ok(spec.clone()) };
    let begun = named(name, defined)?;
    if !spec.partition_by.is_empty() {
        return Err(wrong(format!("the window {name} has its partitions already")));
    }
    if !spec.order_by.is_empty() && !begun.order_by.is_empty() {
        return Err(wrong(format!("the window {name} has an order already")));
    }
    if begun.window_frame.is_some() {
        return Err(wrong(format!(
            "the window {name} has a frame, so that nothing is added to it"
        )));
    }
    let order_by = if spec.order_by.is_empty() { begun.order_by } else { spec.order_by.clone() };
    let window_frame = spec.window_frame.clone();
    Ok(WindowSpec { window_name: None, partition_by: begun.partition_by, order_by, window_frame })
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    fn rewritten(text: &str) -> Result<String, String> {
        let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
        super::rewrite(&mut parsed).map_err(|error| error.message().to_owned())?;
        Ok(parsed[0].to_string())
    }

    #[test]
    fn windows_stand_where_they_are_used() {
        for (text, window) in [
            ("SELECT sum(a) OVER w FROM t", "(PARTITION BY b)"),
            ("SELECT sum(a) OVER (w ORDER BY a) FROM t", "(PARTITION BY b ORDER BY a)"),
            ("SELECT 1 + sum(a) OVER v FROM t", "(PARTITION BY b ORDER BY c)"),
            (
                "SELECT sum(a) OVER (v ROWS 2 PRECEDING) FROM t",
                "(PARTITION BY b ORDER BY c ROWS 2 PRECEDING)",
            ),
            ("SELECT sum(a) OVER x FROM t", "(PARTITION BY b ORDER BY c)"),
        ] {
            let windows = "WINDOW w AS (PARTITION BY b), v AS (w ORDER BY c), x AS v";
            let made = rewritten(&format!("{text} {windows}")).unwrap();
            assert!(made.contains(&format!("sum(a) OVER {window} FROM t")), "{made}");
        }
    }

    #[test]
    fn windows_are_known_behind_qualify_and_in_an_order_and_not_in_subqueries() {
        let made = rewritten(
            "SELECT a, (SELECT sum(b) OVER w FROM u WINDOW w AS (ORDER BY b)) FROM t WINDOW w AS \
             (ORDER BY a) QUALIFY sum(a) OVER w > 1 ORDER BY sum(a) OVER w",
        );
        let made = made.unwrap();
        assert_eq!(made.matches("sum(a) OVER (ORDER BY a)").count(), 2, "{made}");
        assert_eq!(made.matches("sum(b) OVER (ORDER BY b)").count(), 1, "{made}");
        for (text, why) in [
            ("SELECT sum(a) OVER w FROM t", "there is no window w here"),
            ("SELECT sum(a) OVER (w PARTITION BY b) FROM t WINDOW w AS ()", "partitions already"),
            ("SELECT sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (ORDER BY a)", "an order"),
            ("SELECT sum(a) OVER (w) FROM t WINDOW w AS (ROWS 1 PRECEDING)", "a frame"),
            ("SELECT 1 FROM t ORDER BY sum(a) OVER w", "there is no window w here"),
        ] {
            let error = rewritten(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
