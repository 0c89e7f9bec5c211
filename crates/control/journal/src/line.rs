//! Lines of the journal as bytes: checksum, sequence, version, and what a torn tail is. Pure.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Event, JournalError};

/// The newest version of the format that this planish writes. It reads every version from 1 to this one. A line has the
/// oldest one that says all of it, so that an older planish refuses no journal that it understands.
pub const FORMAT_VERSION: u32 = 3;

/// Each line starts with this, eight hexadecimal digits and [`CRC_TAIL`].
const CRC_HEAD: &[u8] = b"{\"crc\":\"";
const CRC_TAIL: &[u8] = b"\",";
const CRC_DIGITS: usize = 8;
const BODY_AT: usize = CRC_HEAD.len() + CRC_DIGITS + CRC_TAIL.len();

/// A line: an event, its place in the journal, and who wrote it when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Version of the format.
    pub v: u32,
    /// Number of the line, from 1.
    pub seq: u64,
    /// Seconds since 1970.
    pub at: u64,
    /// The boot it was written in.
    pub boot: String,
    /// Who wrote it.
    pub who: String,
    /// The host that an entry is of which begins here, where it has an id that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// Bytes at the end of a journal that are no whole line: a write that a kill or a power cut tore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Where they start; what is before is sound.
    pub at_byte: u64,
    /// How many there are.
    pub bytes: u64,
}

/// Lines and entries are numbered one by one: no journal comes to so many. Behind the last number there is none.
const NUMBER_MAX: u64 = 1 << 62;

/// What a journal holds.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The sound lines, in order.
    pub lines: Vec<Line>,
    /// What comes after them.
    pub torn: Option<Torn>,
}

/// The bytes of a line, with its line break.
pub(crate) fn encode(line: &Line) -> Vec<u8> {
    let body = serde_json::to_vec(line).expect("a line has text keys and no floating-point numbers");
    let mut bytes = Vec::with_capacity(body.len() + BODY_AT);
    bytes.extend_from_slice(CRC_HEAD);
    bytes.extend_from_slice(format!("{:08x}", crc32fast::hash(&body)).as_bytes());
    bytes.extend_from_slice(CRC_TAIL);
    bytes.extend_from_slice(&body[1..]); // after its opening brace
    bytes.push(b'\n');
    bytes
}

/// The part of a line that the checksum covers: the line without its `crc` member.
fn body_of(line: &[u8]) -> Result<Vec<u8>, String> {
    let has_head = line.len() > BODY_AT && line.starts_with(CRC_HEAD);
    if !has_head || &line[BODY_AT - CRC_TAIL.len()..BODY_AT] != CRC_TAIL {
        return Err("it does not start with a checksum".to_owned());
    }
    let told = &line[CRC_HEAD.len()..CRC_HEAD.len() + CRC_DIGITS];
    let mut body = Vec::with_capacity(line.len());
    body.push(b'{');
    body.extend_from_slice(&line[BODY_AT..]);
    let found = format!("{:08x}", crc32fast::hash(&body));
    if told != found.as_bytes() {
        return Err(format!("its checksum is {found} and not {}", String::from_utf8_lossy(told)));
    }
    Ok(body)
}

/// Why a whole line was not taken.
pub(crate) enum Fault {
    Damaged(String),
    Newer(String),
}

/// A line from its bytes, without the line break; `due` is the number that it must have.
pub(crate) fn decode(bytes: &[u8], due: Option<u64>) -> Result<Line, Fault> {
    /// What every version has.
    #[derive(Deserialize)]
    struct Head {
        v: u32,
        seq: u64,
    }
    let body = body_of(bytes).map_err(Fault::Damaged)?;
    let line: Result<Line, _> = serde_json::from_slice(&body);
    let head = match &line {
        Ok(line) => (line.v, line.seq),
        Err(_) => {
            let head: Head =
                serde_json::from_slice(&body).map_err(|error| Fault::Damaged(error.to_string()))?;
            (head.v, head.seq)
        }
    };
    if let Some(due) = due.filter(|due| *due != head.1) {
        return Err(Fault::Damaged(format!("it is number {} where {due} is due", head.1)));
    }
    if head.0 > FORMAT_VERSION {
        return Err(Fault::Newer(format!("format {} (this one knows up to {FORMAT_VERSION})", head.0)));
    }
    let entry = line.as_ref().map_or(0, |line| line.event.entry().0);
    if head.1 > NUMBER_MAX || entry > NUMBER_MAX {
        return Err(Fault::Damaged("its numbers are none that a journal comes to".to_owned()));
    }
    // The checksum holds, so that what cannot be understood was written so, and not damaged.
    line.map_err(|error| Fault::Newer(format!("an event that it does not know ({error})")))
}

/// Reads a whole journal.
///
/// A torn tail is the last line when it begins like one and has no line break, or when it holds NUL bytes: a file
/// system may have made the file longer before the data reached the disk. So are blank lines at the end, which an
/// editor left. Any other damage is an error, also in the last line: it was whole once, and the host was written after
/// it; or it is no journal at all.
pub(crate) fn scan(path: &Path, bytes: &[u8]) -> Result<Scan, JournalError> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let torn = Some(Torn { at_byte: at as u64, bytes: rest.len() as u64 });
        let line = lines.len() + 1;
        if !lines.is_empty() && rest.iter().all(|&byte| byte == b'\n') {
            return Ok(Scan { lines, torn });
        }
        let Some(length) = rest.iter().position(|&byte| byte == b'\n') else {
            if begins_like_a_line(rest) || rest.contains(&0) {
                return Ok(Scan { lines, torn });
            }
            let why = format!("its last {} bytes are no part of a line that planish wrote", rest.len());
            return Err(JournalError::Damaged { path: path.to_owned(), line, why });
        };
        match decode(&rest[..length], Some(line as u64)) {
            Ok(decoded) => lines.push(decoded),
            Err(Fault::Damaged(_)) if rest[..length].contains(&0) && at + length + 1 == bytes.len() => {
                return Ok(Scan { lines, torn });
            }
            Err(Fault::Damaged(why)) => {
                return Err(JournalError::Damaged { path: path.to_owned(), line, why });
            }
            Err(Fault::Newer(why)) => return Err(JournalError::Newer { path: path.to_owned(), line, why }),
        }
        at += length + 1;
    }
    Ok(Scan { lines, torn: None })
}

/// Whether bytes can be what a kill left of a line.
fn begins_like_a_line(bytes: &[u8]) -> bool {
    let head = bytes.len().min(CRC_HEAD.len());
    bytes[..head] == CRC_HEAD[..head]
}

#[cfg(test)]
mod tests {
    use planish_model::EntryId;
    use proptest::prelude::*;

    use super::*;

    fn line(seq: u64) -> Line {
        Line {
            v: FORMAT_VERSION,
            seq,
            at: 1_763_600_000,
            boot: "boot".to_owned(),
            who: "root \"quoted\" \u{e4}\n".to_owned(),
            host: None,
            event: Event::Applied { entry: EntryId(seq) },
        }
    }

    fn journal(count: u64) -> Vec<u8> {
        (1..=count).flat_map(|seq| encode(&line(seq))).collect()
    }

    fn scan_here(bytes: &[u8]) -> Result<Scan, JournalError> {
        scan(Path::new("journal.jsonl"), bytes)
    }

    #[test]
    fn what_was_encoded_is_read_again() {
        let scan = scan_here(&journal(3)).expect("sound");
        assert_eq!(scan.lines, [line(1), line(2), line(3)]);
        assert_eq!(scan.torn, None);
    }

    #[test]
    fn a_line_is_plain_json_with_its_checksum_first() {
        let text = String::from_utf8(encode(&line(1))).expect("text");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["kind"], "applied");
        assert!(text.starts_with("{\"crc\":\""), "{text}");
        assert_eq!(text.matches('\n').count(), 1);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_whole_lines_before_it() {
        let bytes = journal(3);
        let ends: Vec<usize> = (1..=3).map(|count| journal(count).len()).collect();
        for cut in 0..=bytes.len() {
            let scan = scan_here(&bytes[..cut]).expect("a cut is never damage");
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(scan.lines.len(), whole, "cut at {cut}");
            let sound = if whole == 0 { 0 } else { ends[whole - 1] };
            let torn = (cut > sound).then_some(Torn { at_byte: sound as u64, bytes: (cut - sound) as u64 });
            assert_eq!(scan.torn, torn, "cut at {cut}");
        }
    }

    #[test]
    fn a_tail_of_zeros_is_torn_and_not_damage() {
        let mut bytes = journal(2);
        bytes.extend_from_slice(&[0; 700]);
        assert_eq!(scan_here(&bytes).expect("torn").lines.len(), 2);
        bytes.push(b'\n');
        assert_eq!(scan_here(&bytes).expect("torn").lines.len(), 2);
    }

    #[test]
    fn damage_is_refused_with_its_line() {
        let mut bytes = journal(3);
        let second = journal(1).len() + 60;
        bytes[second] ^= 1;
        let error = scan_here(&bytes).expect_err("a bit fell over");
        assert!(error.to_string().starts_with("line 2 of journal.jsonl is damaged: "), "{error}");
        assert!(error.cure().contains("planish undo --all --force"), "{}", error.cure());
    }

    #[test]
    fn a_line_that_was_taken_out_is_noticed() {
        let bytes = [encode(&line(1)), encode(&line(3))].concat();
        let error = scan_here(&bytes).expect_err("a gap");
        assert_eq!(error.to_string(), "line 2 of journal.jsonl is damaged: it is number 3 where 2 is due");
    }

    #[test]
    fn a_newer_format_is_named_as_such() {
        let newer = Line { v: FORMAT_VERSION + 1, ..line(1) };
        let error = scan_here(&encode(&newer)).expect_err("not ours");
        assert!(error.to_string().contains("was written by a newer planish: format 4"), "{error}");
    }

    /// Behind the last number there is none, and an undo must come to an end all the same.
    #[test]
    fn numbers_that_no_journal_comes_to_are_damage() {
        let last = EntryId(u64::MAX);
        let continued = |seq| Line { event: Event::Continued { archive: "a".to_owned(), last }, ..line(seq) };
        let far = Line { seq: u64::MAX, event: Event::Applied { entry: EntryId(1) }, ..line(1) };
        for (lines, is_scanned) in [
            ([continued(1), line(2)], true),
            ([continued(7), line(8)], false),
            ([line(1), Line { event: Event::Applied { entry: last }, ..line(2) }], true),
            ([line(1), far], false),
        ] {
            let bytes: Vec<u8> = lines.iter().flat_map(encode).collect();
            let error = scan_here(&bytes).expect_err("it is damage").to_string();
            assert!(!is_scanned || error.contains("none that a journal comes to"), "{error}");
            let found = crate::salvage::salvage(&bytes, &[]).expect("no newer planish wrote it");
            let told = found.lost.iter().any(|lost| lost.contains("none that a journal comes to"));
            assert!(told && found.last < EntryId(100), "{found:?}");
        }
    }

    #[test]
    fn what_never_was_a_journal_is_no_torn_tail() {
        assert!(scan_here(b"not a journal at all").is_err());
        let mut bytes = journal(2);
        bytes.extend(b"# a note of somebody");
        assert!(scan_here(&bytes).is_err());
        assert_eq!(scan_here(b"{\"cr").expect("the first line was torn").lines.len(), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = scan_here(&bytes);
        }

        #[test]
        fn no_single_changed_byte_goes_unnoticed(at in 0usize..600, to in any::<u8>()) {
            let mut bytes = journal(4);
            let at = at % bytes.len();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            match scan_here(&bytes) {
                Err(_) => {}
                Ok(scan) => prop_assert!(scan.lines.len() < 4 && scan.torn.is_some()),
            }
        }
    }
}
