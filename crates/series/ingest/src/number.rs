//! Numbers as text: read once, exactly, and only then made what a column holds.
//!
//! A decimal never goes by way of a float, and a whole number is taken only if it is one. So a price of `0.1` in a
//! column with one digit is 1, and `0.15` there is refused instead of rounded.

/// Most digits that are kept: any of so many fit into 64 bits without a sign.
const DIGITS_MAX: u32 = 19;
/// Whole numbers up to here are floats without loss.
const FLOAT_WHOLE_MAX: u64 = 1 << 53;
/// Powers of ten that are floats without loss.
const FLOAT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// Powers of ten that 64 bits hold.
const POWERS: [u64; 20] = powers();

const fn powers() -> [u64; 20] {
    let mut powers = [1_u64; 20];
    let mut index = 1;
    while index < 20 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
}

/// What a text says: `digits` in units of the last of `scale` digits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number {
    is_negative: bool,
    digits: u64,
    /// Below zero where zeros are missing before the point.
    scale: i64,
    /// Digits other than zero were left out: there were too many.
    is_cut: bool,
}

impl Number {
    /// Reads a sign, digits with or without a point, and an exponent; all of the text, or it is no number.
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let (is_negative, mut rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let mut number = Self { is_negative, digits: 0, scale: 0, is_cut: false };
        let (mut kept, mut seen, mut is_fraction) = (0, false, false);
        while let [byte, tail @ ..] = rest {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    kept = number.push(byte - b'0', kept, is_fraction);
                }
                b'.' if !is_fraction => is_fraction = true,
                b'e' | b'E' if seen => {
                    number.scale -= exponent(tail)?;
                    break;
                }
                _ => return None,
            }
            rest = tail;
        }
        seen.then_some(number)
    }

    /// A whole number.
    pub(crate) fn of_whole(whole: i64) -> Self {
        Self { is_negative: whole < 0, digits: whole.unsigned_abs(), scale: 0, is_cut: false }
    }

    /// Takes one more digit; returns how many are kept.
    fn push(&mut self, digit: u8, kept: u32, is_fraction: bool) -> u32 {
        if kept == DIGITS_MAX {
            self.is_cut |= digit != 0;
            self.scale -= i64::from(!is_fraction);
            return kept;
        }
        self.digits = self.digits * 10 + u64::from(digit);
        self.scale += i64::from(is_fraction);
        // Zeros in front do not count.
        kept + u32::from(kept > 0 || digit > 0)
    }

    /// In units of the last of `scale` digits after the point; `None` unless that is exact and fits.
    pub(crate) fn scaled(self, scale: u8) -> Option<i64> {
        if self.digits == 0 {
            return Some(0);
        }
        if self.is_cut {
            return None;
        }
        let shift = i64::from(scale) - self.scale;
        let power = || POWERS.get(usize::try_from(shift.unsigned_abs()).ok()?).copied();
        let digits = if shift == 0 {
            self.digits
        } else if shift > 0 {
            self.digits.checked_mul(power()?)?
        } else {
            let power = power()?;
            if !self.digits.is_multiple_of(power) {
                return None;
            }
            self.digits / power
        };
        if self.is_negative { 0_i64.checked_sub_unsigned(digits) } else { i64::try_from(digits).ok() }
    }

    /// The whole number that it is.
    pub(crate) fn whole(self) -> Option<i64> {
        self.scaled(0)
    }

    /// Times `factor`, rounded down to a whole number: how times with digits after the point are read.
    pub(crate) fn floor_of_product(self, factor: i64) -> Option<i128> {
        if self.is_cut {
            return None;
        }
        let product = i128::from(self.digits) * i128::from(factor);
        let product = if self.is_negative { -product } else { product };
        if self.scale > 0 {
            // Beyond all digits that there are: what is left is zero, or just below it.
            let power = 10_i128.checked_pow(u32::try_from(self.scale).ok()?);
            return Some(power.map_or(-i128::from(product < 0), |power| product.div_euclid(power)));
        }
        let power = 10_i128.checked_pow(u32::try_from(self.scale.unsigned_abs()).ok()?)?;
        product.checked_mul(power)
    }

    /// The nearest float, where that takes one operation on floats without loss; else the text has to be asked.
    fn quick_float(self) -> Option<f64> {
        if self.is_cut || self.digits > FLOAT_WHOLE_MAX {
            return None;
        }
        let power = *FLOAT_POWERS.get(usize::try_from(self.scale.unsigned_abs()).ok()?)?;
        let digits = self.digits as f64;
        let value = if self.scale > 0 { digits / power } else { digits * power };
        Some(if self.is_negative { -value } else { value })
    }

    /// The float that is this whole number, if one is.
    pub(crate) fn whole_float(self) -> Option<f64> {
        let whole = self.whole()?;
        (whole.unsigned_abs() <= FLOAT_WHOLE_MAX).then_some(whole as f64)
    }
}

/// The float nearest to a text: a number, `nan` or `inf`.
pub(crate) fn float(text: &[u8]) -> Option<f64> {
    match Number::read(text) {
        Some(number) => match number.quick_float() {
            Some(value) => Some(value),
            None => std::str::from_utf8(text).ok()?.parse().ok(),
        },
        None => std::str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// What stands behind the `e` of a number.
fn exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut exponent = 0_i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        // No text has so many zeros that more would mean something else.
        exponent = (exponent * 10 + i64::from(byte - b'0')).min(1 << 40);
    }
    Some(if is_negative { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scaled(text: &str, scale: u8) -> Option<i64> {
        Number::read(text.as_bytes()).and_then(|number| number.scaled(scale))
    }

    #[test]
    fn a_decimal_is_exact_or_refused() {
        for (text, scale, wanted) in [
            ("0.1", 1, Some(1)),
            ("0.15", 1, None),
            ("0.150", 2, Some(15)),
            ("-12.5", 2, Some(-1250)),
            ("+7", 3, Some(7000)),
            ("1.5e3", 0, Some(1500)),
            ("1500e-3", 1, Some(15)),
            ("1e-400", 18, None),
            ("0e-400", 18, Some(0)),
            ("1e19", 0, None),
            ("9223372036854775807", 0, Some(i64::MAX)),
            ("-9223372036854775808", 0, Some(i64::MIN)),
            ("9223372036854775808", 0, None),
            ("10000000000000000000000", 0, None),
            ("1.50000000000000000000000000000", 1, Some(15)),
            ("1.50000000000000000000000000001", 1, None),
            ("0.0000000000000000000000000001", 18, None),
            (".5", 1, Some(5)),
            ("5.", 1, Some(50)),
        ] {
            assert_eq!(scaled(text, scale), wanted, "{text} with {scale} digits");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", ".", "+.", "e5", "1e", "1e+", "1.2.3", "1x", "--1", "0x10", "1 ", "NaN", "١"] {
            assert_eq!(Number::read(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_product_is_rounded_down() {
        let product = |text: &str, factor| Number::read(text.as_bytes()).unwrap().floor_of_product(factor);
        assert_eq!(product("1.0000000019", 1_000_000_000), Some(1_000_000_001));
        assert_eq!(product("-0.5", 1), Some(-1));
        assert_eq!(product("-1e-99", 1), Some(-1));
        assert_eq!(product("1e-99", 1), Some(0));
        assert_eq!(product("1e3", 1000), Some(1_000_000));
        assert_eq!(product("1e99", 1000), None);
    }

    proptest! {
        #[test]
        fn a_float_is_the_nearest(text in "[+-]?[0-9]{0,25}(\\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?") {
            let std = text.parse::<f64>().ok();
            prop_assert_eq!(float(text.as_bytes()).map(f64::to_bits), std.map(f64::to_bits));
            prop_assert_eq!(Number::read(text.as_bytes()).is_some(), std.is_some());
        }

        #[test]
        fn a_float_that_was_printed_comes_back(value in any::<f64>()) {
            let read = float(value.to_string().as_bytes()).unwrap();
            prop_assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan());
        }

        #[test]
        fn a_whole_number_that_was_printed_comes_back(value in any::<i64>(), scale in 0..=18_u8) {
            prop_assert_eq!(scaled(&value.to_string(), 0), Some(value));
            let power = 10_i128.pow(scale.into());
            let (whole, rest) = (i128::from(value) / power, i128::from(value) % power);
            let sign = if value < 0 { "-" } else { "" };
            let text = format!("{sign}{}.{:0width$}", whole.abs(), rest.abs(), width = scale.into());
            prop_assert_eq!(scaled(&text, scale), Some(value), "{}", text);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..40), factor in any::<i64>(),
        ) {
            let _ = float(&bytes);
            if let Some(number) = Number::read(&bytes) {
                let _ = (number.scaled(18), number.whole_float(), number.floor_of_product(factor));
            }
        }
    }
}
