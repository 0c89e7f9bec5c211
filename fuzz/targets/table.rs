//! A table's manifest and its Parquet files, whatever they say under sound checksums: a table may be refused, and one
//! that opens is read, flushed, compacted and opened again, and touches no file outside of its folder.
//!
//! The table is a real one, made once. The input is a manifest in the place of its own, up to a zero byte; nothing
//! leaves its own there. Behind it the first byte chooses a file, and the others change bytes of that. Checksums and
//! lengths are set right, since random ones never are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use planish_arena::{Arena, Growth, Page, Preference};
use planish_table::{
    Cells, Column, Disk, Durable, Filter, Kind, Options, Origin, Partitioning, Schema, TableError, salvage,
};
use serde_json::Value;
use std::fs;
use std::num::NonZeroUsize;
use std::panic;
use std::path::Path;
use std::sync::{Arc, OnceLock};

#[path = "../shared/folder.rs"]
mod folder;

/// Files of the folder by name, and the manifest without its title.
struct Made {
    files: Vec<(String, Vec<u8>)>,
    manifest: Value,
}

/// A closed table with a key: upserts, a delete, two flushes, and batches that only the log has.
fn made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        bear_panics_of_the_reader();
        let folder = folder::Folder::new("table-made");
        let columns = [
            ("t", Kind::Time),
            ("s", Kind::Symbol),
            ("x", Kind::Float),
            ("n", Kind::Int),
            ("d", Kind::Decimal { scale: 2 }),
        ];
        let column = |(name, kind): (&str, Kind)| Column { name: name.to_owned(), kind };
        let partitioning = Partitioning { span: 10, symbols: None };
        let schema =
            Schema::new(columns.map(column).to_vec(), partitioning).and_then(|it| it.with_key(&["t", "s"]));
        let arena = arena();
        let storage = Arc::new(Disk::open_plain(&folder.0).expect("a folder"));
        let schema = schema.expect("a sound schema");
        let durable = Durable::create(&arena, storage, schema, None, &Options::default()).expect("a folder");
        for sequence in 1..=8 {
            let origin = Some(Origin { producer: "p", sequence });
            let (times, symbols) = ([sequence as i64 * 4, 7], ["a", "b"]);
            let keys = [Cells::Times(&times), Cells::Symbols(&symbols)];
            let rest = [Cells::Floats(&[1.0, f64::NAN]), Cells::Ints(&[1, -2]), Cells::Decimals(&[100, 1])];
            let done = match sequence {
                5 => durable.delete(origin, &keys),
                _ => durable.append(origin, &keys.into_iter().chain(rest).collect::<Vec<_>>()),
            };
            done.expect("a batch that fits");
            if sequence == 3 || sequence == 6 {
                durable.flush(20).expect("a folder");
            }
        }
        drop(durable);
        let files = fs::read_dir(&folder.0).expect("our own").flatten().map(|entry| {
            let name = entry.file_name().into_string().expect("our own");
            (name, fs::read(entry.path()).expect("our own"))
        });
        let mut files: Vec<(String, Vec<u8>)> = files.filter(|(name, _)| name != "lock").collect();
        files.sort();
        let at = files.iter().position(|(name, _)| name == "manifest").expect("a manifest");
        let (_, text) = files.remove(at);
        let end = text.iter().position(|byte| *byte == b'\n').expect("a title");
        Made { files, manifest: serde_json::from_slice(&text[end + 1..]).expect("our own") }
    })
}

/// libFuzzer ends at any panic. Those of the reader of Parquet are caught by the table, as damage.
fn bear_panics_of_the_reader() {
    let ends = panic::take_hook();
    panic::set_hook(Box::new(move |told| {
        let of_the_reader = |file: &str| file.contains("/parquet-") || file.contains("/bytes-");
        if !told.location().is_some_and(|at| of_the_reader(at.file())) {
            ends(told);
        }
    }));
}

fn arena() -> Arena {
    // A few rows: one small chunk, faulted in by this thread.
    let growth = Growth { first_bytes: 64 << 10, cap_bytes: 1 << 20 };
    let builder = Arena::builder().page(Preference::From(Page::Base)).growth(growth);
    builder.prefault_threads(NonZeroUsize::MIN).build().expect("nothing is mapped yet")
}

fuzz_target!(|data: &[u8]| {
    let made = made();
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (manifest, rest) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let mut files = made.files.clone();
    if let Some((choice, changes)) = rest.split_first() {
        let mut parquet: Vec<&mut Vec<u8>> =
            files.iter_mut().filter(|(name, _)| name.ends_with(".parquet")).map(|(_, bytes)| bytes).collect();
        let choice = usize::from(*choice) % parquet.len();
        change(parquet[choice], changes);
    }
    let body = match (manifest.is_empty(), serde_json::from_slice::<Value>(manifest)) {
        (true, _) => with_checksums(made.manifest.clone(), &files).to_string().into_bytes(),
        (_, Ok(told)) => with_checksums(told, &files).to_string().into_bytes(),
        (_, Err(_)) => manifest.to_vec(),
    };
    files.push(("manifest".to_owned(), titled(&body)));

    let here = folder::Folder::new("table");
    let outside = [here.0.join("outside.parquet"), here.0.join("made.parquet")];
    fs::write(&outside[0], "another's").expect("room for a file");
    let (table, other, saved) = (here.0.join("table"), here.0.join("other"), here.0.join("saved"));
    fs::create_dir(&table).expect("room for a folder");
    for (name, bytes) in &files {
        fs::write(table.join(name), bytes).expect("room for a file");
    }
    let opened = used(&table, &saved);
    if opened {
        open(&table, |_| ()).expect("what was opened opens again");
    }
    fs::remove_dir_all(&table).expect("our own");
    fs::create_dir(&table).expect("room for a folder");
    for (name, bytes) in &files {
        fs::write(table.join(name), bytes).expect("room for a file");
    }
    salvaged(&table, &other);
    assert_eq!(fs::read(&outside[0]).ok().as_deref(), Some(&b"another's"[..]), "a file of somebody else");
    let known = ["table", "other", "saved", "outside.parquet"];
    for entry in fs::read_dir(&here.0).expect("our own").flatten() {
        let name = entry.file_name();
        assert!(known.iter().any(|known| name == *known), "{name:?} is not in the table's folder");
    }
});

/// Changes bytes, each by three of the input: two say where.
fn change(bytes: &mut [u8], changes: &[u8]) {
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] ^= change[2];
    }
}

/// The manifest with the number of the table, and of each file its length and checksum.
fn with_checksums(mut manifest: Value, files: &[(String, Vec<u8>)]) -> Value {
    if let Some(table) = manifest.get_mut("table") {
        *table = made().manifest["table"].clone();
    }
    for told in manifest.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
        let named =
            |(name, _): &&(String, Vec<u8>)| told.get("name").is_some_and(|told| told == name.as_str());
        let Some((_, bytes)) = files.iter().find(named) else { continue };
        if let Some(told) = told.as_object_mut() {
            told.insert("bytes".to_owned(), bytes.len().into());
            told.insert("crc32c".to_owned(), crc32c::crc32c(bytes).into());
        }
    }
    manifest
}

fn titled(body: &[u8]) -> Vec<u8> {
    let title = format!("planish-table {} {:08x}\n", planish_table::FORMAT_VERSION, crc32c::crc32c(body));
    [title.as_bytes(), body].concat()
}

fn open<R>(table: &Path, then: impl FnOnce(&Durable<'_>) -> R) -> Result<R, TableError> {
    let arena = arena();
    let storage = Arc::new(Disk::open_plain(table)?);
    let (durable, _) = Durable::open(&arena, storage, &Options::default())?;
    Ok(then(&durable))
}

/// Does with a table what its owner may; says whether it opened.
fn used(table: &Path, saved: &Path) -> bool {
    let done = open(table, |durable| {
        read(durable);
        let _ = durable.verify();
        let _ = durable.backup(&Disk::open_plain(saved).expect("room for a folder"));
        let _ = durable.flush(i64::MAX);
        read(durable);
        let _ = durable.compact(i64::MAX);
        read(durable);
        let _ = durable.drop_before(20);
        read(durable);
    });
    done.is_ok()
}

/// Reads every row that there is.
fn read(durable: &Durable<'_>) {
    let reading = durable.read().expect("there is memory");
    let _ = reading.rows();
    for file in reading.files() {
        let Ok(rows) = reading.read_file(file) else { continue };
        let Some(piece) = rows.piece(&Filter::ALL) else { continue };
        assert!(piece.rows() as u64 <= file.rows);
        for column in 0..durable.schema().columns().len() {
            let _ = (piece.whole(column), piece.floats(column), piece.keys(column), piece.zone(column));
        }
    }
}

/// What is salvaged opens.
fn salvaged(table: &Path, other: &Path) {
    let from = Disk::open_plain(table).expect("nobody else has it");
    let to = Disk::open_plain(other).expect("room for a folder");
    if salvage(&from, &to).is_ok() {
        drop(to);
        // What no checksum tells may be wrong still, and is refused there as well.
        if let Err(error) = open(other, read) {
            assert!(matches!(error, TableError::Damaged { .. } | TableError::Schema { .. }), "{error}");
        }
    }
}
