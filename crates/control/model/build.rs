//! Embeds `catalogue/`: adding a knob touches one TOML file, and no list.

use std::path::Path;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "a build script reads the source tree, not a host")]
fn main() {
    // Asked at run time: the path that this script was compiled in may be another checkout's.
    let package = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let catalogue = Path::new(&package).join("../../../catalogue");
    let catalogue = catalogue.canonicalize().expect("the workspace has a catalogue");
    println!("cargo::rerun-if-changed={}", catalogue.display());
    let mut code = String::new();
    for kind in ["knobs", "profiles", "findings", "writers"] {
        let folder = catalogue.join(kind);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files: Vec<_> = fs::read_dir(&folder)
            .expect("each kind of row has its folder")
            .map(|entry| entry.expect("the folder can be listed").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .collect();
        files.sort();
        code += &format!("pub(crate) const {}: &[(&str, &str)] = &[\n", kind.to_uppercase());
        for file in files {
            let name =
                file.strip_prefix(catalogue.parent().expect("it is below the workspace")).expect("same");
            code += &format!("    ({:?}, include_str!({:?})),\n", name, file);
        }
        code += "];\n";
    }
    let out = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("embedded.rs");
    fs::write(out, code).expect("OUT_DIR can be written");
}
