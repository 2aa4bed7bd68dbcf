//! Texts of keys that are no strings, in the order of the keys: 20 characters for an integer, the
//! canonical 36 for a UUID.

/// Digits of an integer in its text.
pub(crate) const DIGITS: usize = 20;

/// Where the hyphens of a UUID stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
pub(crate) const UUID_LEN: usize = 36;

/// Where its digits stand between them: of each eight the first four, and the others.
const HALVES: [[usize; 2]; 4] = [[0, 4], [9, 14], [19, 24], [28, 32]];

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
    for digit in text.iter_mut().rev() {
        if left == 0 {
            break;
        }
        *digit = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
    }
    if is_negative {
        // The least has 19 digits above it, so the first one is free.
        text[0] = b'-';
    }
    text
}

/// The integer that a text of that form is for.
pub(crate) fn integer_of(text: &[u8]) -> Option<i128> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if text.len() != DIGITS {
        return None;
    }
    let add = |number: u64, digit: &u8| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    let number = i128::from(digits.iter().try_fold(0, add)?);
    if digits.len() == text.len() {
        return Some(number);
    }
    Some(number + i128::from(i64::MIN)).filter(|&key| key < 0)
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
