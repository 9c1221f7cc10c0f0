//! Numbers as people read them.

/// Nanoseconds as microseconds with two decimals, halves away from zero: `-17.40`.
pub(crate) fn us(ns: i64) -> String {
    let hundredths = (ns.unsigned_abs() + 5) / 10;
    let sign = if ns < 0 && hundredths > 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A share in per cent with one decimal. What is not nothing never reads as nothing, and what is
/// not all never reads as all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    match (part * 2000 + whole) / (2 * whole) {
        0 if part > 0 => "< 0.1 %".into(),
        1000 if part < whole => "> 99.9 %".into(),
        mille => per_mille(mille),
    }
}

/// Thousandths as per cent: `48.3 %`, but `0 %`.
pub(crate) fn per_mille(mille: impl Into<u128>) -> String {
    let mille = mille.into();
    if mille == 0 {
        return "0 %".into();
    }
    format!("{}.{} %", mille / 10, mille % 10)
}

/// A whole number with a narrow no-break space between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_round_to_the_nearest_hundredth() {
        for (ns, text) in [
            (0, "0.00"),
            (4, "0.00"),
            (5, "0.01"),
            (-4, "0.00"),
            (-17_400, "-17.40"),
            (4_196_904, "4196.90"),
            (i64::MIN, "-9223372036854775.81"),
        ] {
            assert_eq!(us(ns), text);
        }
    }

    #[test]
    fn a_single_loss_never_reads_as_none_and_a_single_receipt_never_as_none() {
        assert_eq!(percent(0, 15_001), "0 %");
        assert_eq!(percent(1, 15_001), "< 0.1 %");
        assert_eq!(percent(7_240, 15_001), "48.3 %");
        assert_eq!(percent(15_000, 15_001), "> 99.9 %");
        assert_eq!(percent(15_001, 15_001), "100.0 %");
        assert_eq!(percent(0, 0), "–");
    }

    #[test]
    fn digits_are_grouped_in_threes_from_the_right() {
        for (number, text) in [(7, "7"), (1_000, "1\u{202f}000"), (15_001, "15\u{202f}001")] {
            assert_eq!(grouped(number), text);
        }
    }
}
