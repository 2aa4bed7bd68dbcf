//! Tables for people, at the end of each workload.

use std::fmt::Write as _;

use crate::figures::Figure;

/// The figures as an aligned table.
pub(crate) fn render(figures: &[Figure]) -> String {
    let heads = ["", "case", "metric", "subject", "median", "min .. max", "unit", "ratio", ""];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(figures.iter().map(row));
    let mut widths = [0; 9];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
            let number = column == 4 || column == 5;
            let _ = if number {
                write!(line, "{cell:>width$}  ")
            } else {
                write!(line, "{cell:<width$}  ")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(figure: &Figure) -> [String; 9] {
    let ratio = match (figure.rival, figure.ratio, figure.ratio_min, figure.ratio_max) {
        (Some(rival), Some(ratio), Some(min), Some(max)) => {
            format!("{} ({} .. {}) x {rival}", number(ratio), number(min), number(max))
        }
        _ => String::new(),
    };
    [
        figure.workload.to_owned(),
        figure.case.clone(),
        figure.metric.to_owned(),
        figure.subject.to_owned(),
        number(figure.median),
        range(figure),
        figure.unit.to_owned(),
        ratio,
        figure.durability.to_owned(),
    ]
}

/// Empty where there is one sample only.
fn range(figure: &Figure) -> String {
    if figure.min.total_cmp(&figure.max).is_eq() {
        return String::new();
    }
    format!("{} .. {}", number(figure.min), number(figure.max))
}

/// A number with three significant digits, or none behind the point from 100 on.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        size if size >= 0.001 => format!("{value:.3}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown = [12_345.6, 99.94, 1.234, 0.0456, 0.0].map(number);
        assert_eq!(shown, ["12346", "99.9", "1.23", "0.046", "0"]);
    }
}
