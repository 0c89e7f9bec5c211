//! Salvage of a table whose log was changed at will: it may lose batches, not panic, and what it makes opens.
//!
//! The table is a real one, made once. The input changes bytes of its log, cuts it, and puts frames with sound
//! checksums and arbitrary payloads behind it, which random changes would never come to.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_arena::{Arena, Growth, Page, Preference};
use planish_table::{
    Cells, Column, Durable, Kind, Options, Origin, Output, Partitioning, Schema, Storage, salvage,
};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

const HEAD_BYTES: usize = 40;

type Files = BTreeMap<String, Arc<Mutex<Vec<u8>>>>;

/// A folder in memory.
#[derive(Debug, Clone, Default)]
struct Folder(Arc<Mutex<Files>>);

impl Folder {
    /// One with files of its own.
    fn copied(&self) -> Self {
        let copy = |(name, bytes): (&String, &Arc<Mutex<Vec<u8>>>)| {
            (name.clone(), Arc::new(Mutex::new(bytes.lock().expect("one thread").clone())))
        };
        Self(Arc::new(Mutex::new(self.0.lock().expect("one thread").iter().map(copy).collect())))
    }

    fn find(&self, name: &str) -> io::Result<Arc<Mutex<Vec<u8>>>> {
        let files = self.0.lock().expect("one thread");
        files.get(name).cloned().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Storage for Folder {
    fn path(&self) -> &Path {
        Path::new("/fuzz")
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().expect("one thread").keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(self.find(name)?.lock().expect("one thread").clone())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Output>> {
        self.0.lock().expect("one thread").insert(name.to_owned(), Arc::default());
        self.open(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(File(self.find(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.lock().expect("one thread");
        let file = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().expect("one thread").remove(name).map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Output for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.0.lock().expect("one thread");
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        let length = file.len().max(end);
        file.resize(length, 0);
        file[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.lock().expect("one thread").truncate(length as usize);
        Ok(())
    }
}

/// A closed table with a key: upserts, a delete, a flush.
fn table() -> &'static Folder {
    static TABLE: OnceLock<Folder> = OnceLock::new();
    TABLE.get_or_init(|| {
        let columns = [("t", Kind::Time), ("s", Kind::Symbol), ("x", Kind::Float)];
        let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
        let partitioning = Partitioning { span: 10, symbols: None };
        let schema =
            Schema::new(columns.map(column).to_vec(), partitioning).and_then(|it| it.with_key(&["t", "s"]));
        let (folder, arena) = (Folder::default(), arena());
        let schema = schema.expect("a sound schema");
        let durable = Durable::create(&arena, Arc::new(folder.clone()), schema, None, &Options::default());
        let durable = durable.expect("a folder in memory");
        for sequence in 1..=6 {
            let origin = Some(Origin { producer: "p", sequence });
            let (times, symbols) = ([sequence as i64 * 5, 7], ["a", "b"]);
            let done = match sequence {
                4 => durable.delete(origin, &[Cells::Times(&times), Cells::Symbols(&symbols)]),
                _ => durable.append(
                    origin,
                    &[Cells::Times(&times), Cells::Symbols(&symbols), Cells::Floats(&[1.0, 2.0])],
                ),
            };
            done.expect("a batch that fits");
            if sequence == 2 {
                durable.flush(10).expect("a folder in memory");
            }
        }
        drop(durable);
        folder
    })
}

fn arena() -> Arena {
    // A few rows: one small chunk, faulted in by this thread.
    let growth = Growth { first_bytes: 64 << 10, cap_bytes: 1 << 20 };
    let builder = Arena::builder().page(Preference::From(Page::Base)).growth(growth);
    builder.prefault_threads(NonZeroUsize::MIN).build().expect("nothing is mapped yet")
}

/// A frame with a sound checksum, as the log has it.
fn frame(out: &mut Vec<u8>, table: &[u8], first: u64, count: u32, payload: &[u8]) {
    let mut body = payload.to_vec();
    body.resize(payload.len().next_multiple_of(8), 0);
    let mut head = [0_u8; HEAD_BYTES];
    head[..4].copy_from_slice(&0x9e4c_a713_u32.to_le_bytes());
    head[4..8].copy_from_slice(&(body.len() as u32).to_le_bytes());
    head[8..16].copy_from_slice(&first.to_le_bytes());
    head[24..28].copy_from_slice(&count.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(table), &head[..36]);
    head[36..].copy_from_slice(&crc32c::crc32c_append(crc, &body).to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&body);
}

fuzz_target!(|data: &[u8]| {
    let [changes, frames, rest @ ..] = data else { return };
    let (changes, rest) = rest.split_at((usize::from(*changes) % 32 * 3).min(rest.len()));
    let from = table().copied();
    let names = from.list().expect("a folder in memory");
    let name = names.iter().find(|name| name.ends_with(".log")).expect("a log");
    let file = from.find(name).expect("it is there");
    {
        let mut bytes = file.lock().expect("one thread");
        let table = bytes[16..24].to_vec();
        let mut rest = rest;
        for _ in 0..frames % 5 {
            let [first, far, count, length, tail @ ..] = rest else { break };
            let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
            let first = u64::from(*first) << (u32::from(*far) % 64);
            frame(&mut bytes, &table, first, u32::from(*count % 4), payload);
            rest = tail;
        }
        for change in changes.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
            match change[2] {
                0 => bytes.truncate(at.max(1)),
                bits => bytes[at] ^= bits,
            }
        }
    }
    let to = Folder::default();
    // Refused: a version that nobody knows.
    let Ok(salvaged) = salvage(&from, &to) else { return };
    let arena = arena();
    let (durable, recovery) =
        Durable::open(&arena, Arc::new(to), &Options::default()).expect("what was salvaged opens");
    let lost: u64 = salvaged.lost.iter().filter_map(|lost| Some(lost.through? + 1 - lost.from)).sum();
    assert_eq!((recovery.lost, recovery.batches, &recovery.tail), (lost, salvaged.batches, &None));
    let _ = durable.read().expect("there is memory").rows();
});
