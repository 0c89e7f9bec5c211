//! Programs whose text is to fit huge pages: what is made of one is the same program, aligned, or nothing is made.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_hugify::{Image, Remake};

/// As long as what headers may speak of: inputs are headers, and what follows them matters by where it lies alone.
const FILE_BYTES: usize = 96 << 10;

/// A huge page of this size, so that text of such a file holds some.
const HUGE_BYTES: u64 = 16 << 10;

fuzz_target!(|bytes: &[u8]| {
    look(bytes, HUGE_BYTES);
    look(bytes, 2 << 20);
    let mut file = bytes.to_vec();
    file.extend((bytes.len()..FILE_BYTES).map(|at| (at % 251) as u8));
    look(&file, HUGE_BYTES);
});

fn look(bytes: &[u8], huge_bytes: u64) {
    let Ok(image) = Image::parse(bytes) else {
        return assert!(Remake::plan(bytes, huge_bytes).is_err());
    };
    let (text_bytes, whole_bytes) = image.text_bytes(huge_bytes);
    assert!(whole_bytes <= text_bytes, "{image:?}");
    for segment in &image.segments {
        assert!(segment.offset + segment.file_bytes <= bytes.len() as u64, "{segment:?}");
        let Some(whole) = segment.whole(huge_bytes) else { continue };
        assert!(whole.start % huge_bytes == 0 && whole.end % huge_bytes == 0 && whole.start < whole.end);
        assert!(
            segment.offset_of(whole.start) >= segment.offset
                && whole.end - segment.address <= segment.file_bytes
        );
    }
    let Ok(remake) = Remake::plan(bytes, huge_bytes) else { return };
    let Ok(new) = remake.make(bytes) else { return };
    assert_eq!(new.len() as u64, bytes.len() as u64 + remake.added_bytes());
    let made = Image::parse(&new).expect("it was parsed before it was handed out");
    assert!(made.is_ready(huge_bytes), "{made:?}");
    assert_eq!(made.text_bytes(huge_bytes), (text_bytes, whole_bytes));
    assert!(Remake::plan(&new, huge_bytes).is_ok_and(|again| again.is_same()), "once is enough");
    if remake.is_same() {
        assert_eq!(bytes, new);
    }
}
