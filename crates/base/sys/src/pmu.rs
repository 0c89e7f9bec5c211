//! Events as a PMU names them in sysfs: their terms, where those go in an attribute, and what a count stands for.
//!
//! Source: Documentation/ABI/testing/sysfs-bus-event_source-devices-events and -format.

/// `event=0x04,umask=0x03` by formats such as `config:0-7` and `config1:0-15`: the three configurations. `None` for a
/// term whose format is not known, which would be another event.
pub fn encode(event: &str, format: &dyn Fn(&str) -> Option<String>) -> Option<[u64; 3]> {
    let mut words = [0; 3];
    for term in event.trim().split(',') {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => value.parse().ok()?,
        };
        let format = format(name)?;
        let (word, bits) = format.trim().split_once(':')?;
        let word = match word {
            "config" => 0,
            "config1" => 1,
            "config2" => 2,
            _ => return None,
        };
        words[word] |= spread(value, bits)?;
    }
    Some(words)
}

/// The lowest bits of a value, put into ranges of bits such as `0-7,32-35`.
fn spread(mut value: u64, ranges: &str) -> Option<u64> {
    let mut word = 0;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last > 63 {
            return None;
        }
        for bit in first..=last {
            word |= (value & 1) << bit;
            value >>= 1;
        }
    }
    (value == 0).then_some(word)
}

/// Bytes that one count stands for, by the files `.scale` and `.unit` of an event; `None` for a unit that is none of
/// bytes.
pub fn bytes_per_count(scale: &str, unit: &str) -> Option<f64> {
    let bytes = match unit.trim() {
        "B" | "Bytes" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let scale: f64 = scale.trim().parse().ok()?;
    (scale.is_finite() && scale > 0.0).then_some(scale * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_go_where_their_formats_say() {
        let format = |name: &str| {
            let format = match name {
                "event" => "config:0-7,32-35\n",
                "umask" => "config:8-15",
                "edge" => "config:18",
                "filter" => "config1:4-7",
                "mask" => "config2:0-63",
                "odd" => "config9:0-7",
                _ => return None,
            };
            Some(format.to_owned())
        };
        assert_eq!(encode("event=0x104,umask=0x03\n", &format), Some([0x1_0000_0304, 0, 0]));
        assert_eq!(encode("event=4,edge,filter=0xf,mask=0x10", &format), Some([0x4_0004, 0xf0, 0x10]));
        for odd in ["event=0x04,nosuch=1", "event=?", "umask=0x100", "odd=1", ""] {
            assert_eq!(encode(odd, &format), None, "{odd}");
        }
    }

    #[test]
    fn values_go_where_their_format_says() {
        assert_eq!(spread(0x1ff, "0-7,32"), Some(0x1_0000_00ff));
        assert_eq!(
            (spread(2, "3"), spread(0, "3"), spread(1, "64"), spread(1, "5-4")),
            (None, Some(0), None, None)
        );
    }

    #[test]
    fn a_count_is_as_many_bytes_as_scale_and_unit_say() {
        assert_eq!(bytes_per_count("6.103515625e-5\n", "MiB\n"), Some(64.0), "a line of the caches");
        assert_eq!(
            (bytes_per_count("32", "Bytes"), bytes_per_count("0.5", "KiB")),
            (Some(32.0), Some(512.0))
        );
        for (scale, unit) in
            [("1", "Joules"), ("1", ""), ("x", "MiB"), ("0", "MiB"), ("-1", "MiB"), ("inf", "B")]
        {
            assert_eq!(bytes_per_count(scale, unit), None, "{scale} {unit}");
        }
    }
}
