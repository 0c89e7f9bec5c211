//! The name of a content: its SHA-256.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// Below this every blob lies.
pub(crate) const FOLDER: &str = "sha256";

/// The SHA-256 of some bytes; written as 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// That of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The name in a store of what has this digest.
    #[must_use]
    pub fn handle(&self) -> String {
        let hex = self.to_string();
        // A folder of some hundred thousand files is slow on many file systems.
        format!("{FOLDER}/{}/{hex}", &hex[..2])
    }

    /// The digest whose [`handle`](Self::handle) this name is.
    #[must_use]
    pub fn of_handle(handle: &str) -> Option<Self> {
        let digest: Self = handle.rsplit('/').next()?.parse().ok()?;
        (digest.handle() == handle).then_some(digest)
    }

    /// Its first digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sha256 has 64 hexadecimal digits in lower case")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
        if text.len() != 64 || !text.as_bytes().iter().all(is_digit) {
            return Err(NotADigest);
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[index * 2..][..2], 16).map_err(|_| NotADigest)?;
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_sha256sum_and_reads_back() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
        assert_eq!(Digest::of(b"").handle(), format!("sha256/e3/{empty}"));
        assert_eq!(Digest::of_handle(&format!("sha256/e3/{empty}")), Some(Digest::of(b"")));
        for other in [empty.to_owned(), format!("sha256/e4/{empty}"), format!("x/sha256/e3/{empty}")] {
            assert_eq!(Digest::of_handle(&other), None, "{other}");
        }
        for wrong in ["", &empty[1..], &empty.to_uppercase(), &empty.replace('e', "g"), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Digest>(), Err(NotADigest), "{wrong}");
        }
    }
}
