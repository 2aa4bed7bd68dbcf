//! Holds what the catalogue says of trees against the trees.

use rustc_hash::FxHashMap;

use crate::check::{CheckReport, Finding};
use crate::engine::View;
use crate::engine::catalogue::{Name, Status, facts, purges};
use crate::error::Result;
use crate::revision::{CommitSequence, Revision};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::history::short;

impl CheckReport {
    /// Every tree has one name.
    pub(super) fn check_names(&mut self, names: &[(String, Name)]) {
        let mut first: FxHashMap<TreeId, &str> = FxHashMap::default();
        for (name, found) in names {
            if let Some(other) = first.insert(found.tree, name) {
                self.findings.push(Finding {
                    place: "catalogue".to_owned(),
                    message: format!("{other:?} and {name:?} both name tree {}", found.tree.0),
                });
            }
        }
    }

    /// The tree of a free name has no revisions.
    pub(super) fn check_free(&mut self, name: &str, revisions: Revision) {
        if revisions.0 > 0 {
            self.findings.push(Finding {
                place: format!("name {name:?}"),
                message: format!("it is free, but its tree has {revisions} revisions"),
            });
        }
    }

    /// A document is deleted where the catalogue says so, its options can be read, and its tags
    /// name revisions that have the value they had.
    pub(super) fn check_facts(
        &mut self,
        place: &str,
        (view, published): (&View, CommitSequence),
        (tree, name): (&Tree, Name),
    ) -> Result<()> {
        let (catalogue, now) = view.catalogue(published)?;
        let head = tree.head_at(published)?;
        let told = match name.status {
            Status::Deleted(revision) => Some(revision),
            Status::Live | Status::Free => None,
        };
        let found = tree.deleted_in(short(head))?;
        if told != found {
            let shown = |deleted: Option<Revision>| match deleted {
                Some(revision) => format!("deleted in revision {revision}"),
                None => "not deleted".to_owned(),
            };
            let (told, found) = (shown(told), shown(found));
            let message = format!("the catalogue says it is {told}, its tree says {found}");
            self.findings.push(Finding { place: place.to_owned(), message });
        }
        facts::options(&catalogue, tree.id(), now)?;
        for tag in facts::tags(&catalogue, tree.id(), now)? {
            // A purge is under way, or this was restored as of a commit before one.
            if tag.hash == purges::OPEN_HASH {
                continue;
            }
            self.hashes += 1;
            if let Some(message) = wrong_tag(tree, head, &tag)? {
                let place = format!("{place}, tag {:?}", tag.name);
                self.findings.push(Finding { place, message });
            }
        }
        Ok(())
    }
}

/// What is wrong with a tag, if anything is.
fn wrong_tag(tree: &Tree, head: Revision, tag: &facts::TagFacts) -> Result<Option<String>> {
    if tag.revision > head || tree.deleted_in(short(tag.revision))?.is_some() {
        return Ok(Some(format!("revision {} is not there", tag.revision)));
    }
    let (revision, expected) = (tag.revision, tag.hash);
    let found = tree.content_hash(short(revision))?;
    Ok((found != expected).then(|| {
        format!("revision {revision} had the hash {expected} when it was tagged, found {found}")
    }))
}

#[cfg(test)]
mod tests {
    use crate::json::{JsonPointer, ParseOptions, Tape};
    use crate::tree::writer::Writer;
    use crate::{CommitOptions, ContentHash, Database, Revision};

    /// What a check finds after something wrong was written into the catalogue.
    fn findings(write: impl FnOnce(&Writer)) -> Vec<String> {
        let db = Database::memory().unwrap();
        for name in ["a", "b"] {
            let document = db.create_document(name).unwrap();
            document.put("1", &CommitOptions::default()).unwrap();
            document.tag("t", Some(Revision(1)), &CommitOptions::default()).unwrap();
        }
        let mut transaction = db.transaction();
        write(transaction.catalogue().unwrap());
        transaction.commit(&CommitOptions::default()).unwrap();
        let report = db.check().unwrap();
        report
            .findings
            .into_iter()
            .map(|found| format!("{}: {}", found.place, found.message))
            .collect()
    }

    fn set(catalogue: &Writer, at: &str, json: &str) {
        let tape = Tape::parse(json.as_bytes(), ParseOptions::default()).unwrap();
        catalogue
            .set(&JsonPointer::parse(at).unwrap(), crate::tree::edit::Given::whole(&tape))
            .unwrap();
    }

    #[test]
    fn a_tag_of_another_value_is_found() {
        let hash = ContentHash::of_json(b"2").to_string();
        let found = findings(|catalogue| set(catalogue, "/b/tags/t/hash", &format!("\"{hash}\"")));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("document \"b\", tag \"t\": revision 1 had the hash"));
        let found = findings(|catalogue| set(catalogue, "/a/tags/t/revision", "2"));
        assert_eq!(found, ["document \"a\", tag \"t\": revision 2 is not there"]);
    }

    #[test]
    fn a_catalogue_that_contradicts_its_trees_is_found() {
        let cases = [
            (
                "/a/deleted",
                "1",
                "the catalogue says it is deleted in revision 1, its tree says not",
            ),
            ("/a/tree", "2", "\"a\" and \"b\" both name tree 2"),
            ("/a/kind", "\"series\"", "no \"kind\" can be"),
            ("/a/tree", "-1", "no \"tree\" can be"),
            ("/a/kind", "\"free\"", "it is free, but its tree has 1 revisions"),
            ("/a/deleted", "true", "no \"deleted\" can be"),
            ("/a/options", r#"{"maps":["x"]}"#, "\"x\" is no label path"),
            ("/a/tags/t/hash", "\"00\"", "no \"hash\" can be"),
        ];
        for (at, json, said) in cases {
            let found = findings(|catalogue| set(catalogue, at, json));
            assert!(found.iter().any(|found| found.contains(said)), "{at}: {found:?}");
        }
    }
}
