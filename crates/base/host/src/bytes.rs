//! Texts that are no UTF-8, each byte as the character of its number: nothing is lost, and what is ASCII in them is
//! found as in any other. For what is taken out of such a text, or put for another in it, and written again.

/// A text of bytes, whatever encoding they are in.
#[must_use]
pub fn to_chars(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The bytes of such a text; `None` for one that has other characters in it.
#[must_use]
pub fn from_chars(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|one| u8::try_from(one).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_comes_back() {
        let all: Vec<u8> = (0..=u8::MAX).chain("größer \u{2014}".bytes()).collect();
        assert_eq!(from_chars(&to_chars(&all)), Some(all));
        assert_eq!(
            to_chars(b"# Gr\xfc\xdfe\nvm.swappiness = 60\n").lines().nth(1),
            Some("vm.swappiness = 60")
        );
        assert_eq!(from_chars("\u{2014}"), None);
    }
}
