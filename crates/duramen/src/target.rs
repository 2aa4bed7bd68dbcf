//! One value of a document, named by its place, its id or a query.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::jsonpath::JsonPath;
use crate::node::NodeId;

/// What an operation is about: a JSON Pointer names the value at a place, a [`NodeId`] the same
/// value wherever it is now, a [`JsonPath`] the one value that it finds.
///
/// ```
/// use duramen::{JsonPath, JsonPointer, Target};
///
/// assert_eq!("/a/0".parse::<Target>()?, Target::Pointer(JsonPointer::parse("/a/0")?));
/// assert_eq!("$.a[-1]".parse::<Target>()?, Target::Path(JsonPath::parse("$.a[-1]")?));
/// assert_eq!("#12".parse::<Target>()?.to_string(), "#12");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The value at a place.
    Pointer(JsonPointer),
    /// The value with an id.
    Node(NodeId),
    /// The value that a query finds; it is an error if it finds none, or several.
    Path(JsonPath),
}

impl Target {
    /// Reads `#` and a number as an id, what begins with `$` as a JSONPath, anything else as a JSON
    /// Pointer.
    pub fn parse(text: &str) -> Result<Self> {
        if text.starts_with('$') {
            return JsonPath::parse(text).map(Self::Path);
        }
        let Some(number) = text.strip_prefix('#') else {
            return JsonPointer::parse(text).map(Self::Pointer);
        };
        number.parse().map(NodeId::from_number).map(Self::Node).map_err(|_| {
            let message = format!(
                "{text:?} is not the id of a value: write # and its number, as `get --metadata` \
                 prints it"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(pointer) => pointer.fmt(f),
            Self::Node(node) => node.fmt(f),
            Self::Path(path) => path.fmt(f),
        }
    }
}

impl From<JsonPointer> for Target {
    fn from(pointer: JsonPointer) -> Self {
        Self::Pointer(pointer)
    }
}

impl From<&JsonPointer> for Target {
    fn from(pointer: &JsonPointer) -> Self {
        Self::Pointer(pointer.clone())
    }
}

impl From<&Self> for Target {
    fn from(target: &Self) -> Self {
        target.clone()
    }
}

impl From<&NodeId> for Target {
    fn from(node: &NodeId) -> Self {
        Self::Node(*node)
    }
}

impl From<JsonPath> for Target {
    fn from(path: JsonPath) -> Self {
        Self::Path(path)
    }
}

impl From<&JsonPath> for Target {
    fn from(path: &JsonPath) -> Self {
        Self::Path(path.clone())
    }
}

impl From<NodeId> for Target {
    fn from(node: NodeId) -> Self {
        Self::Node(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_a_pointer_nor_an_id_nor_a_path_is_refused() {
        for text in ["a", "#", "$[", "#x", "#-1", "#99999999999999999999", "/~2"] {
            assert_eq!(Target::parse(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
        }
    }
}
