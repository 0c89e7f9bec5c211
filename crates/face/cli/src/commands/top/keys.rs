//! Bytes of a terminal as keys.

/// What a person pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
}

/// The keys in what one read gave. An escape alone is the key; one with more behind it begins a sequence, and a
/// sequence that is not known is none.
pub(super) fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let (mut keys, mut rest) = (Vec::new(), text.chars().peekable());
    while let Some(c) = rest.next() {
        let key = match c {
            '\u{3}' => Some(Key::Interrupt),
            '\r' | '\n' => Some(Key::Enter),
            '\u{7f}' | '\u{8}' => Some(Key::Backspace),
            '\u{1b}' if matches!(rest.peek(), Some('[' | 'O')) => {
                rest.next();
                let mut sequence = String::new();
                for c in rest.by_ref() {
                    sequence.push(c);
                    if ('\u{40}'..='\u{7e}').contains(&c) {
                        break;
                    }
                }
                named(&sequence)
            }
            '\u{1b}' => Some(Key::Escape),
            c if c.is_control() || c == '\u{fffd}' => None,
            c => Some(Key::Char(c)),
        };
        keys.extend(key);
    }
    keys
}

/// What stands behind `ESC [` or `ESC O`.
fn named(sequence: &str) -> Option<Key> {
    Some(match sequence {
        "A" => Key::Up,
        "B" => Key::Down,
        "C" => Key::Right,
        "D" => Key::Left,
        "5~" => Key::PageUp,
        "6~" => Key::PageDown,
        "H" | "1~" | "7~" => Key::Home,
        "F" | "4~" | "8~" => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_keys_and_an_escape_alone_is_one() {
        assert_eq!(keys(b"q\x1b[A\x1bOB"), [Key::Char('q'), Key::Up, Key::Down]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(
            keys(b"\x1b[6~\x1b[1;5C\r\x7f\x03"),
            [Key::PageDown, Key::Enter, Key::Backspace, Key::Interrupt]
        );
        // What is no key is none, and swallows nothing behind it.
        assert_eq!(keys(b"\x01\x1b[99~x"), [Key::Char('x')]);
        assert_eq!(keys(b"\x1b["), []);
    }
}
