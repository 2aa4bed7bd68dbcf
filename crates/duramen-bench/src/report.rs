//! `report.html`: one page with charts, without scripts and without any reference to the network.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;

use crate::figures::Figure;
use crate::files;
use crate::machine::Machine;
use crate::subject::DURAMEN;
use crate::table::number;

const STYLE: &str = "\
:root { color-scheme: light dark; --ours: #a8502a; --theirs: #8a8f98; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { border-top: 1px solid var(--line); padding-top: 1.5rem; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.2rem 0 0.2rem; }
h3 small { font-weight: 400; opacity: 0.7; } svg { width: 100%; height: auto; display: block; }
text { font: 13px system-ui, sans-serif; fill: currentColor; }
.ours { fill: var(--ours); } .theirs { fill: var(--theirs); }
.range { stroke: currentColor; stroke-opacity: 0.6; }";

const WIDTH: f64 = 900.0;
const LABEL_WIDTH: f64 = 170.0;
const BAR_WIDTH: f64 = 430.0;
const ROW_HEIGHT: f64 = 26.0;

/// Writes the page.
pub(crate) fn write(folder: &Path, machine: &Machine, figures: &[Figure]) -> Result<()> {
    let page = render(&machine.line(), figures);
    Ok(files::write(&folder.join("report.html"), page.as_bytes())?)
}

fn render(machine: &str, figures: &[Figure]) -> String {
    let mut page =
        String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width\">");
    let _ = write!(page, "<title>Duramen: figures</title><style>{STYLE}</style></head><body>");
    let _ = write!(page, "<h1>Duramen: figures</h1><p>{}</p>", escape(machine));
    page.push_str("<p>Bars are medians, lines reach from the least to the greatest sample. ");
    page.push_str("A ratio above 1 means Duramen is ahead.</p>");
    let mut workload = "";
    for group in figures.chunk_by(is_same_measure) {
        let Some(first) = group.first() else { continue };
        if first.workload != workload {
            workload = first.workload;
            let _ = write!(page, "<h2>{}</h2>", escape(workload));
        }
        page.push_str(&chart(first, group));
    }
    page.push_str("</body></html>\n");
    page
}

fn is_same_measure(one: &Figure, other: &Figure) -> bool {
    let key = |figure: &Figure| (figure.workload, figure.metric, figure.unit);
    key(one) == key(other) && one.case == other.case
}

fn chart(first: &Figure, group: &[Figure]) -> String {
    let mut bars: Vec<&Figure> = Vec::new();
    for figure in group {
        if bars.iter().all(|bar| bar.subject != figure.subject) {
            bars.push(figure);
        }
    }
    let greatest = bars.iter().map(|bar| bar.max).fold(f64::MIN_POSITIVE, f64::max);
    let height = ROW_HEIGHT * bars.len() as f64;
    let title = format!("{} {}", first.case, first.metric);
    let detail = format!("{}, {}", first.unit, first.durability);
    let mut text = format!("<h3>{} <small>{}</small></h3>", escape(&title), escape(&detail));
    let _ = write!(text, "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">");
    let _ = write!(text, "<title>{}</title>", escape(&title));
    for (row, bar) in bars.iter().enumerate() {
        let against = group.iter().filter(|figure| figure.subject == bar.subject);
        let ratios: String = against.filter_map(ratio).collect();
        draw(&mut text, bar, Place { top: row as f64 * ROW_HEIGHT, greatest }, &ratios);
    }
    text.push_str("</svg>");
    text
}

fn ratio(figure: &Figure) -> Option<String> {
    Some(format!("  {}x {}", number(figure.ratio?), figure.rival?))
}

#[derive(Debug, Clone, Copy)]
struct Place {
    top: f64,
    greatest: f64,
}

fn draw(text: &mut String, bar: &Figure, place: Place, ratios: &str) {
    let scaled = |value: f64| value.max(0.0) / place.greatest * BAR_WIDTH;
    let class = if bar.subject == DURAMEN { "ours" } else { "theirs" };
    let baseline = place.top + ROW_HEIGHT * 0.68;
    let middle = place.top + ROW_HEIGHT / 2.0;
    let (width, height) = (scaled(bar.median).max(1.0), ROW_HEIGHT - 8.0);
    let _ = write!(
        text,
        "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>\
         <rect class=\"{class}\" x=\"{LABEL_WIDTH}\" y=\"{:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\"/>",
        LABEL_WIDTH - 8.0,
        escape(bar.subject),
        place.top + 4.0,
    );
    let (from, to) = (LABEL_WIDTH + scaled(bar.min), LABEL_WIDTH + scaled(bar.max));
    let _ = write!(
        text,
        "<line class=\"range\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" \
         y2=\"{middle:.1}\"/><text x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
        to.max(LABEL_WIDTH + width) + 8.0,
        escape(&format!("{}{ratios}", number(bar.median))),
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{Figures, Measure};

    #[test]
    fn page_has_a_bar_for_each_subject_and_needs_no_network() {
        let mut figures = Figures::default();
        let measure = Measure::cost("V2", "time_per_read", "us").case("<warm>");
        figures.add(&measure, &[(DURAMEN, vec![2.0]), ("sqlite", vec![20.0])]);
        let page = render("a machine", figures.all());
        assert_eq!(page.matches("<rect").count(), 2);
        assert!(page.contains("&lt;warm&gt;") && page.contains("10.0x sqlite"));
        assert!(!page.contains("http") && !page.contains("<script"));
    }
}
