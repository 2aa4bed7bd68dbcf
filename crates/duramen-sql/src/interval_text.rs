//! Texts of intervals that the planner does not read, in words that it does.

/// The same text in words, if a clock, years and months or a form of ISO 8601 are in it: of
/// `1 day 02:30` it makes `1 day 2 hours 30 minutes 0 seconds`, and of `P1DT2H` `1 days 2 hours`.
pub(crate) fn in_words(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(iso) = text.strip_prefix(['P', 'p']) {
        return of_iso(iso);
    }
    let (mut words, mut is_changed) = (Vec::new(), false);
    let mut parts = text.split_whitespace().peekable();
    while let Some(part) = parts.next() {
        let is_before_clock = parts.peek().is_some_and(|next| next.contains(':'));
        let changed = match part {
            clock if clock.contains(':') => Some(of_clock(clock)?),
            // A number before a clock counts days.
            days if is_before_clock && is_number(days) => Some(format!("{days} days")),
            other => of_years(other),
        };
        is_changed |= changed.is_some();
        words.push(changed.unwrap_or_else(|| part.to_owned()));
    }
    is_changed.then(|| words.join(" "))
}

/// The sign of a text, of which a plus is none, and what is behind it.
fn signed(text: &str) -> (&str, &str) {
    match text.split_at_checked(1) {
        Some(("-", rest)) => ("-", rest),
        Some(("+", rest)) => ("", rest),
        _ => ("", text),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a number, which may have a sign and a fraction.
fn is_number(text: &str) -> bool {
    let (_, number) = signed(text);
    match number.split_once('.') {
        Some((whole, fraction)) => (whole.is_empty() || is_digits(whole)) && is_digits(fraction),
        None => is_digits(number),
    }
}

/// `2:30`, `02:30:00` or `-0:00:01.5`; none if it is no clock.
fn of_clock(clock: &str) -> Option<String> {
    let (sign, clock) = signed(clock);
    let (hours, rest) = clock.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let whole = seconds.split_once('.').map_or(seconds, |(whole, _)| whole);
    let is_below_60 = |part: &str| is_digits(part) && part.parse().is_ok_and(|part: u8| part < 60);
    let is_clock =
        is_digits(hours) && is_below_60(minutes) && is_below_60(whole) && is_number(seconds);
    is_clock.then(|| format!("{sign}{hours} hours {sign}{minutes} minutes {sign}{seconds} seconds"))
}

/// Years and months, `1-2`; none for anything else.
fn of_years(text: &str) -> Option<String> {
    let (sign, text) = signed(text);
    let (years, months) = text.split_once('-')?;
    let is_both =
        is_digits(years) && is_digits(months) && months.parse().is_ok_and(|of: u8| of < 12);
    is_both.then(|| format!("{sign}{years} years {sign}{months} months"))
}

/// What stands behind the `P` of ISO 8601; none if it is not of that form.
fn of_iso(iso: &str) -> Option<String> {
    let iso = iso.to_ascii_uppercase();
    let (days, time) = match iso.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (iso.as_str(), ""),
    };
    let mut words = Vec::new();
    of_units(days, &[('Y', "years"), ('M', "months"), ('W', "weeks"), ('D', "days")], &mut words)?;
    of_units(time, &[('H', "hours"), ('M', "minutes"), ('S', "seconds")], &mut words)?;
    (!words.is_empty()).then(|| words.join(" "))
}

/// Numbers, each before the letter of its unit, of which each comes once and in that order.
fn of_units(mut text: &str, units: &[(char, &str)], words: &mut Vec<String>) -> Option<()> {
    let mut units = units.iter();
    while !text.is_empty() {
        let end = text.find(|character: char| character.is_ascii_uppercase())?;
        let letter = text[end..].chars().next()?;
        let (_, unit) = units.find(|(of, _)| *of == letter)?;
        let number = &text[..end];
        if !is_number(number) {
            return None;
        }
        words.push(format!("{} {unit}", number.trim_start_matches('+')));
        text = &text[end + 1..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn clocks_and_iso_texts_are_words() {
        for (text, words) in [
            ("02:30", "02 hours 30 minutes 0 seconds"),
            ("1 day -02:30:01.5", "1 day -02 hours -30 minutes -01.5 seconds"),
            ("-3 100:00:00", "-3 days 100 hours 00 minutes 00 seconds"),
            ("1-2 3 4:05", "1 years 2 months 3 days 4 hours 05 minutes 0 seconds"),
            ("P1DT2H", "1 days 2 hours"),
            (
                "p-1y2m3w4dt5h6m7.5s",
                "-1 years 2 months 3 weeks 4 days 5 hours 6 minutes 7.5 seconds",
            ),
            ("PT0.5S", "0.5 seconds"),
        ] {
            assert_eq!(in_words(text).as_deref(), Some(words), "{text}");
        }
    }

    #[test]
    fn what_the_planner_reads_and_what_is_wrong_stays() {
        for text in [
            "1 day",
            "3",
            "-1.5 hours",
            "",
            "P",
            "PT",
            "P1",
            "P1H",
            "PT1D",
            "P1D2Y",
            "P1DT",
            "1:60",
            "1:2:3:4",
            "a:b",
            "1:-2",
            "1-12",
            "Pacific",
            "P--1D",
            "2024-01-01",
            "1::2",
        ] {
            assert_eq!(in_words(text), None, "{text}");
        }
    }
}
