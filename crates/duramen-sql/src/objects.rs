//! Objects that stand beside each other as rows of `VALUES` or elements of an array.
//!
//! Records need not have the same fields, and all values of a column do: a field that others have
//! is NULL, which is missing.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DictionaryField, Expr, Ident, Query, SetExpr, Value, VisitMut, VisitorMut,
};

/// Gives objects of one column the fields of all of them.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Objects);
}

struct Objects;

impl VisitorMut for Objects {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            let columns = values.rows.iter().map(|row| row.content.len()).min().unwrap_or(0);
            for column in 0..columns {
                unite(values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Array(array) = expr {
            unite(array.elem.iter_mut());
        }
        ControlFlow::Continue(())
    }
}

fn unite<'e>(values: impl Iterator<Item = &'e mut Expr>) {
    let (mut objects, mut elements) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            Expr::Dictionary(fields) => objects.push(fields),
            Expr::Array(array) => elements.extend(&mut array.elem),
            _ => {}
        }
    }
    if objects.len() > 1 {
        unite_objects(objects);
    }
    if !elements.is_empty() {
        unite(elements.into_iter());
    }
}

fn unite_objects(mut objects: Vec<&mut Vec<DictionaryField>>) {
    let mut names: Vec<Ident> = Vec::new();
    for field in objects.iter().flat_map(|object| object.iter()) {
        if !names.iter().any(|name| name.value == field.key.value) {
            names.push(field.key.clone());
        }
    }
    for object in &mut objects {
        // One that has a name twice is wrong, which the planner says.
        let mut fields = std::mem::take(*object);
        for name in &names {
            let at = fields.iter().position(|field| field.key.value == name.value);
            let none =
                || DictionaryField { key: name.clone(), value: Box::new(Expr::value(Value::Null)) };
            object.push(at.map_or_else(none, |at| fields.remove(at)));
        }
        object.append(&mut fields);
    }
    for at in 0..names.len() {
        let values = objects.iter_mut().filter_map(|object| object.get_mut(at));
        unite(values.map(|field| field.value.as_mut()));
    }
}
