//! Numbers of bytes as people type them.

/// Reads `512M`, `2m`, `2MiB`, `2 MB`, `64k`, `4096`. Units are binary, whatever their letters: `MB` and `MiB` mean the
/// same. Whether no bytes at all make sense is the caller's to say; `None` for anything else, and what overflows.
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    let digits = digits.trim();
    // A sign is none of a size.
    let count = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())??;
    count.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_any_unit() {
        let sizes = [
            ("512M", 512 << 20),
            ("1g", 1 << 30),
            ("64KiB", 64 << 10),
            ("7", 7),
            ("2 MB", 2 << 20),
            ("0", 0),
        ];
        for (text, bytes) in sizes {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["2m", "2M", "2mb", "2MB", "2MiB", "2 mib", "2048k", "2097152", "2097152B"] {
            assert_eq!(parse_bytes(text), Some(2 << 20), "{text}");
        }
        for text in ["", "M", "-1M", "+1M", "1.5G", "5X", "99999999999T", "18446744073709551616", "é", "1Gé"]
        {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
