//! Netlink messages and their attributes as bytes (`Documentation/userspace-api/netlink/intro.rst`): pure.
//!
//! ```text
//! message    length u32 | type u16 | flags u16 | sequence u32 | port u32 | command u8 | version u8 | 0 u16 | ...
//! attribute  length u16 | type u16 | payload, filled up to a multiple of four bytes
//! ```
//!
//! A length counts its own header. Whatever a reply holds, reading it neither panics nor reads beyond it: an attribute
//! whose length cannot be ends its list.

/// Netlink is in the byte order of the machine, and both that planish is built for are little-endian.
const _: () = assert!(cfg!(target_endian = "little"), "netlink messages are written little-endian here");

/// Bytes before the attributes: the header of netlink, and that of generic netlink.
const HEADERS_BYTES: usize = 20;
/// Bytes of the header of netlink.
const HEADER_BYTES: usize = 16;
/// The payload holds attributes.
const NESTED: u16 = 0x8000;
/// What of a type is the type: the rest says how to read the payload.
const TYPE_MASK: u16 = 0x3fff;
/// `NLMSG_ERROR`: an answer without content; its number is 0 when all went well.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST | NLM_F_ACK`.
const REQUEST: u16 = 1 | 4;

/// A request that is being written.
#[derive(Debug)]
pub(super) struct Request(Vec<u8>);

impl Request {
    /// Of a family, by its command.
    pub(super) fn new(family: u16, sequence: u32, command: u8) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(family.to_le_bytes());
        bytes.extend(REQUEST.to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        bytes.extend([0; 4]);
        // Version 1, which both families have.
        bytes.extend([command, 1, 0, 0]);
        Self(bytes)
    }

    /// An attribute with its payload.
    pub(super) fn put(&mut self, kind: u16, payload: &[u8]) {
        let length = u16::try_from(4 + payload.len()).expect("names and numbers are short");
        self.0.extend(length.to_le_bytes());
        self.0.extend(kind.to_le_bytes());
        self.0.extend(payload);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// A text, with the zero that ends it.
    pub(super) fn put_text(&mut self, kind: u16, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.put(kind, &bytes);
    }

    /// An attribute of attributes.
    pub(super) fn nest(&mut self, kind: u16, inner: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.put(kind | NESTED, &[]);
        inner(self);
        let length = u16::try_from(self.0.len() - start).expect("names and numbers are short");
        self.0[start..start + 2].copy_from_slice(&length.to_le_bytes());
    }

    /// The message.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("names and numbers are short");
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

/// One message of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// The end of an answer: 0, or the number of an error.
    End(i32),
    /// Attributes of the family that was asked.
    Content(&'a [u8]),
}

/// The messages of a datagram that answer the request of this sequence number.
pub(super) fn messages(mut bytes: &[u8], sequence: u32) -> Vec<Message<'_>> {
    let mut found = Vec::new();
    while let (Some(length), Some(kind), Some(number)) =
        (u32_at(bytes, 0), u16_at(bytes, 4), u32_at(bytes, 8))
    {
        let length = length as usize;
        let Some(message) = bytes.get(..length).filter(|_| length >= HEADER_BYTES) else { break };
        let rest = length.next_multiple_of(4);
        bytes = bytes.get(rest..).unwrap_or_default();
        if number != sequence {
            continue;
        }
        if kind == ERROR {
            let code = u32_at(message, HEADER_BYTES).map_or(i32::MIN, u32::cast_signed);
            found.push(Message::End(code.checked_neg().unwrap_or(i32::MAX)));
        } else if let Some(content) = message.get(HEADERS_BYTES..) {
            found.push(Message::Content(content));
        }
    }
    found
}

/// Attributes one after the other: type and payload.
#[derive(Clone, Debug)]
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Attributes<'a> {
    /// The payload of the last attribute of a type: of several the kernel counts the last.
    pub(super) fn find(&self, kind: u16) -> Option<&'a [u8]> {
        self.clone().filter(|(own, _)| *own == kind).map(|(_, payload)| payload).last()
    }

    /// A number of one, two or four bytes.
    pub(super) fn number(&self, kind: u16) -> Option<u32> {
        let payload = self.find(kind)?;
        match payload.len() {
            1 => payload.first().map(|byte| u32::from(*byte)),
            2 => u16_at(payload, 0).map(u32::from),
            4 => u32_at(payload, 0),
            _ => None,
        }
    }

    /// A text, without the zero that ends it.
    pub(super) fn text(&self, kind: u16) -> Option<&'a str> {
        let payload = self.find(kind)?;
        std::str::from_utf8(payload.strip_suffix(&[0]).unwrap_or(payload)).ok()
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, kind) = (usize::from(u16_at(self.0, 0)?), u16_at(self.0, 2)?);
        let payload = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & TYPE_MASK, payload))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_what_the_kernel_reads() {
        let mut request = Request::new(0x15, 7, 16);
        request.nest(1, |header| header.put_text(2, "eth0"));
        request.put(6, &512_u32.to_le_bytes());
        let bytes = request.finish();
        let wanted = "2c000000 1500 0500 07000000 00000000 10010000 \
                      1000 0180 0900 0200 6574683000000000 0800 0600 00020000";
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, wanted.replace(' ', ""));
    }

    #[test]
    fn an_answer_ends_with_its_number() {
        let error = |code: i32| {
            let mut bytes = [20_u32.to_le_bytes(), [2, 0, 0, 0], 7_u32.to_le_bytes(), [0; 4]].concat();
            bytes.extend(code.to_le_bytes());
            bytes
        };
        assert_eq!(messages(&error(0), 7), [Message::End(0)]);
        assert_eq!(messages(&error(-95), 7), [Message::End(95)]);
        assert_eq!(messages(&error(i32::MIN), 7), [Message::End(i32::MAX)]);
        assert_eq!(messages(&error(0), 8), [], "an answer to somebody else");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            name in "[a-z0-9.]{1,15}", number in any::<u32>(), byte in any::<u8>(), sequence in any::<u32>(),
        ) {
            let mut request = Request::new(21, sequence, 16);
            request.nest(1, |header| {
                header.put_text(2, &name);
                header.nest(3, |inner| inner.put(4, &[]));
            });
            request.put(6, &number.to_le_bytes());
            request.put(7, &[byte]);
            let bytes = request.finish();
            let found = messages(&bytes, sequence);
            let [Message::Content(content)] = found.as_slice() else { panic!("one message: {found:?}") };
            let all = Attributes(content);
            let header = Attributes(all.find(1).expect("a header"));
            prop_assert_eq!(header.text(2), Some(name.as_str()));
            prop_assert_eq!(Attributes(header.find(3).expect("a nest")).find(4), Some(&[][..]));
            prop_assert_eq!((all.number(6), all.number(7)), (Some(number), Some(u32::from(byte))));
            prop_assert_eq!(all.count(), 3);
        }

        #[test]
        fn odd_bytes_end_somewhere(bytes in prop::collection::vec(any::<u8>(), 0..200), sequence in any::<u32>()) {
            for message in messages(&bytes, sequence) {
                if let Message::Content(content) = message {
                    prop_assert!(Attributes(content).count() <= content.len() / 4);
                }
            }
            prop_assert!(Attributes(&bytes).count() <= bytes.len() / 4);
        }
    }
}
