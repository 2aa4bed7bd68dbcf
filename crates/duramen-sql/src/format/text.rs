//! Columns for people.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::FieldRef;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use duramen::Result;

use super::flat;
use crate::answer::Answer;
use crate::failure;

/// Characters of a cell before it is cut.
const CELL_CHARACTERS_MAX: usize = 60;

/// Cells that are looked at before a table is begun, as they decide how wide its columns are.
const CELLS_MEASURED: usize = 100_000;

/// The cells of some rows, and whether each is a number.
struct Cells(Vec<Vec<(String, bool)>>);

/// Writes a heading and all rows. The first rows decide how wide columns are, so that any number of
/// them can follow; rows that need more make them wider from there on.
pub(super) fn write(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    let schema = answer.schema();
    // Columns of tables may be NULL, those of plans are not.
    let is_of_plan = |(field, name): (&FieldRef, _)| field.name() == name && !field.is_nullable();
    let names = ["plan_type", "plan"];
    if schema.fields().len() == names.len() && schema.fields().iter().zip(names).all(is_of_plan) {
        return write_plans(answer, out);
    }
    let names = schema.fields().iter().map(|field| cut(field.name())).collect::<Vec<_>>();
    let mut widths = names.iter().map(|name| name.chars().count()).collect::<Vec<_>>();
    let mut cells = measured(answer)?;
    cells.widen(&mut widths);
    let heading = names.into_iter().map(|name| (name, false)).collect::<Vec<_>>();
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("  ");
    write_row(&heading, &widths, out)?;
    writeln!(out, "{rule}").map_err(failure::output)?;
    let mut rows = 0;
    loop {
        for row in &cells.0 {
            write_row(row, &widths, out)?;
        }
        rows += cells.0.len();
        let Some(batch) = answer.next() else { break };
        cells = Cells::of(&batch?)?;
        cells.widen(&mut widths);
    }
    let plural = if rows == 1 { "" } else { "s" };
    writeln!(out, "({rows} row{plural})").map_err(failure::output)
}

/// The cells of the first rows.
fn measured(answer: &mut Answer<'_>) -> Result<Cells> {
    let mut cells = Cells(Vec::new());
    let columns = answer.schema().fields().len().max(1);
    while cells.0.len() * columns < CELLS_MEASURED
        && let Some(batch) = answer.next()
    {
        cells.0.extend(Cells::of(&batch?)?.0);
    }
    Ok(cells)
}

/// Writes plans as they are, each behind what it is: a table has no room for them.
fn write_plans(answer: &mut Answer<'_>, out: &mut dyn Write) -> Result<()> {
    for batch in answer {
        let batch = batch?;
        let options = FormatOptions::default();
        let formatters = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).map_err(failure::arrow));
        let formatters = formatters.collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let mut texts = formatters.iter().map(|formatter| formatter.value(row).to_string());
            writeln!(out, "{}:", texts.next().unwrap_or_default()).map_err(failure::output)?;
            for line in texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
                writeln!(out, "  {line}").map_err(failure::output)?;
            }
        }
    }
    Ok(())
}

impl Cells {
    /// Makes columns as wide as these cells.
    fn widen(&self, widths: &mut [usize]) {
        for row in &self.0 {
            for (width, (cell, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
    }

    fn of(batch: &RecordBatch) -> Result<Self> {
        let batch = flat(batch)?;
        let options = FormatOptions::default().with_null("");
        let formatters = batch.columns().iter().map(|column| {
            let formatter = ArrayFormatter::try_new(column, &options);
            formatter.map(|formatter| (formatter, column.data_type().is_numeric()))
        });
        let formatters = formatters.collect::<Result<Vec<_>, _>>().map_err(failure::arrow)?;
        let cell = |row: usize| {
            let cells = formatters.iter().map(move |(formatter, is_number)| {
                let text = formatter.value(row).try_to_string().map_err(failure::arrow)?;
                Ok((cut(&text), *is_number))
            });
            cells.collect::<Result<Vec<_>>>()
        };
        (0..batch.num_rows()).map(cell).collect::<Result<_>>().map(Self)
    }
}

fn write_row(row: &[(String, bool)], widths: &[usize], out: &mut dyn Write) -> Result<()> {
    let cells = row.iter().zip(widths).map(|((cell, is_number), &width)| match is_number {
        true => format!("{cell:>width$}"),
        false => format!("{cell:<width$}"),
    });
    let line = cells.collect::<Vec<_>>().join("  ");
    writeln!(out, "{}", line.trim_end()).map_err(failure::output)
}

/// A text on one line, not too long.
fn cut(text: &str) -> String {
    let mut cut: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(CELL_CHARACTERS_MAX)
        .collect();
    if text.chars().nth(CELL_CHARACTERS_MAX).is_some() {
        cut.push_str("...");
    }
    cut
}
