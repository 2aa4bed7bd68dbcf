//! What revisions, times and tags in a query mean.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray as _, StringArray};
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::arrow::temporal_conversions::as_datetime;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DataFusionResult, ScalarValue};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, ExprSchemable as _, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::ast::Expr as SqlExpr;
use duramen::{Document, Error, ErrorKind, Micros, Moment, Result, Revision, Snapshot};

use crate::failure;
use crate::rewriting::{each_expression, is_comparison};
use crate::system_time::Period;
use crate::{spelling, zones};

/// The moment that a text means; a tag is the revision it names.
pub(crate) fn of(document: &Document, text: &str) -> Result<Moment> {
    match text.parse() {
        Ok(moment) => Ok(moment),
        Err(_) => document.tagged(text).map(Moment::Revision).map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                return error;
            }
            let message = format!(
                "{text:?} is neither a revision, such as 7, nor a time, such as 2024-05-01, nor a \
                 tag of {:?}",
                document.name()
            );
            Error::new(ErrorKind::NotFound, message)
        }),
    }
}

/// The moment that a text means for series: a time, or as a revision the number of a commit.
pub(crate) fn of_series(text: &str) -> Result<Moment> {
    let number = text.strip_prefix('c').filter(|rest| !rest.is_empty()).unwrap_or(text);
    number.parse().map_err(|_| {
        let message = format!(
            "{text:?} is neither a time, such as 2024-05-01, nor a commit, such as c7: series have \
             no other revisions"
        );
        Error::new(ErrorKind::Invalid, message)
    })
}

/// Computes times that no row has a part in.
static TIMES: LazyLock<SessionContext> = LazyLock::new(|| {
    let mut config = SessionConfig::new();
    config.options_mut().execution.time_zone = Some(zones::UTC.to_owned());
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .with_type_planner(Arc::new(zones::Types))
        .build();
    let context = SessionContext::new_with_state(state);
    zones::register(&context);
    context
});

/// The time that an expression comes to now, as text; none if it is none, or NULL. What depends on
/// rows is an error.
pub(crate) fn computed(mut parsed: SqlExpr) -> DataFusionResult<Option<String>> {
    spelling::rewrite(&mut parsed);
    let (state, schema) = (TIMES.state(), DFSchema::empty());
    let time = state.create_logical_expr(&parsed.to_string(), &schema)?;
    if !matches!(time.get_type(&schema)?, DataType::Timestamp(..) | DataType::Date32) {
        return Ok(None);
    }
    let instant = Expr::Cast(Cast::new(Box::new(time), zones::micros(true)));
    let begun = state.execution_props().query_execution_start_time;
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(begun);
    let simplifier = ExprSimplifier::new(context.build());
    let Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), _), _) =
        simplifier.simplify(simplifier.coerce(instant, &schema)?)?
    else {
        return Ok(None);
    };
    Ok(Some(Micros(micros).to_string()))
}

/// A column of times as text, if some of them are beyond the calendar: these are the microseconds
/// since 1970. None if there are no such times.
pub(crate) fn with_numbers(array: &ArrayRef) -> Result<Option<ArrayRef>> {
    let Some(times) = array.as_primitive_opt::<TimestampMicrosecondType>() else { return Ok(None) };
    let is_beyond = |micros: i64| as_datetime::<TimestampMicrosecondType>(micros).is_none();
    if !times.iter().flatten().any(is_beyond) {
        return Ok(None);
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options).map_err(failure::arrow)?;
    let text = |(row, micros): (usize, Option<i64>)| {
        let micros = micros?;
        let number = is_beyond(micros).then(|| micros.to_string());
        Some(number.unwrap_or_else(|| formatter.value(row).to_string()))
    };
    Ok(Some(Arc::new(times.iter().enumerate().map(text).collect::<StringArray>())))
}

/// A document as of a moment.
pub(crate) fn snapshot(document: &Document, text: &str) -> Result<Snapshot> {
    match of(document, text)? {
        Moment::Revision(revision) => document.at(revision),
        Moment::Time(time) => document.at_time(time),
    }
}

/// The revisions of which one stood in a period.
pub(crate) fn revisions(
    document: &Document,
    period: Period<'_>,
    head: Revision,
) -> Result<RangeInclusive<Revision>> {
    let begin = document.first_revision()?;
    let (from, to) = match period {
        Period::All => return Ok(begin..=head.max(begin)),
        Period::AsOf(at) => (at, at),
        Period::FromTo(from, to) | Period::Between(from, to) => (from, to),
    };
    let is_open = matches!(period, Period::FromTo(..));
    let first = match of(document, from)? {
        Moment::Revision(revision) => revision,
        // A period may begin before the history does.
        Moment::Time(time) => document.revision_at(time).map_or(begin, |found| found.max(begin)),
    };
    let last = match of(document, to)? {
        Moment::Revision(revision) => {
            let last = Revision(revision.0.saturating_sub(is_open.into()));
            if is_open && first <= head && last > head {
                // Told by the revision that was written, and not by the one before it.
                document.at(revision)?;
            }
            last
        }
        Moment::Time(time) => {
            let time = Micros(time.0.saturating_sub(is_open.into()));
            document.revision_at(time)?.min(head)
        }
    };
    if first > last {
        let end = if is_open { "FROM ... TO ends before its second moment" } else { "BETWEEN" };
        let message = format!(
            "the period from {from} to {to} has no revision in it: give an earlier and a later \
             moment ({end})"
        );
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(first..=last)
}

/// Lets the texts of times in a query have no seconds, as moments may, and be of any year.
pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Times));
}

/// Gives seconds to texts that become times, takes integers for seconds, and compares times as the
/// microseconds that they are: nanoseconds reach from the year 1677 to 2262 only.
#[derive(Debug)]
struct Times;

impl AnalyzerRule for Times {
    fn name(&self) -> &'static str {
        "times_of_all_years"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> DataFusionResult<LogicalPlan> {
        each_expression(plan, |expr, schema| {
            let expr = expr.transform_up(|expr| Ok(timed(expr, schema)))?;
            expr.transform_data(|expr| expr.transform_up(|expr| Ok(compared(expr, schema))))
        })
    }
}

fn timed(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Cast(Cast { expr: of, field }) = expr else { return Transformed::no(expr) };
    let cast = |of| Transformed::yes(Expr::Cast(Cast { expr: Box::new(of), field: field.clone() }));
    match (of.as_ref(), field.data_type()) {
        (Expr::Literal(ScalarValue::Utf8(Some(text)), metadata), DataType::Timestamp(..)) => {
            if let Some(text) = with_seconds(text) {
                return cast(Expr::Literal(ScalarValue::Utf8(Some(text)), metadata.clone()));
            }
        }
        // As the planner has it where a time has nanoseconds.
        (number, DataType::Timestamp(TimeUnit::Microsecond, zone))
            if matches!(number.get_type(schema), Ok(DataType::Int64)) =>
        {
            let seconds = DataType::Timestamp(TimeUnit::Second, zone.clone());
            return cast(Expr::Cast(Cast::new(of, seconds)));
        }
        _ => {}
    }
    Transformed::no(Expr::Cast(Cast { expr: of, field }))
}

/// A comparison of times in microseconds, if all that is compared fits into these.
fn compared(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let mut sides: Vec<&mut Expr> = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            vec![left, right]
        }
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => {
            std::iter::once(&mut **expr).chain(list).collect()
        }
        _ => return Transformed::no(expr),
    };
    let shorter: Option<Vec<Expr>> = sides.iter().map(|side| in_micros(side, schema)).collect();
    let Some(shorter) = shorter else { return Transformed::no(expr) };
    sides.iter_mut().zip(shorter).for_each(|(side, shorter)| **side = shorter);
    Transformed::yes(expr)
}

/// What becomes a time of nanoseconds as one of microseconds, if nothing is lost by that.
fn in_micros(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::Cast(Cast { expr: of, field }) = expr else { return None };
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = field.data_type() else { return None };
    let is_exact = match of.as_ref() {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => fraction_digits(text) <= 6,
        of => match of.get_type(schema).ok()? {
            DataType::Timestamp(unit, _) => unit != TimeUnit::Nanosecond,
            kind => matches!(kind, DataType::Date32 | DataType::Date64),
        },
    };
    let of = if is_exact { of.as_ref().clone() } else { in_micros(of, schema)? };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    let field = Arc::new(field.as_ref().clone().with_data_type(micros));
    Some(Expr::Cast(Cast { expr: Box::new(of), field }))
}

/// How many digits of a second a text has.
fn fraction_digits(text: &str) -> usize {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count()
}

/// A text such as `2024-05-01 12:30` or `2024-05-01T12:30Z` with seconds; none for others.
fn with_seconds(text: &str) -> Option<String> {
    const FORM: &str = "dddd-dd-dd dd:dd";
    let (minutes, zone) = text.split_at_checked(FORM.len())?;
    let fits = |(of, found): (u8, u8)| match of {
        b'd' => found.is_ascii_digit(),
        b' ' => matches!(found, b' ' | b'T' | b't'),
        of => found == of,
    };
    let is_time = FORM.bytes().zip(minutes.bytes()).all(fits);
    let is_zone = zone.is_empty() || zone.starts_with([' ', 'Z', 'z', '+', '-']);
    (is_time && is_zone).then(|| format!("{minutes}:00{zone}"))
}
