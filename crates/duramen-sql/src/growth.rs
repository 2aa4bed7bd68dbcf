//! Functions whose values may be far longer than what they are made of, such as `repeat`.
//!
//! What a function gives is one array for all rows of a batch, which nobody counts before it is
//! there. So these say how long it will be, and end with `Full` where that is too much of the
//! memory that a query may take; where they are columns of an answer, fewer rows are taken at a
//! time ([`Rule`]).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

mod counted;
mod portions;

pub(crate) use portions::Rule;

/// The share of the memory of a query that may be taken by the arrays of a call in each partition.
const SHARE: usize = 4;

/// What a call may make however little memory there is.
const BYTES_MAX_LEAST: usize = 64 << 10;

/// Most bytes of a character.
const CHARACTER_BYTES: u64 = 4;

const VIEW_BYTES: usize = 16;
const OFFSET_BYTES: usize = 4;

/// How a function makes long values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// A text so many times.
    Repeated,
    /// A text with so many characters.
    Padded,
    /// A value so many times.
    Listed,
    /// A list of so many elements.
    Resized,
    /// The integers up to one, or those, dates or times from one to another.
    Counted,
    /// A text with another one in place of a part.
    Replaced,
    /// The elements of a list, with a text between them and one in place of NULL.
    Joined,
}

/// The functions.
const FUNCTIONS: [(&str, Growth); 9] = [
    ("repeat", Growth::Repeated),
    ("lpad", Growth::Padded),
    ("rpad", Growth::Padded),
    ("array_repeat", Growth::Listed),
    ("array_resize", Growth::Resized),
    ("range", Growth::Counted),
    ("generate_series", Growth::Counted),
    ("replace", Growth::Replaced),
    ("array_to_string", Growth::Joined),
];

/// A function of `DataFusion` whose arrays have so many bytes at most.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: ScalarUDF,
    growth: Growth,
    bytes_max: usize,
}

/// Bounds the functions of a query that may hold so much memory.
pub(crate) fn register(context: &SessionContext, memory_bytes: usize) {
    let partitions = context.copied_config().target_partitions().max(1);
    let bytes_max = (memory_bytes / SHARE / partitions).max(BYTES_MAX_LEAST);
    for (name, growth) in FUNCTIONS {
        if let Ok(function) = context.udf(name) {
            let inner = function.as_ref().clone();
            context.register_udf(ScalarUDF::new_from_impl(Bounded { inner, growth, bytes_max }));
        }
    }
}

/// The most bytes that a function may make, if it is one of those.
fn bytes_max(function: &ScalarUDF) -> Option<usize> {
    function.inner().downcast_ref::<Bounded>().map(|bounded| bounded.bytes_max)
}

impl Growth {
    /// About how many bytes the array of a call takes, of which there may be so many.
    fn bytes(self, args: &ScalarFunctionArgs, bytes_max: usize) -> Result<u64> {
        let rows = args.number_rows;
        let args = args.args.as_slice();
        let [of, rest @ ..] = args else { return Ok(0) };
        let first = || rest.first().map_or(Ok(vec![0; rows]), |argument| times(argument, rows));
        Ok(match self {
            Self::Repeated => {
                let texts = texts(of)?;
                let lengths = (0..rows).map(|row| text(&texts, row).map_or(0, len));
                sum(lengths.zip(first()?))
            }
            Self::Padded => {
                let bytes = if rest.len() > 1 { CHARACTER_BYTES } else { 1 };
                sum(first()?.into_iter().map(|characters| (bytes, characters)))
            }
            Self::Listed => {
                let bytes = bytes_of_each(of)?;
                sum(first()?.into_iter().map(|times| (bytes, times)))
            }
            Self::Resized => resized(of, &first()?, rest.get(1))?,
            Self::Counted => counted::bytes(args, rows)?,
            Self::Replaced => match rest {
                [from, to] => {
                    let texts = [texts(of)?, texts(from)?, texts(to)?];
                    let most = replaced(&texts, rows, |text, from| text.len() / from.len());
                    // Counting takes as long as the function does.
                    if most > bytes_max as u64 {
                        replaced(&texts, rows, |text, from| text.matches(from).count())
                    } else {
                        most
                    }
                }
                _ => 0,
            },
            Self::Joined => joined(of, rest, rows)?,
        })
    }
}

/// The bytes of lists of which each has so many elements.
fn resized(of: &ColumnarValue, sizes: &[u64], fill: Option<&ColumnarValue>) -> Result<u64> {
    let array = lists(of)?;
    let DataType::List(item) = array.data_type() else { return Ok(0) };
    let lists = array.as_list::<i32>();
    let null = value_bytes(&new_null_array(item.data_type(), 1)) as u64;
    let fill = fill.map_or(Ok(0), bytes_of_each)?.max(null);
    let kept = value_bytes(&array).div_ceil(array.len().max(1)) as u64;
    let added = sizes.iter().enumerate().map(|(row, &size)| {
        let row = if lists.len() == 1 { 0 } else { row };
        let len = lists.value_length(row).unsigned_abs();
        let added = if lists.is_null(row) { 0 } else { size.saturating_sub(len.into()) };
        (fill, added)
    });
    Ok(sum(added.chain([(kept, sizes.len() as u64)])))
}

/// The bytes of texts with something in place of a part that is found so many times.
fn replaced(
    [texts, from, to]: &[StringViewArray; 3],
    rows: usize,
    found: impl Fn(&str, &str) -> usize,
) -> u64 {
    let bytes = (0..rows).filter_map(|row| {
        let (of, from, to) = (text(texts, row)?, text(from, row)?, text(to, row)?);
        let more = to.len().saturating_sub(from.len());
        let times = if more == 0 || from.is_empty() { 0 } else { found(of, from) };
        Some([(1, len(of)), (more as u64, times as u64)])
    });
    sum(bytes.flatten())
}

/// The bytes of texts of the elements of lists with others between them and in place of NULL.
fn joined(of: &ColumnarValue, others: &[ColumnarValue], rows: usize) -> Result<u64> {
    let array = lists(of)?;
    let longest = |other: Option<&ColumnarValue>| -> Result<u64> {
        let Some(other) = other else { return Ok(0) };
        Ok(texts(other)?.iter().flatten().map(len).max().unwrap_or(0))
    };
    let (elements, nulls) = elements(&array);
    let bytes = [
        (1, value_bytes(&array) as u64),
        (longest(others.first())?, elements),
        (longest(others.get(1))?, nulls),
    ];
    let times = if matches!(of, ColumnarValue::Scalar(_)) { rows as u64 } else { 1 };
    Ok(sum(bytes.into_iter()).saturating_mul(times))
}

/// How many elements there are at most in lists and those in them, and how many of them are NULL.
fn elements(array: &dyn Array) -> (u64, u64) {
    let nulls = array.null_count() as u64;
    if !matches!(array.data_type(), DataType::List(_)) {
        return (array.len() as u64, nulls);
    }
    let (elements, inner_nulls) = elements(&values(array));
    (elements + nulls, inner_nulls + nulls)
}

/// The bytes of values, each of so many bytes so many times.
fn sum(values: impl Iterator<Item = (u64, u64)>) -> u64 {
    values.map(|(bytes, times)| bytes.saturating_mul(times)).fold(0, u64::saturating_add)
}

/// An argument as how many times something is made, which is never for NULL.
fn times(argument: &ColumnarValue, rows: usize) -> Result<Vec<u64>> {
    let integers = integers(&argument.to_array(rows)?)?;
    Ok(integers.into_iter().map(|times| times.unwrap_or(0).max(0).unsigned_abs()).collect())
}

fn integers(array: &dyn Array) -> Result<Vec<Option<i64>>> {
    let array = cast(array, &DataType::Int64)?;
    Ok(array.as_primitive::<Int64Type>().iter().collect())
}

/// The texts of an argument, which are one if it is the same for all rows.
fn texts(argument: &ColumnarValue) -> Result<StringViewArray> {
    let array = cast(&argument.to_array(1)?, &DataType::Utf8View)?;
    Ok(array.as_string_view().clone())
}

fn text(texts: &StringViewArray, row: usize) -> Option<&str> {
    let row = if texts.len() == 1 { 0 } else { row };
    texts.is_valid(row).then(|| texts.value(row))
}

fn len(text: &str) -> u64 {
    text.len() as u64
}

/// The lists of an argument, which are one if it is the same for all rows.
fn lists(argument: &ColumnarValue) -> Result<ArrayRef> {
    let array = argument.to_array(1)?;
    Ok(match array.data_type() {
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            cast(&array, &DataType::List(Arc::clone(item)))?
        }
        _ => array,
    })
}

/// The elements of an array of lists.
fn values(array: &dyn Array) -> ArrayRef {
    let list = array.as_list::<i32>();
    let first = list.value_offsets().first().map_or(0, |first| first.unsigned_abs());
    list.values().slice(first as usize, between(list.value_offsets()))
}

fn between(offsets: &[i32]) -> usize {
    match offsets {
        [first, .., last] => (last - first).unsigned_abs() as usize,
        _ => 0,
    }
}

/// About how many bytes each value of an argument has.
fn bytes_of_each(argument: &ColumnarValue) -> Result<u64> {
    let array = argument.to_array(1)?;
    Ok((value_bytes(&array) / array.len().max(1)) as u64)
}

/// The bytes of the values of an array, and not of others that it shares buffers with.
fn value_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => {
            let texts = array.as_string_view().lengths().map(|bytes| bytes as usize);
            texts.sum::<usize>() + VIEW_BYTES * array.len()
        }
        DataType::Utf8 => {
            between(array.as_string::<i32>().value_offsets()) + OFFSET_BYTES * array.len()
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| value_bytes(column)).sum()
        }
        DataType::List(_) => value_bytes(&values(array)) + OFFSET_BYTES * array.len(),
        kind => match kind.primitive_width() {
            Some(bytes) => bytes * array.len(),
            None => array.to_data().get_slice_memory_size().unwrap_or(array.len()),
        },
    }
}

impl Bounded {
    fn function(&self) -> &dyn ScalarUDFImpl {
        self.inner.inner().as_ref()
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.function().name()
    }

    fn aliases(&self) -> &[String] {
        self.function().aliases()
    }

    fn signature(&self) -> &Signature {
        self.function().signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.function().return_type(kinds)
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.function().coerce_types(kinds)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = self.growth.bytes(&args, self.bytes_max)?;
        if bytes > self.bytes_max as u64 {
            let (name, most) = (self.name(), self.bytes_max);
            return Err(resources_datafusion_err!(
                "{name}(...) makes {bytes} bytes at once, of {most} that a function may"
            ));
        }
        self.function().invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function().documentation()
    }
}
