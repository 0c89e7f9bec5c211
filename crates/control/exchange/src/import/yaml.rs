//! YAML as far as files of settings have it: texts, lists and maps, each with its line.
//!
//! Texts stay as they are written: `yes` is no truth value and `0644` no octal number here, since what the kernel gets
//! is a text. Anchors are refused, for a few of them say a billion values, and so is what is nested deeper than any
//! file that a person writes.

use saphyr_parser::{Event, Parser};

/// Levels of lists and maps.
const DEPTH_MAX: usize = 64;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// The line that it begins at, from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
}

/// What kind of value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text(String),
    List(Vec<Node>),
    /// Keys that are no texts are left out.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    /// The keys of a map with their values.
    pub(super) fn entries(&self) -> &[(String, Self)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The text of a key.
    pub(super) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Self::text)
    }

    /// The lines of a text at the numbers that they have in the file, so that a reader of lines tells the right ones.
    pub(super) fn numbered(&self) -> String {
        "\n".repeat(self.line.saturating_sub(1)) + self.text().unwrap_or_default()
    }
}

/// A list or map that is not closed yet, and the key that waits for its value.
struct Open {
    node: Node,
    key: Option<String>,
}

/// The documents of a file.
///
/// # Errors
/// What is wrong, and in which line.
pub(super) fn read(text: &str) -> Result<Vec<Node>, String> {
    let (mut documents, mut open) = (Vec::new(), Vec::<Open>::new());
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let line = span.start.line();
        let closed = match event {
            Event::Alias(_) => return Err(format!("line {line}: an alias of another value is not read")),
            // Of a block this is the line of its text, behind that of its mark.
            Event::Scalar(text, ..) => Node { line, kind: Kind::Text(text.into_owned()) },
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEPTH_MAX => {
                return Err(format!("line {line}: nested deeper than {DEPTH_MAX} levels"));
            }
            Event::SequenceStart(..) => {
                open.push(Open { node: Node { line, kind: Kind::List(Vec::new()) }, key: None });
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open { node: Node { line, kind: Kind::Map(Vec::new()) }, key: None });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => done.node,
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.take_in(closed),
            None => documents.push(closed),
        }
    }
    Ok(documents)
}

impl Open {
    fn take_in(&mut self, child: Node) {
        match (&mut self.node.kind, self.key.take()) {
            (Kind::List(items), _) => items.push(child),
            (Kind::Map(entries), Some(key)) => entries.push((key, child)),
            (Kind::Map(_), None) => self.key = Some(child.text().unwrap_or_default().to_owned()),
            (Kind::Text(_), _) => unreachable!("a text is never open"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lines_and_texts_stay_as_written() {
        let text = "---\n# A comment.\n- name: one\n  value: 0644\n  list: [yes, \"no\"]\n\
                    - content: |\n    first\n    second\n  last: x\n";
        let documents = read(text).expect("sound");
        let [document] = documents.as_slice() else { panic!("{documents:?}") };
        let [one, two] = document.items() else { panic!("{document:?}") };
        assert_eq!((one.line, one.text_of("name"), one.text_of("value")), (3, Some("one"), Some("0644")));
        let list: Vec<_> = one.get("list").expect("there").items().iter().map(|item| item.text()).collect();
        assert_eq!(list, [Some("yes"), Some("no")]);
        let content = two.get("content").expect("there");
        assert_eq!(content.numbered(), "\n\n\n\n\n\nfirst\nsecond\n");
        assert_eq!(two.get("last").map(|node| node.line), Some(9));
    }

    #[test]
    fn what_would_take_all_memory_is_refused() {
        let laughs = "a: &a [x, x]\nb: &b [*a, *a]\n";
        assert_eq!(read(laughs).expect_err("aliases"), "line 2: an alias of another value is not read");
        let nested = |levels| "[".repeat(levels) + &"]".repeat(levels);
        assert!(read(&nested(64)).is_ok());
        assert!(read(&nested(65)).expect_err("deep").contains("nested deeper than 64 levels"));
        assert!(read(&nested(100_000)).is_err());
        assert!(read("a: [").is_err());
    }
}
