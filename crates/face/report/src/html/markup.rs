//! The few ways in which text gets into the page, and the mark that lets a reader check it.
//!
//! Whatever comes out of the outcome carries `data-at`: the JSON pointer (RFC 6901) of its value in the
//! outcome that the page holds. A number is a `data` element, whose `value` is the exact number behind the
//! rounded text.

use std::fmt::{self, Display, Formatter};

use askama::Template;
use askama::filters::{Escaper, Html as HtmlEscaper, HtmlSafe};

use crate::units;

/// Markup that is safe inside the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup of our own: constant, or built of numbers and of parts that are safe already.
    pub(super) fn own(markup: impl Into<String>) -> Self {
        Self(markup.into())
    }

    /// Adds text of any origin.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.0.push_str(&escape(text));
        self
    }

    /// Adds markup.
    pub(super) fn then(mut self, markup: impl HtmlSafe) -> Self {
        self.0.push_str(&markup.to_string());
        self
    }
}

impl Display for Html {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl HtmlSafe for Html {}

/// A text of the outcome, word for word.
#[derive(Clone, Debug)]
pub(super) struct Quote {
    at: String,
    text: String,
}

impl Quote {
    /// The text at a pointer.
    pub(super) fn new(at: impl Into<String>, text: &str) -> Self {
        Self { at: at.into(), text: text.to_owned() }
    }
}

impl Display for Quote {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, r#"<span data-at="{}">{}</span>"#, escape(&self.at), escape(&self.text))
    }
}

impl HtmlSafe for Quote {}

/// Text for an element or for an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    HtmlEscaper.write_escaped_str(&mut escaped, text).expect("a String takes everything");
    escaped
}

/// A whole page, with nothing in it that would steer the terminal of who looks at its source, and that HTML forbids.
pub(super) fn page(template: &impl Template) -> String {
    let text = template.render().expect("writing into a String does not fail");
    units::harmless(&text).into_owned()
}

/// The pointer of a member whose name may hold anything.
pub(super) fn member(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// JSON that may stand inside a `script` element: nothing in it can end the element or begin a comment
/// (HTML standard, "Restrictions for contents of script elements"), and it is still the same JSON.
pub(super) fn json_for_script(json: &str) -> String {
    let is_plain = |c: &char| !matches!(c, '<' | '>' | '&') && !units::steers(*c);
    let mut script = String::with_capacity(json.len());
    for c in json.chars() {
        if is_plain(&c) {
            script.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| script.push_str(&format!("\\u{unit:04x}")));
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_name_members_with_slashes() {
        assert_eq!(member("/rungs/0/metrics", "a/b~c"), "/rungs/0/metrics/a~1b~0c");
    }

    #[test]
    fn a_script_element_cannot_be_ended_from_inside() {
        let text = "</script><!-- & --> \u{9b}1A \u{202e}";
        let json = serde_json::to_string(text).expect("a string");
        let safe = json_for_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{9b}', '\u{202e}']));
        assert_eq!(serde_json::from_str::<String>(&safe).expect("still JSON"), text);
    }

    #[test]
    fn quotes_are_escaped_in_text_and_attribute() {
        let quote = Quote::new("/a\"b", "<b> & \"c\"").to_string();
        assert!(!quote.contains("<b>") && !quote.contains("a\"b"), "{quote}");
    }
}
