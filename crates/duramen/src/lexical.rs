//! The order of many byte strings.

/// The same indexes, in the order of the bytes that each stands for.
pub(crate) fn in_order<'b>(indexes: Vec<usize>, bytes: impl Fn(usize) -> &'b [u8]) -> Vec<usize> {
    // Most differ in their first bytes behind those that all have in common.
    let shared = shared(&indexes, &bytes);
    let lead = |index| leading(bytes(index).get(shared..).unwrap_or_default());
    let mut order: Vec<(u64, usize)> = indexes.iter().map(|&index| (lead(index), index)).collect();
    drop(indexes);
    order.sort_unstable_by_key(|&(lead, _)| lead);
    for alike in order.chunk_by_mut(|(lead, _), (other, _)| lead == other) {
        alike.sort_unstable_by(|&(_, index), &(_, other)| bytes(index).cmp(bytes(other)));
    }
    order.into_iter().map(|(_, index)| index).collect()
}

/// How many bytes all of them begin with alike.
fn shared<'b>(indexes: &[usize], bytes: &impl Fn(usize) -> &'b [u8]) -> usize {
    let Some(&first) = indexes.first() else { return 0 };
    let mut shared = bytes(first);
    for &index in indexes {
        let other = bytes(index);
        if !other.starts_with(shared) {
            let alike = shared.iter().zip(other).take_while(|(a, b)| a == b).count();
            shared = &shared[..alike];
        }
    }
    shared.len()
}

/// The first bytes as a number that compares as they do, as far as it goes.
fn leading(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_in_order_whatever_they_begin_with() {
        let strings = ["alphabet", "alpha", "", "alphabet soup", "alphabet", "b", "alphabets"];
        for strings in [&strings[..], &strings[3..5], &strings[..2], &[]] {
            let indexes: Vec<usize> = (0..strings.len()).collect();
            let order = in_order(indexes, |index| strings[index].as_bytes());
            let mut expected = strings.to_vec();
            expected.sort_unstable();
            let found: Vec<&str> = order.iter().map(|&index| strings[index]).collect();
            assert_eq!(found, expected);
        }
    }
}
