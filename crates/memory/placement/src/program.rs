//! The program that is to be started: where it is, which libc it has, and whether a preload reaches it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use planish_host::Host;
use planish_sys::file::CAPABILITIES;
use rustix::io::Errno;

use crate::allocator::Allocator;
use crate::error::PlacementError;

/// The libc of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Libc {
    /// glibc 2.`minor`; `None` where its file was not found.
    Glibc {
        /// The newest interface that it has.
        minor: Option<u32>,
    },
    /// musl.
    Musl,
    /// A loader that is neither's.
    Other,
}

/// A program that was found.
#[derive(Clone, Debug)]
pub struct Program {
    /// What is executed.
    pub path: PathBuf,
    /// What the loader sees of it: the program itself, or the interpreter of a script.
    pub loaded: PathBuf,
    /// The libc; `None` for a program that is linked statically.
    pub libc: Option<Libc>,
    /// Why the loader ignores preloads for it.
    pub secure: Option<&'static str>,
    /// Whether it is of the machine that the preload is for.
    pub is_native: bool,
    /// The allocator that it is linked with, in the place of that of its libc.
    pub malloc: Option<Allocator>,
    /// The runtime of AddressSanitizer, where it is linked with that: it ends a program that has another library first.
    pub sanitizer: Option<String>,
    /// Whether it is text without a first line that names an interpreter: a shell runs it, and the kernel does not.
    pub is_text: bool,
}

/// Interpreters that may stand behind each other, as in the kernel.
const SCRIPTS_MAX: usize = 5;

impl Program {
    /// Finds a program as a shell would, in `paths` where its name has no slash.
    ///
    /// # Errors
    /// There is none, or it may not be executed.
    pub fn find(name: &OsStr, paths: Option<&OsStr>) -> Result<Self, PlacementError> {
        let path = resolve(name, paths)?;
        let mut loaded = path.clone();
        for _ in 0..SCRIPTS_MAX {
            let Some(interpreter) = interpreter(&loaded).map_err(|source| not_runnable(&loaded, source))?
            else {
                break;
            };
            is_runnable(&interpreter).map_err(|source| PlacementError::NoInterpreter {
                path: loaded.clone(),
                interpreter: interpreter.to_string_lossy().escape_debug().to_string(),
                source,
            })?;
            loaded = interpreter;
        }
        let open = |path: &Path| File::open(path).map_err(|source| not_runnable(path, source));
        let cache = ReadCache::new(open(&loaded)?);
        // What is no program of 64 bits is left to the kernel, which knows other formats.
        let header = elf::FileHeader64::<Endianness>::parse(&cache);
        let (libc, is_native, is_text) = match header {
            Ok(header) => {
                (libc(header, &cache).or_else(|| libc_of_loader(&loaded)), is_native(header), false)
            }
            Err(_) => (Some(Libc::Other), false, is_text(&cache)),
        };
        let secure = secure(&loaded).map_err(|source| not_runnable(&loaded, source))?;
        let needed = needed(&loaded).unwrap_or_default();
        let malloc = needed.iter().find_map(|library| Allocator::of(library));
        let sanitizer = needed.into_iter().find(|library| is_sanitizer(library));
        Ok(Self { path, loaded, libc, secure, is_native, malloc, sanitizer, is_text })
    }

    /// Whether it is linked statically with a glibc whose malloc can have huge pages: it reads GLIBC_TUNABLES itself,
    /// and has the tunable in its list of them. Reads all of its file.
    pub fn has_own_tunables(&self) -> bool {
        const NAME: &[u8] = b"glibc.malloc.hugetlb\0";
        if self.libc.is_some() || self.secure.is_some() || !self.is_native {
            return false;
        }
        let bytes = planish_sys::file::read(&self.loaded).unwrap_or_default();
        bytes.windows(NAME.len()).any(|window| window == NAME)
    }

    /// Whether this kernel can run it, as far as its machine tells: where it cannot, execvp(3) of glibc would give it
    /// to a shell.
    ///
    /// # Errors
    /// Its machine, where nothing emulates others here (binfmt_misc).
    pub(crate) fn may_run_here(&self, host: &Host) -> Result<(), PlacementError> {
        const EMULATORS: &str = "/proc/sys/fs/binfmt_misc";
        // Kernels of 64 bits run programs of 32 bits of the same family, unless they were built otherwise.
        const NEAR: [(&str, &str); 2] = [("x86_64", "32-bit x86"), ("aarch64", "32-bit arm")];
        let is_near = |machine: &str| NEAR.contains(&(std::env::consts::ARCH, machine));
        let Some(machine) = other_machine(&self.loaded).filter(|machine| !is_near(machine)) else {
            return Ok(());
        };
        let is_emulated = host.list(EMULATORS).iter().any(|name| name != "register" && name != "status");
        if is_emulated {
            Ok(())
        } else {
            Err(PlacementError::OtherMachine { path: self.path.clone(), machine })
        }
    }

    /// Whether a preload reaches it.
    ///
    /// # Errors
    /// Why it does not.
    pub fn may_be_preloaded(&self) -> Result<Libc, PlacementError> {
        let path = self.loaded.clone();
        match (self.libc, self.secure) {
            _ if self.is_text => Err(not_runnable(&path, Errno::NOEXEC.into())),
            _ if !self.is_native => Err(PlacementError::Foreign { path }),
            (None, _) => Err(PlacementError::Static { path }),
            (_, Some(why)) => Err(PlacementError::Secure { path, why }),
            (Some(libc), None) => Ok(libc),
        }
    }
}

impl Program {
    /// Whether it bears preloads in front of its libraries, with those that it has already and the options that the
    /// runtime of AddressSanitizer is given.
    ///
    /// # Errors
    /// It would end at its start.
    pub fn may_be_second(&self, preloads: &OsStr, options: Option<&OsStr>) -> Result<(), PlacementError> {
        let Some(library) = &self.sanitizer else { return Ok(()) };
        let preloads = preloads.to_string_lossy();
        let is_first = preloads.split([':', ' ']).find(|word| !word.is_empty());
        let is_first = is_first.is_some_and(|word| is_sanitizer(word.rsplit('/').next().unwrap_or_default()));
        let mut options = options.unwrap_or_default().to_string_lossy().into_owned();
        options.retain(|character| character != ' ');
        if is_first || options.contains("verify_asan_link_order=0") {
            return Ok(());
        }
        Err(PlacementError::Sanitizer { path: self.loaded.clone(), library: library.clone() })
    }
}

/// Whether a library is the runtime of AddressSanitizer, of GCC or of Clang.
fn is_sanitizer(library: &str) -> bool {
    library.starts_with("libasan.so") || library.starts_with("libclang_rt.asan")
}

/// Whether a file begins as text does.
fn is_text<'data, R: ReadRef<'data>>(data: R) -> bool {
    let bytes = data.len().ok().and_then(|bytes| data.read_bytes_at(0, bytes.min(256)).ok());
    bytes.is_some_and(|bytes| !bytes.is_empty() && !bytes.contains(&0))
}

fn not_runnable(path: &Path, source: io::Error) -> PlacementError {
    PlacementError::NotRunnable { path: path.to_owned(), source }
}

/// The file of a command.
fn resolve(name: &OsStr, paths: Option<&OsStr>) -> Result<PathBuf, PlacementError> {
    let told = if name.is_empty() { "by an empty name".into() } else { name.to_string_lossy() };
    let missing = || PlacementError::NoProgram { name: told.clone().into_owned() };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match is_runnable(&path) {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
            Err(source) => Err(not_runnable(&path, source)),
        };
    }
    let folders = paths.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let mut denied = None;
    for folder in std::env::split_paths(folders).filter(|_| !name.is_empty()) {
        let path = folder.join(name);
        match is_runnable(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => denied = denied.or(Some(not_runnable(&path, source))),
        }
    }
    Err(denied.unwrap_or_else(missing))
}

fn is_runnable(path: &Path) -> io::Result<()> {
    let facts = path.metadata()?;
    if !facts.is_file() {
        return Err(Errno::ACCESS.into());
    }
    if facts.permissions().mode() & 0o111 == 0 {
        return Err(Errno::ACCESS.into());
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?)
}

/// The interpreter in the first line of a script: up to a blank or a tab, as the kernel reads it, which takes the
/// carriage return of a file from elsewhere for a part of its name.
fn interpreter(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut line = Vec::new();
    File::open(path)?.take(256).read_to_end(&mut line)?;
    let Some(rest) = line.strip_prefix(b"#!") else { return Ok(None) };
    let first = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let word = first.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty());
    Ok(word.map(|word| PathBuf::from(OsString::from_vec(word.to_vec()))))
}

fn is_native(header: &elf::FileHeader64<Endianness>) -> bool {
    let machine = match std::env::consts::ARCH {
        "x86_64" => elf::EM_X86_64,
        "aarch64" => elf::EM_AARCH64,
        _ => return false,
    };
    header.endian().is_ok_and(|endian| header.e_machine(endian) == machine)
}

/// Of which machine a program is, where that is another one than this: `64-bit aarch64`.
pub(crate) fn other_machine(path: &Path) -> Option<String> {
    let mut header = [0u8; 20];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    header.starts_with(b"\x7fELF").then_some(())?;
    let bits = if header[4] == 2 { 64 } else { 32 };
    let machine = [header[18], header[19]];
    let machine = if header[5] == 2 { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    let name = match elf::Machine(machine) {
        elf::EM_386 | elf::EM_X86_64 => "x86_64",
        elf::EM_ARM | elf::EM_AARCH64 => "aarch64",
        elf::EM_RISCV => "riscv",
        elf::EM_PPC | elf::EM_PPC64 => "powerpc",
        elf::EM_S390 => "s390x",
        elf::EM_MIPS => "mips",
        elf::EM_LOONGARCH => "loongarch",
        _ => return Some(format!("{bits}-bit machine {machine} of ELF")),
    };
    let is_it = bits == 64 && name == std::env::consts::ARCH;
    let name = match name {
        "x86_64" if bits == 32 => "x86",
        "aarch64" if bits == 32 => "arm",
        name => name,
    };
    (!is_it).then(|| format!("{bits}-bit {name}"))
}

/// The loader that a program names and that is not there: of such a program the kernel says that there is none.
pub(crate) fn missing_loader(path: &Path) -> Option<String> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let header = elf::FileHeader64::<Endianness>::parse(&cache).ok()?;
    loader(header, &cache).filter(|loader| !Path::new(loader).exists())
}

/// The loader that a program names.
fn loader<'data, R: ReadRef<'data>>(header: &elf::FileHeader64<Endianness>, data: R) -> Option<String> {
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let loader = segments.iter().find_map(|segment| segment.interpreter(endian, data).ok().flatten())?;
    Some(String::from_utf8_lossy(loader).into_owned())
}

/// The libc by the loader that a program names; `None` where it names none.
fn libc<'data, R: ReadRef<'data>>(header: &elf::FileHeader64<Endianness>, data: R) -> Option<Libc> {
    let loader = loader(header, data)?;
    let file = loader.rsplit('/').next().unwrap_or_default();
    Some(match () {
        () if file.starts_with("ld-musl") => Libc::Musl,
        () if file.starts_with("ld-linux") => Libc::Glibc { minor: glibc_minor(Path::new(&loader)) },
        () => Libc::Other,
    })
}

/// The libc of a loader that is started itself, with a program to load: it names none, and preloads all the same.
fn libc_of_loader(path: &Path) -> Option<Libc> {
    let whole = path.canonicalize().ok()?;
    let name = whole.file_name()?.to_str()?;
    match () {
        // It is a link to libc.so, or the other way round.
        () if [path, &whole].iter().any(|path| path.to_string_lossy().contains("/ld-musl")) => {
            Some(Libc::Musl)
        }
        // Of its version until glibc 2.34.
        () if name.starts_with("ld-linux") || name.starts_with("ld-2.") => {
            Some(Libc::Glibc { minor: glibc_minor(&whole) })
        }
        () => None,
    }
}

/// The newest interface of the glibc beside a loader: both come from one package.
fn glibc_minor(loader: &Path) -> Option<u32> {
    let loader = loader.canonicalize().ok()?;
    let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [loader.parent()?, Path::new(&multiarch), Path::new("/usr/lib64"), Path::new("/lib64")];
    let libc = folders.iter().map(|folder| folder.join("libc.so.6")).find(|path| path.exists())?;
    let bytes = planish_sys::file::read(&libc).ok()?;
    newest_interface(&bytes)
}

/// The largest N of `GLIBC_2.N` in the names of a library.
fn newest_interface(bytes: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"GLIBC_2.";
    let mut newest = None;
    let mut rest = bytes;
    while let Some(at) = rest.windows(NAME.len()).position(|window| window == NAME) {
        rest = &rest[at + NAME.len()..];
        let digits = rest.iter().take(4).take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
        newest = newest.max(Some(number));
    }
    newest
}

/// Why the kernel would tell the loader to be careful with a program (AT_SECURE), for who we are.
fn secure(path: &Path) -> io::Result<Option<&'static str>> {
    let facts = path.metadata()?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let mode = facts.permissions().mode();
    if mode & 0o4000 != 0 && facts.uid() != user {
        return Ok(Some("is set-user-id"));
    }
    if mode & 0o2010 == 0o2010 && facts.gid() != group {
        return Ok(Some("is set-group-id"));
    }
    let has_capabilities = rustix::fs::getxattr(path, CAPABILITIES, &mut [0u8; 64]).is_ok();
    Ok((has_capabilities && user != 0).then_some("has file capabilities"))
}

/// The libraries that a shared object needs.
pub(crate) fn needed(path: &Path) -> io::Result<Vec<String>> {
    let cache = ReadCache::new(File::open(path)?);
    let header = elf::FileHeader64::<Endianness>::parse(&cache).map_err(io::Error::other)?;
    if !is_native(header) {
        return Ok(Vec::new());
    }
    let endian = header.endian().map_err(io::Error::other)?;
    let sections = header.sections(endian, &cache).map_err(io::Error::other)?;
    let Some((entries, strings)) = sections.dynamic(endian, &cache).map_err(io::Error::other)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, &cache, strings).map_err(io::Error::other)?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED);
    let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::Permissions;

    use super::*;

    /// A program of which nothing is out of the ordinary.
    pub(crate) fn plain() -> Program {
        Program {
            path: "/srv/server".into(),
            loaded: "/srv/server".into(),
            libc: Some(Libc::Glibc { minor: Some(36) }),
            secure: None,
            is_native: true,
            malloc: None,
            sanitizer: None,
            is_text: false,
        }
    }

    fn script(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        io::Write::write_all(&mut File::create(&path).unwrap(), text.as_bytes()).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_script_is_what_its_interpreter_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "start", "#!/bin/sh -e\nexit 0\n", 0o755);
        let found = Program::find(path.as_os_str(), None).unwrap();
        assert_eq!((found.path.as_path(), found.loaded.as_path()), (path.as_path(), Path::new("/bin/sh")));
        assert!(found.may_be_preloaded().is_ok(), "{found:?}");
    }

    #[test]
    fn an_interpreter_that_is_not_there_is_named_and_not_the_script() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |line: &str| {
            let path = script(folder.path(), "start", line, 0o755);
            let error = Program::find(path.as_os_str(), None).unwrap_err();
            (error.code(), error.to_string(), error.cure())
        };
        let (code, text, cure) = refused("#! /nowhere/sh -e\n");
        assert_eq!(code, 126);
        assert!(text.contains("/nowhere/sh") && !cure.contains("may be executed"), "{text}; {cure}");
        let (_, text, cure) = refused("#!/bin/sh\r\nexit 0\r\n");
        assert!(text.contains("/bin/sh\\r") && cure.contains("carriage return"), "{text}; {cure}");
    }

    #[test]
    fn a_program_of_another_machine_is_told_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let of = |header: &[u8]| {
            let path = script(folder.path(), "program", "", 0o755);
            io::Write::write_all(&mut File::create(&path).unwrap(), header).unwrap();
            other_machine(&path)
        };
        assert_eq!(of(&elf(22, None)).as_deref(), Some("64-bit s390x"));
        let mut arm = elf(40, None);
        arm[4] = 1;
        assert_eq!(of(&arm).as_deref(), Some("32-bit arm"));
        assert_eq!(of(&elf(999, None)).as_deref(), Some("64-bit machine 999 of ELF"));
        assert_eq!(of(b"#!/bin/sh\n and more than twenty bytes"), None);
        assert_eq!(other_machine(&std::env::current_exe().unwrap()), None);
    }

    #[test]
    fn a_loader_that_is_named_itself_is_not_linked_statically() {
        let known = Program::find(OsStr::new("sh"), std::env::var_os("PATH").as_deref()).unwrap();
        let cache = ReadCache::new(File::open(&known.loaded).unwrap());
        let header = elf::FileHeader64::<Endianness>::parse(&cache).unwrap();
        let Some(loader) = loader(header, &cache) else {
            return planish_skip::skip("a_loader_that_is_named_itself", "a shell without a loader");
        };
        let found = Program::find(loader.as_ref(), None).unwrap();
        assert_eq!(found.may_be_preloaded().unwrap(), known.libc.unwrap(), "{found:?}");
    }

    /// Its file is there, and the kernel says ENOENT of it all the same.
    #[test]
    fn a_program_without_its_loader_is_told_with_that() {
        let folder = tempfile::tempdir().unwrap();
        let known = Program::find(OsStr::new("sh"), std::env::var_os("PATH").as_deref()).unwrap();
        let mut bytes = planish_sys::file::read(&known.loaded).unwrap();
        let Some(at) = bytes.windows(7).position(|window| window == b"/lib64/" || window == b"/lib/ld")
        else {
            return planish_skip::skip("a_program_without_its_loader_is_told", "a shell without a loader");
        };
        bytes[at + 1] = b'x';
        let path = folder.path().join("program");
        io::Write::write_all(&mut File::create(&path).unwrap(), &bytes).unwrap();
        assert!(missing_loader(&path).is_some_and(|loader| loader.starts_with("/xib")));
        assert_eq!(missing_loader(&known.loaded), None);
        assert_eq!(missing_loader(Path::new("/no/such/program")), None);
    }

    /// A shell runs it by itself, and execve(2) has no such format.
    #[test]
    fn text_that_names_no_interpreter_cannot_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "start", "exec /bin/true\n", 0o755);
        let error = Program::find(path.as_os_str(), None).unwrap().may_be_preloaded().unwrap_err();
        assert!(matches!(error, PlacementError::NotRunnable { .. }), "{error:?}");
        assert!(error.code() == 126 && error.cure().contains("#!"), "{}", error.cure());
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        script(folder.path(), "plain", "#!/bin/sh\n", 0o644);
        let paths = folder.path().as_os_str();
        let code = |name: &str| {
            Program::find(OsStr::new(name), Some(paths)).map(|_| 0).unwrap_or_else(|error| error.code())
        };
        assert_eq!(code("plain"), 126);
        assert_eq!(code("nothing-of-that-name"), 127);
        assert_eq!(code("./nothing/of/that/name"), 127);
        assert_eq!(code(""), 127);
        script(folder.path(), "good", "#!/bin/sh\n", 0o755);
        assert_eq!(code("good"), 0);
    }

    /// A program of one segment, which names a loader or none.
    fn elf(machine: u16, loader: Option<&str>) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        let short = |bytes: &mut Vec<u8>, value: u16| bytes.extend(value.to_le_bytes());
        let long = |bytes: &mut Vec<u8>, value: u64| bytes.extend(value.to_le_bytes());
        short(&mut bytes, 3);
        short(&mut bytes, machine);
        bytes.extend(1u32.to_le_bytes());
        [0, 64, 0].into_iter().for_each(|value| long(&mut bytes, value));
        bytes.extend(0u32.to_le_bytes());
        [64, 56, 1, 64, 0, 0].into_iter().for_each(|value| short(&mut bytes, value));
        let name = loader.unwrap_or_default().as_bytes();
        let kind: u32 = if loader.is_some() { 3 } else { 1 };
        bytes.extend(kind.to_le_bytes());
        bytes.extend(4u32.to_le_bytes());
        let size = name.len() as u64 + 1;
        [120, 120, 120, size, size, 1].into_iter().for_each(|value| long(&mut bytes, value));
        bytes.extend(name);
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_program_is_known_by_its_loader() {
        let folder = tempfile::tempdir().unwrap();
        let native = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
        let found = |machine: u16, loader: Option<&str>| {
            let path = script(folder.path(), "program", "", 0o755);
            io::Write::write_all(&mut File::create(&path).unwrap(), &elf(machine, loader)).unwrap();
            Program::find(path.as_os_str(), None).unwrap()
        };
        let musl = found(native, Some("/lib/ld-musl-x86_64.so.1"));
        assert_eq!(musl.may_be_preloaded().unwrap(), Libc::Musl);
        let glibc = found(native, Some("/nowhere/ld-linux-x86-64.so.2"));
        assert_eq!(glibc.may_be_preloaded().unwrap(), Libc::Glibc { minor: None });
        let alone = found(native, None).may_be_preloaded().unwrap_err();
        assert!(
            matches!(alone, PlacementError::Static { .. }) && alone.cure().contains("--numa heap=interleave")
        );
        let foreign = found(40, Some("/lib/ld-linux.so.3")).may_be_preloaded().unwrap_err();
        assert!(matches!(foreign, PlacementError::Foreign { .. }), "{foreign:?}");
        let secure = Program { secure: Some("is set-user-id"), ..musl };
        assert!(matches!(secure.may_be_preloaded(), Err(PlacementError::Secure { .. })));
    }

    #[test]
    fn the_bits_that_make_a_loader_careful_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(folder.path(), "become", "", 0o4755);
        assert_eq!(secure(&path).unwrap(), None, "our own bit changes nobody");
        if !rustix::process::geteuid().is_root() {
            return planish_skip::skip(
                "the_bits_that_make_a_loader_careful_are_seen",
                "only root gives files away",
            );
        }
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(secure(&path).unwrap(), Some("is set-user-id"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o2755)).unwrap();
        assert_eq!(secure(&path).unwrap(), Some("is set-group-id"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o2745)).unwrap();
        assert_eq!(secure(&path).unwrap(), None, "without the group's x the bit means locking");
    }

    #[test]
    fn the_newest_interface_of_a_libc_is_its_version() {
        assert_eq!(newest_interface(b"GLIBC_2.2.5\0GLIBC_2.36\0GLIBC_2.4\0"), Some(36));
        assert_eq!(newest_interface(b"GLIBC_PRIVATE"), None);
    }
}
