//! Names that are there in another case only.
//!
//! Names are found as they are written, as those of collections and fields tell capitals from small
//! letters. One without quotes that is not there so means the one that differs from it in nothing
//! but the case of ASCII letters, where there is one only: the planner finds out which are not
//! there, and the text is planned again with those that are meant, which are as long.

use std::fmt;

use datafusion::common::{Column, Span, TableReference};
use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::tokenizer::Location;
use duramen::Error;

use crate::change::OWN;
use crate::failure::{missing_field, unknown};
use crate::script::{Lines, SqlText};
use crate::statement::Places;

/// A name that is there in another case only: why a query failed, or would do what is not meant.
#[derive(Debug)]
pub(crate) struct OtherCase {
    /// Where the name stands.
    places: Vec<Location>,
    /// How it is spelled where it is there.
    spelled: String,
}

impl OtherCase {
    /// An error with what is there in another case, if that is why.
    pub(crate) fn because(error: Error, meant: Option<Self>) -> Error {
        match meant {
            Some(meant) => error.with_source(meant),
            None => error,
        }
    }

    /// Of a column, or of what stands before one, that is not among those that there are.
    pub(crate) fn of_column(
        (field, valid): (&Column, &[Column]),
        places: &Places,
        part: Option<Span>,
    ) -> Option<Self> {
        let tables = valid.iter().filter_map(|known| Some(known.relation.as_ref()?.table()));
        let columns = valid.iter().map(Column::name);
        let of_origin = || {
            let origin = unknown(field.relation.as_ref()?, valid)?;
            let here = spelled(origin, tables.chain(columns));
            // Tables around a query are not among those that there are: the text names them.
            let spelled = here.or_else(|| spelled(origin, places.names()))?;
            Some((origin, spelled))
        };
        let of_name = || {
            let of = field.relation.as_ref().map(TableReference::table);
            let is_beside = |known: &&Column| {
                of.is_none() || known.relation.as_ref().map(TableReference::table) == of
            };
            let here = spelled(field.name(), valid.iter().filter(is_beside).map(Column::name));
            // An order is told of what is selected only, and may be by other columns.
            let read = places.columns_read();
            let around = read.iter().map(String::as_str).chain(places.names());
            Some((field.name(), here.or_else(|| spelled(field.name(), around))?))
        };
        let (name, spelled) = of_origin().or_else(of_name)?;
        Some(Self { places: places.of_missing(name, part), spelled })
    }

    /// Of a column that an order names, and the planner takes for one that is not grouped by.
    pub(crate) fn of_ungrouped(why: &str, places: &Places, part: Option<Span>) -> Option<Self> {
        let (before, _) = why.split_once("\" must appear in the GROUP BY clause")?;
        let (_, column) = before.rsplit_once('"')?;
        let name = column.rsplit('.').next().unwrap_or(column);
        let read = places.columns_read();
        if read.iter().any(|read| read == name) {
            // An expression of it is grouped by, and may be written in another case.
            return Self::of_written_field(places, &read);
        }
        let spelled = spelled(name, read.iter().map(String::as_str))?;
        Some(Self { places: places.of_missing(name, part), spelled })
    }

    /// Of a field that the planner does not find in an object.
    pub(crate) fn of_field(why: &str, places: &Places, part: Option<Span>) -> Option<Self> {
        let name = missing_field(why)?;
        let read = places.fields_read();
        let spelled = spelled(name, read.iter().map(String::as_str))?;
        let mut at = places.of_missing(name, part);
        if at.is_empty() {
            at = places.of_name(name);
        }
        Some(Self { places: at, spelled })
    }

    /// Of a field of an object that the text has in another case somewhere.
    fn of_written_field(places: &Places, columns: &[String]) -> Option<Self> {
        let fields = places.fields_read();
        let is_there = |name: &str| columns.iter().chain(&fields).any(|known| known == name);
        places.names().filter(|name| !is_there(name)).find_map(|name| {
            let spelled = spelled(name, fields.iter().map(String::as_str))?;
            let places = places.of_name(name);
            (!places.is_empty()).then_some(Self { places, spelled })
        })
    }

    /// Of a table that is not among those that there are.
    pub(crate) fn of_table<'n>(
        name: &str,
        names: impl Iterator<Item = &'n str>,
        places: &'n Places,
    ) -> Option<Self> {
        let queries = places.queries.iter().map(String::as_str);
        let spelled = spelled(name, names.chain(queries))?;
        Some(Self { places: places.of_table(name), spelled })
    }

    /// Of a column that is given a value, and would be one more beside another one.
    pub(crate) fn of_target<'n>(
        name: &Ident,
        names: impl Iterator<Item = &'n str>,
    ) -> Option<Self> {
        let spelled = spelled(&name.value, names).filter(|_| name.quote_style.is_none())?;
        let at = Location::new(name.span.start.line, name.span.start.column);
        Some(Self { places: vec![at], spelled })
    }
}

impl fmt::Display for OtherCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is {:?}", self.spelled)
    }
}

impl std::error::Error for OtherCase {}

/// The only name that differs from another one in nothing but the case of its letters.
fn spelled<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let mut like = names.filter(|known| {
        known.eq_ignore_ascii_case(name) && *known != name && !known.starts_with(OWN)
    });
    let meant = like.next()?;
    like.all(|other| other == meant).then(|| meant.to_owned())
}

/// The text of a query that failed, with the name that is there.
pub(crate) fn corrected(error: &Error, sql: SqlText<'_>) -> Option<String> {
    let source = std::error::Error::source(error)?;
    let OtherCase { places, spelled } = source.downcast_ref()?;
    let lines = Lines::of(sql.text);
    let mut text = sql.text.to_owned();
    for place in places {
        let begin = lines.offset(sql.within(*place));
        let written = begin..begin + spelled.len();
        // Where a name has quotes it begins with them.
        let is_name = text.get(written.clone())?.eq_ignore_ascii_case(spelled);
        if is_name {
            text.replace_range(written, spelled);
        }
    }
    (text != sql.text).then_some(text)
}
