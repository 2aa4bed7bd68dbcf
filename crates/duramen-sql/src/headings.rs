//! What columns of an answer are called that have no name: as they are written.
//!
//! The planner calls them as it reads them, `sum(t.a) + Int64(1)`.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::sql::sqlparser::ast::{Expr, Select, SelectItem, SetExpr, Statement};

/// The texts of the columns of an answer, none for those that have names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headings(Arc<[Option<String>]>);

impl Headings {
    /// Those of a query as it is written; nothing of one with a `*`.
    pub(crate) fn of(statement: &Statement) -> Self {
        let Some(select) = first_select(statement) else { return Self::default() };
        let text = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => Some((!has_name(expr)).then(|| expr.to_string())),
            SelectItem::ExprWithAlias { .. } => Some(None),
            _ => None,
        };
        let texts: Option<Vec<_>> = select.projection.iter().map(text).collect();
        Self(texts.unwrap_or_default().into())
    }

    /// The same without those of columns that were given names since.
    pub(crate) fn without_named(self, statement: &Statement) -> Self {
        let Some(select) = first_select(statement) else { return Self::default() };
        let items = self.0.iter().zip(&select.projection);
        let left = items.map(|(text, item)| {
            text.clone().filter(|_| matches!(item, SelectItem::UnnamedExpr(_)))
        });
        Self(left.collect())
    }

    /// A schema with these names, but where another column has one.
    pub(crate) fn name(&self, schema: SchemaRef) -> SchemaRef {
        let fields = schema.fields();
        if self.0.len() != fields.len() || self.0.iter().all(Option::is_none) {
            return schema;
        }
        let named = fields.iter().zip(self.0.iter()).filter(|(_, text)| text.is_none());
        let mut taken: HashSet<&str> = named.map(|(field, _)| field.name().as_str()).collect();
        let named = fields.iter().zip(self.0.iter()).map(|(field, text)| match text {
            Some(text) if taken.insert(text) => Field::clone(field).with_name(text),
            _ => Field::clone(field),
        });
        let named = named.collect::<Vec<_>>();
        Arc::new(Schema::new_with_metadata(named, schema.metadata().clone()))
    }
}

/// A batch with another schema, of which names alone are others.
pub(crate) fn named(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &rows)
}

/// The `SELECT` whose columns are those of a query.
fn first_select(statement: &Statement) -> Option<&Select> {
    let Statement::Query(query) = statement else { return None };
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            _ => return None,
        };
    }
}

/// Whether a column is called by the last name in it, or as a subquery that it is.
fn has_name(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_)
        | Expr::CompoundIdentifier(_)
        | Expr::CompoundFieldAccess { .. }
        | Expr::Subquery(_) => true,
        Expr::Cast { expr, .. } | Expr::Nested(expr) => has_name(expr),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn named(text: &str, planned: &[&str]) -> Vec<String> {
        let parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
        let field = |name: &&str| Field::new(*name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(planned.iter().map(field).collect::<Vec<_>>()));
        let headings = Headings::of(&parsed[0]).without_named(&parsed[0]);
        headings.name(schema).fields().iter().map(|field| field.name().clone()).collect()
    }

    /// They once were called as the planner reads them.
    #[test]
    fn columns_without_names_are_called_as_they_are_written() {
        for (text, planned, expected) in [
            ("SELECT 1, sum(t.a)", ["Int64(1)", "sum(t.a)"], ["1", "sum(t.a)"]),
            ("SELECT a + 1, t.b", ["t.a + Int64(1)", "b"], ["a + 1", "b"]),
            ("SELECT -a AS x, -a", ["x", "(- t.a)"], ["x", "-a"]),
            ("SELECT 1 AS \"1\", 1", ["1", "Int64(1)"], ["1", "Int64(1)"]),
            ("(SELECT 1, 2) UNION SELECT 3, 4", ["Int64(1)", "Int64(2)"], ["1", "2"]),
            ("SELECT *, 1", ["a", "Int64(1)"], ["a", "Int64(1)"]),
            ("SELECT CAST(a AS INT), (b)", ["a", "b"], ["a", "b"]),
        ] {
            assert_eq!(named(text, &planned), expected, "{text}");
        }
    }
}
