//! Spells what the planner does not know in words that it does.

use std::convert::Infallible;
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::str::Chars;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, DataType, DateTimeField, Distinct, ExactNumberInfo, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    Interval, JoinOperator, LimitClause, ObjectName, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, SelectFlavor, SelectItem, SetExpr, Statement, Subscript, TableFactor, TableWithJoins,
    TimezoneInfo, UnaryOperator, Value, ValueWithSpan, VisitMut, VisitorMut,
    WildcardAdditionalOptions, With, visit_expressions_mut,
};

use crate::{array_query, grouping_sets, interval_text, ranges, zones};

/// `FETCH FIRST` becomes `LIMIT`, `SEMI JOIN` is `LEFT SEMI JOIN`, `FROM t` is `SELECT * FROM t`,
/// `a[1].b` is `a[1]['b']`, `LIKE` has no `ESCAPE` but the usual one, `a LIKE ANY (b, c)` is an OR,
/// `SIMILAR TO` is a comparison with a regular expression, `a ^ b` is a power, `LOCALTIMESTAMP` is
/// the time without a zone, `AT TIME ZONE` a function, a clock in the text of an interval is hours
/// and minutes, `ROLLUP ((a, b), c)` a list of sets, what is listed the number of a column in an
/// order, also by `ALL`, `a[:2]` is `a[1:2]`, `(VALUES (5))` a value, and `generate_series(..)` a
/// list that is unnested where the planner does not take it for a table.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Speller);
}

/// A `WITH` before an `INSERT` becomes one of the query that it inserts: the only one there, as one
/// of that query's own goes into brackets.
pub(crate) fn with_into_source(statement: &mut Statement) {
    let (insert, with) = match statement {
        Statement::Insert(insert) => (insert, None),
        Statement::Query(query) => match query.body.as_mut() {
            SetExpr::Insert(Statement::Insert(insert)) => (insert, query.with.take()),
            _ => return,
        },
        _ => return,
    };
    if let Some(source) = insert.source.take() {
        insert.source = Some(Box::new(if source.with.is_some() {
            bracketed(source, with)
        } else {
            Query { with, ..*source }
        }));
    }
    *statement = Statement::Insert(insert.clone());
}

/// Takes the `WITH` before an `UPDATE` or a `DELETE`, which is then a statement as without one.
pub(crate) fn with_before(statement: &mut Statement) -> Option<With> {
    let Statement::Query(query) = statement else { return None };
    let (SetExpr::Update(inner) | SetExpr::Delete(inner)) = query.body.as_ref() else {
        return None;
    };
    let (inner, with) = (inner.clone(), query.with.take());
    *statement = inner;
    with
}

/// Makes calls of arrays whose elements are computed: the planner does not know the tables outside,
/// nor those of a `WITH`, in the brackets of an array. What stands behind ANY and ALL is gone then.
pub(crate) fn arrays_into_calls(parsed: &mut impl VisitMut) {
    let is_computed = |element: &Expr| !matches!(element, Expr::Value(_));
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions_mut(parsed, |expr| {
        if let Expr::Array(array) = expr
            && array.elem.iter().any(is_computed)
        {
            *expr = call("make_array", std::mem::take(&mut array.elem));
        }
        ControlFlow::Continue(())
    });
}

/// A query in brackets, behind a `WITH` if there is one.
fn bracketed(query: Box<Query>, with: Option<With>) -> Query {
    Query {
        with,
        body: Box::new(SetExpr::Query(query)),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

struct Speller;

impl VisitorMut for Speller {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        fetch_to_limit(query);
        order_by_listed(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
            let all = SelectItem::Wildcard(WildcardAdditionalOptions::default());
            select.projection.push(all);
        }
        select.from.iter_mut().for_each(sided);
        select.from.iter_mut().for_each(ranges::spell);
        grouping_sets::spell(&mut select.group_by);
        grouping_sets::by_number(&mut select.group_by, &select.projection);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(spelled) = like_any(expr).or_else(|| array_query::of(expr)) {
            *expr = spelled;
        }
        match expr {
            Expr::CompoundFieldAccess { root, access_chain } => {
                // What stands before the first bracket is a name as it is.
                let is_name = matches!(**root, Expr::Identifier(_));
                let is_dot = |access: &&AccessExpr| matches!(access, AccessExpr::Dot(_));
                let names = access_chain.iter().take_while(is_dot).count();
                for access in access_chain.iter_mut().skip(if is_name { names } else { 0 }) {
                    name(access);
                    bounded(access);
                }
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                if let Some(same) = escaped_as_usual(pattern, escape_char.as_ref()) {
                    **pattern = same;
                    *escape_char = None;
                }
            }
            Expr::SimilarTo { .. } => {
                if let Some(same) = regular(expr) {
                    *expr = same;
                }
            }
            Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, right } => {
                let side = |side: &mut Expr| float(std::mem::replace(side, null()));
                *expr = call("power", vec![side(left), side(right)]);
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let of = |expr: &mut Expr| std::mem::replace(expr, null());
                *expr = call(zones::AT_ZONE, vec![of(time_zone), of(timestamp)]);
            }
            // The planner would take the minus for that of the first number in the text.
            Expr::UnaryOp { op: UnaryOperator::Minus, expr }
                if matches!(**expr, Expr::Interval(_)) =>
            {
                let interval = std::mem::replace(&mut **expr, null());
                **expr = Expr::Nested(Box::new(interval));
            }
            Expr::Interval(interval) => spell_interval(interval),
            // It would be a float first, of which digits are lost.
            Expr::Cast { expr, data_type, .. } if is_decimal(data_type) => {
                if let Some(number) = written(expr) {
                    **expr = Expr::value(Value::SingleQuotedString(number));
                }
            }
            Expr::Cast { expr, data_type: DataType::Interval { .. }, .. } => {
                _ = spell_span(expr);
            }
            Expr::Nested(inner) => {
                if let Some(value) = only_value(inner) {
                    **inner = value;
                }
            }
            Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) => {
                if let Some(sets) = grouping_sets::of(expr) {
                    *expr = sets;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// What a call of the time becomes has one in it.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if let Some(of) = age_of(function) {
            let today = call("current_date", Vec::new());
            *expr = call("age", vec![today, of]);
        } else if let Some(zone) = time_of_now(function) {
            let time = Box::new(call("now", Vec::new()));
            *expr = cast(time, DataType::Timestamp(None, zone));
        }
        ControlFlow::Continue(())
    }
}

/// Names the side of which a semi or anti join has the rows, within brackets too.
fn sided(tables: &mut TableWithJoins) {
    let inner = tables.joins.iter_mut().map(|join| &mut join.relation);
    for table in std::iter::once(&mut tables.relation).chain(inner) {
        if let TableFactor::NestedJoin { table_with_joins, .. } = table {
            sided(table_with_joins);
        }
    }
    for join in &mut tables.joins {
        join.join_operator = match join.join_operator.clone() {
            JoinOperator::Semi(on) => JoinOperator::LeftSemi(on),
            JoinOperator::Anti(on) => JoinOperator::LeftAnti(on),
            operator => operator,
        };
    }
}

/// The value of `VALUES (5)`, which the parser takes for a call within brackets.
fn only_value(inner: &mut Expr) -> Option<Expr> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = inner else {
        return None;
    };
    match list.args.as_mut_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))]
            if name.to_string().eq_ignore_ascii_case("values") =>
        {
            Some(std::mem::replace(value, null()))
        }
        _ => None,
    }
}

/// A slice from the first element, or to the last one, where it does not say.
fn bounded(access: &mut AccessExpr) {
    if let AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) =
        access
    {
        let number = |number: &str| Expr::value(Value::Number(number.to_owned(), false));
        lower_bound.get_or_insert_with(|| number("1"));
        upper_bound.get_or_insert_with(|| number("-1"));
    }
}

/// The time whose age today a call is of.
fn age_of(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    match (function.name.0.last()?.as_ident()?, list.args.as_slice()) {
        (name, [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))])
            if name.value.eq_ignore_ascii_case("age") =>
        {
            Some(of.clone())
        }
        _ => None,
    }
}

/// Whether the time that a call is of has its zone, with or without brackets; none for others.
fn time_of_now(function: &Function) -> Option<TimezoneInfo> {
    let is_bare = match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::Subquery(_) => false,
    };
    let name = function.name.0.last().and_then(|part| part.as_ident());
    let name = name.filter(|name| is_bare && name.quote_style.is_none())?;
    match name.value.to_ascii_lowercase().as_str() {
        "localtimestamp" => Some(TimezoneInfo::None),
        "now" | "current_timestamp" => Some(TimezoneInfo::WithTimeZone),
        _ => None,
    }
}

fn null() -> Expr {
    Expr::value(Value::Null)
}

fn float(expr: Expr) -> Expr {
    cast(Box::new(Expr::Nested(Box::new(expr))), DataType::Double(ExactNumberInfo::None))
}

fn cast(expr: Box<Expr>, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None }
}

/// A call of a function.
pub(crate) fn call(name: impl Into<Ident>, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    let args = FunctionArgumentList {
        duplicate_treatment: None,
        args: args.collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![name.into()]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(args),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn fetch_to_limit(query: &mut Query) {
    let Some(fetch) = query.fetch.take_if(|fetch| !fetch.with_ties && !fetch.percent) else {
        return;
    };
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let quantity = fetch.quantity.clone().unwrap_or_else(one);
    match &mut query.limit_clause {
        None => {
            let (limit, limit_by) = (Some(quantity), Vec::new());
            query.limit_clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by });
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(quantity),
        // Both is too much, which the planner says.
        Some(_) => query.fetch = Some(fetch),
    }
}

/// Has a query ordered by the number of a column where an expression is in its list as it stands.
/// The planner does not find it behind `SELECT DISTINCT`, nor an aggregate of a column that has the
/// name of what is listed. What stands behind a `*` has no number yet.
fn order_by_listed(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_ref() else { return };
    let Some(OrderBy { kind, .. }) = &mut query.order_by else { return };
    let OrderByKind::Expressions(order) = kind else {
        order_by_all(kind, &select.projection);
        return;
    };
    // That has to be ordered by the expressions that it is of.
    if matches!(select.distinct, Some(Distinct::On(_))) {
        return;
    }
    let listed = select.projection.iter().map_while(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let listed: Vec<String> = listed.map(Expr::to_string).collect();
    for by in order {
        let is_name =
            matches!(by.expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
        let text = by.expr.to_string();
        if let Some(at) = listed.iter().position(|listed| !is_name && *listed == text) {
            by.expr = Expr::value(Value::Number((at + 1).to_string(), false));
        }
    }
}

/// Has a query ordered by the numbers of all of its columns: the planner takes none that is
/// computed. Those of a `*` it knows itself.
fn order_by_all(kind: &mut OrderByKind, listed: &[SelectItem]) {
    let is_one = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    let OrderByKind::All(options) = kind else { return };
    if listed.iter().all(is_one) {
        let by = |number: usize| OrderByExpr {
            expr: Expr::value(Value::Number(number.to_string(), false)),
            options: *options,
            with_fill: None,
        };
        *kind = OrderByKind::Expressions((1..=listed.len()).map(by).collect());
    }
}

/// `a LIKE ANY (b, c)` as `a LIKE b OR a LIKE c`.
fn like_any(like: &Expr) -> Option<Expr> {
    let (Expr::Like { any: true, pattern, .. } | Expr::ILike { any: true, pattern, .. }) = like
    else {
        return None;
    };
    let patterns = match pattern.as_ref() {
        Expr::Array(array) => array.elem.clone(),
        Expr::Tuple(patterns) => patterns.clone(),
        Expr::Nested(pattern) => match pattern.as_ref() {
            Expr::Array(array) => array.elem.clone(),
            pattern => vec![pattern.clone()],
        },
        _ => return None,
    };
    let each = patterns.into_iter().map(|of| {
        let mut like = like.clone();
        if let Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. } = &mut like {
            (*any, **pattern) = (false, of);
        }
        like
    });
    let or = |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Or,
        right: Box::new(right),
    };
    each.reduce(or).map(|any| Expr::Nested(Box::new(any)))
}

fn is_decimal(kind: &DataType) -> bool {
    use DataType::{Dec, Decimal, Numeric};
    matches!(kind, Dec(_) | Decimal(_) | Numeric(_))
}

/// A number with a point as it is written, with its sign, or one of more digits than integers have.
fn written(number: &Expr) -> Option<String> {
    match number {
        Expr::Nested(number) => written(number),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            Some(format!("-{}", written(expr).filter(|number| !number.starts_with('-'))?))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
            let is_float = number.parse::<i64>().is_err();
            (is_float && !number.contains(['e', 'E'])).then(|| number.clone())
        }
        _ => None,
    }
}

/// Gives an interval a text that the planner reads.
fn spell_interval(interval: &mut Interval) {
    // Of minutes to seconds, what looks like hours and minutes is none.
    let is_clock = interval.last_field.is_none() == interval.leading_field.is_none()
        && interval.leading_field != Some(DateTimeField::Minute)
        && interval.leading_precision.is_none()
        && interval.fractional_seconds_precision.is_none();
    if is_clock && spell_span(&mut interval.value) {
        (interval.leading_field, interval.last_field) = (None, None);
    }
}

/// Makes words of the text of an interval, if they are needed; whether they are.
fn spell_span(text_of: &mut Expr) -> bool {
    let words = match text_of {
        Expr::Value(value) => text(&value.value).and_then(interval_text::in_words),
        _ => None,
    };
    let is_needed = words.is_some();
    if let Some(words) = words {
        *text_of = Expr::value(Value::SingleQuotedString(words));
    }
    is_needed
}

/// What stands behind a dot is the name of a field.
fn name(access: &mut AccessExpr) {
    if let AccessExpr::Dot(Expr::Identifier(field)) = access {
        let index = Expr::value(Value::SingleQuotedString(field.value.clone()));
        *access = AccessExpr::Subscript(Subscript::Index { index });
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// The only character of a text; none if it has more.
fn character(escape: &ValueWithSpan) -> Option<char> {
    let mut characters = text(&escape.value)?.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// The pattern of a `LIKE` with another character for what is to be taken as it is, where that is
/// a backslash: the planner knows no other. None if the pattern ends in that character.
fn escaped_as_usual(pattern: &Expr, escape: Option<&ValueWithSpan>) -> Option<Expr> {
    let escape = character(escape?)?;
    let Expr::Value(pattern) = pattern else { return None };
    let mut same = String::new();
    let mut characters = text(&pattern.value)?.chars();
    while let Some(character) = characters.next() {
        match character {
            escaping if escaping == escape => {
                same.push('\\');
                same.push(characters.next()?);
            }
            '\\' => same.push_str("\\\\"),
            other => same.push(other),
        }
    }
    Some(Expr::value(Value::SingleQuotedString(same)))
}

/// `SIMILAR TO` a pattern that is known, which the planner takes for a regular expression as it is.
fn regular(similar: &Expr) -> Option<Expr> {
    let Expr::SimilarTo { negated, expr, pattern, escape_char } = similar else { return None };
    let Expr::Value(pattern) = pattern.as_ref() else { return None };
    let escape = match escape_char {
        None => Some('\\'),
        // Without any character there is nothing that escapes.
        Some(escape) if text(&escape.value) == Some("") => None,
        Some(escape) => Some(character(escape)?),
    };
    let pattern = match &pattern.value {
        Value::Null => Value::Null,
        value => Value::SingleQuotedString(expression(text(value)?, escape)?),
    };
    let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    let (left, right) = (expr.clone(), Box::new(Expr::value(pattern)));
    Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op, right })))
}

/// The regular expression that finds whole texts that are similar to a pattern; none if the pattern
/// ends within a set of characters, or in the character that escapes.
fn expression(pattern: &str, escape: Option<char>) -> Option<String> {
    let mut found = String::from("^(?s:");
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            escaping if Some(escaping) == escape => as_it_is(characters.next()?, &mut found),
            '[' => set(&mut characters, escape, &mut found)?,
            '%' => found.push_str(".*"),
            '_' => found.push('.'),
            // What stands behind it is of the group, not about it.
            '(' => found.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => found.push(character),
            other => as_it_is(other, &mut found),
        }
    }
    found.push_str(")$");
    Some(found)
}

/// A character that means itself.
fn as_it_is(character: char, found: &mut String) {
    // Of these two with a backslash, regular expressions make ends of words.
    if character.is_ascii_punctuation() && !['<', '>'].contains(&character) {
        found.push('\\');
    }
    found.push(character);
}

/// A set of characters, of which the bracket was read.
fn set(
    characters: &mut Peekable<Chars<'_>>,
    escape: Option<char>,
    found: &mut String,
) -> Option<()> {
    found.push('[');
    if characters.next_if_eq(&'^').is_some() {
        found.push('^');
    }
    // Whether what came last can begin a range.
    let (mut is_first, mut begins) = (true, false);
    loop {
        let character = characters.next()?;
        let is_class = character == '[' && characters.peek() == Some(&':');
        let is_range = character == '-' && begins && characters.peek() != Some(&']');
        match character {
            ']' if !is_first => {
                found.push(']');
                return Some(());
            }
            _ if is_class => {
                // Up to the bracket that ends the name of the class.
                let name = characters.by_ref().take_while(|character| *character != ']');
                found.push('[');
                found.extend(name);
                found.push(']');
            }
            _ if is_range => {
                found.push('-');
                let mut end = characters.next()?;
                if Some(end) == escape {
                    end = characters.next()?;
                }
                as_it_is(end, found);
            }
            escaping if Some(escaping) == escape => as_it_is(characters.next()?, found),
            other => as_it_is(other, found),
        }
        (is_first, begins) = (false, !is_class && !is_range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_regular_expressions_of_whole_texts() {
        for (pattern, expected) in [
            ("A%", "^(?s:A.*)$"),
            ("a_(b|c)+", "^(?s:a.(?:b|c)+)$"),
            ("1.5", r"^(?s:1\.5)$"),
            (r"100\%", r"^(?s:100\%)$"),
            ("[^.%]x", r"^(?s:[^\.\%]x)$"),
            ("[[:alnum:]_]+", r"^(?s:[[:alnum:]\_]+)$"),
            (r"[a\-z]", r"^(?s:[a\-z])$"),
            ("[a-z-]", r"^(?s:[a-z\-])$"),
            ("[-+.]", r"^(?s:[\-\+\.])$"),
            ("[a&&b--c~~d[]", r"^(?s:[a\&\&b-\-c\~\~d\[])$"),
            ("[]a]", r"^(?s:[\]a])$"),
            ("a]<", r"^(?s:a\]<)$"),
            ("(?i:a)", r"^(?s:(?:?i\:a))$"),
        ] {
            assert_eq!(expression(pattern, Some('\\')).unwrap(), expected, "{pattern}");
        }
        assert_eq!(expression("a!%%", Some('!')).unwrap(), r"^(?s:a\%.*)$");
        assert_eq!(expression(r"a\", None).unwrap(), r"^(?s:a\\)$");
        for pattern in [r"a\", "[a", "[a-", "[[:alpha:]", r"[a\"] {
            assert_eq!(expression(pattern, Some('\\')), None, "{pattern}");
        }
    }
}
