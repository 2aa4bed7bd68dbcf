use proptest::prelude::*;

use super::*;

/// A bitmap as it is described: value by value.
fn bitmap(len: usize, is_set: impl Fn(usize) -> bool) -> Vec<u64> {
    let mut bits = vec![0; len.div_ceil(64)];
    for at in (0..len).filter(|at| is_set(*at)) {
        bits[at / 64] |= 1 << (at % 64);
    }
    bits
}

fn chosen<L: Lane>(values: &[L], bits: &[u64]) -> Vec<u64> {
    let is_set = |at: &usize| bits[at / 64] >> (at % 64) & 1 != 0;
    (0..values.len()).filter(is_set).map(|at| values[at].value()).collect()
}

fn check<L: Lane>(values: &[L], (low, high): (u64, u64), mask: &[u64]) {
    let expected = bitmap(values.len(), |at| (low..=high).contains(&values[at].value()));
    // What was there before does not matter.
    let mut bits = vec![u64::MAX; expected.len() + 1];
    between(values, low, high, &mut bits);
    assert_eq!(bits[..expected.len()], expected, "{low}..={high}");
    assert_eq!(bits[expected.len()], 0);
    scalar::between(values, low, high, &mut bits);
    assert_eq!(bits[..expected.len()], expected, "{low}..={high}");
    let chosen = chosen(values, mask);
    let sum = chosen.iter().map(|value| u128::from(*value)).sum::<u128>();
    let bounds = chosen.iter().min().copied().zip(chosen.iter().max().copied());
    assert_eq!((masked_sum(values, mask), scalar::masked_sum(values, mask)), (sum, sum));
    assert_eq!(
        (masked_bounds(values, mask), scalar::masked_bounds(values, mask)),
        (bounds, bounds)
    );
}

proptest! {
    #[test]
    fn loops_find_what_is_there_value_by_value(
        wide in proptest::collection::vec(any::<u64>(), 0..400),
        shift in 0_u32..64,
        (low, high) in (any::<u64>(), any::<u64>()),
        mask in proptest::collection::vec(any::<u64>(), 7),
    ) {
        let wide: Vec<_> = wide.into_iter().map(|value| value >> shift).collect();
        let mask = bitmap(wide.len(), |at| mask[at / 64] >> (at % 64) & 1 != 0);
        let range = (low >> shift, high >> shift);
        check(&wide.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>(), range, &mask);
        let low_bytes = |value: &u64| value.to_le_bytes();
        let fours = wide.iter().map(|value| *low_bytes(value).first_chunk::<4>().unwrap());
        check(&fours.collect::<Vec<_>>(), range, &mask);
        let twos = wide.iter().map(|value| *low_bytes(value).first_chunk::<2>().unwrap());
        check(&twos.collect::<Vec<_>>(), range, &mask);
        let ones: Vec<u8> = wide.iter().map(|value| low_bytes(value)[0]).collect();
        check(&ones, range, &mask);
        check(&ones, (low & 0xff, high & 0x1ff), &mask);
        let set: u32 = mask.iter().map(|word| word.count_ones()).sum();
        assert_eq!((count(&mask), scalar::count(&mask)), (set.into(), set.into()));
    }

    #[test]
    fn halves_and_histograms_are_those_of_single_values(
        bytes in proptest::collection::vec(any::<u8>(), 0..20_000),
        is_odd in any::<bool>(),
        mask in proptest::collection::vec(any::<u64>(), 7),
        distinct in 1_usize..40,
    ) {
        let mut values = vec![0; (2 * bytes.len()).saturating_sub(usize::from(is_odd))];
        unpack_halves(&bytes, &mut values);
        let mut twin = vec![0; values.len()];
        scalar::unpack_halves(&bytes, &mut twin);
        assert_eq!(values, twin);
        #[cfg(target_arch = "x86_64")]
        {
            twin.fill(0xff);
            let whole = 2 * x86::unpack_halves(&bytes, &mut twin);
            assert!(values.len() - whole < 32);
            assert_eq!(values[..whole], twin[..whole]);
        }
        for (at, value) in values.iter().enumerate() {
            assert_eq!(*value, if at % 2 == 0 { bytes[at / 2] & 0xf } else { bytes[at / 2] >> 4 });
        }
        let factor = u8::try_from(distinct).unwrap();
        let mut codes = bytes.clone();
        combine(&mut codes, factor, &values);
        let mut twin = bytes.clone();
        scalar::combine(&mut twin, factor, &values);
        let combined = |(code, other): (&u8, &u8)| code.wrapping_mul(factor).wrapping_add(*other);
        let expected: Vec<_> = bytes.iter().zip(&values).map(combined).collect();
        assert_eq!((&codes[..expected.len()], &twin), (&expected[..], &codes));
        for values in [&values, &bytes] {
            let some = |at: usize| mask[at / 64 % 7] >> (at % 64) & 1 != 0;
            for bits in [bitmap(values.len(), |_| true), bitmap(values.len(), some)] {
                let (mut counts, mut twin) = (vec![1; distinct], vec![1; distinct]);
                masked_histogram(values, &bits, &mut counts);
                scalar::masked_histogram(values, &bits, &mut twin);
                let of = chosen(values, &bits);
                let count = |wanted| 1 + of.iter().filter(|value| **value == wanted).count();
                let expected: Vec<_> = (0..distinct).map(|at| count(at as u64) as u64).collect();
                assert_eq!((&counts, &twin), (&expected, &expected));
            }
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn bytes_are_compared_with_what_every_processor_has() {
    let values: Vec<u8> = (0..=255).cycle().take(640).collect();
    for (low, high) in [(0, 255), (0, 0), (41, 241), (255, 255), (200, 255), (128, 131)] {
        let expected = bitmap(640, |at| (low..=high).contains(&values[at].into()));
        let mut bits = [0; 10];
        assert_eq!(x86::bytes_between(&values, (low, high), &mut bits), 10);
        assert_eq!(bits[..], expected);
    }
}

proptest! {
    #[test]
    fn the_checksum_of_a_record_is_that_of_its_bytes(
        (sum, head) in (any::<u32>(), any::<u32>()),
        words in any::<[u64; 3]>(),
    ) {
        let mut bytes = head.to_le_bytes().to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let expected = crc32c::crc32c_append(sum, &bytes);
        assert_eq!(crc32c_record(sum, head, words), expected);
        assert_eq!(scalar::crc32c_record(sum, head, words), expected);
    }
}
