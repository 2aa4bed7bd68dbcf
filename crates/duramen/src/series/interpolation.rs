//! Straight lines between two values.

use crate::series::block::float;

/// What is on the line from one number to another one, this share of the way.
///
/// It is told from the end that is nearer, so that both ends are what they are, and so is all that
/// is between two that are the same: of infinities too, where a difference would be no number.
pub(super) fn on_line((one, two): (f64, f64), share: f64) -> f64 {
    let (near, far, share) = if share <= 0.5 { (one, two, share) } else { (two, one, 1.0 - share) };
    let distance = far - near;
    if near.total_cmp(&far).is_eq() || share == 0.0 {
        near
    } else if distance.is_finite() {
        near + distance * share
    } else {
        // Between the ends of what a float can be there is more than a float.
        near.mul_add(1.0 - share, far * share)
    }
}

/// The number at a time on the line between two others.
pub(super) fn number_at(ends: (f64, f64), (from, to): (i64, i64), at: i64) -> f64 {
    on_line(ends, float(at.abs_diff(from)) / float(to.abs_diff(from)))
}

/// The integer nearest to that.
pub(super) fn integer_at((one, two): (i64, i64), (from, to): (i64, i64), at: i64) -> i64 {
    let whole = u128::from(to.abs_diff(from));
    // Two factors of 64 bits, and half of what they are divided by, have no more than 128.
    let rise = u128::from(two.abs_diff(one)) * u128::from(at.abs_diff(from)) + whole / 2;
    let rise = u64::try_from(rise / whole).unwrap_or(u64::MAX);
    if two > one { one.saturating_add_unsigned(rise) } else { one.saturating_sub_unsigned(rise) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "the ends and what is between the same are exact")]
    fn lines_come_from_one_end_to_the_other() {
        let shares = [0.0, 0.1, 0.3, 0.5, 0.7, 1.0];
        let along = |one: f64, two: f64| shares.map(|share| on_line((one, two), share));
        assert_eq!(along(0.1, 0.1), [0.1; 6]);
        assert_eq!(along(1.0, 11.0), [1.0, 2.0, 4.0, 6.0, 8.0, 11.0]);
        assert_eq!(along(f64::INFINITY, f64::INFINITY), [f64::INFINITY; 6]);
        let rising = along(1.0, f64::INFINITY);
        assert_eq!((rising[0], &rising[1..]), (1.0, &[f64::INFINITY; 5][..]));
        assert_eq!(on_line((f64::MIN, f64::MAX), 0.5), 0.0);
        assert_eq!(on_line((f64::MAX, f64::MIN), 1.0), f64::MIN);
        assert!(on_line((f64::NEG_INFINITY, f64::INFINITY), 0.5).is_nan());
        assert!(along(1.0, f64::NAN)[1..].iter().all(|value| value.is_nan()));
    }

    /// The difference times the time that is over has 128 bits: it was taken for 0.
    #[test]
    fn integers_are_the_nearest_to_the_line_wherever_they_are() {
        let (least, most) = (i64::MIN, i64::MAX);
        assert_eq!(integer_at((least, most), (least, most), 0), 0);
        assert_eq!(integer_at((most, least), (least, most), most - 1), least + 1);
        assert_eq!(integer_at((least, most), (least, most), most), most);
        assert_eq!(integer_at((most, most), (least, most), 5), most);
        for (ends, expected) in [((0, 10), 3), ((10, 0), 7), ((0, 1), 0), ((-2, -1), -2)] {
            assert_eq!(integer_at(ends, (-7, 3), -4), expected, "{ends:?}");
        }
        assert_eq!((integer_at((0, 1), (0, 2), 1), integer_at((0, -1), (0, 2), 1)), (1, -1));
    }
}
