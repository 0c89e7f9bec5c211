//! Command lines of compiler drivers: GCC's, which Clang took over.

use super::{Link, Work, file_name, has_unread, is_tried_out, linker};

/// What gives every function a section, by which linkers order them.
pub const FUNCTION_SECTIONS: &str = "-ffunction-sections";

/// Programs that stand before a compiler on its command line.
const LAUNCHERS: [&str; 6] = ["ccache", "sccache", "distcc", "icecc", "buildcache", "env"];
/// Drivers, without what stands before the last dash (a target) and behind it (a version). LLVM's Fortran driver,
/// flang, is none of them: all but the newest end at the option.
const COMPILERS: [&str; 8] = ["cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "gdc"];

/// Options that end before the link.
const STOPS: &[&str] = &[
    "-c",
    "-S",
    "--compile",
    "--assemble",
    "-E",
    "--preprocess",
    "-M",
    "-MM",
    "-fsyntax-only",
    "--analyze",
    "--precompile",
    "-emit-ast",
    "-emit-pch",
    "-verify-pch",
];
/// Of these, the ones that make code.
const MAKES_CODE: &[&str] = &["-c", "-S", "--compile", "--assemble"];
/// Options that print something and end.
const ANSWERS: &[&str] = &[
    "--version",
    "-dumpversion",
    "-dumpfullversion",
    "-dumpmachine",
    "-dumpspecs",
    "-help",
    "-###",
    "-cc1",
    "-cc1as",
    "-cc1gen-reproducer",
];
/// Options whose value is the next word.
const VALUED: &[&str] = &[
    "-A",
    "-D",
    "-F",
    "-G",
    "-I",
    "-L",
    "-MF",
    "-MJ",
    "-MQ",
    "-MT",
    "-U",
    "-Xanalyzer",
    "-Xassembler",
    "-Xclang",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-b",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-e",
    "-framework",
    "-idirafter",
    "-imacros",
    "-include",
    "-include-pch",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-l",
    "-mllvm",
    "-u",
    "-wrapper",
    "--param",
    "--entry",
];
/// Options that choose the linker, or what it links for, with the value in the next word.
const SELECTS_VALUED: &[&str] = &["-B", "-target", "--sysroot", "-specs", "--specs"];
/// The same with the value behind them.
const SELECTS: &[&str] = &[
    "-fuse-ld=",
    "--ld-path=",
    "-B",
    "--target=",
    "--gcc-toolchain=",
    "--sysroot=",
    "-specs=",
    "--specs=",
    "--driver-mode=",
    "-m32",
    "-m64",
    "-mx32",
    "--config",
    "--no-default-config",
];
/// Options of code for no operating system: kernels, boot loaders, ROMs. Scripts lay such code out by the names of its
/// sections, which are to stay what they are.
const BARE: &[&str] = &["-ffreestanding", "-mcmodel=kernel", "-mkernel", "-m16", "-nostdinc"];
/// What is compiled, by the end of its name.
const SOURCES: &[&str] = &[
    "c", "i", "ii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "m", "mm", "mi", "mii", "M", "f", "for",
    "ftn", "F", "f90", "F90", "f95", "F95", "f03", "f08", "d", "ll", "bc", "cppm", "ixx",
];
/// Headers: compiled for themselves, never linked.
const HEADERS: &[&str] = &["h", "hh", "H", "hp", "hxx", "hpp", "HPP", "h++", "tcc"];

/// How many words of a command line come before the arguments of the compiler: launchers and the compiler itself.
#[must_use]
pub fn launchers(words: &[String]) -> usize {
    let is_launcher = |word: &String| LAUNCHERS.contains(&file_name(word));
    let is_setting = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.starts_with('-'));
    let mut count = 0;
    while words.get(count).is_some_and(is_launcher) && words.len() > count + 1 {
        let is_env = file_name(&words[count]) == "env";
        count += 1;
        while is_env && words.get(count).is_some_and(is_setting) {
            count += 1;
        }
    }
    (count + 1).min(words.len())
}

/// Whether a program is a compiler driver that takes [`FUNCTION_SECTIONS`]: `gcc`, `/opt/x86_64-linux-gnu-g++-12`.
#[must_use]
pub fn is_known_compiler(path: &str) -> bool {
    COMPILERS.contains(&tool_word(path))
}

/// Whether a compiler by this name, or for this target, makes code for no operating system: `arm-none-eabi-gcc`,
/// `riscv64-unknown-elf`.
#[must_use]
pub fn is_for_bare_machine(path: &str) -> bool {
    let name = file_name(path);
    !name.contains("linux") && name.split('-').any(|part| ["none", "elf", "eabi", "eabihf"].contains(&part))
}

/// The name of a tool without its folder, the target before it and the version behind it: `g++` of
/// `/opt/x86_64-linux-gnu-g++-12`.
#[must_use]
pub fn tool_word(path: &str) -> &str {
    let name = file_name(path);
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let stem =
        name.rsplit_once('-').filter(|(_, version)| is_version(version)).map_or(name, |(stem, _)| stem);
    stem.rsplit('-').next().unwrap_or(stem)
}

/// What a driver's command line says.
#[derive(Debug, Default)]
struct Said<'a> {
    inputs: Vec<&'a str>,
    libraries: bool,
    from_stdin: bool,
    answers: bool,
    stops: bool,
    makes_code: bool,
    makes_header: bool,
    /// `-x LANGUAGE`: whatever their names, inputs are sources of functions, or are not (assembly).
    language: Option<bool>,
    /// Its functions get sections by its own words, or are to have none of their own.
    sections_settled: bool,
    link_time: bool,
    output: Option<&'a str>,
    for_linker: Vec<&'a str>,
    selects: Vec<String>,
}

impl<'a> Said<'a> {
    fn read(words: &'a [String]) -> Self {
        let mut said = Self::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                said.inputs.extend(words);
                break;
            }
            said.word(word, &mut words);
        }
        said
    }

    fn word(&mut self, word: &'a str, rest: &mut impl Iterator<Item = &'a str>) {
        match word {
            "-" => self.from_stdin = true,
            _ if !word.starts_with('-') => self.inputs.push(word),
            _ if STOPS.contains(&word) => {
                self.stops = true;
                self.makes_code |= MAKES_CODE.contains(&word);
            }
            _ if ANSWERS.contains(&word) || is_question(word) => self.answers = true,
            "-o" | "--output" => self.output = rest.next(),
            "-x" => self.language(rest.next().unwrap_or_default()),
            "-Xlinker" | "--for-linker" => self.for_linker.extend(rest.next()),
            // What drivers hand to the linker as it is.
            "-z" | "-T" | "-Ttext" | "-Tdata" | "-Tbss" => {
                self.for_linker.push(word);
                self.for_linker.extend(rest.next());
            }
            "-r" | "-N" | "-n" => self.for_linker.push(word),
            "-ffunction-sections" | "-fno-function-sections" => self.sections_settled = true,
            _ if BARE.contains(&word) => self.sections_settled = true,
            "-l" => {
                self.libraries = true;
                rest.next();
            }
            _ if SELECTS_VALUED.contains(&word) => {
                self.selects.push(word.to_owned());
                let value = rest.next();
                self.sections_settled |= word == "-target" && value.is_some_and(is_for_bare_machine);
                self.selects.extend(value.map(str::to_owned));
            }
            _ if VALUED.contains(&word) => drop(rest.next()),
            _ => self.joined(word),
        }
    }

    /// An option with its value behind it, or none.
    fn joined(&mut self, word: &'a str) {
        if let Some(list) = word.strip_prefix("-Wl,") {
            self.for_linker.extend(list.split(','));
        } else if let Some(list) = word.strip_prefix("--for-linker=") {
            self.for_linker.push(list);
        } else if SELECTS.iter().any(|option| word.starts_with(option)) {
            self.sections_settled |= word.strip_prefix("--target=").is_some_and(is_for_bare_machine);
            self.selects.push(word.to_owned());
        } else if let Some(language) = word.strip_prefix("-x") {
            self.language(language);
        } else if let Some(output) = word.strip_prefix("-o").filter(|_| !word.starts_with("-objc")) {
            self.output = Some(output);
        } else if word.starts_with("-T") || word.starts_with("-z") {
            self.for_linker.push(word);
        } else if word.starts_with("-l") {
            self.libraries = true;
        } else if word.starts_with("-fembed-bitcode") {
            // Clang takes no sections of functions beside it.
            self.sections_settled = true;
        } else if word.starts_with("-flto") {
            self.link_time = true;
        } else if word == "-fno-lto" {
            self.link_time = false;
        }
    }

    fn language(&mut self, language: &str) {
        self.makes_header |= language.ends_with("-header");
        self.language = (language != "none").then(|| !language.starts_with("assembler"));
    }

    fn compiles(&self) -> bool {
        let by_name = |input: &str| extension(input).is_some_and(|extension| SOURCES.contains(&extension));
        let is_source = |input: &&str| self.language.unwrap_or_else(|| by_name(input));
        !self.sections_settled && self.inputs.iter().any(is_source)
    }

    fn is_header(&self) -> bool {
        let is_header = |input: &&str| extension(input).is_some_and(|extension| HEADERS.contains(&extension));
        self.makes_header
            || (self.language.is_none() && !self.inputs.is_empty() && self.inputs.iter().all(is_header))
    }
}

/// `-print-search-dirs`, `--print-file-name=x`, `--help=optimizers`, `--target-help`, `-ccc-print-phases`.
fn is_question(word: &str) -> bool {
    ["-print-", "--print-", "--help", "--target-help", "-ccc-"].iter().any(|start| word.starts_with(start))
}

fn extension(path: &str) -> Option<&str> {
    file_name(path).rsplit_once('.').map(|(_, extension)| extension)
}

/// What a command line of a compiler driver does: its arguments, with response files expanded.
#[must_use]
pub fn work_of_compiler(words: &[String]) -> Work {
    let said = Said::read(words);
    let has_input = !said.inputs.is_empty() || said.libraries;
    // What comes through a pipe can be read once, and a link that fails by our words is done again without them.
    if has_unread(words) || said.answers || said.from_stdin || !has_input || said.is_header() {
        return Work::Other;
    }
    let mut paths = said.inputs.clone();
    paths.extend(said.output);
    if is_tried_out(&paths) {
        return Work::Other;
    }
    if said.stops {
        // -E and the like win over -c.
        let only_code =
            !words.iter().any(|word| STOPS.contains(&word.as_str()) && !MAKES_CODE.contains(&word.as_str()));
        return if said.makes_code && only_code && said.compiles() { Work::Compile } else { Work::Other };
    }
    let for_linker = linker::read(said.for_linker.iter().copied());
    if for_linker.answers || for_linker.is_other {
        return Work::Other;
    }
    let link = for_linker.into_link();
    let output = said.output.map_or(link.output.clone(), str::to_owned);
    let compiles = said.compiles() || (said.link_time && !said.sections_settled);
    Work::Link(Link { output, compiles, selects: said.selects, ..link })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::split;

    fn work(line: &str) -> Work {
        work_of_compiler(&split(line))
    }

    fn link(line: &str) -> Link {
        match work(line) {
            Work::Link(link) => link,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn questions_and_half_compilations_are_something_else() {
        for line in [
            "",
            "-v",
            "--version",
            "-dumpmachine",
            "-print-prog-name=ld",
            "--help=common",
            "-Wl,--version",
            "-Wl,-v",
            "x.c -Wl,--version",
            "-### x.c",
            "-E x.c",
            "-c -E x.c",
            "-M x.c -c",
            "-fsyntax-only x.c",
            "-ccc-print-phases x.c",
            "-c x.s",
            "-c -x assembler-with-cpp x.c",
            "-c x.S -o x.o",
            "-r a.o b.o -o c.o",
            "-Wl,-r a.o",
            "x.h",
            "-x c++-header all -o all.gch",
            "-x c - -o prog",
            "-shared -x c /dev/stdin -o libx.so",
            "-x c /dev/null -o /dev/null -Wl,--build-id",
            "-o prog @missing.rsp",
            "conftest.c -o conftest -lm",
            "-c conftest.c",
            "-o cmTC_1a2b3 CMakeFiles/cmTC_1a2b3.dir/testCCompiler.c.o",
            "/b/meson-private/tmp1/testfile.c -o /b/meson-private/tmp1/output.exe",
            "CMakeCXXCompilerId.cpp",
            "sanitycheckc.c -o sanitycheckc.exe",
            "-cc1 -emit-obj x.c",
            "-c x.c -ffunction-sections",
            "-c x.c -fno-function-sections",
        ] {
            assert_eq!(work(line), Work::Other, "{line}");
        }
    }

    /// Their scripts know `.text` and not `.text.main`: what they do not know lies anywhere, or is an error.
    #[test]
    fn code_for_no_operating_system_keeps_its_sections() {
        for option in [
            "-ffreestanding",
            "-mcmodel=kernel",
            "-mkernel",
            "-m16",
            "-nostdinc",
            "--target=arm-none-eabi",
            "-target x86_64-unknown-none-elf",
        ] {
            assert_eq!(work(&format!("-O2 {option} -c x.c")), Work::Other, "{option}");
            assert!(!link(&format!("{option} x.c")).compiles, "{option}");
            assert!(!link(&format!("{option} -flto x.o")).compiles, "{option}");
        }
        for option in
            ["-mcmodel=large", "-m32", "--target=aarch64-none-linux-gnu", "-target arm-linux-gnueabi"]
        {
            assert_eq!(work(&format!("{option} -c x.c")), Work::Compile, "{option}");
        }
        for name in ["/opt/bin/arm-none-eabi-gcc-13", "riscv64-unknown-elf-g++"] {
            assert!(is_for_bare_machine(name), "{name}");
        }
        for name in ["gcc", "/elf/gcc", "aarch64-none-linux-gnu-gcc", "arm-linux-gnueabihf-gcc"] {
            assert!(!is_for_bare_machine(name), "{name}");
        }
    }

    /// Clang: "-ffunction-sections is not supported with -fembed-bitcode".
    #[test]
    fn code_with_bitcode_beside_it_gets_no_sections() {
        for option in ["-fembed-bitcode", "-fembed-bitcode=all", "-fembed-bitcode-marker"] {
            assert_eq!(work(&format!("{option} -c x.c")), Work::Other, "{option}");
            assert!(!link(&format!("x.c {option} -flto")).compiles, "{option}");
        }
    }

    #[test]
    fn compilations_are_told_from_links() {
        for line in [
            "-c x.c",
            "-O2 -c -o x.o x.cpp",
            "-S x.cc",
            "-c -x c++ thing",
            "-c -x assembler -x none x.c",
            "-MD -MF x.d -c x.c",
        ] {
            assert_eq!(work(line), Work::Compile, "{line}");
        }
        assert!(link("x.c").compiles && !link("x.o").compiles && !link("-ffunction-sections x.c").compiles);
        assert!(link("x.o -flto=auto").compiles, "its code is made at link time");
        assert!(!link("x.o -flto -fno-lto").compiles, "the last word counts");
        assert!(!link("-I c.c -include a.c -MF b.c x.o").compiles, "values are no inputs");
    }

    #[test]
    fn a_link_tells_what_it_settles() {
        assert_eq!(link("x.o -lm").output, "a.out");
        assert_eq!(link("-shared -fPIC x.o -o lib/libx.so").output, "lib/libx.so");
        assert_eq!(link("-static-pie x.o -oprog").output, "prog");
        assert!(link("x.o -Wl,-z,max-page-size=4096").has_alignment);
        assert!(link("x.o -Xlinker -z -Xlinker max-page-size=65536").has_alignment);
        assert!(link("x.o -Wl,--symbol-ordering-file=o").has_order);
        for layout in ["-T kernel.ld", "-Wl,-T,kernel.ld", "-Ttext=0x7c00", "-Wl,-Ttext,0x7c00"] {
            assert!(link(&format!("x.o {layout}")).has_layout, "{layout}");
        }
        let plain = link("x.o -Wl,-z,relro,-z,now -Wl,--as-needed -target-cpu");
        assert_eq!((plain.has_order, plain.has_alignment, plain.has_layout), (false, false, false));
    }

    #[test]
    fn what_chooses_the_linker_is_kept_for_the_question() {
        let line = "-m64 -O2 -fuse-ld=lld -B /tools -B/more --target=x -march=native x.o -isystem /i -o p";
        assert_eq!(link(line).selects, split("-m64 -fuse-ld=lld -B /tools -B/more --target=x"));
    }

    #[test]
    fn launchers_stand_before_the_compiler() {
        let count = |line: &str| launchers(&split(line));
        assert_eq!(count("gcc -c x.c"), 1);
        assert_eq!(count("/usr/bin/ccache gcc -c x.c"), 2);
        assert_eq!(count("env A=1 B=2 distcc gcc x.c"), 5);
        assert_eq!((count("ccache"), count("")), (1, 0));
    }

    #[test]
    fn compilers_are_known_by_their_last_word() {
        for name in
            ["cc", "/usr/bin/g++-12", "x86_64-linux-gnu-gcc", "clang++-19", "aarch64-linux-gnu-g++-13.2"]
        {
            assert!(is_known_compiler(name), "{name}");
        }
        for name in ["nvcc", "flang", "flang-20", "ld", "my-wrapper", "rustc", "gcc-ar", "clang-tidy-19", ""]
        {
            assert!(!is_known_compiler(name), "{name}");
        }
    }
}
