//! A file of rules as rules: parts of a key, an operator and a value.

/// What a part of a rule does with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Is,
    /// `!=`
    IsNot,
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Remove,
    /// `:=`
    SetFinal,
}

/// The operators as they are written; the longer ones first.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Is),
    ("!=", Operator::IsNot),
    ("+=", Operator::Add),
    ("-=", Operator::Remove),
    (":=", Operator::SetFinal),
    ("=", Operator::Set),
];

impl Operator {
    /// As it is written.
    #[must_use]
    pub fn text(self) -> &'static str {
        OPERATORS.iter().find(|(_, operator)| *operator == self).map_or("=", |(text, _)| text)
    }

    /// Whether it gives something, and asks for nothing.
    #[must_use]
    pub fn is_given(self) -> bool {
        !matches!(self, Self::Is | Self::IsNot)
    }
}

/// `ATTR{queue/scheduler}="none"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `ATTR`
    pub key: String,
    /// `queue/scheduler`
    pub attribute: Option<String>,
    /// `=`
    pub operator: Operator,
    /// `none`
    pub value: String,
    /// Whether something stands before the value that changes how it is read: `e"..."`, `i"..."`.
    pub is_odd: bool,
}

impl Part {
    /// Key and attribute as they are written: `ENV{ID_WWN}`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.attribute {
            Some(attribute) => format!("{}{{{attribute}}}", self.key),
            None => self.key.clone(),
        }
    }

    /// As udev reads it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}{}\"{}\"", self.name(), self.operator.text(), self.value.replace('"', "\\\""))
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The number of its first line, from 1.
    pub line: usize,
    /// Its parts.
    pub parts: Vec<Part>,
}

/// The rules of a file. Lines that begin with `#` are nothing, also within a rule that goes on; such a rule ends its
/// lines with `\`. What is no rule is left out, as udev does.
#[must_use]
pub fn rules(text: &str) -> Vec<Rule> {
    let mut found = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.starts_with('#') {
            continue;
        }
        let (first, before) = begun.take().unwrap_or((index + 1, String::new()));
        match line.strip_suffix('\\') {
            Some(part) => begun = Some((first, before + part)),
            None => found.extend(parts(&(before + line)).map(|parts| Rule { line: first, parts })),
        }
    }
    // A last line that goes on goes nowhere: udev drops it.
    found
}

/// The parts of a rule; `None` for an empty line and what is no rule.
fn parts(line: &str) -> Option<Vec<Part>> {
    let mut rest = line.trim_start_matches([',', ' ', '\t']).trim_end();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        found.push(part);
        rest = after.trim_start_matches([',', ' ', '\t']);
    }
    (!found.is_empty()).then_some(found)
}

/// The first part, and what is behind it.
fn part(rest: &str) -> Option<(Part, &str)> {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (key, after) = rest.split_at(end);
    if key.is_empty() {
        return None;
    }
    let (attribute, after) = match after.strip_prefix('{') {
        Some(inner) => {
            let (attribute, after) = inner.split_once('}')?;
            (Some(attribute.to_owned()), after)
        }
        None => (None, after),
    };
    let after = after.trim_start();
    let (operator, after) =
        OPERATORS.iter().find_map(|(text, operator)| Some((*operator, after.strip_prefix(text)?)))?;
    let after = after.trim_start();
    let (is_odd, after) = match after.strip_prefix(['e', 'i']) {
        Some(after) => (true, after),
        None => (false, after),
    };
    let (value, after) = quoted(after.strip_prefix('"')?)?;
    Some((Part { key: key.to_owned(), attribute, operator, value, is_odd }, after))
}

/// A value up to its end, and what is behind it. `\"` is a quote of the value; any other backslash is one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let at = rest.find('"')?;
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        match before.strip_suffix('\\') {
            Some(before) => {
                value += before;
                value.push('"');
                rest = after;
            }
            None => return Some((value + before, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<(usize, Vec<String>)> {
        let told = |rule: Rule| (rule.line, rule.parts.iter().map(Part::text).collect());
        rules(text).into_iter().map(told).collect()
    }

    #[test]
    fn rules_have_parts_and_the_number_of_their_first_line() {
        let text = "# a comment\n\nACTION==\"add\",SUBSYSTEM!=\"net\" ,\tATTR{queue/scheduler} = \"none\"\n\
                    KERNEL==\"sd*\", \\\n  # in between\n  RUN+=\"/bin/sh -c 'echo \\\"a\\\"'\"\n";
        let first = ["ACTION==\"add\"", "SUBSYSTEM!=\"net\"", "ATTR{queue/scheduler}=\"none\""];
        let second = ["KERNEL==\"sd*\"", "RUN+=\"/bin/sh -c 'echo \\\"a\\\"'\""];
        let owned = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(text), [(3, owned(&first)), (4, owned(&second))]);
    }

    #[test]
    fn what_udev_refuses_is_no_rule() {
        for text in [
            "",
            "KERNEL",
            "KERNEL==",
            "KERNEL==sda",
            "KERNEL==\"sda",
            "KERNEL<\"sda\"",
            "ATTR{x=\"1\"",
            "=\"1\"",
            "KERNEL==\"sda\" oops",
            "KERNEL==\"sda\", \\",
        ] {
            assert_eq!(rules(text), [], "{text}");
        }
        assert!(rules("KERNEL==i\"SDA\"")[0].parts[0].is_odd);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_and_read_again(text in "([A-Z{}=+\"!, a-z$%:#\\\\é-]{0,40}\n){0,6}") {
            for rule in rules(&text) {
                let line: Vec<String> = rule.parts.iter().map(Part::text).collect();
                let plain = |part: &Part| !part.value.ends_with('\\') && !part.is_odd;
                if rule.parts.iter().all(plain) {
                    let again = rules(&line.join(", "));
                    prop_assert_eq!(again.len(), 1, "{:?}", line);
                    prop_assert_eq!(&again[0].parts, &rule.parts);
                }
            }
        }
    }
}
