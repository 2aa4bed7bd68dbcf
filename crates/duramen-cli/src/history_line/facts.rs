//! What an exported history says of its document, as a line of JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use duramen::{
    DocumentOptions, ExportedFacts, IndexDefinition, Micros, Purge, Retention, Revision, Tag,
};
use serde::{Deserialize, Serialize};

use crate::history_line::no_line;
use crate::moment;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    #[serde(default)]
    options: Options,
    #[serde(default)]
    tags: Vec<TagLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    purges: Vec<PurgeLine>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    #[serde(default)]
    ids: BTreeMap<String, String>,
    #[serde(default)]
    maps: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<Keep>,
    /// The type of the keys of a collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collection: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<Index>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    name: String,
    paths: Vec<String>,
    #[serde(default)]
    unique: bool,
}

/// How much of the history is kept, if not all.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Keep {
    Head,
    Last(u64),
    ForUs(u64),
}

#[derive(Serialize, Deserialize)]
struct TagLine {
    name: String,
    revision: u64,
    hash: String,
    /// Dumps of earlier versions leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    author: Option<String>,
    message: Option<String>,
}

/// What was purged, and when: that is all there is left of it, so a dump has it too.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PurgeLine {
    place: String,
    timestamp: String,
    author: Option<String>,
    message: Option<String>,
}

impl Line {
    pub(super) fn of(facts: &ExportedFacts) -> Self {
        let DocumentOptions { ids, maps, keep, collection, indexes } = &facts.options;
        let keep = match keep {
            Retention::All => None,
            Retention::Head => Some(Keep::Head),
            Retention::Last(count) => Some(Keep::Last(*count)),
            Retention::For(span) => {
                Some(Keep::ForUs(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
            }
        };
        let ids = ids.iter().map(|(path, field)| (path.to_string(), field.clone())).collect();
        let maps = maps.iter().map(ToString::to_string).collect();
        let tag = |tag: &Tag| TagLine {
            name: tag.name.clone(),
            revision: tag.revision.0,
            hash: tag.hash.to_string(),
            timestamp: Some(moment::format(tag.timestamp)),
            author: tag.author.clone(),
            message: tag.message.clone(),
        };
        let collection = collection.map(|keys| keys.to_string());
        let indexes = indexes.definitions().map(|index| Index {
            paths: index.paths.iter().map(ToString::to_string).collect(),
            name: index.name,
            unique: index.is_unique,
        });
        let indexes = indexes.collect();
        let options = Options { ids, maps, keep, collection, indexes };
        let purges = facts.purges.iter().map(PurgeLine::of).collect();
        Self { options, tags: facts.tags.iter().map(tag).collect(), purges }
    }

    fn read(self) -> duramen::Result<ExportedFacts> {
        let mut options = DocumentOptions::default();
        for (path, field) in self.options.ids {
            options.ids.insert(path.parse()?, field);
        }
        for path in self.options.maps {
            options.maps.insert(path.parse()?);
        }
        options.keep = match self.options.keep {
            None => Retention::All,
            Some(Keep::Head) => Retention::Head,
            Some(Keep::Last(count)) => Retention::Last(count),
            Some(Keep::ForUs(span)) => Retention::For(Duration::from_micros(span)),
        };
        options.collection = self.options.collection.map(|keys| keys.parse()).transpose()?;
        let index = |Index { name, paths, unique }: Index| -> duramen::Result<_> {
            let paths = paths.iter().map(|path| path.parse()).collect::<duramen::Result<_>>()?;
            Ok(IndexDefinition { name, paths, is_unique: unique })
        };
        let indexes = self.options.indexes.into_iter().map(index);
        options.indexes = indexes.collect::<duramen::Result<_>>()?;
        let tags = self.tags.into_iter().map(TagLine::read).collect::<duramen::Result<_>>()?;
        let purges =
            self.purges.into_iter().map(PurgeLine::read).collect::<duramen::Result<_>>()?;
        Ok(ExportedFacts { options, tags, purges })
    }
}

impl TagLine {
    fn read(self) -> duramen::Result<Tag> {
        Ok(Tag {
            name: self.name,
            revision: Revision(self.revision),
            hash: self.hash.parse()?,
            timestamp: self.timestamp.as_deref().map_or(Ok(Micros(0)), moment::parse_time)?,
            author: self.author,
            message: self.message,
        })
    }
}

impl PurgeLine {
    fn of(purge: &Purge) -> Self {
        Self {
            place: purge.place.to_string(),
            timestamp: moment::format(purge.timestamp),
            author: purge.author.clone(),
            message: purge.message.clone(),
        }
    }

    fn read(self) -> duramen::Result<Purge> {
        Ok(Purge {
            place: self.place.parse()?,
            node: None,
            timestamp: moment::parse_time(&self.timestamp)?,
            author: self.author,
            message: self.message,
            is_pending: false,
        })
    }
}

/// Reads such a line.
pub(super) fn parse(text: &[u8]) -> duramen::Result<ExportedFacts> {
    let line: Line = serde_json::from_slice(text).map_err(|error| no_line(&error))?;
    line.read()
}

#[cfg(test)]
mod tests {
    use duramen::{ContentHash, ErrorKind, KeyKind};

    use super::*;

    #[test]
    fn what_is_said_of_a_document_is_read_as_it_was_written() {
        let facts = ExportedFacts {
            options: DocumentOptions {
                ids: [(r#"$["a.b"][*]"#.parse().unwrap(), "\"id\"".to_owned())].into(),
                maps: ["$.players{*}".parse().unwrap()].into(),
                keep: Retention::For(Duration::from_secs(90)),
                collection: Some(KeyKind::I64),
                indexes: [
                    IndexDefinition::new("a", &["x", "y[*]"]).unwrap().unique(),
                    IndexDefinition::new("b", &[r#"["x.y"]"#]).unwrap(),
                ]
                .into_iter()
                .collect(),
            },
            tags: vec![Tag {
                name: "v1 \u{e9}".to_owned(),
                revision: Revision(3),
                hash: ContentHash::of_json(b"1"),
                timestamp: Micros(1_714_521_600_000_001),
                author: Some("ann".to_owned()),
                message: None,
            }],
            purges: vec![Purge {
                place: "/people/1/card".parse().unwrap(),
                node: None,
                timestamp: Micros(1_714_521_600_000_002),
                author: None,
                message: Some("asked to be \"forgotten\"".to_owned()),
                is_pending: false,
            }],
        };
        let text = serde_json::to_vec(&Line::of(&facts)).unwrap();
        assert_eq!(parse(&text).unwrap(), facts);
        assert_eq!(parse(br#"{"options":{}}"#).unwrap(), ExportedFacts::default());
    }

    #[test]
    fn options_and_tags_of_a_wrong_form_are_refused() {
        for text in [
            r#"{"options":{"ids":{"x":"id"}}}"#,
            r#"{"options":{"maps":["$"],"more":1}}"#,
            r#"{"options":{},"revision":1}"#,
            r#"{"tags":[{"name":"v1","revision":1}]}"#,
            r#"{"tags":[],"purges":[{"place":"/a"}]}"#,
            r#"{"tags":[],"purges":[{"place":"a","timestamp":"2024-05-01"}]}"#,
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
        }
    }
}
