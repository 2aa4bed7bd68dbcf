//! The heaviest increasing subsequence, which decides what two orders of the same things have in
//! common.

use std::collections::BTreeMap;

/// A thing in one order, with its place in the other order and its worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// The place in the other order.
    pub(crate) place: u64,
    /// What keeping the point is worth; above 0.
    pub(crate) weight: u64,
}

/// The indices of points whose places strictly rise and whose weights sum to the most, in
/// O(n log n). Deterministic: of several such subsequences always the same one.
///
/// With all weights 1 this is the longest increasing subsequence (Fredman 1975); with the pairs of
/// equal items of two lists, by rising old and falling new index, it is their longest common
/// subsequence (Hunt and Szymanski 1977).
pub(crate) fn heaviest_increasing(points: &[Point]) -> Vec<usize> {
    // The best chains by the place they end at. One that ends later is heavier, or it is dropped:
    // so the last chain before a place is the heaviest to go on from.
    let mut chains: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(points.len());
    for (index, point) in points.iter().enumerate() {
        let before = chains.range(..point.place).next_back().map(|(_, &chain)| chain);
        previous.push(before.map(|(_, index)| index));
        let weight = before.map_or(0, |(weight, _)| weight) + point.weight;
        if chains.get(&point.place).is_some_and(|&(other, _)| other >= weight) {
            continue;
        }
        chains.insert(point.place, (weight, index));
        while let Some((&place, &(other, _))) = chains.range(point.place + 1..).next()
            && other <= weight
        {
            chains.remove(&place);
        }
    }
    let mut chain = Vec::new();
    let mut at = chains.last_key_value().map(|(_, &(_, index))| index);
    while let Some(index) = at {
        chain.push(index);
        at = previous[index];
    }
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(points: &[(u64, u64)]) -> u64 {
        let points: Vec<Point> =
            points.iter().map(|&(place, weight)| Point { place, weight }).collect();
        let chain = heaviest_increasing(&points);
        assert!(chain.is_sorted_by(|a, b| a < b && points[*a].place < points[*b].place));
        chain.iter().map(|&index| points[index].weight).sum()
    }

    /// All subsequences, by bit mask.
    fn weigh_naively(points: &[(u64, u64)]) -> u64 {
        (0_u32..1 << points.len())
            .filter_map(|mask| {
                let chosen = points.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1);
                let chosen: Vec<_> = chosen.map(|(_, point)| *point).collect();
                let rising = chosen.is_sorted_by(|a, b| a.0 < b.0);
                rising.then(|| chosen.iter().map(|point| point.1).sum())
            })
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn agrees_with_the_best_of_all_subsequences() {
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
            (random >> 33) % below
        };
        for _ in 0..500 {
            let count = next(10);
            let points: Vec<_> = (0..count).map(|_| (next(8), 1 + next(5))).collect();
            assert_eq!(weigh(&points), weigh_naively(&points), "{points:?}");
        }
    }
}
