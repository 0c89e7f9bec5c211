//! One setting of a unit of systemd, as a number or a word, and as the line of a file of ours.

/// The value in normal form: of a file of ours what its line gives; `None` for a file that gives nothing.
pub(super) fn normal(directive: &str, raw: &str) -> Option<String> {
    let given = raw.lines().rev().find_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        (name.trim() == directive).then(|| value.trim())
    });
    let value = match given {
        Some(value) => value,
        None if raw.trim().contains(['\n', '=']) => return None,
        None => raw.trim(),
    };
    Some(value.parse::<i64>().map_or_else(|_| value.to_owned(), |number| number.to_string()))
}

/// How much a value of systemd comes to: `1024:524288` by its first number, `64G` in ones, `infinity` as more than any.
/// `None` for a word, and for a share such as `15%`, which depends on the host.
pub(super) fn amount(value: &str) -> Option<i128> {
    let soft = value.split(':').next()?.trim();
    if soft == "infinity" {
        return Some(i128::MAX);
    }
    let end = soft.len() - usize::from(soft.ends_with(['K', 'M', 'G', 'T']));
    let (digits, suffix) = soft.split_at(end);
    let shift = match suffix {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 40,
    };
    digits.parse::<i64>().ok().map(|number| i128::from(number) << shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::ValueType;

    const PLACE: &str = "/etc/systemd/system/a.service.d/zz-planish-nofile.conf";

    fn kind(at_least: bool) -> ValueType {
        let (directive, unit) = ("LimitNOFILE".to_owned(), "files".to_owned());
        let words = vec!["infinity".to_owned()];
        ValueType::Setting { directive, unit, min: Some(1), max: Some(1 << 30), words, at_least }
    }

    #[test]
    fn a_file_of_ours_and_its_number_are_the_same() {
        let text = kind(true).in_file(PLACE, "65536");
        assert_eq!(text, "[Service]\nLimitNOFILE = 65536\n");
        assert!(kind(true).same(&text, "65536") && kind(true).same(&format!("# ours\n{text}"), " 65536\n"));
        assert!(!kind(true).same(&text, "1024"));
        assert_eq!(kind(true).normal("(not given)"), "(not given)");
        assert!(!kind(true).same("[Service]\nNice=-5\n", "65536"), "somebody else's");
    }

    #[test]
    fn numbers_and_words_are_held_to_the_row() {
        assert!(kind(true).validate("65536").is_ok() && kind(true).validate("infinity").is_ok());
        for wrong in
            ["0", "2000000000", "unlimited", "64K", "1024:2048", "1\nExecStart=x", "1 ExecStart=x", ""]
        {
            assert!(kind(true).validate(wrong).is_err(), "{wrong}");
        }
        let told = kind(true).describe();
        assert_eq!(told, "LimitNOFILE= of a unit: whole number (files), 1 to 1073741824, or infinity");
    }

    #[test]
    fn more_is_enough_where_less_is_the_trouble() {
        for (given, wanted, enough, same) in [
            ("infinity", "65536", true, false),
            ("65536", "65536", true, true),
            ("1024:524288", "65536", false, false),
            ("64K", "65536", true, true),
            ("1M", "65536", true, false),
            ("15%", "65536", false, false),
        ] {
            assert_eq!(kind(true).is_enough(given, wanted), enough, "{given}");
            assert_eq!(kind(false).is_enough(given, wanted), same, "{given}");
        }
    }

    proptest! {
        #[test]
        fn no_text_gets_more_than_one_line_into_a_file(value in "\\PC{0,20}") {
            if kind(true).validate(&value).is_ok() {
                let file = kind(true).in_file(PLACE, &kind(true).normal(&value));
                prop_assert_eq!(file.lines().count(), 2, "{}", file);
            }
        }
    }
}
