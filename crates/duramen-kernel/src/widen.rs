//! Loops of other crates, compiled for several kinds of processors.

#[cfg(target_arch = "x86_64")]
use crate::x86;

/// A loop that is compiled for several kinds of processors: [`run_widest`] takes the widest.
///
/// `run` and the functions that it spends its time in have to be `#[inline(always)]`: what is
/// called instead stays as narrow as it is.
pub trait Widen {
    /// What comes of it.
    type Output;

    /// Runs it.
    fn run(self) -> Self::Output;
}

/// Runs a loop as it was compiled for the widest of what this processor has: with AVX2, or as it
/// is for any.
///
/// ```
/// struct Doubled<'a>(&'a mut [u64]);
///
/// impl duramen_kernel::Widen for Doubled<'_> {
///     type Output = ();
///
///     #[inline(always)]
///     fn run(self) {
///         self.0.iter_mut().for_each(|value| *value *= 2);
///     }
/// }
///
/// let mut values = [1, 2, 3];
/// duramen_kernel::run_widest(Doubled(&mut values));
/// assert_eq!(values, [2, 4, 6]);
/// ```
#[inline]
pub fn run_widest<W: Widen>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = x86::Avx2::detect() {
        return x86::run(avx2, work);
    }
    work.run()
}
