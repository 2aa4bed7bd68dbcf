//! A chart as a picture, SVG or PNG.

use std::fmt::Display;
use std::path::Path;
use std::sync::Once;

use duramen::{Error, ErrorKind};
use plotters::coord::Shift;
use plotters::prelude::{
    BLUE, BitMapBackend, ChartBuilder, Circle, Color, DrawingArea, DrawingBackend, IntoDrawingArea,
    LineSeries, SVGBackend, WHITE,
};
use plotters::style::{FontStyle, register_font};

use super::curve::{Axis, Curve};
use super::ticks::{Ticks, value_label};
use crate::{Result, outfile};

/// The font of all text, registered under this name.
const FONT: &str = "sans-serif";
const MARGIN: u32 = 16;
/// Of the labels of values: at least, and of each character.
const LABEL_WIDTH: u32 = 72;
const CHARACTER_WIDTH: u32 = 7;
const LABEL_HEIGHT: u32 = 32;
const CAPTION_SIZE: u32 = 20;
/// Labels of times beside each other, at most.
const TIME_LABELS: usize = 5;
/// Of a point that is alone.
const DOT_RADIUS: i32 = 3;
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

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    shown: &Shown<'_>,
) -> std::result::Result<(), plotters::drawing::DrawingAreaErrorKind<B::ErrorType>> {
    area.fill(&WHITE)?;
    let Shown { caption, curve, axis } = shown;
    let (first, last) = curve.times();
    let (low, high) = padded(curve.range().unwrap_or_default());
    let ticks = Ticks::new(*axis, (first.0, last.0), TIME_LABELS);
    let value_label = |value: &f64| value_label(*value, high - low);
    let longest = value_label(&low).len().max(value_label(&high).len());
    let label_width = CHARACTER_WIDTH * u32::try_from(longest).unwrap_or(0) + MARGIN;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, (FONT, CAPTION_SIZE))
        .margin(MARGIN)
        .x_label_area_size(LABEL_HEIGHT)
        .y_label_area_size(label_width.max(LABEL_WIDTH))
        .build_cartesian_2d(ticks, low..high)?;
    chart.configure_mesh().y_label_formatter(&value_label).draw()?;
    chart.draw_series(LineSeries::new(curve.spots(), &BLUE))?;
    // A line from a point to itself has no length.
    let lone = curve.spots().next().filter(|lone| curve.spots().all(|spot| spot == *lone));
    chart.draw_series(lone.map(|spot| Circle::new(spot, DOT_RADIUS, BLUE.filled())))?;
    area.present()
}

/// A range of values with something above and below, that is not empty.
fn padded((low, high): (f64, f64)) -> (f64, f64) {
    const SHARE: f64 = 0.05;
    let pad = (high - low) * SHARE;
    if pad > 0.0 && pad.is_finite() { (low - pad, high + pad) } else { (low - 1.0, high + 1.0) }
}
