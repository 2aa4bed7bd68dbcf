//! Values to JSON records and back; the member for the version is put in and taken out as text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::finite::Finite;
use super::{RecordKey, TypedRecord};
use crate::collection::{Key, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::json::escape::quoted;

/// Arrays and objects in each other that `serde_json` reads.
const DEPTH_MAX: usize = 127;

/// The members of an object as they stand there.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// The keys of records as a collection takes them.
pub(super) fn keys<R: TypedRecord>(keys: &[R::Key]) -> Vec<Key> {
    keys.iter().cloned().map(Into::into).collect()
}

/// Refuses a merge patch that would store the version as a member, or give records another key than
/// the one that they stand under.
pub(super) fn check_patch<R: TypedRecord>(merge_patch: &[u8]) -> Result<()> {
    // What is no object is refused by whoever applies it.
    let Ok(Members(members)) = serde_json::from_slice(merge_patch) else { return Ok(()) };
    let is_kept = |(name, _): &&(String, &RawValue)| {
        [R::KEY_MEMBER, R::VERSION_MEMBER].contains(&Some(name.as_str()))
    };
    let Some((name, _)) = members.iter().find(is_kept) else { return Ok(()) };
    let message = format!(
        "the patch has the member {name:?}, which is the key or the version of the records: \
         leave it out"
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// A value as the JSON that is stored.
pub(super) fn encode<R: TypedRecord>(value: &R, collection: &str) -> Result<String> {
    let refuse = |error: serde_json::Error| refused(value, collection, error);
    let json = serde_json::to_string(value).map_err(refuse)?;
    check_depth(&json).map_err(|message| refused(value, collection, message))?;
    if memchr::memmem::find(json.as_bytes(), b"null").is_some() {
        // Numbers that JSON does not have are written so, and could not be read again.
        let checked = serde_path_to_error::serialize(value, Finite);
        checked.map_err(|error| refused(value, collection, error))?;
    }
    let Some(version) = R::VERSION_MEMBER else { return Ok(json) };
    let Members(members) = serde_json::from_str(&json).map_err(refuse)?;
    let mut stored = String::with_capacity(json.len());
    for (name, value) in members.iter().filter(|(name, _)| name != version) {
        stored.push(if stored.is_empty() { '{' } else { ',' });
        stored.push_str(&quoted(name));
        stored.push(':');
        stored.push_str(value.get());
    }
    if stored.is_empty() {
        stored.push('{');
    }
    stored.push('}');
    Ok(stored)
}

/// Refuses what the reader of JSON would not go down into again.
fn check_depth(json: &str) -> Result<(), TooDeep> {
    let (mut depth, mut is_text, mut bytes) = (0_usize, false, json.bytes());
    // Few values have as many brackets at all.
    if json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= DEPTH_MAX {
        return Ok(());
    }
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => drop(bytes.next()),
            b'[' | b'{' if !is_text => depth += 1,
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(TooDeep);
        }
    }
    Ok(())
}

/// Arrays and objects are in each other more often than can be read.
#[derive(Debug)]
struct TooDeep;

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it has arrays and objects more than {DEPTH_MAX} deep in each other, which values of \
             Rust types are not read with: make it flatter, or store JSON in a `Collection`"
        )
    }
}

impl std::error::Error for TooDeep {}

fn refused<R, E>(value: &R, collection: &str, error: E) -> Error
where
    R: TypedRecord,
    E: std::error::Error + Send + Sync + 'static,
{
    let key = value.key().into();
    let message = format!("record {key} of collection {collection:?} cannot be stored: {error}");
    Error::new(ErrorKind::Invalid, message).with_source(error)
}

/// The value of a record.
pub(super) fn decode<R: TypedRecord>(record: &Record, collection: &str) -> Result<R> {
    let mut json = Cow::Borrowed(record.json.as_str());
    if let Some(member) = R::VERSION_MEMBER.filter(|_| R::READS_VERSION)
        && let Some(rest) = record.json.strip_prefix('{')
    {
        let comma = if rest == "}" { "" } else { "," };
        let version = record.version;
        let member = quoted(member);
        json = Cow::Owned(format!("{{{member}:{version}{comma}{rest}"));
    }
    let mut deserializer = serde_json::Deserializer::from_str(&json);
    let value: Result<R, _> = serde_path_to_error::deserialize(&mut deserializer);
    let mut value = value.map_err(|error| {
        let (key, path) = (&record.key, error.path().to_string());
        let place = if path == "." { String::new() } else { format!(", field {path}") };
        let cause = error.into_inner();
        let message = format!(
            "record {key} of collection {collection:?}{place}, is not of the type that is read: \
             {cause}"
        );
        Error::new(ErrorKind::Invalid, message).with_source(cause)
    })?;
    check_key(&value, record, collection)?;
    value.set_version(record.version);
    Ok(value)
}

/// Refuses a value that has another key than the record: saved again it would be another record.
fn check_key<R: TypedRecord>(value: &R, record: &Record, collection: &str) -> Result<()> {
    let (key, found, kind) = (&record.key, value.key().into(), R::Key::KIND);
    if *key == found || kind.text_of(key)? == kind.text_of(&found)? {
        return Ok(());
    }
    let place = R::KEY_MEMBER.map_or(String::new(), |member| format!(", field {member}"));
    let message = format!(
        "record {key} of collection {collection:?}{place}, has the key {found}: put the value \
         under the key that it has, or correct it"
    );
    Err(Error::new(ErrorKind::Invalid, message))
}
