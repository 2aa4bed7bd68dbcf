//! The widths of integers.

/// An unsigned integer as it lies in a cell.
pub trait Lane: Copy {
    /// The integer as processors know it.
    type Word: Copy + Ord;

    /// Its width.
    const BYTES: usize;

    /// The greatest value of its width.
    const MAX: u64;

    /// Its value at its own width.
    fn word(self) -> Self::Word;

    /// Its value.
    fn value(self) -> u64;

    /// The word of a value up to the greatest.
    fn narrow(value: u64) -> Self::Word;

    /// Their bytes.
    fn bytes(values: &[Self]) -> &[u8];
}

impl Lane for u8 {
    type Word = u8;

    const BYTES: usize = 1;

    const MAX: u64 = u8::MAX as u64;

    #[inline]
    fn word(self) -> u8 {
        self
    }

    #[inline]
    fn value(self) -> u64 {
        self.into()
    }

    #[inline]
    fn narrow(value: u64) -> u8 {
        u8::try_from(value).unwrap_or(u8::MAX)
    }

    #[inline]
    fn bytes(values: &[u8]) -> &[u8] {
        values
    }
}

macro_rules! lane {
    ($bytes:literal, $word:ty) => {
        impl Lane for [u8; $bytes] {
            type Word = $word;

            const BYTES: usize = $bytes;

            const MAX: u64 = <$word>::MAX as u64;

            #[inline]
            fn word(self) -> $word {
                <$word>::from_le_bytes(self)
            }

            #[inline]
            fn value(self) -> u64 {
                self.word().into()
            }

            #[inline]
            fn narrow(value: u64) -> $word {
                <$word>::try_from(value).unwrap_or(<$word>::MAX)
            }

            #[inline]
            fn bytes(values: &[Self]) -> &[u8] {
                values.as_flattened()
            }
        }
    };
}

lane!(2, u16);
lane!(4, u32);
lane!(8, u64);
