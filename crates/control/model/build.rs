//! Embeds `catalogue/`: adding a knob touches one TOML file, and no list.
//!
//! Every command reads the rows at its start, and of all that most did, reading TOML took longest. So they are embedded
//! as JSON, which says the same and reads in a fraction of the time, and packed by LZ4, each kind of row by itself: two
//! fifths of its bytes, which the static program has no room for, and which are back in a tenth of a millisecond. Tests
//! have the files themselves too, to compare the two and to tell the line that is wrong.

use std::path::Path;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "a build script reads the source tree, not a host")]
fn main() {
    // Asked at run time: the path that this script was compiled in may be another checkout's.
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let catalogue = Path::new(&package).join("../../../catalogue");
    let catalogue = catalogue.canonicalize().expect("the workspace has a catalogue");
    println!("cargo::rerun-if-changed={}", catalogue.display());
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let (mut code, mut texts) = (String::new(), String::new());
    for kind in ["knobs", "profiles", "findings", "writers"] {
        let folder = catalogue.join(kind);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files: Vec<_> = fs::read_dir(&folder)
            .expect("each kind of row has its folder")
            .map(|entry| entry.expect("the folder can be listed").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .collect();
        files.sort();
        let (mut all, mut parts) = (String::new(), String::new());
        texts += &format!("pub(crate) const {}: &[(&str, &str)] = &[\n", kind.to_uppercase());
        for file in files {
            let name =
                file.strip_prefix(catalogue.parent().expect("it is below the workspace")).expect("same");
            let text = fs::read_to_string(&file).expect("a file of the catalogue can be read");
            let rows: serde_json::Value =
                toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
            let begin = all.len();
            all += &rows.to_string();
            parts += &format!("    ({name:?}, {begin}..{}),\n", all.len());
            texts += &format!("    ({name:?}, include_str!({file:?})),\n");
        }
        texts += "];\n";
        let packed = Path::new(&out).join(kind).with_extension("lz4");
        fs::write(&packed, lz4_flex::block::compress(all.as_bytes())).expect("OUT_DIR can be written");
        code += &format!(
            "pub(super) const {}: Rows = Rows {{ packed: include_bytes!({packed:?}), size_bytes: {}, files: &[\n\
             {parts}] }};\n",
            kind.to_uppercase(),
            all.len()
        );
    }
    let write = |name: &str, code: String| fs::write(Path::new(&out).join(name), code);
    write("embedded.rs", code).expect("OUT_DIR can be written");
    write("texts.rs", texts).expect("OUT_DIR can be written");
}
