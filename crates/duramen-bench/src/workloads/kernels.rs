//! KN: the loops that aggregates spend their time in, each beside one written by hand for its
//! width of integers, over as many values as a chunk has.

mod floors;

use std::hint::black_box;

use anyhow::{Result, ensure};
use duramen_kernel as kernel;

use crate::figures::Measure;
use crate::random::SplitMix64;
use crate::sampling::{Rounds, interleave};
use crate::session::Session;
use crate::stopwatch::Stopwatch;
use crate::subject::DURAMEN;

const FLOOR: &str = "floor";
const ROUNDS: Rounds = Rounds { warmups: 3, measured: 51 };
const SEED: u64 = 0x6b65_726e;

/// Values of a chunk.
const VALUES: usize = 4_096;

/// Calls of a sample.
const CALLS: u32 = 200;

/// Codes are below it, so that few are counted.
const FEW: u8 = 16;

const FACTOR: u8 = 7;

#[derive(Debug, Clone, Copy)]
enum Kernel {
    Between(Width),
    Sum(Width),
    Bounds(Width),
    Count,
    UnpackHalves,
    Combine,
    FewCounted,
    ManyCounted,
}

/// Bytes of an integer.
#[derive(Debug, Clone, Copy)]
enum Width {
    One,
    Two,
    Four,
    Eight,
}

#[derive(Debug, Clone, Copy)]
enum Subject {
    Duramen,
    Floor,
}

/// What is looked at.
struct Input {
    /// Eight bytes for each value.
    bytes: Vec<u8>,
    /// Which values are chosen: about half of them.
    chosen: Vec<u64>,
    /// A few codes, one for each value.
    codes: Vec<u8>,
}

/// What is made.
#[derive(Debug, Clone, PartialEq)]
struct Output {
    bits: Vec<u64>,
    bytes: Vec<u8>,
    counts: Vec<u64>,
    sum: u128,
    bounds: (u64, u64),
}

/// KN: each kernel beside its floor.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    if !floors::can_run() {
        eprintln!("the kernels are skipped: what they are held against needs AVX2");
        return Ok(());
    }
    let input = Input::new();
    for kernel in Kernel::all() {
        let [made, expected] = [Subject::Duramen, Subject::Floor].map(|subject| {
            let mut output = Output::new();
            subject.run(kernel, &input, &mut output);
            output
        });
        ensure!(made == expected, "{kernel:?} finds something else than its floor");
        let mut subjects = [(Subject::Duramen, made), (Subject::Floor, expected)];
        let samples = interleave(&mut subjects, ROUNDS, |(subject, output), _| {
            let watch = Stopwatch::start();
            for _ in 0..CALLS {
                subject.run(kernel, black_box(&input), output);
            }
            Ok(watch.micros() * 1e3 / f64::from(CALLS))
        })?;
        let [ours, floor] = samples.as_slice() else { return Ok(()) };
        let measure = Measure::cost("KN", "time", "ns").case(kernel.name());
        session.figures.add(&measure, &[(DURAMEN, ours.clone()), (FLOOR, floor.clone())]);
    }
    Ok(())
}

impl Kernel {
    fn all() -> impl Iterator<Item = Self> {
        let widths = [Width::One, Width::Two, Width::Four, Width::Eight];
        let by_width = [Self::Between, Self::Sum, Self::Bounds].into_iter();
        by_width.flat_map(move |of| widths.map(of)).chain([
            Self::Count,
            Self::UnpackHalves,
            Self::Combine,
            Self::FewCounted,
            Self::ManyCounted,
        ])
    }

    fn name(self) -> String {
        match self {
            Self::Between(width) => format!("between, {}", width.name()),
            Self::Sum(width) => format!("sum, {}", width.name()),
            Self::Bounds(width) => format!("bounds, {}", width.name()),
            Self::Count => "bits set".to_owned(),
            Self::UnpackHalves => "halves of bytes".to_owned(),
            Self::Combine => "codes of two columns".to_owned(),
            Self::FewCounted => format!("counts of {FEW} values"),
            Self::ManyCounted => "counts of 256 values".to_owned(),
        }
    }
}

impl Width {
    fn name(self) -> &'static str {
        match self {
            Self::One => "1 byte",
            Self::Two => "2 bytes",
            Self::Four => "4 bytes",
            Self::Eight => "8 bytes",
        }
    }
}

impl Input {
    fn new() -> Self {
        let mut random = SplitMix64::new(SEED);
        let bytes: Vec<u8> = (0..VALUES).flat_map(|_| random.next().to_le_bytes()).collect();
        let chosen = (0..VALUES / 64).map(|_| random.next()).collect();
        let codes = bytes[..VALUES].iter().map(|byte| byte % FEW).collect();
        Self { bytes, chosen, codes }
    }

    /// The values at one width.
    fn of(&self, bytes: usize) -> &[u8] {
        &self.bytes[..bytes * VALUES]
    }

    fn ones(&self) -> &[u8] {
        self.of(1)
    }

    fn twos(&self) -> &[[u8; 2]] {
        self.of(2).as_chunks().0
    }

    fn fours(&self) -> &[[u8; 4]] {
        self.of(4).as_chunks().0
    }

    fn eights(&self) -> &[[u8; 8]] {
        self.of(8).as_chunks().0
    }
}

impl Output {
    fn new() -> Self {
        let (bits, bytes, counts) = (vec![0; VALUES / 64], vec![0; VALUES], vec![0; 256]);
        Self { bits, bytes, counts, sum: 0, bounds: (0, 0) }
    }
}

/// A range that about a third of the integers of a type are in.
macro_rules! range {
    ($integer:ty) => {
        (<$integer>::MAX / 5, <$integer>::MAX / 2)
    };
}

impl Subject {
    fn run(self, kernel: Kernel, input: &Input, output: &mut Output) {
        match self {
            Self::Duramen => run_kernel(kernel, input, output),
            #[expect(unsafe_code, reason = "instructions that were looked for")]
            // SAFETY: the workload is skipped where `can_run` does not find the instructions.
            Self::Floor => unsafe { run_floor(kernel, input, output) },
        }
    }
}

fn run_kernel(kernel: Kernel, input: &Input, output: &mut Output) {
    macro_rules! between {
        ($values:ident, $integer:ty) => {{
            let (low, high) = range!($integer);
            kernel::between(input.$values(), low.into(), high.into(), &mut output.bits);
        }};
    }
    macro_rules! bounds {
        ($values:ident) => {{
            let bounds = kernel::masked_bounds(input.$values(), &input.chosen);
            output.bounds = bounds.unwrap_or_default();
        }};
    }
    let sum = &mut output.sum;
    match kernel {
        Kernel::Between(Width::One) => between!(ones, u8),
        Kernel::Between(Width::Two) => between!(twos, u16),
        Kernel::Between(Width::Four) => between!(fours, u32),
        Kernel::Between(Width::Eight) => between!(eights, u64),
        Kernel::Sum(Width::One) => *sum = kernel::masked_sum(input.ones(), &input.chosen),
        Kernel::Sum(Width::Two) => *sum = kernel::masked_sum(input.twos(), &input.chosen),
        Kernel::Sum(Width::Four) => *sum = kernel::masked_sum(input.fours(), &input.chosen),
        Kernel::Sum(Width::Eight) => *sum = kernel::masked_sum(input.eights(), &input.chosen),
        Kernel::Bounds(Width::One) => bounds!(ones),
        Kernel::Bounds(Width::Two) => bounds!(twos),
        Kernel::Bounds(Width::Four) => bounds!(fours),
        Kernel::Bounds(Width::Eight) => bounds!(eights),
        Kernel::Count => *sum = kernel::count(&input.chosen).into(),
        Kernel::UnpackHalves => {
            kernel::unpack_halves(&input.ones()[..VALUES / 2], &mut output.bytes);
        }
        Kernel::Combine => kernel::combine(&mut output.bytes, FACTOR, &input.codes),
        Kernel::FewCounted => {
            let counts = &mut output.counts[..FEW.into()];
            kernel::masked_histogram(&input.codes, &input.chosen, counts);
        }
        Kernel::ManyCounted => {
            kernel::masked_histogram(input.ones(), &input.chosen, &mut output.counts);
        }
    }
}

#[target_feature(enable = "avx2,popcnt")]
fn run_floor(kernel: Kernel, input: &Input, output: &mut Output) {
    let (sum, bounds, bits) = (&mut output.sum, &mut output.bounds, &mut output.bits);
    let chosen = &input.chosen;
    match kernel {
        Kernel::Between(Width::One) => floors::between_1(input.of(1), range!(u8), bits),
        Kernel::Between(Width::Two) => floors::between_2(input.of(2), range!(u16), bits),
        Kernel::Between(Width::Four) => floors::between_4(input.of(4), range!(u32), bits),
        Kernel::Between(Width::Eight) => floors::between_8(input.of(8), range!(u64), bits),
        Kernel::Sum(Width::One) => *sum = floors::sum_1(input.of(1), chosen),
        Kernel::Sum(Width::Two) => *sum = floors::sum_2(input.of(2), chosen),
        Kernel::Sum(Width::Four) => *sum = floors::sum_4(input.of(4), chosen),
        Kernel::Sum(Width::Eight) => *sum = floors::sum_8(input.of(8), chosen),
        Kernel::Bounds(Width::One) => *bounds = floors::bounds_1(input.of(1), chosen),
        Kernel::Bounds(Width::Two) => *bounds = floors::bounds_2(input.of(2), chosen),
        Kernel::Bounds(Width::Four) => *bounds = floors::bounds_4(input.of(4), chosen),
        Kernel::Bounds(Width::Eight) => *bounds = floors::bounds_8(input.of(8), chosen),
        Kernel::Count => *sum = floors::count(chosen).into(),
        Kernel::UnpackHalves => {
            floors::unpack_halves(&input.of(1)[..VALUES / 2], &mut output.bytes);
        }
        Kernel::Combine => floors::combine(&mut output.bytes, FACTOR, &input.codes),
        Kernel::FewCounted => floors::histogram(&input.codes, chosen, &mut output.counts),
        Kernel::ManyCounted => floors::histogram(input.of(1), chosen, &mut output.counts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_find_what_kernels_find() {
        let input = Input::new();
        for kernel in Kernel::all().filter(|_| floors::can_run()) {
            let (mut made, mut expected) = (Output::new(), Output::new());
            Subject::Duramen.run(kernel, &input, &mut made);
            assert_ne!(made, expected, "{kernel:?}");
            Subject::Floor.run(kernel, &input, &mut expected);
            assert_eq!(made, expected, "{kernel:?}");
        }
    }
}
