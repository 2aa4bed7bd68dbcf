//! A chart as a picture, SVG or PNG.

use std::fmt::Display;
use std::path::Path;
use std::sync::Once;

use duramen::{Error, ErrorKind, Micros};
use plotters::coord::Shift;
use plotters::prelude::{
    BLUE, BitMapBackend, ChartBuilder, DrawingArea, DrawingBackend, IntoDrawingArea, LineSeries,
    SVGBackend, WHITE,
};
use plotters::style::{FontStyle, register_font};

use super::curve::{Axis, Curve};
use crate::{Result, moment, outfile};

/// The font of all text, registered under this name.
const FONT: &str = "sans-serif";
const MARGIN: u32 = 16;
const LABEL_WIDTH: u32 = 72;
const LABEL_HEIGHT: u32 = 32;
const CAPTION_SIZE: u32 = 20;
/// Labels of times beside each other.
const TIME_LABELS: usize = 5;
/// Of a pixel in a PNG.
const RGB: usize = 3;

/// What a picture shows.
pub(crate) struct Shown<'a> {
    pub(crate) caption: String,
    pub(crate) curve: &'a Curve,
    pub(crate) axis: Axis,
}

/// Draws a curve into a file, SVG or PNG as its name ends.
pub(crate) fn write(file: &Path, size: (u32, u32), shown: &Shown<'_>) -> Result<()> {
    static FONTS: Once = Once::new();
    let (low, high) = shown.curve.range().unwrap_or_default();
    if !(high - low).is_finite() {
        let message = "its values reach further than a picture can: choose a span of them (--from, \
                       --to), or leave out --out for a chart in the terminal";
        return Err(Error::new(ErrorKind::Invalid, message).into());
    }
    FONTS.call_once(|| {
        // It is a font, so it is taken.
        let _ = register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
    let ends = |end: &str| file.extension().is_some_and(|found| found.eq_ignore_ascii_case(end));
    let picture = if ends("svg") {
        let mut text = String::new();
        draw(&SVGBackend::with_string(&mut text, size).into_drawing_area(), shown)
            .map_err(|error| failed(&error))?;
        text.into_bytes()
    } else if ends("png") {
        png(size, shown)?
    } else {
        let message = format!("{}: name a file that ends with .svg or .png", file.display());
        return Err(Error::new(ErrorKind::Invalid, message).into());
    };
    outfile::replace(file, |out| Ok(out.write_all(&picture)?))
}

fn png(size: (u32, u32), drawn: &Shown<'_>) -> Result<Vec<u8>> {
    let mut pixels = vec![0; size.0 as usize * size.1 as usize * RGB];
    draw(&BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area(), drawn)
        .map_err(|error| failed(&error))?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    let written = encoder.write_header().and_then(|mut png| png.write_image_data(&pixels));
    written.map_err(|error| failed(&error))?;
    Ok(file)
}

fn failed(error: &impl Display) -> Error {
    Error::new(ErrorKind::Internal, format!("cannot draw the chart: {error}"))
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture is no exact time")]
fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    shown: &Shown<'_>,
) -> std::result::Result<(), plotters::drawing::DrawingAreaErrorKind<B::ErrorType>> {
    area.fill(&WHITE)?;
    let Shown { caption, curve, axis } = shown;
    let (first, last) = curve.times();
    let (low, high) = padded(curve.range().unwrap_or_default());
    let until = (last.0 as f64).max(first.0 as f64 + 1.0);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, (FONT, CAPTION_SIZE))
        .margin(MARGIN)
        .x_label_area_size(LABEL_HEIGHT)
        .y_label_area_size(LABEL_WIDTH)
        .build_cartesian_2d(first.0 as f64..until, low..high)?;
    chart
        .configure_mesh()
        .x_labels(TIME_LABELS)
        .x_label_formatter(&|place| match axis {
            Axis::Time => label(*place, until - first.0 as f64),
            Axis::Number => place.to_string(),
        })
        .draw()?;
    chart.draw_series(LineSeries::new(
        curve.spots().map(|(time, value)| (time as f64, value)),
        &BLUE,
    ))?;
    area.present()
}

/// A range of values with something above and below, that is not empty.
fn padded((low, high): (f64, f64)) -> (f64, f64) {
    const SHARE: f64 = 0.05;
    let pad = (high - low) * SHARE;
    if pad > 0.0 && pad.is_finite() { (low - pad, high + pad) } else { (low - 1.0, high + 1.0) }
}

/// A time as exactly as a chart of so many microseconds needs it.
#[expect(clippy::cast_possible_truncation, reason = "a time of the chart's span is in range")]
fn label(time: f64, span: f64) -> String {
    const DAY: f64 = 86_400e6;
    let text = moment::format(Micros(time as i64));
    let wanted = if span > 4.0 * DAY { "2024-05-01".len() } else { "2024-05-01T12:30:00".len() };
    text.get(..wanted).map_or(text.clone(), |cut| cut.replace('T', " "))
}
