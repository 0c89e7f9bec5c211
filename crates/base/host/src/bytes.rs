//! Texts that are no UTF-8, each byte as a character of its own: nothing is lost, and what is ASCII in them is found as
//! in any other. For what is taken out of such a text, or put for another in it, and written again.
//!
//! What is no ASCII becomes a character that is for private use: none of them is a blank or controls anything.

use std::string::FromUtf8Error;

/// The character of byte 0.
const FIRST: u32 = 0xf700;

/// A text of bytes, whatever encoding they are in.
#[must_use]
pub fn to_chars(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte.is_ascii() {
        true => Some(char::from(*byte)),
        false => char::from_u32(FIRST + u32::from(*byte)),
    };
    bytes.iter().filter_map(one).collect()
}

fn byte(one: char) -> Option<u8> {
    let byte = u8::try_from(u32::from(one).checked_sub(FIRST)?).ok();
    byte.filter(|byte| !byte.is_ascii())
}

/// The bytes of such a text; `None` for one that has other characters in it.
#[must_use]
pub fn from_chars(text: &str) -> Option<Vec<u8>> {
    let one = |one: char| if one.is_ascii() { u8::try_from(one).ok() } else { byte(one) };
    text.chars().map(one).collect()
}

/// What is said of such a text, for people: bytes that are no UTF-8 are `\u{fffd}`.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    for one in text.chars() {
        match byte(one) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(one.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What keeps bytes from being a text in UTF-8, for whoever mends them: the line and the first byte that is none.
#[must_use]
pub fn odd_byte(error: &FromUtf8Error) -> String {
    let (before, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("its line {line} has the byte 0x{:02x}", rest.first().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_comes_back() {
        let all: Vec<u8> = (0..=u8::MAX).chain("größer \u{2014} \u{f7fc}".bytes()).collect();
        let text = to_chars(&all);
        assert_eq!(text.chars().count(), all.len());
        assert!(!text.chars().any(|one| !one.is_ascii() && (one.is_control() || one.is_whitespace())));
        assert_eq!(from_chars(&text), Some(all));
        assert_eq!(
            to_chars(b"# Gr\xfc\xdfe\nvm.swappiness = 60\n").lines().nth(1),
            Some("vm.swappiness = 60")
        );
        assert_eq!(from_chars("\u{2014}"), None);
    }

    #[test]
    fn what_is_said_of_them_can_be_read() {
        assert_eq!(
            shown(&format!("`{}` \u{2014}", to_chars("größer \u{2014}".as_bytes()))),
            "`größer \u{2014}` \u{2014}"
        );
        assert_eq!(shown(&to_chars(b"a\xfc")), "a\u{fffd}");
    }

    #[test]
    fn the_line_of_the_first_odd_byte_is_told() {
        let told = |bytes: &[u8]| odd_byte(&String::from_utf8(bytes.to_vec()).expect_err("odd"));
        assert_eq!(told(b"\xfc"), "its line 1 has the byte 0xfc");
        assert_eq!(told(&[b"gr\xc3\xb6\n\n", &b"b\xe9\xff\n"[..]].concat()), "its line 3 has the byte 0xe9");
    }
}
