//! Functions that stand where tables stand: what was, what changed, arrays of documents and series.

use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use duramen::{Error, ErrorKind};

use crate::catalog::Tables;
use crate::failure::external;
use crate::json_function;
use crate::system_time::{Period, TableName};
use crate::words::Role;

pub(crate) mod points;
pub(crate) mod rows;
mod told;

/// Which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Revisions,
    History,
    Diff,
    Changes,
    JsonTable,
    Series,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Revisions, Self::History, Self::Diff, Self::Changes, Self::JsonTable, Self::Series];

    fn name(self) -> &'static str {
        match self {
            Self::Revisions => "revisions",
            Self::History => "history",
            Self::Diff => "diff",
            Self::Changes => "changes",
            Self::JsonTable => "json_table",
            Self::Series => "series",
        }
    }

    /// How it is written.
    fn usage(self) -> &'static str {
        match self {
            Self::Revisions => "revisions('inventory')",
            Self::History => "history('inventory', '/data/0/stock')",
            Self::Diff => "diff('inventory', 3, 7)",
            Self::Changes => "changes('inventory', 3)",
            Self::JsonTable => "json_table('inventory', '$.data[*]')",
            Self::Series => "series('boiler/*') or series('**', 'site=north')",
        }
    }

    /// The names of its arguments; what ends with `...` may be there any number of times.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Revisions => &["tree"],
            Self::History => &["tree", "path"],
            Self::Diff => &["tree", "a", "b"],
            Self::Changes => &["tree", "from"],
            Self::JsonTable => &["document", "path"],
            Self::Series => &["pattern", "label..."],
        }
    }

    /// What it gives a row for.
    fn description(self) -> &'static str {
        match self {
            Self::Revisions => "Each revision of a document or collection, newest first.",
            Self::History => "Each value that a place had, newest first.",
            Self::Diff => "Each difference of two moments: revisions, times or tags.",
            Self::Changes => "Each change in the revisions after a moment, oldest first.",
            Self::JsonTable => "Each element of the arrays at a path of a document.",
            Self::Series => "Each point of the series of a pattern and labels, by tag and time.",
        }
    }
}

/// What is told of a function.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) parameters: &'static [&'static str],
    pub(crate) description: &'static str,
}

/// What is told of the functions that stand where tables stand.
pub(crate) fn described() -> impl Iterator<Item = Described> + Send {
    Kind::ALL.into_iter().map(|kind| Described {
        name: kind.name(),
        usage: kind.usage(),
        parameters: kind.parameters(),
        description: kind.description(),
    })
}

/// A function over the tables of one query.
#[derive(Debug)]
struct Function {
    kind: Kind,
    tables: Arc<Tables>,
}

/// Makes the functions known to a query.
pub(crate) fn register(context: &SessionContext, tables: &Arc<Tables>) {
    for kind in Kind::ALL {
        let function = Function { kind, tables: Arc::clone(tables) };
        context.register_udtf(kind.name(), Arc::new(function));
    }
}

/// Whether there is a function of a name.
pub(crate) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The functions of `DataFusion` that stand where tables stand.
pub(crate) fn of_others() -> impl Iterator<Item = Arc<TableFunction>> {
    SessionStateDefaults::default_table_functions().into_iter()
}

/// Whether one of them has a name.
pub(crate) fn is_of_others(name: &str) -> bool {
    of_others().any(|function| function.name() == name)
}

/// Lets a name be one of a function where the parser knows a word of its own.
pub(crate) fn rename(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::Word(word) = &mut token.token
            && word.quote_style.is_none()
            && word.value.eq_ignore_ascii_case(Kind::JsonTable.name())
        {
            Kind::JsonTable.name().clone_into(&mut word.value);
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// The names of functions that are ours, for those who complete names: those that stand where
/// tables stand, and those of JSON text.
///
/// ```
/// assert!(duramen_sql::functions().any(|name| name == "history"));
/// ```
pub fn functions() -> impl Iterator<Item = &'static str> {
    names().chain(json_function::names())
}

/// How the functions are called that stand where tables stand.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    Kind::ALL.iter().map(|kind| kind.name())
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let texts: Option<Vec<_>> = args.exprs().iter().map(literal).collect();
        let texts = texts.ok_or_else(|| external(self.refused()))?;
        self.table(&texts).map_err(external)
    }
}

impl Function {
    fn table(&self, texts: &[String]) -> duramen::Result<Arc<dyn TableProvider>> {
        // The clause behind a call comes as its last argument, a name that is empty.
        let clause = texts.split_last().and_then(|(last, before)| {
            let TableName { name, period } = TableName::of(last);
            Some((before, last.as_str(), period.filter(|_| name.is_empty())?))
        });
        let (texts, clause, period) = match clause {
            Some((before, clause, period)) => (before, clause, Some(period)),
            None => (texts, "", None),
        };
        let of_tree = |name: &str| self.tables.tree(name);
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        match (self.kind, texts.as_slice()) {
            (Kind::JsonTable, [document, path]) => {
                let text = format!("{path}{clause}");
                self.tables.array(document, &text).map(|table| table as _)
            }
            (Kind::Series, [glob, labels @ ..]) => {
                let found = self.tables.series(&points::filter(glob, labels)?, as_of(period)?)?;
                Ok(Arc::new(found))
            }
            (Kind::History, [tree, path]) => told::history(of_tree(tree)?, path, as_of(period)?),
            (_, _) if period.is_some() => Err(self.no_clause()),
            (Kind::Revisions, [tree]) => told::revisions(of_tree(tree)?),
            (Kind::Diff, [tree, before, after]) => told::diff(of_tree(tree)?, before, after),
            (Kind::Changes, [tree, from]) => told::changes(of_tree(tree)?, from),
            _ => Err(self.refused()),
        }
    }

    fn refused(&self) -> Error {
        let name = self.kind.name();
        let message = format!(
            "{name}(...){} is called with other arguments: give texts and numbers as they are, as \
             in {}",
            self.tables.places.of(name, Role::Function),
            self.kind.usage()
        );
        Error::new(ErrorKind::Invalid, message)
    }

    fn no_clause(&self) -> Error {
        let name = self.kind.name();
        let message = format!(
            "{name}(...){} has its moments as arguments, as in {}: leave FOR SYSTEM_TIME out",
            self.tables.places.of(name, Role::Function),
            self.kind.usage()
        );
        Error::new(ErrorKind::Invalid, message)
    }
}

/// The one moment of a clause.
fn as_of(period: Option<Period<'_>>) -> duramen::Result<Option<&str>> {
    match period {
        None => Ok(None),
        Some(Period::AsOf(moment)) => Ok(Some(moment)),
        Some(_) => {
            let message = "only collections have versions in a period: ask for this AS OF a moment";
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

fn literal(argument: &Expr) -> Option<String> {
    match argument {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some(number.to_string()),
        Expr::Literal(value, _) => value.try_as_str().flatten().map(ToOwned::to_owned),
        _ => None,
    }
}
