//! `ARRAY(SELECT a FROM t ORDER BY b)`: the values that a query gives, in its order, as an array.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableFactor, Value, ValueWithSpan,
};

use crate::statement;

/// What the column of the values is called.
const VALUE: &str = "value";

/// What such an array is in words that the planner knows; none for what is no such.
pub(crate) fn of(array: &Expr) -> Option<Expr> {
    let Expr::Function(Function { name, args: FunctionArguments::Subquery(query), .. }) = array
    else {
        return None;
    };
    if !name.to_string().eq_ignore_ascii_case("array") {
        return None;
    }
    let mut query = query.clone();
    let (names, order) = ordered(&mut query);
    let order = if order.is_empty() { order } else { format!(" ORDER BY {order}") };
    let text = format!(
        "SELECT coalesce(array_agg({VALUE}{order}), make_array()) FROM (SELECT 1) AS \
         t({VALUE}{names})"
    );
    let mut made = statement::query(&text).ok()?;
    let SetExpr::Select(select) = made.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    *subquery = query;
    Some(Expr::Subquery(Box::new(made)))
}

/// The names of the columns that a query gets for its order, and the order by them.
fn ordered(query: &mut Query) -> (String, String) {
    let Some(order_by) = &query.order_by else { return Default::default() };
    let OrderByKind::Expressions(by) = &order_by.kind else { return Default::default() };
    let mut select = match query.body.as_mut() {
        SetExpr::Select(select) if select.distinct.is_none() => Some(select),
        _ => None,
    };
    let (mut names, mut order) = (Vec::new(), Vec::new());
    for (number, by) in by.iter().enumerate() {
        let select = select.as_mut().filter(|select| !is_value(&by.expr, select));
        let name = match select {
            Some(select) => {
                let name = format!("by_{number}");
                let (expr, alias) = (by.expr.clone(), Ident::new(&name));
                select.projection.push(SelectItem::ExprWithAlias { expr, alias });
                names.push(format!(", {name}"));
                name
            }
            None => VALUE.to_owned(),
        };
        let expr = Expr::Identifier(Ident::new(name));
        order.push(OrderByExpr { expr, ..by.clone() }.to_string());
    }
    (names.concat(), order.join(", "))
}

/// Whether an order is by what a query gives: by its number, or by its name.
fn is_value(by: &Expr, select: &Select) -> bool {
    match (by, select.projection.first()) {
        (Expr::Value(ValueWithSpan { value: Value::Number(..), .. }), _) => true,
        (Expr::Identifier(name), Some(SelectItem::ExprWithAlias { alias, .. })) => name == alias,
        (by, Some(SelectItem::UnnamedExpr(expr))) => by == expr,
        _ => false,
    }
}
