//! `WITH a AS MATERIALIZED (..)` and `AS NOT MATERIALIZED`, which the parser knows of one dialect
//! only: whether a query is computed for itself changes no answer.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// Leaves these words out.
pub(crate) fn rewrite(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let keyword = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let is_materialized = |at: usize| {
        let is_not = keyword(at - 1) == Keyword::NOT;
        keyword(at) == Keyword::MATERIALIZED
            && keyword(at - if is_not { 2 } else { 1 }) == Keyword::AS
            && tokens.get(at + 1).is_some_and(|next| next.token == Token::LParen)
    };
    let mut left_out = Vec::new();
    for at in (2..tokens.len()).filter(|at| is_materialized(*at)) {
        left_out.extend((keyword(at - 1) == Keyword::NOT).then_some(at - 1));
        left_out.push(at);
    }
    if left_out.is_empty() {
        return tokens;
    }
    let tokens = tokens.into_iter().enumerate();
    tokens.filter(|(at, _)| !left_out.contains(at)).map(|(_, token)| token).collect()
}
