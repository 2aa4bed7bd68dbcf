//! Rules that one source file keeps or breaks by itself: 1, 9, 10, 16, 17 and 18.

use std::collections::BTreeSet;
use std::mem;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;

const LIB_LINES_MAX: usize = 150;
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const INLINE_TEST_LINES_MAX: usize = 100;
const ARGUMENTS_MAX: usize = 5;
const NESTING_MAX: usize = 4;
const COLUMNS_MAX: usize = 100;

/// What one file breaks.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let parsed = text
        .parse::<TokenStream>()
        .map_err(syn::Error::from)
        .and_then(|tokens| Ok((literal_lines(tokens.clone()), syn::parse2::<syn::File>(tokens)?)));
    let (literal_lines, file) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return vec![Finding::new(path, 1, "syntax", error.to_string())],
    };
    let mut rules =
        Rules { path, depth: 0, test_lines: 0, is_in_trait_impl: false, findings: Vec::new() };
    rules.visit_file(&file);
    rules.check_file_length(text);
    for (index, line) in text.lines().enumerate() {
        rules.check_line(index + 1, line);
    }
    for comment in comments(text, &literal_lines) {
        rules.check_comment(&comment);
    }
    rules.findings
}

/// The lines that begin inside a literal, where `//` is text.
fn literal_lines(tokens: TokenStream) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => lines.extend(literal_lines(group.stream())),
            TokenTree::Literal(literal) => {
                lines.extend(literal.span().start().line + 1..=literal.span().end().line);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
    lines
}

/// Neighbouring lines of one comment, without their slashes.
struct Comment<'a> {
    line: usize,
    is_documentation: bool,
    lines: Vec<&'a str>,
}

fn comments<'a>(text: &'a str, literal_lines: &BTreeSet<usize>) -> Vec<Comment<'a>> {
    let mut comments: Vec<Comment> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(start) = line.find("//") else { continue };
        let stands_alone = line.trim_start().starts_with("//");
        // `://` is an address, not a comment.
        let trails = line[..start].ends_with(' ') && !stands_alone;
        if literal_lines.contains(&(index + 1)) || !(stands_alone || trails) {
            continue;
        }
        let body = &line[start + 2..];
        let is_documentation = body.starts_with(['/', '!']);
        match comments.last_mut() {
            Some(last)
                if stands_alone
                    && last.line + last.lines.len() == index + 1
                    && last.is_documentation == is_documentation =>
            {
                last.lines.push(body);
            }
            _ => comments.push(Comment { line: index + 1, is_documentation, lines: vec![body] }),
        }
    }
    comments
}

/// A line of dashes or the like, alone or around a heading.
fn is_banner(line: &str) -> bool {
    let line = line.trim_start_matches('!').trim();
    ["----", "====", "****", "####", "~~~~", "////"]
        .iter()
        .any(|run| line.starts_with(run) || line.ends_with(run))
}

/// Prose is not Rust: text that ends as a statement does and parses as some was code once.
fn is_code(text: &str) -> bool {
    let ends_like_code = text.trim_end().ends_with([';', '}']);
    let parsed = || syn::parse_str::<syn::Block>(&format!("{{{text}}}"));
    ends_like_code
        && parsed().is_ok_and(|block| {
            let first = block.stmts.first();
            first.is_some_and(|first| !matches!(first, syn::Stmt::Expr(syn::Expr::Path(_), _)))
        })
}

/// The rules while they walk the syntax tree.
struct Rules<'a> {
    path: &'a str,
    /// Nesting of the expression that is being visited, within its function.
    depth: usize,
    /// Lines of inline test modules.
    test_lines: usize,
    /// Whether methods of a trait are being visited where it is implemented.
    is_in_trait_impl: bool,
    findings: Vec<Finding>,
}

impl Rules<'_> {
    fn find(&mut self, line: usize, rule: &'static str, what: impl Into<String>) {
        self.findings.push(Finding::new(self.path, line, rule, what));
    }

    fn check_file_length(&mut self, text: &str) {
        let lines = text.lines().count();
        if self.path.ends_with("src/lib.rs") && lines > LIB_LINES_MAX {
            self.find(lines, "rule 1", format!("lib.rs has {lines} lines of {LIB_LINES_MAX}"));
        }
        let is_test = self.path.ends_with("/tests.rs") || self.path.contains("/tests/");
        let lines = lines - self.test_lines;
        if !is_test && lines > FILE_LINES_MAX {
            self.find(lines, "rule 10", format!("{lines} lines of {FILE_LINES_MAX} without tests"));
        }
    }

    fn check_line(&mut self, number: usize, line: &str) {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            self.find(number, "rule 10", format!("{columns} columns of {COLUMNS_MAX}"));
        }
        if let Some(other) = line.chars().find(|character| !character.is_ascii()) {
            self.find(number, "rule 10", format!("{other:?} is not ASCII: write its escape"));
        }
    }

    fn check_comment(&mut self, comment: &Comment) {
        let text = comment.lines.join("\n");
        let resolved = ["when", "once", "until"].iter().any(|word| text.contains(word));
        for (index, line) in comment.lines.iter().enumerate() {
            let number = comment.line + index;
            let mut words = line.split(|character: char| !character.is_alphanumeric());
            if words.any(|word| ["TODO", "FIXME", "XXX"].contains(&word)) && !resolved {
                self.find(number, "rule 16", "a TODO says when it ends: `when`, `once`, `until`");
            }
            if is_banner(line) {
                self.find(number, "rule 16", "a banner line");
            }
        }
        let is_code = is_code(&text) || comment.lines.iter().any(|line| is_code(line));
        if !comment.is_documentation && is_code {
            self.find(comment.line, "rule 16", "code in a comment");
        }
    }

    fn check_function(&mut self, signature: &syn::Signature, last_line: usize) {
        let first_line = signature.span().start().line;
        let name = &signature.ident;
        let lines = last_line + 1 - first_line;
        if lines > FUNCTION_LINES_MAX {
            let what = format!("`{name}` has {lines} lines of {FUNCTION_LINES_MAX}");
            self.find(first_line, "rule 9", what);
        }
        let arguments = signature.inputs.len();
        // Those of a trait's method are the choice of the trait.
        if arguments > ARGUMENTS_MAX && !self.is_in_trait_impl {
            let what = format!("`{name}` has {arguments} arguments of {ARGUMENTS_MAX}");
            self.find(first_line, "rule 9", what);
        }
    }

    /// Runs `walk` as deep as a new function begins.
    fn in_function(&mut self, walk: impl FnOnce(&mut Self)) {
        let outer = mem::take(&mut self.depth);
        walk(self);
        self.depth = outer;
    }
}

impl<'ast> Visit<'ast> for Rules<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check_function(&item.sig, item.span().end().line);
        let statements = item.block.stmts.len();
        if self.path.ends_with("src/main.rs") && item.sig.ident == "main" && statements > 1 {
            let what = format!("main() is {statements} statements, not one expression");
            self.find(item.sig.span().start().line, "rule 1", what);
        }
        self.in_function(|rules| visit::visit_item_fn(rules, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = mem::replace(&mut self.is_in_trait_impl, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.is_in_trait_impl = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check_function(&item.sig, item.span().end().line);
        self.in_function(|rules| visit::visit_impl_item_fn(rules, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.check_function(&item.sig, item.span().end().line);
        self.in_function(|rules| visit::visit_trait_item_fn(rules, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = item.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
        });
        if is_test && item.content.is_some() {
            let (first, last) = (item.span().start().line, item.span().end().line);
            let lines = last + 1 - first;
            self.test_lines += lines;
            if lines > INLINE_TEST_LINES_MAX {
                let what = format!("{lines} lines of tests move to a file of their own");
                self.find(first, "rule 17", what);
            }
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        let nests = match expr {
            syn::Expr::If(_)
            | syn::Expr::Match(_)
            | syn::Expr::ForLoop(_)
            | syn::Expr::While(_)
            | syn::Expr::Loop(_) => true,
            syn::Expr::Closure(closure) => matches!(*closure.body, syn::Expr::Block(_)),
            _ => false,
        };
        self.depth += usize::from(nests);
        if nests && self.depth == NESTING_MAX + 1 {
            self.find(expr.span().start().line, "rule 9", format!("over {NESTING_MAX} levels"));
        }
        visit::visit_expr(self, expr);
        self.depth -= usize::from(nests);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.visit_expr(&expr.cond);
        self.visit_block(&expr.then_branch);
        // `else if` goes on at the level of its `if`.
        match expr.else_branch.as_ref().map(|(_, branch)| &**branch) {
            Some(syn::Expr::If(next)) => self.visit_expr_if(next),
            Some(block) => self.visit_expr(block),
            None => {}
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        if statement.mac.path.is_ident("matches") && statement.semi_token.is_some() {
            let line = statement.span().start().line;
            self.find(line, "rule 18", "a bare `matches!` checks nothing: assert it");
        }
        visit::visit_stmt_macro(self, statement);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("ignore") && matches!(attribute.meta, syn::Meta::Path(_)) {
            let line = attribute.span().start().line;
            self.find(line, "rule 18", "say why: `#[ignore = \"reason\"]`");
        }
        visit::visit_attribute(self, attribute);
    }
}
