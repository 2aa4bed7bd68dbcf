//! Texts of keys that are no strings, in the order of the keys: 20 characters for an integer, the
//! canonical 36 for a UUID.

/// Digits of an integer in its text.
pub(crate) const DIGITS: usize = 20;

/// One above the greatest number of eight digits.
pub(crate) const EIGHT_DIGITS: u64 = 100_000_000;

/// Where the hyphens of a UUID stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
pub(crate) const UUID_LEN: usize = 36;

/// Where its digits stand between them: of each eight the first four, and the others.
const HALVES: [[usize; 2]; 4] = [[0, 4], [9, 14], [19, 24], [28, 32]];

/// The text of a key, or the integer that it is for.
#[derive(Debug)]
pub(crate) enum KeyName<'k> {
    Text(&'k str),
    Integer(i128),
    Uuid([u8; UUID_LEN]),
}

impl KeyName<'_> {
    /// Its bytes; those of an integer are written into `digits`.
    #[inline]
    pub(crate) fn bytes<'n>(&'n self, digits: &'n mut [u8; DIGITS]) -> &'n [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Integer(key) => {
                *digits = text_of_integer(*key);
                digits
            }
            Self::Uuid(text) => text,
        }
    }
}

/// The same byte eight times.
const fn repeated(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// The text of an integer: negative ones come first and tell how far above the least they are.
pub(crate) fn text_of_integer(key: i128) -> [u8; DIGITS] {
    let is_negative = key < 0;
    let above = if is_negative { key - i128::from(i64::MIN) } else { key };
    let mut left = u64::try_from(above).unwrap_or(u64::MAX);
    let mut text = [b'0'; DIGITS];
    let (first, rest) = text.split_at_mut(DIGITS % 8);
    for eight in rest.as_chunks_mut().0.iter_mut().rev() {
        // Most integers are small.
        if left == 0 {
            break;
        }
        *eight = eight_digits(left % EIGHT_DIGITS);
        left /= EIGHT_DIGITS;
    }
    if left > 0 {
        first.copy_from_slice(&eight_digits(left)[4..]);
    }
    if is_negative {
        // The least has 19 digits above it, so the first one is free.
        text[0] = b'-';
    }
    text
}

/// The eight digits of a number below 100,000,000, all of them at once: it is taken apart to
/// numbers of four digits, of two, and of one.
pub(crate) fn eight_digits(number: u64) -> [u8; 8] {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    // Exact divisions by 100 and 10 of all parts, by what comes to the same.
    let hundreds = (fours.wrapping_mul(10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = (twos.wrapping_mul(103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - 10 * tens) << 8);
    (ones | repeated(b'0')).to_le_bytes()
}

/// The digits of a number below 100,000,000 without the zeros before them, and how many they are;
/// behind them something else.
#[inline]
pub(crate) fn significant_digits(number: u64) -> ([u8; 8], usize) {
    let digits = u64::from_le_bytes(eight_digits(number));
    // The last one is always written.
    let others = (digits ^ repeated(b'0')) | 1 << 56;
    let zeros = others.trailing_zeros() / 8;
    ((digits >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize)
}

/// The integer that a text of that form is for.
pub(crate) fn integer_of(text: &[u8]) -> Option<i128> {
    let mut digits: [u8; DIGITS] = text.try_into().ok()?;
    let is_negative = digits[0] == b'-';
    if is_negative {
        digits[0] = b'0';
    }
    let (first, rest) = digits.split_first_chunk::<4>()?;
    let mut number = 0_u64;
    for eight in [[*b"0000", *first].as_flattened(), &rest[..8], &rest[8..]] {
        let eight = number_of(eight.try_into().ok()?)?;
        number = number.checked_mul(EIGHT_DIGITS)?.checked_add(eight)?;
    }
    let number = i128::from(number);
    if !is_negative {
        return Some(number);
    }
    Some(number + i128::from(i64::MIN)).filter(|&key| key < 0)
}

/// The number that eight digits are, all of them at once: neighbours are put together to numbers
/// of two digits, these to numbers of four, and these to one.
fn number_of(digits: [u8; 8]) -> Option<u64> {
    let word = u64::from_le_bytes(digits);
    let high = repeated(0xf0);
    // Adding six moves what is above nine out of its sixteen.
    let are_digits = [word, word.wrapping_add(repeated(6))].map(|word| word & high);
    if are_digits != [repeated(b'0'); 2] {
        return None;
    }
    let ones = word & repeated(0x0f);
    let twos = (ones.wrapping_mul((10 << 8) | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul((100 << 16) | 1) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul((10_000 << 32) | 1) >> 32)
}

/// A UUID as people write it.
pub(crate) fn parse_uuid(text: &str) -> Option<u128> {
    let mut text: [u8; UUID_LEN] = text.as_bytes().try_into().ok()?;
    text.make_ascii_lowercase();
    uuid_of(&text)
}

/// A UUID with small letters.
#[inline]
pub(crate) fn uuid_of(text: &[u8]) -> Option<u128> {
    let text: &[u8; UUID_LEN] = text.try_into().ok()?;
    if HYPHENS.iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let mut digits = [0; UUID_LEN - HYPHENS.len()];
    digits[..8].copy_from_slice(&text[..8]);
    digits[8..12].copy_from_slice(&text[9..13]);
    digits[12..16].copy_from_slice(&text[14..18]);
    digits[16..20].copy_from_slice(&text[19..23]);
    digits[20..].copy_from_slice(&text[24..]);
    // Without a way out in between, so that it is done for many digits at once.
    let mut greatest = 0;
    for digit in &mut digits {
        let (decimal, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'a'));
        *digit = if decimal < 10 { decimal } else { letter.saturating_add(10) };
        greatest = greatest.max(*digit);
    }
    let mut bytes = [0; size_of::<u128>()];
    for (byte, [high, low]) in bytes.iter_mut().zip(digits.as_chunks().0) {
        *byte = high << 4 | low;
    }
    (greatest < 16).then(|| u128::from_be_bytes(bytes))
}

/// As RFC 9562 writes it.
pub(crate) fn text_of_uuid(uuid: u128) -> [u8; UUID_LEN] {
    let mut text = [b'-'; UUID_LEN];
    for ([first, second], bytes) in HALVES.into_iter().zip(uuid.to_be_bytes().as_chunks().0) {
        let digits = digits_of(u32::from_be_bytes(*bytes));
        text[first..first + 4].copy_from_slice(&digits[..4]);
        text[second..second + 4].copy_from_slice(&digits[4..]);
    }
    text
}

/// The eight hexadecimal digits of a number, all of them at once.
fn digits_of(number: u32) -> [u8; 8] {
    let mut digits = u64::from(number);
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & repeated(0x0f);
    // Of those from ten on the sum has the fifth bit.
    let is_letter = (digits + repeated(6)) >> 4 & repeated(1);
    let letters = is_letter * u64::from(b'a' - b'0' - 10);
    (digits + repeated(b'0') + letters).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `text_of_integer` says it, digit by digit.
    fn expected(key: i128) -> String {
        if key < 0 {
            return format!("-{:019}", key - i128::from(i64::MIN));
        }
        format!("{key:020}")
    }

    #[test]
    fn integers_are_written_and_read_by_their_digits() {
        let powers = (0..20).flat_map(|power| {
            let power = 10_i128.pow(power);
            [power - 1, power, power + 1, 7 * power + power / 3]
        });
        let ends = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX].map(i128::from);
        let mixed = (1..2_000_u64).map(|n| i128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        for key in powers.chain(ends).chain(mixed).chain([u64::MAX.into()]) {
            for key in [key, -key] {
                if key < i64::MIN.into() || key > u64::MAX.into() {
                    continue;
                }
                let text = text_of_integer(key);
                assert_eq!(str::from_utf8(&text), Ok(expected(key).as_str()));
                assert_eq!(integer_of(&text), Some(key));
            }
        }
    }

    #[test]
    fn what_is_no_integer_is_not_read() {
        let texts = [b"18446744073709551616", b"99999999999999999999", b"-9223372036854775808"];
        assert_eq!(texts.map(|text| integer_of(text)), [None; 3]);
        assert_eq!(integer_of(b"7"), None);
        for at in 0..DIGITS {
            for byte in 0..=u8::MAX {
                let mut text = *b"00000000000000000007";
                text[at] = byte;
                let is_right = byte.is_ascii_digit() && (at > 0 || byte < b'2');
                let is_right = is_right || (at == 0 && byte == b'-');
                assert_eq!(integer_of(&text).is_some(), is_right, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn uuids_are_read_by_their_digits_and_nothing_else() {
        let text = "0189abef-cdef-4567-89ab-cdef00112233";
        let uuid = Some(0x0189_abef_cdef_4567_89ab_cdef_0011_2233);
        assert_eq!((parse_uuid(text), uuid_of(text.as_bytes())), (uuid, uuid));
        assert_eq!(
            uuid.map(text_of_uuid).as_ref().map(<[u8; 36]>::as_slice),
            Some(text.as_bytes())
        );
        let capitals = text.to_ascii_uppercase();
        assert_eq!((parse_uuid(&capitals), uuid_of(capitals.as_bytes())), (uuid, None));
        for at in 0..UUID_LEN {
            for byte in 0..=u8::MAX {
                let mut other = text.as_bytes().to_vec();
                other[at] = byte;
                let is_hyphen = HYPHENS.contains(&at);
                let is_right = match byte {
                    b'-' => is_hyphen,
                    _ => !is_hyphen && b"0123456789abcdef".contains(&byte),
                };
                assert_eq!(uuid_of(&other).is_some(), is_right, "{byte} at {at}");
            }
        }
        assert!(uuid_of(b"0189abef").is_none());
    }
}
