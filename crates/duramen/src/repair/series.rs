//! Series of a damaged database: those whose names and points can be read, as they were last. What
//! was written over or deleted before is not taken over, as commits get other numbers.

use super::{NO_REVISIONS, Repair};
use crate::engine::options::CommitOptions;
use crate::error::{ErrorKind, Result};
use crate::revision::CommitSequence;
use crate::series::{SeriesInfo, SeriesRule, SeriesSnapshot, tags};
use crate::tree::cell_key::TreeId;
use crate::tree::salvage::readable;

impl Repair {
    /// Takes over all series that the catalogue still names.
    pub(super) fn series(&mut self) -> Result<()> {
        if self.may_lack(&TreeId::SERIES.0.to_be_bytes()) {
            self.lose(None, NO_REVISIONS, "some of what the catalogue said of series");
        }
        let view = self.engine.view();
        let everything = CommitSequence(u64::MAX);
        let Some((tree, head)) = readable(view.series_tags(everything))? else { return Ok(()) };
        let mut infos: Vec<SeriesInfo> = Vec::new();
        let listed = tags::each(&tree, head, &mut |name, entry| {
            infos.extend(readable(tags::read(&tree, (name, entry), head))?);
            Ok(())
        });
        if readable(listed)?.is_none() {
            self.lose(None, NO_REVISIONS, "the names of some series");
        }
        for info in infos {
            if self.may_lack(&info.number.0.to_be_bytes()) {
                self.lose_of(&info.name, "some of its points");
            }
            let made = self.database.create_series(&info.name, &info.definition);
            let made = match made {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.lose_of(&info.name, "all of it: a document has its name now");
                    continue;
                }
                made => made?,
            };
            let name = info.name.clone();
            let snapshot = SeriesSnapshot::new(view.clone(), info.into(), everything);
            let options =
                CommitOptions { durability: Some(super::DURABILITY), ..Default::default() };
            for points in snapshot.range(..)? {
                let Some(points) = readable(points)? else {
                    self.lose_of(&name, "its later points");
                    break;
                };
                made.append_points(&points, &options)?;
            }
        }
        self.series_rules(readable(tags::rules(&tree, head))?)
    }

    /// Takes over the rules, behind the series: these have what they had, whatever rules say.
    fn series_rules(&mut self, rules: Option<Vec<SeriesRule>>) -> Result<()> {
        match rules {
            None => self.lose(None, NO_REVISIONS, "the rules of what is kept of series"),
            Some(rules) if rules.is_empty() => {}
            Some(rules) => {
                let mut transaction = self.database.transaction();
                transaction.put_series_rules(&rules)?;
                transaction.commit(&CommitOptions {
                    durability: Some(super::DURABILITY),
                    ..CommitOptions::default()
                })?;
            }
        }
        Ok(())
    }

    fn lose_of(&mut self, series: &str, what: &str) {
        self.lose(None, NO_REVISIONS, format!("series {series:?}: {what}"));
    }
}
