//! The SQL that is read: the generic one of the parser, but operators of JSON bind closely, and so
//! does `^`, which is a power, and `||` does not.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// How closely `->` binds: less than `::` and `[`, more than all else. The parser lets them bind
/// less than `=`, so that `a -> 'b' = 'c'` would look for what `'b' = 'c'` is called.
const ARROW: u8 = 45;

/// How closely `^` binds: more than `*`, and less than a minus before a number.
const POWER: u8 = 42;

/// How closely `||` binds: less than all arithmetic, and more than comparisons.
const CONCAT: u8 = 25;

/// How often the parser may begin an expression, for each byte of a text. One that is right has
/// two bytes for each, and is parsed again for each bracket around tables that are joined.
const EXPRESSIONS_PER_BYTE: usize = 32;

/// The dialect of all that is parsed, also of what is put together from parts of statements.
#[derive(Debug)]
pub(crate) struct Sql {
    /// How many more expressions may be begun. The parser takes what fails in the brackets of
    /// `CAST` and its like for arguments of a function, and parses it once more: without a bound
    /// that is twice as often for each of them inside each other.
    expressions: Cell<usize>,
    /// Whether the table of an `INSERT` has another name behind `AS`. Where the parser looks for
    /// one it takes any word that stands there.
    has_insert_alias: Cell<bool>,
}

impl Sql {
    /// For one text.
    pub(crate) fn of(text: &str) -> Self {
        let expressions = Cell::new(EXPRESSIONS_PER_BYTE.saturating_mul(text.len()));
        Self { expressions, has_insert_alias: Cell::default() }
    }

    /// Looks at the tokens that are to be parsed, which have no spaces, for what the parser has to
    /// know before.
    pub(crate) fn look_ahead(&self, tokens: &[TokenWithSpan]) {
        let token = |at: usize| tokens.get(at).map(|token| &token.token);
        let is = |at: usize, keyword: Keyword| match token(at) {
            Some(Token::Word(word)) => word.keyword == keyword,
            _ => false,
        };
        let Some(into) = (0..tokens.len()).find(|at| is(*at, Keyword::INTO)) else { return };
        let mut name = into + 1;
        while token(name + 1) == Some(&Token::Period) {
            name += 2;
        }
        self.has_insert_alias.set(is(name + 1, Keyword::AS));
    }

    /// A `BETWEEN` whose ends may stand in either order. It is there twice, which counts.
    fn in_either_order(&self, within: Expr, is_negated: bool) -> Result<Expr, ParserError> {
        let mut turned = within.clone();
        if let Expr::Between { low, high, .. } = &mut turned {
            std::mem::swap(low, high);
        }
        let left = self.expressions.get().checked_sub(within.to_string().len());
        self.expressions.set(left.ok_or(ParserError::RecursionLimitExceeded)?);
        let (left, right) = (Box::new(within), Box::new(turned));
        let either = Expr::BinaryOp { left, op: BinaryOperator::Or, right };
        let either = Expr::Nested(Box::new(either));
        Ok(if is_negated {
            let not = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) };
            Expr::Nested(Box::new(not))
        } else {
            either
        })
    }
}

/// What the generic dialect has otherwise than any dialect.
macro_rules! as_generic {
    ($($name:ident,)*) => {
        $(fn $name(&self) -> bool {
            GenericDialect.$name()
        })*
    };
}

impl Dialect for Sql {
    // The parser asks for the dialect itself, too.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Arrow | Token::LongArrow => Some(Ok(ARROW)),
            Token::Caret => Some(Ok(POWER)),
            Token::StringConcat => Some(Ok(CONCAT)),
            _ => None,
        }
    }

    // A minus binds less than the operators of JSON, but not that of `a -> -1 -> 'b'`, and more
    // than `^`: the parser would let it bind as `*` does.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let Some(expressions) = self.expressions.get().checked_sub(1) else {
            return Some(Err(ParserError::RecursionLimitExceeded));
        };
        self.expressions.set(expressions);
        let token = |parser: &Parser<'_>, nth| parser.peek_nth_token_ref(nth).token.clone();
        let is_index = token(parser, 0) == Token::Minus
            && matches!(token(parser, 1), Token::Number(_, _))
            && matches!(token(parser, 2), Token::Arrow | Token::LongArrow);
        let op = match token(parser, 0) {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return None,
        };
        parser.advance_token();
        let of = if is_index {
            parser.parse_value().map(Expr::Value)
        } else {
            parser.parse_subexpr(POWER)
        };
        Some(of.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    // The parser knows no `BETWEEN SYMMETRIC`, whose ends may stand in either order.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let keyword = |at, word: &str| match &parser.peek_nth_token_ref(at).token {
            Token::Word(of) => of.quote_style.is_none() && of.value.eq_ignore_ascii_case(word),
            _ => false,
        };
        let is_negated = keyword(0, "NOT");
        let between = usize::from(is_negated);
        let is_symmetric = keyword(between + 1, "SYMMETRIC");
        // A column may be called so.
        let is_column = keyword(between + 2, "AND");
        if !keyword(between, "BETWEEN") || is_column || !is_symmetric {
            return None;
        }
        (0..between + 2).for_each(|_| parser.advance_token());
        let within = parser.parse_between(expr.clone(), false);
        Some(within.and_then(|within| self.in_either_order(within, is_negated)))
    }

    // What is selected without FROM may stand before ON CONFLICT.
    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        *keyword != Keyword::ON && GenericDialect.is_column_alias(keyword, parser)
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        self.has_insert_alias.get()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        GenericDialect.is_identifier_part(character)
    }

    as_generic! {
        supports_unicode_string_literal,
        supports_partition_by_after_order_by,
        supports_array_join_syntax,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
        supports_connect_by,
        supports_match_recognize,
        supports_pipe_operator,
        supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg,
        supports_dictionary_syntax,
        supports_window_clause_named_window_reference,
        supports_parenthesized_set_variables,
        supports_select_wildcard_except,
        support_map_literal_syntax,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_extract_comma_syntax,
        supports_create_view_comment_syntax,
        supports_parens_around_table_factor,
        supports_values_as_table_factor,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_limit_comma,
        supports_update_order_by,
        supports_from_first_select,
        supports_projection_trailing_commas,
        supports_asc_desc_in_column_definition,
        supports_try_convert,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_assignment_operator,
        supports_struct_literal,
        supports_empty_projections,
        supports_nested_comments,
        supports_multiline_comment_hints,
        supports_user_host_grantee,
        supports_string_escape_constant,
        supports_array_typedef_with_brackets,
        supports_match_against,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_filter_during_aggregation,
        supports_select_wildcard_exclude,
        supports_data_type_signed_suffix,
        supports_interval_options,
        supports_quote_delimited_string,
        supports_select_wildcard_replace,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_optimize_table,
        supports_install,
        supports_detach,
        supports_prewhere,
        supports_with_fill,
        supports_limit_by,
        supports_interpolate,
        supports_settings,
        supports_select_format,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_comma_separated_trim,
        supports_cte_without_as,
        supports_select_item_multi_column_alias,
        supports_xml_expressions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Result<(), ParserError>, usize) {
        let dialect = Sql::of(text);
        let parsed = Parser::new(&dialect).try_with_sql(text).unwrap().parse_statements();
        let left = dialect.expressions.get();
        (parsed.map(drop), EXPRESSIONS_PER_BYTE * text.len() - left)
    }

    /// These once were parsed two times for each bracket: 40 took years.
    #[test]
    fn what_is_wrong_in_many_brackets_is_found_in_time() {
        for word in ["cast", "try_cast", "extract", "substring", "trim", "position", "ceil"] {
            let text = format!("SELECT {}1 +{}", format!("{word}(").repeat(40), ")".repeat(40));
            let (parsed, _) = parse(&text);
            assert!(parsed.is_err(), "{word}");
        }
        let wrong = format!("SELECT {}1 +{}", "cast(".repeat(40), ")".repeat(40));
        let message = parse(&wrong).0.unwrap_err().to_string();
        assert!(message.contains("Expected: an expression, found: )"), "{message}");
        let deep = format!("SELECT {}1{}", "cast(".repeat(90), " AS INT)".repeat(90));
        assert_eq!(parse(&deep).0, Err(ParserError::RecursionLimitExceeded));
    }

    /// Each of them is there twice, so that all of them once would have been as often as 2 to the
    /// power of how deep they stand.
    #[test]
    fn ends_in_either_order_within_each_other_have_a_bound() {
        let text = |deep: usize| {
            let (begins, ends) = ("1 BETWEEN SYMMETRIC (".repeat(deep), ") AND 1".repeat(deep));
            format!("SELECT {begins}1{ends}")
        };
        parse(&text(3)).0.unwrap();
        assert_eq!(parse(&text(30)).0, Err(ParserError::RecursionLimitExceeded));
    }

    #[test]
    fn what_is_right_is_far_from_the_bound() {
        let joined = format!("SELECT 1 FROM {}(SELECT 1, 1, 1, 1) AS a", "(".repeat(20));
        let joined = format!("{joined}{}", " JOIN b ON c)".repeat(20));
        let casts = format!("SELECT {}1{}", "cast(".repeat(20), " AS INT)".repeat(20));
        for text in [joined, casts, format!("VALUES (1){}", ",(1)".repeat(1_000))] {
            let (parsed, expressions) = parse(&text);
            parsed.unwrap();
            assert!(expressions < EXPRESSIONS_PER_BYTE * text.len() / 16, "{expressions}: {text}");
        }
    }
}
