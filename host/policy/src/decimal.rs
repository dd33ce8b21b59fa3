//! Decimal numbers of JSON, compared exactly at any length: `1e3` equals `1000`, and the twentieth digit counts.
//! Floating-point numbers are not used.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A decimal number of any length.
#[derive(Debug, Clone)]
pub struct Decimal {
    /// The original text, for people.
    written: String,
    negative: bool,
    /// Without zeros at either end. Empty for zero.
    digits: String,
    /// The position of the point: the value is `0.DIGITS × 10^point`.
    point: i128,
}

/// Not a decimal number of JSON, or its exponent does not fit 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number in JSON's form, such as 1000, -0.25 or 1e6")]
pub struct InvalidDecimal;

impl Decimal {
    /// -1, 0 or 1.
    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

impl FromStr for Decimal {
    type Err = InvalidDecimal;

    fn from_str(text: &str) -> Result<Self, InvalidDecimal> {
        let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let leading = whole.len() > 1 && whole.starts_with('0');
        let power = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
        if leading || !is_number(whole) || !fraction.is_none_or(is_number) || !power.is_none_or(is_number) {
            return Err(InvalidDecimal);
        }
        let all = format!("{whole}{}", fraction.unwrap_or_default());
        let significant = all.trim_start_matches('0');
        let digits = significant.trim_end_matches('0').to_owned();
        let shift = match exponent {
            // Zero is equal at any exponent.
            Some(_) if digits.is_empty() => 0,
            Some(exponent) => exponent.parse::<i64>().map_err(|_| InvalidDecimal)?,
            None => 0,
        };
        // Lengths and 64-bit exponents fit in 128 bits.
        let zeros = (all.len() - significant.len()) as i128;
        let point = whole.len() as i128 - zeros + i128::from(shift);
        Ok(Self { written: text.to_owned(), negative, digits, point })
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.sign().cmp(&other.sign());
        if signs != Ordering::Equal || self.sign() == 0 {
            return signs;
        }
        // Without zeros at the ends, digits compare as texts do.
        let sizes = self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        if self.negative { sizes.reverse() } else { sizes }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().expect("a number")
    }

    #[test]
    fn numbers_are_compared_by_value() {
        use Ordering::{Equal, Greater, Less};
        for (one, expected, other) in [
            ("1000", Equal, "1e3"),
            ("1000", Equal, "1.000E+3"),
            ("1000", Equal, "100000e-2"),
            ("0", Equal, "-0"),
            ("0e99999999999999999999", Equal, "0.000"),
            ("0", Less, "1e-999999999"),
            ("0", Greater, "-1e-999999999"),
            ("999.99", Less, "1000"),
            ("0.09", Less, "0.1"),
            ("-2", Less, "-1"),
            ("-1e100", Less, "1e-100"),
            ("9007199254740993", Greater, "9007199254740992"),
            ("12345678901234567890.123", Less, "12345678901234567890.124"),
            ("1e400", Greater, "1e399"),
            ("100", Greater, "99"),
            ("123", Greater, "12"),
        ] {
            assert_eq!(decimal(one).cmp(&decimal(other)), expected, "{one} {other}");
            assert_eq!(decimal(other).cmp(&decimal(one)), expected.reverse(), "{other} {one}");
        }
    }

    #[test]
    fn only_json_numbers_are_read() {
        for wrong in ["", "-", "+1", "01", ".5", "5.", "1e", "1e+", "0x10", "1_000", " 1", "NaN", "--1", "1e1.5"] {
            assert_eq!(wrong.parse::<Decimal>(), Err(InvalidDecimal), "{wrong}");
        }
        assert_eq!("1e99999999999999999999".parse::<Decimal>(), Err(InvalidDecimal));
    }

    proptest::proptest! {
        #[test]
        fn integers_compare_as_integers(one: i64, other: i64) {
            let (a, b) = (decimal(&one.to_string()), decimal(&other.to_string()));
            proptest::prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        }

        #[test]
        fn an_exponent_only_moves_the_point(digits in "[1-9][0-9]{0,20}", zeros in 0_usize..30) {
            let long = decimal(&format!("{digits}{}", "0".repeat(zeros)));
            proptest::prop_assert_eq!(long, decimal(&format!("{digits}e{zeros}")));
        }
    }
}
