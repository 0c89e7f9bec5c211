//! The flags that make compilers and linkers follow an order, for the tools that build with them.

/// A compiler driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GCC, for C and C++.
    Gcc,
    /// Clang, for C and C++.
    Clang,
    /// rustc, by itself or through cargo.
    Rustc,
}

/// A linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linker {
    /// LLVM's; rustc's own on x86-64 Linux.
    Lld,
    /// The older GNU linker for ELF only.
    Gold,
    /// The GNU linker.
    Bfd,
    /// mold, which takes no order.
    Mold,
}

/// What a build is to give.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// File of an order in the form that the linker reads.
    pub order: Option<String>,
    /// Text that can lie on huge pages of this size.
    pub huge_bytes: Option<u64>,
    /// Stacks that can be walked by frame pointers.
    pub frame_pointers: bool,
    /// Relocations, so that BOLT can rewrite it.
    pub bolt: bool,
}

/// Flags by the step that takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// For every compilation.
    pub compile: Vec<String>,
    /// For the link.
    pub link: Vec<String>,
}

/// The flags for a compiler and a linker.
#[must_use]
pub fn flags(compiler: Compiler, linker: Linker, wishes: &Wishes) -> Flags {
    let mut flags = Flags::default();
    if compiler == Compiler::Rustc {
        // rustc gives every function a section by itself.
        if wishes.frame_pointers {
            flags.compile.push("-Cforce-frame-pointers=yes".to_owned());
        }
    } else {
        if wishes.order.is_some() {
            flags.compile.push("-ffunction-sections".to_owned());
        }
        if wishes.frame_pointers {
            flags.compile.push("-fno-omit-frame-pointer".to_owned());
        }
        if wishes.bolt && compiler == Compiler::Gcc {
            // BOLT cannot take apart what GCC has split into a cold part.
            flags.compile.push("-fno-reorder-blocks-and-partition".to_owned());
        }
    }
    let mut link = Vec::new();
    // What drivers link with by default differs: the one that was meant is named.
    let name = match linker {
        Linker::Lld => "lld",
        Linker::Gold => "gold",
        Linker::Bfd => "bfd",
        Linker::Mold => "mold",
    };
    link.push(format!("-fuse-ld={name}"));
    if let Some(order) = &wishes.order {
        link.extend(order_words(linker, order).iter().map(|words| for_driver(words)));
    }
    if let Some(bytes) = wishes.huge_bytes {
        link.extend(huge_words(linker, bytes).iter().map(|words| for_driver(words)));
    }
    if wishes.bolt {
        link.push("-Wl,--emit-relocs".to_owned());
    }
    flags.link = if compiler == Compiler::Rustc {
        link.into_iter().map(|flag| format!("-Clink-arg={flag}")).collect()
    } else {
        link
    };
    flags
}

/// Words for the linker itself as one word for a driver.
fn for_driver(words: &[String]) -> String {
    format!("-Wl,{}", words.join(","))
}

/// Words for a linker that make it follow the order in a file, in groups that belong together.
#[must_use]
pub fn order_words(linker: Linker, file: &str) -> Vec<Vec<String>> {
    match linker {
        // An order outlives functions: those that are gone must not fail a build with fatal warnings.
        Linker::Lld => {
            vec![vec![format!("--symbol-ordering-file={file}")], vec!["--no-warn-symbol-ordering".to_owned()]]
        }
        Linker::Gold | Linker::Bfd => vec![vec![format!("--section-ordering-file={file}")]],
        Linker::Mold => Vec::new(),
    }
}

/// Words for a linker that give segments whose offsets and addresses are the same modulo a huge page, and an
/// alignment that loaders keep.
#[must_use]
pub fn huge_words(linker: Linker, bytes: u64) -> Vec<Vec<String>> {
    let keyword = |keyword: String| vec!["-z".to_owned(), keyword];
    let other = match linker {
        Linker::Lld | Linker::Mold => "separate-loadable-segments".to_owned(),
        Linker::Bfd => "separate-code".to_owned(),
        Linker::Gold => format!("common-page-size={bytes}"),
    };
    vec![keyword(format!("max-page-size={bytes}")), keyword(other)]
}

/// A tool that builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builder {
    /// GNU make, and everything that reads CFLAGS and LDFLAGS.
    Make,
    /// CMake.
    Cmake,
    /// cargo.
    Cargo,
    /// Meson.
    Meson,
    /// Bazel.
    Bazel,
    /// Buck2.
    Buck2,
    /// A Dockerfile around one of the others.
    Dockerfile,
}

impl Builder {
    /// Every tool with the word that names it on a command line.
    pub const ALL: [(&'static str, Self); 7] = [
        ("make", Self::Make),
        ("cmake", Self::Cmake),
        ("cargo", Self::Cargo),
        ("meson", Self::Meson),
        ("bazel", Self::Bazel),
        ("buck2", Self::Buck2),
        ("dockerfile", Self::Dockerfile),
    ];
}

/// The file that a recipe goes into, and its lines.
#[must_use]
pub fn recipe(builder: Builder, flags: &Flags) -> (&'static str, String) {
    let words = |list: &[String]| list.join(" ");
    let quoted =
        |list: &[String]| list.iter().map(|flag| format!("\"{flag}\"")).collect::<Vec<_>>().join(", ");
    let (compile, link) = (words(&flags.compile), words(&flags.link));
    match builder {
        Builder::Make => {
            ("Makefile", format!("CFLAGS += {compile}\nCXXFLAGS += {compile}\nLDFLAGS += {link}\n"))
        }
        Builder::Cmake => {
            ("CMakeLists.txt", format!("add_compile_options({compile})\nadd_link_options({link})\n"))
        }
        Builder::Cargo => {
            let all = [flags.compile.as_slice(), &flags.link].concat();
            (".cargo/config.toml", format!("[build]\nrustflags = [{}]\n", quoted(&all)))
        }
        Builder::Meson => {
            let (compile, link) = (quoted(&flags.compile), quoted(&flags.link));
            let language = "language: ['c', 'cpp']";
            let text = format!(
                "add_project_arguments({compile}, {language})\nadd_project_link_arguments({link}, {language})\n"
            );
            ("meson.build", text.replace('"', "'"))
        }
        Builder::Bazel => {
            let compile = flags.compile.iter().map(|flag| format!("build --copt={flag}\n"));
            let link = flags.link.iter().map(|flag| format!("build --linkopt={flag}\n"));
            (".bazelrc", compile.chain(link).collect())
        }
        Builder::Buck2 => {
            let (compile, link) = (quoted(&flags.compile), quoted(&flags.link));
            ("BUCK, in cxx_binary", format!("compiler_flags = [{compile}],\nlinker_flags = [{link}],\n"))
        }
        Builder::Dockerfile => {
            let text = format!("ENV CFLAGS=\"{compile}\" CXXFLAGS=\"{compile}\" LDFLAGS=\"{link}\"\n");
            ("Dockerfile, before the build", text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes() -> Wishes {
        let order = Some("order.txt".to_owned());
        Wishes { order, huge_bytes: Some(2 << 20), frame_pointers: true, bolt: false }
    }

    #[test]
    fn rustc_takes_linker_flags_one_by_one() {
        let flags = flags(Compiler::Rustc, Linker::Lld, &wishes());
        assert_eq!(flags.compile, ["-Cforce-frame-pointers=yes"]);
        assert!(flags.link.iter().all(|flag| flag.starts_with("-Clink-arg=-")), "{flags:?}");
        let (file, text) = recipe(Builder::Cargo, &flags);
        assert_eq!(file, ".cargo/config.toml");
        assert!(text.contains("\"-Clink-arg=-Wl,--symbol-ordering-file=order.txt\""), "{text}");
    }

    #[test]
    fn every_recipe_carries_every_flag() {
        for (compiler, linker) in [(Compiler::Gcc, Linker::Bfd), (Compiler::Clang, Linker::Lld)] {
            let flags = flags(compiler, linker, &Wishes { bolt: true, ..wishes() });
            for (word, builder) in Builder::ALL {
                let (_, text) = recipe(builder, &flags);
                for flag in flags.compile.iter().chain(&flags.link) {
                    assert!(text.contains(flag), "{word} lacks {flag}: {text}");
                }
            }
        }
    }
}
