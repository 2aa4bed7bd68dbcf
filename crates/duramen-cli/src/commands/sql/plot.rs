//! The chart of an answer of two columns: where a value is from left to right, and the value.

use duramen::{Error, ErrorKind, Micros};
use duramen_sql::Answer;
use duramen_sql::arrow::array::{Array, AsArray};
use duramen_sql::arrow::compute::cast;
use duramen_sql::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};

use crate::commands::series::plot::curve::{Axis, Curve};

/// Points that are kept to be drawn.
const POINTS_MAX: usize = 10_000_000;

/// Reads all of an answer as a curve so many columns wide, and says what it is.
pub(super) fn read(answer: Answer<'_>, columns: u32) -> duramen::Result<(Curve, Axis, String)> {
    let invalid = |message: &str| Error::new(ErrorKind::Invalid, message);
    let schema = answer.schema();
    let [place, value] = schema.fields().as_ref() else {
        return Err(invalid("a chart needs two columns: a time or whole number, and a number"));
    };
    let (axis, of_place) = match place.data_type() {
        DataType::Timestamp(_, zone) => {
            (Axis::Time, DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        DataType::Date32 | DataType::Date64 => {
            (Axis::Time, DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        of if of.is_integer() => (Axis::Number, DataType::Int64),
        _ => return Err(invalid("the first column of a chart is a time or a whole number")),
    };
    if !value.data_type().is_numeric() {
        return Err(invalid("the second column of a chart is a number"));
    }
    let name = value.name().clone();
    let mut spots = Vec::new();
    let failed = |error| {
        let message = "a column of the chart is beyond what it can show";
        Error::new(ErrorKind::Invalid, message).with_source(error)
    };
    for batch in answer {
        let batch = batch?;
        let places = cast(batch.column(0), &of_place).map_err(failed)?;
        let places = cast(&places, &DataType::Int64).map_err(failed)?;
        let values = cast(batch.column(1), &DataType::Float64).map_err(failed)?;
        let (places, values) =
            (places.as_primitive::<Int64Type>(), values.as_primitive::<Float64Type>());
        let rows =
            (0..batch.num_rows()).filter(|&row| places.is_valid(row) && values.is_valid(row));
        spots.extend(rows.map(|row| (places.value(row), values.value(row))));
        if spots.len() > POINTS_MAX {
            let message =
                format!("a chart has at most {POINTS_MAX} points: group them, such as by date_bin");
            return Err(Error::new(ErrorKind::Full, message));
        }
    }
    spots.retain(|spot| spot.1.is_finite());
    spots.sort_by_key(|spot| spot.0);
    let (Some(first), Some(last)) = (spots.first(), spots.last()) else {
        return Err(Error::new(
            ErrorKind::NotFound,
            "the answer has nothing that a chart can show",
        ));
    };
    let mut curve = Curve::new((Micros(first.0), Micros(last.0)), columns);
    for spot in spots {
        curve.add_spot(spot);
    }
    Ok((curve, axis, name))
}
