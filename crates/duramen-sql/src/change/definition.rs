//! `CREATE INDEX`, and `DROP` of collections, which are tables, of their indexes and of views.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{CreateIndex, Expr, ObjectName, ObjectType, Statement};
use duramen::{Collection, CommitOptions, Error, ErrorKind, IndexDefinition, Result, Revision};

use super::{collection_name, creation, unsupported};
use crate::answer::Answer;
use crate::record_json::string;
use crate::session::Session;
use crate::statement::Places;

impl Session {
    pub(super) fn create_index(&self, index: &CreateIndex, places: &Places) -> Result<Answer<'_>> {
        let is_plain =
            index.predicate.is_none() && index.include.is_empty() && index.with.is_empty();
        if !is_plain || index.using.is_some() {
            return Err(unsupported(
                "an index with more than columns: leave USING, WHERE and INCLUDE out",
            ));
        }
        let target = self.target(&index.table_name, places)?;
        let paths = index.columns.iter().map(|column| path(&column.column.expr));
        let paths = paths.collect::<Result<Vec<_>>>()?;
        let name = match &index.name {
            Some(name) => index_name(name)?,
            None => paths.join("_"),
        };
        let collection = &target.collection;
        let is_there = collection.indexes()?.iter().any(|known| known.name == name);
        if index.if_not_exists && is_there {
            return Self::done(&format!("there is an index {name:?} already"));
        }
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut definition = IndexDefinition::new(&name, &paths)?;
        if index.unique {
            definition = definition.unique();
        }
        if let Some(path) = collection.path_without_values(&definition)? {
            let message = format!(
                "no record of {:?} has a value at {path}: check the name, or insert records that \
                 have one first, or use \"duramen index add --allow-missing\"",
                collection.name()
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut go_on = |_| match places.allowance.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        let made = collection.create_index_with(&definition, &mut go_on);
        if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled) {
            // Or it is out of time.
            places.allowance.check()?;
        }
        made?;
        Self::done(&format!("made the index {name:?} of {:?}", collection.name()))
    }

    /// Drops what a statement names, one after the other.
    pub(super) fn drop_names(&self, statement: &Statement, places: &Places) -> Result<Answer<'_>> {
        let Statement::Drop { object_type, if_exists, names, table, .. } = statement else {
            return Err(unsupported("this DROP"));
        };
        let [name] = names.as_slice() else {
            return Err(unsupported("DROP of several at once: give one"));
        };
        let dropped = match object_type {
            ObjectType::Index => self.drop_index(name, table.as_ref(), places),
            ObjectType::Table => {
                self.check_no_view(name, places)?;
                self.drop_table(name, places)
            }
            ObjectType::View => self.drop_view(name),
            _ => Err(unsupported("DROP of anything but TABLE, INDEX and VIEW")),
        };
        match dropped {
            Err(error) if error.kind() == ErrorKind::NotFound && *if_exists => {
                Self::done(&format!("there is no {name} to drop"))
            }
            dropped => Self::done(&dropped?),
        }
    }

    fn drop_table(&self, name: &ObjectName, places: &Places) -> Result<String> {
        let target = self.target(name, places)?;
        let name = target.collection.name();
        if target.revision == Revision(0) {
            // Only what had a revision can be deleted.
            let mut transaction = self.db().transaction();
            transaction.put(name, b"{}")?;
            transaction.commit(&CommitOptions::default())?;
        }
        let mut transaction = self.db().transaction();
        transaction.delete_document(name)?;
        creation::define(self.db(), name, None, &mut transaction)?;
        transaction.commit(&CommitOptions::default())?;
        Ok(format!("deleted the collection {name:?}: its past stays"))
    }

    /// Refuses the name of a view, which no other statement drops.
    fn check_no_view(&self, name: &ObjectName, places: &Places) -> Result<()> {
        if self.tables(places).view(&collection_name(name)?)?.is_none() {
            return Ok(());
        }
        let message = format!("{name} is a view and no table: DROP VIEW {name}");
        Err(Error::new(ErrorKind::Invalid, message))
    }

    fn drop_index(
        &self,
        name: &ObjectName,
        table: Option<&ObjectName>,
        places: &Places,
    ) -> Result<String> {
        let name = index_name(name)?;
        let collections = if let Some(table) = table {
            vec![self.target(table, places)?.collection]
        } else {
            let names = self.db().collections()?;
            names.iter().map(|name| self.db().collection(name)).collect::<Result<_>>()?
        };
        let mut having = Vec::new();
        for collection in collections {
            let mut indexes = collection.indexes()?;
            indexes.extend(collection.unfinished_indexes()?);
            if indexes.iter().any(|index| index.name == name) {
                having.push(collection);
            }
        }
        match having.as_slice() {
            [collection] => {
                collection.drop_index(&name)?;
                Ok(format!("dropped the index {name:?} of {:?}", collection.name()))
            }
            [] => {
                let message =
                    format!("there is no index {name:?}: \"duramen index ls\" lists them");
                Err(Error::new(ErrorKind::NotFound, message))
            }
            many => {
                let names: Vec<&str> = many.iter().map(Collection::name).collect();
                let message = format!(
                    "there are indexes {name:?} of {}: say which, DROP INDEX {name} ON {}",
                    names.join(", "),
                    names[0]
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
        }
    }
}

/// The path of an index that a column is.
pub(super) fn path(column: &Expr) -> Result<String> {
    let names = match column {
        Expr::Identifier(name) => vec![name.value.as_str()],
        Expr::CompoundIdentifier(names) => names.iter().map(|name| name.value.as_str()).collect(),
        _ => {
            return Err(unsupported(
                "an index of anything but columns: \"duramen index add\" takes paths such as \
                 tags[*]",
            ));
        }
    };
    let mut path = String::new();
    for name in names {
        let is_first = path.is_empty();
        if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "_-".contains(character))
        {
            path.push_str(if is_first { "" } else { "." });
            path.push_str(name);
        } else {
            let _ = write!(path, "[{}]", string(name));
        }
    }
    Ok(path)
}

fn index_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [name] => Ok(name.as_ident().map_or_else(String::new, |name| name.value.clone())),
        _ => Err(unsupported("a name of an index with dots: name it in quotes")),
    }
}
