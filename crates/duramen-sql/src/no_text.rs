//! Files that are no text in UTF-8, told by the bytes that they begin with.

use std::fs::File;
use std::io::{self, Read, Seek};

/// Bytes of a file that tell.
const BYTES: u64 = 6;

/// What a file is that is no text in UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoText {
    /// Compressed, by a program that `-dc` has unpack it.
    Packed(&'static str),
    /// An archive, as workbooks of spreadsheets are too.
    Zip,
    /// Text in UTF-16, which begins with its byte order mark or with a letter of ASCII.
    Utf16,
    /// Apache Parquet.
    Parquet,
}

impl NoText {
    /// What begins with some bytes, unless it may be text.
    #[must_use]
    pub fn of(begin: &[u8]) -> Option<Self> {
        Some(match *begin {
            [0x1f, 0x8b, ..] => Self::Packed("gzip"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Packed("zstd"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Packed("xz"),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => Self::Packed("bzip2"),
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            [0xff, 0xfe, ..]
            | [0xfe, 0xff, ..]
            | [1..=0x7f, 0, 1..=0x7f, 0, ..]
            | [0, 1..=0x7f, 0, 1..=0x7f, ..] => Self::Utf16,
            _ => return None,
        })
    }

    /// What a file is, unless it may be text; nothing of a pipe, which is read once only. It is at
    /// its beginning before and after.
    pub fn of_file(file: &mut File) -> io::Result<Option<Self>> {
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut begin = Vec::new();
        file.by_ref().take(BYTES).read_to_end(&mut begin)?;
        file.rewind()?;
        Ok(Self::of(&begin))
    }

    /// What a file of some name is, and what makes it one that can be read.
    #[must_use]
    pub fn advice(self, file: &str) -> String {
        match self {
            Self::Packed(packer) => format!(
                "is compressed: unpack it, such as with a pipe: {packer} -dc {file} | duramen ... -"
            ),
            Self::Zip => "is a ZIP archive, as workbooks of spreadsheets are: unpack it, or save \
                          the sheet as CSV"
                .to_owned(),
            Self::Utf16 => format!(
                "is UTF-16: make it UTF-8, such as with a pipe: iconv -f UTF-16 -t UTF-8 {file} | \
                 duramen ... -"
            ),
            Self::Parquet => "is Parquet: \"duramen records import\" reads it from a file with \
                              --format parquet, COPY with (FORMAT parquet)"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_how_they_begin() {
        for (begin, found) in [
            (&b"\x1f\x8b\x08\x08"[..], Some(NoText::Packed("gzip"))),
            (b"BZh91AY&SY", Some(NoText::Packed("bzip2"))),
            (b"BZh9,a,b\n", None),
            (b"PK\x03\x04", Some(NoText::Zip)),
            (b"PK,a\n", None),
            (b"PAR1\x15", Some(NoText::Parquet)),
            (b"\xff\xfe{\0", Some(NoText::Utf16)),
            (b"i\0d\0", Some(NoText::Utf16)),
            (b"\0i\0d", Some(NoText::Utf16)),
            (b"\xef\xbb\xbf{}", None),
            (b"{}\n", None),
            (b"1", None),
            (b"", None),
        ] {
            assert_eq!(NoText::of(begin), found, "{begin:?}");
        }
    }
}
