//! The log of a table as a disk gives it back: reading may refuse, not panic, and never hands on a frame whose checksum
//! is wrong.
//!
//! Random bytes never pass a checksum. So the input is a script: lengths of frames, their payloads, and then changes to
//! the bytes that they make. What is left must read as a beginning of what was written; payloads are parsed as batches
//! too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_table::log::{Batch, Frame, HEAD_BYTES, Head, LOG_VERSION, scan, search};

const TABLE: u64 = 0x70_6c_61_6e;

fn frame(out: &mut Vec<u8>, first: u64, count: u32, synced: u64, payload: &[u8]) {
    let mut head = [0_u8; HEAD_BYTES];
    let padded = payload.len().next_multiple_of(8);
    head[..4].copy_from_slice(&0x9e4c_a713_u32.to_le_bytes());
    head[4..8].copy_from_slice(&(padded as u32).to_le_bytes());
    head[8..16].copy_from_slice(&first.to_le_bytes());
    head[16..24].copy_from_slice(&synced.to_le_bytes());
    head[24..28].copy_from_slice(&count.to_le_bytes());
    let mut body = payload.to_vec();
    body.resize(padded, 0);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&TABLE.to_le_bytes()), &head[..36]);
    head[36..].copy_from_slice(&crc32c::crc32c_append(crc, &body).to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&body);
}

fuzz_target!(|data: &[u8]| {
    let _ = (Head::parse(data), scan(data, TABLE, 1), search(data, TABLE, 0));
    let parse =
        |batch: &[u8]| (1..=LOG_VERSION).filter(|version| Batch::parse(batch, *version).is_ok()).count();
    parse(data);
    let Some((&frames, mut rest)) = data.split_first() else { return };
    let mut bytes = Head::new(TABLE, 1).to_bytes().to_vec();
    let mut first = 1;
    for _ in 0..frames % 8 {
        let [count, synced, length, tail @ ..] = rest else { break };
        let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        let count = u32::from(*count % 4);
        frame(&mut bytes, first, count, u64::from(*synced), payload);
        first += u64::from(count);
        rest = tail;
    }
    let whole = scan(&bytes, TABLE, 1);
    assert!(whole.bad.is_none() && whole.next == first);
    for frame in &whole.frames {
        for batch in Batch::split(&bytes[frame.payload.clone()], frame.count).into_iter().flatten() {
            parse(batch);
        }
    }
    let mut broken = bytes.clone();
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % broken.len();
        broken[at] ^= change[2];
    }
    let _ = Head::parse(&broken);
    let read = scan(&broken, TABLE, 1);
    assert_eq!(read.frames, whole.frames[..read.frames.len()]);
    for frame in &read.frames {
        assert_eq!(broken[frame.payload.clone()], bytes[frame.payload.clone()]);
    }
    // Frames behind damage are found again, and none that was not there: nobody writes a frame of this table into a
    // batch of it, but this input may, and where the frame around it is broken, it is one.
    for frame in search(&broken, TABLE, HEAD_BYTES) {
        let is_within = |around: &Frame| {
            around.payload.start <= frame.payload.start && frame.payload.end <= around.payload.end
        };
        assert!(whole.frames.iter().any(is_within), "{frame:?}");
        assert_eq!(broken[frame.payload.clone()], bytes[frame.payload]);
    }
});
