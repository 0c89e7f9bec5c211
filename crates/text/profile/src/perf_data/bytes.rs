//! Numbers and texts out of a slice; `None` where it is too short.

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// `length` bytes from `offset`, both as a file states them.
pub(super) fn section(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(start..end)
}

/// The text up to the first zero.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A `perf_header_string`: its length in 32 bits, then the text, filled up with zeros.
pub(super) fn string(bytes: &[u8]) -> Option<(String, usize)> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    Some((text(bytes.get(4..4_usize.checked_add(length)?)?), 4 + length))
}
