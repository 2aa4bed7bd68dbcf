//! A chart of text: each character is eight dots of the Braille patterns of Unicode.

use super::curve::{Axis, Curve};
use crate::Result;
use crate::output::Output;

/// Dots of a character: two side by side, four above each other.
const DOTS: (usize, usize) = (2, 4);
/// The pattern without dots; the bits of the dots are added to it.
const BLANK: u32 = 0x2800;
/// Characters of a label without an exponent: those of most numbers between 1e-7 and 1e21.
const LABEL_MAX: usize = 24;
/// Columns and lines of a chart, columns at least, and those of most labels with the axis.
const SIZE: (u32, u32) = (72, 16);
const WIDTH_MIN: u32 = 8;
const LABEL: u32 = 8;
/// The bit of each dot, by column and row from the top.
const BITS: [[u32; DOTS.1]; DOTS.0] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Dots that are set or not.
struct Canvas {
    width: usize,
    characters: Vec<u32>,
}

impl Canvas {
    /// Of so many characters and lines.
    fn new(width: usize, height: usize) -> Self {
        Self { width, characters: vec![BLANK; width * height] }
    }

    fn set(&mut self, x: usize, y: usize) {
        let at = y / DOTS.1 * self.width + x / DOTS.0;
        if let Some(character) = self.characters.get_mut(at) {
            *character |= BITS[x % DOTS.0][y % DOTS.1];
        }
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        self.characters.chunks(self.width).map(|line| {
            let text: String = line.iter().filter_map(|&code| char::from_u32(code)).collect();
            text.trim_end_matches('\u{2800}').to_owned()
        })
    }
}

/// Columns and lines of a chart, if none are said: as many as are there beside the labels of most
/// values in a terminal that is narrow.
pub(crate) fn size(output: &Output) -> (u32, u32) {
    let (width, height) = SIZE;
    let columns = output.style.terminal.then(terminal_size::terminal_size).flatten();
    (columns.map_or(width, |(columns, _)| beside_labels(columns.0.into()).min(width)), height)
}

fn beside_labels(columns: u32) -> u32 {
    columns.saturating_sub(LABEL).max(WIDTH_MIN)
}

/// Prints a chart of so many columns and lines, with what its edges are.
pub(crate) fn write(
    (curve, axis): (&Curve, Axis),
    (width, height): (u32, u32),
    output: &mut Output,
) -> Result<()> {
    let (low, high) = curve.range().unwrap_or_default();
    let canvas = draw(curve, (width as usize, height as usize));
    let (top, bottom) = (value_label(high), value_label(low));
    let margin = top.len().max(bottom.len());
    let last = height as usize - 1;
    for (number, line) in canvas.lines().enumerate() {
        let label = match number {
            0 => top.as_str(),
            number if number == last => bottom.as_str(),
            _ => "",
        };
        output.line(format_args!("{label:>margin$} |{line}"))?;
    }
    let (first, until) = curve.times();
    let (first, until) = (axis.label(first), axis.label(until));
    // However narrow the chart is, the two do not touch.
    let between = (width as usize).saturating_sub(first.len()).max(until.len() + 2);
    output.line(format_args!("{:margin$}  {first}{until:>between$}", ""))
}

/// A value beside the chart: with an exponent where its digits would take the chart's room.
fn value_label(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= LABEL_MAX { plain } else { format!("{value:e}") }
}

/// The curve as dots: each point is joined to the next one, however many columns are between.
fn draw(curve: &Curve, (width, height): (usize, usize)) -> Canvas {
    let mut canvas = Canvas::new(width, height);
    let (low, high) = curve.range().unwrap_or_default();
    let rows = height * DOTS.1;
    let row = |value: f64| row_of((low, high), value, rows);
    let mut before: Option<(usize, usize)> = None;
    for (x, column) in curve.columns().iter().enumerate() {
        let Some(column) = column else { continue };
        if let Some(before) = before {
            join(&mut canvas, before, (x, row(column.first.1)));
        }
        (row(column.greatest.1)..=row(column.least.1)).for_each(|y| canvas.set(x, y));
        before = Some((x, row(column.last.1)));
    }
    canvas
}

/// Draws the line from one dot to another one to the right of it.
fn join(canvas: &mut Canvas, (left, from): (usize, usize), (right, to): (usize, usize)) {
    let (columns, rows) = (right - left, from.abs_diff(to));
    let mut before = from;
    for x in left + 1..=right {
        let share = (rows * (x - left) + columns / 2) / columns;
        let y = if to < from { from - share } else { from + share };
        (before.min(y)..=before.max(y)).for_each(|y| canvas.set(x, y));
        before = y;
    }
}

/// The row of a value, from the top; in the middle if all are the same.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share of some rows is a row"
)]
fn row_of((low, high): (f64, f64), value: f64, rows: usize) -> usize {
    // Halves, so that the span of the largest floats is finite.
    let span = high / 2.0 - low / 2.0;
    let share = if span > 0.0 { (high / 2.0 - value / 2.0) / span } else { 0.5 };
    ((share * (rows - 1) as f64).round() as usize).min(rows - 1)
}

#[cfg(test)]
mod tests {
    use duramen::Micros;

    use super::*;

    /// Each line of it once became two or three there.
    #[test]
    fn a_chart_is_as_wide_as_a_narrow_terminal() {
        assert_eq!([80, 30, 5].map(beside_labels), [72, 22, 8]);
    }

    #[test]
    fn dots_are_where_the_patterns_have_them() {
        let mut canvas = Canvas::new(2, 1);
        canvas.set(0, 0);
        canvas.set(1, 3);
        canvas.set(3, 1);
        let line = canvas.lines().next().unwrap();
        assert_eq!(line, "\u{2881}\u{2810}");
    }

    /// Points far from each other once were dots that no line joined.
    #[test]
    fn points_far_from_each_other_are_joined_by_lines() {
        let mut curve = Curve::new((Micros(0), Micros(15)), 16);
        for spot in [(0, 0.0), (6, 3.0), (15, 0.0)] {
            curve.add_spot(spot);
        }
        let lines: Vec<_> = draw(&curve, (8, 1)).lines().collect();
        assert_eq!(lines, ["\u{28e0}\u{2834}\u{281a}\u{2809}\u{2813}\u{2832}\u{2824}\u{28c4}"]);
        let mut steep = Canvas::new(1, 2);
        join(&mut steep, (0, 7), (1, 0));
        assert_eq!(steep.lines().collect::<Vec<_>>(), ["\u{28b8}", "\u{28b8}"]);
    }

    /// The greatest floats have 309 digits.
    #[test]
    fn labels_are_no_longer_than_numbers_have_to_be() {
        let cases = [
            (0.1 + 0.2, "0.30000000000000004"),
            (-1e18, "-1000000000000000000"),
            (f64::MAX, "1.7976931348623157e308"),
            (-1e-300, "-1e-300"),
        ];
        for (value, label) in cases {
            assert_eq!(value_label(value), label);
        }
    }

    #[test]
    fn values_have_rows_from_the_greatest_down() {
        let rows = |value| row_of((-1.0, 1.0), value, 5);
        assert_eq!([1.0, 0.0, -1.0].map(rows), [0, 2, 4]);
        assert_eq!(row_of((3.0, 3.0), 3.0, 5), 2);
        assert_eq!(row_of((f64::MIN, f64::MAX), f64::MAX, 5), 0);
    }
}
