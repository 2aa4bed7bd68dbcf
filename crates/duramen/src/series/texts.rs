//! A column of text: all of it in one string, and where each ends.

use std::ops::Range;

/// Text, one for each point.
///
/// ```
/// let texts: duramen::Texts = ["open", "shut"].into_iter().collect();
/// assert_eq!(texts.get(1), Some("shut"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    ends: Vec<usize>,
    text: String,
}

impl Texts {
    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends one.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Text `index`, or `None` beyond the end.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)?;
        self.text.get(self.begin(index)..end)
    }

    /// All in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Bytes of those in a range.
    pub(super) fn bytes_of(&self, range: Range<usize>) -> usize {
        self.begin(range.end).saturating_sub(self.begin(range.start))
    }

    /// Appends a range of `other`.
    pub(super) fn append(&mut self, other: &Self, range: Range<usize>) {
        let (from, to) = (other.begin(range.start), other.begin(range.end));
        let base = self.text.len();
        self.text.push_str(other.text.get(from..to).unwrap_or_default());
        let ends = other.ends.get(range).unwrap_or_default();
        self.ends.extend(ends.iter().map(|end| end.wrapping_sub(from).wrapping_add(base)));
    }

    /// Drops the first `count`.
    pub(super) fn drop_first(&mut self, count: usize) {
        let dropped = self.begin(count);
        self.text.drain(..dropped);
        self.ends.drain(..count);
        self.ends.iter_mut().for_each(|end| *end = end.saturating_sub(dropped));
    }

    /// Keeps the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.text.truncate(self.begin(len));
        self.ends.truncate(len);
    }

    /// Where text `index` begins, which for the one after the last is the end of all.
    fn begin(&self, index: usize) -> usize {
        match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(self.text.len()),
            None => 0,
        }
    }
}

impl<'a> Extend<&'a str> for Texts {
    fn extend<I: IntoIterator<Item = &'a str>>(&mut self, texts: I) {
        for text in texts {
            self.push(text);
        }
    }
}

impl<'a> FromIterator<&'a str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'a str>>(texts: I) -> Self {
        let mut all = Self::default();
        all.extend(texts);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_texts_are_appended_and_cut() {
        let texts: Texts = ["a", "", "bcd", "e"].into_iter().collect();
        let mut other: Texts = ["x"].into_iter().collect();
        other.append(&texts, 1..3);
        assert_eq!(other.iter().collect::<Vec<_>>(), ["x", "", "bcd"]);
        assert_eq!((texts.bytes_of(1..4), texts.bytes_of(0..0)), (4, 0));
        other.truncate(2);
        other.push("end");
        assert_eq!(other.iter().collect::<Vec<_>>(), ["x", "", "end"]);
        assert_eq!(other.get(3), None);
        other.drop_first(1);
        other.push("on");
        assert_eq!(other.iter().collect::<Vec<_>>(), ["", "end", "on"]);
    }
}
