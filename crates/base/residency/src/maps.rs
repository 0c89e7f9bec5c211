//! `/proc/PID/maps`: one line per mapping. smaps begins each of its blocks with the same line.
//!
//! Source: `show_map_vma` in fs/proc/task_mmu.c.

use std::ops::Range;

use planish_host::Host;
use serde::Serialize;

/// What a mapping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Code: mapped from a file, or provided by the kernel, to be executed.
    Text,
    /// Constants and variables of programs and libraries.
    Data,
    /// The heap that grows from the program's end (brk).
    Heap,
    /// Anonymous memory of this process alone.
    Anon,
    /// The stack of the main thread.
    Stack,
    /// Memory that processes share and no disk keeps: shared anonymous, SysV, memfd, /dev/shm, hugetlb, files of
    /// a hugetlbfs among it.
    Shared,
    /// Any other file.
    File,
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its addresses.
    pub range: Range<u64>,
    /// Readable, writable, executable, shared, as in `rw-s`.
    pub permissions: [u8; 4],
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Major and minor number of the device that the file is on.
    pub device: (u32, u32),
    /// Inode of the file, 0 without one; [`Self::file`] tells which mappings are of the same.
    pub inode: u64,
    /// Of a segment of System V, the IPC namespace of its process, where that was asked for; no line of maps tells it.
    pub ipc_namespace: Option<u64>,
    /// Its name: a path, `[heap]`, `[anon:...]`, `/dev/zero (deleted)`, or empty.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
}

/// What names the file behind a mapping, for as long as it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode there.
    pub inode: u64,
    /// The key of a segment of System V. Its inode is the number of the segment (`newseg` in ipc/shm.c), which is 0 for
    /// the first one, and which another object of the kernel's own mount may have (`/dev/zero`, a memfd).
    pub key: Option<u32>,
    /// The IPC namespace that it is of: each one counts its segments from 0 on. `None` for others, and where nobody
    /// tells.
    pub ipc_namespace: Option<u64>,
}

impl Area {
    /// The file that it maps, where it is one of its own: all of the kernel's own (`anon_inode:[io_uring]`) have one
    /// inode.
    pub fn file(&self) -> Option<FileId> {
        let key = self.system_v_key();
        let is_own = (self.inode != 0 || key.is_some()) && !self.name.starts_with("anon_inode:");
        let ipc_namespace = key.and(self.ipc_namespace);
        is_own.then_some(FileId { device: self.device, inode: self.inode, key, ipc_namespace })
    }

    fn system_v_key(&self) -> Option<u32> {
        u32::from_str_radix(self.name.strip_prefix(SYSTEM_V)?.get(..8)?, 16).ok()
    }

    /// Length of the mapping in bytes.
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether other processes may share it.
    pub fn is_shared(&self) -> bool {
        self.permissions[3] == b's'
    }

    /// Whether it is code that no file holds: made at run time, by a JIT compiler.
    pub fn is_jit(&self) -> bool {
        let provided = matches!(self.name.as_str(), "[vdso]" | "[vsyscall]" | "[uprobes]");
        self.permissions[2] == b'x' && self.kind != Kind::Text && !provided
    }

    /// What it is for, once its file proves to be one of a pool of huge pages.
    pub(crate) fn pool_kind(&self) -> Kind {
        match self.kind {
            Kind::File if self.is_shared() => Kind::Shared,
            Kind::File => Kind::Anon,
            kind => kind,
        }
    }

    /// Whether it could lie in a pool of huge pages: of memory that processes share, what a program asks for itself and
    /// the kernel does not provide.
    pub fn may_be_pooled(&self) -> bool {
        self.kind == Kind::Shared && !is_provided(&self.name)
    }

    /// The part of the file that it maps, in bytes; `None` for one that no file can have.
    pub fn extent(&self) -> Option<Range<u64>> {
        Some(self.offset..self.offset.checked_add(self.bytes())?)
    }
}

/// The mappings in the text of maps, by address; `Err` is the first line that cannot be understood.
pub fn parse_maps(text: &str) -> Result<Vec<Area>, String> {
    // A line without a name has some fifty bytes.
    let mut areas = Vec::with_capacity(text.len() / 48);
    for line in text.lines().filter(|line| !line.is_empty()) {
        areas.push(parse_line(line).ok_or_else(|| line.to_owned())?);
    }
    classify_data(areas.iter_mut());
    Ok(areas)
}

/// `55a455bb7000-55a455bba000 r--p 00000000 fe:00 247741     /usr/bin/sed`
///
/// By bytes: a process may have a million of these lines, and words cut out of a text take longer than the kernel takes
/// to write it.
pub(crate) fn parse_line(line: &str) -> Option<Area> {
    let mut words = Words(line.as_bytes());
    let range = words.number(16, Some(b'-'))?..words.number(16, Some(b' '))?;
    let permissions = words.permissions()?;
    let offset = words.number(16, Some(b' '))?;
    let (major, minor) = (words.number(16, Some(b':'))?, words.number(16, Some(b' '))?);
    let inode = words.number(10, None)?;
    // What ends a number is a byte of its own, and so no part of a character.
    let name = line[line.len() - words.0.len()..].trim_start();
    if range.is_empty() {
        return None;
    }
    Some(Area {
        kind: kind_of(name, permissions),
        range,
        permissions,
        offset,
        device: (major.try_into().ok()?, minor.try_into().ok()?),
        inode,
        ipc_namespace: None,
        name: name.to_owned(),
    })
}

/// What is left of a line.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn pass_spaces(&mut self) {
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    /// A number, and the byte `end` behind it; `None` stands for a space, which stays, or the end of the line.
    fn number(&mut self, radix: u64, end: Option<u8>) -> Option<u64> {
        self.pass_spaces();
        let (mut value, mut digits) = (0u64, 0);
        for byte in self.0 {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' if radix == 16 => byte - b'a' + 10,
                b'A'..=b'F' if radix == 16 => byte - b'A' + 10,
                _ => break,
            };
            value = value.checked_mul(radix)?.checked_add(digit.into())?;
            digits += 1;
        }
        let (word, rest) = self.0.split_at(digits);
        self.0 = match (end, rest) {
            (Some(end), [first, rest @ ..]) if *first == end => rest,
            (None, [] | [b' ', ..]) => rest,
            _ => return None,
        };
        (!word.is_empty()).then_some(value)
    }

    /// Four characters, and a space.
    fn permissions(&mut self) -> Option<[u8; 4]> {
        self.pass_spaces();
        let (permissions, rest) = self.0.split_first_chunk()?;
        let [b' ', rest @ ..] = rest else { return None };
        self.0 = rest;
        (!permissions.contains(&b' ')).then_some(*permissions)
    }
}

/// Tells the segments of System V among `areas`, which process `pid` maps, from those of other IPC namespaces: those of
/// two containers have one number and one key as a rule.
///
/// Of the namespace that the process is in now: one that has left another and kept its segments has them twice beside a
/// process that stayed.
pub(crate) fn tell_namespace<'a>(host: &Host, pid: u32, areas: impl IntoIterator<Item = &'a mut Area>) {
    let mut own = None;
    for area in areas.into_iter().filter(|area| area.system_v_key().is_some()) {
        area.ipc_namespace = *own.get_or_insert_with(|| {
            // ipc:[4026531839]
            let link = host.read_link(&format!("/proc/{pid}/ns/ipc"))?;
            link.strip_prefix("ipc:[")?.strip_suffix(']')?.parse().ok()
        });
    }
}

fn kind_of(name: &str, permissions: [u8; 4]) -> Kind {
    let (executable, shared) = (permissions[2] == b'x', permissions[3] == b's');
    match name {
        "[heap]" => Kind::Heap,
        "[stack]" => Kind::Stack,
        "[vdso]" | "[vsyscall]" => Kind::Text,
        "[vvar]" | "[vvar_vclock]" => Kind::Data,
        _ if name.is_empty() || name.starts_with('[') || is_segment(name) => {
            if shared {
                Kind::Shared
            } else {
                Kind::Anon
            }
        }
        _ if shared && is_provided(name) => Kind::Shared,
        _ if executable => Kind::Text,
        _ => Kind::File,
    }
}

/// How the name of a segment of System V begins, before its key.
const SYSTEM_V: &str = "/SYSV";

/// Whether a mapping is of a file that lies in memory: a container's first program may be executed from a memfd.
fn is_file_in_memory(area: &Area) -> bool {
    !area.is_shared() && ["/memfd:", "/dev/shm/"].iter().any(|start| area.name.starts_with(start))
}

/// The code of programs that lie in memory is text. A linker puts the header of an ELF file in front, which is mapped
/// read-only; what a JIT compiler has in a memfd has none.
fn classify_text_in_memory(areas: &mut [&mut Area]) {
    let is_header =
        |area: &&&mut Area| area.permissions == *b"r--p" && area.offset == 0 && is_file_in_memory(area);
    let mut programs: Vec<Option<FileId>> = areas.iter().filter(is_header).map(|area| area.file()).collect();
    programs.sort_unstable();
    let is_code = |area: &&mut &mut Area| area.permissions == *b"r-xp" && is_file_in_memory(area);
    for area in areas.iter_mut().filter(is_code) {
        if programs.binary_search(&area.file()).is_ok() {
            area.kind = Kind::Text;
        }
    }
}

/// Names of memory that has no file of its own: shared anonymous, anonymous hugetlb, SysV, memfd, POSIX
/// shared.
pub(crate) fn is_segment(name: &str) -> bool {
    ["/dev/zero (deleted)", "/anon_hugepage", SYSTEM_V, "/memfd:", "/dev/shm/"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Names of memory that no file system keeps: rings that the kernel fills (of packets, of io_uring, of perf, of aio),
/// and pages that the kernel itself does not map (memfd_secret(2)).
fn is_provided(name: &str) -> bool {
    ["socket:[", "anon_inode:", "/[aio]", "/secretmem"].iter().any(|start| name.starts_with(start))
}

/// Private, not executable mappings of a file that is executed elsewhere in the process are its data: one line
/// at a time they look like any other file.
pub(crate) fn classify_data<'a>(areas: impl Iterator<Item = &'a mut Area>) {
    let mut areas: Vec<&mut Area> = areas.filter(|area| area.file().is_some()).collect();
    classify_text_in_memory(&mut areas);
    let texts = areas.iter().filter(|area| area.kind == Kind::Text);
    let mut programs: Vec<Option<FileId>> = texts.map(|area| area.file()).collect();
    programs.sort_unstable();
    let may_be = |area: &&mut &mut Area| matches!(area.kind, Kind::File | Kind::Anon) && !area.is_shared();
    for area in areas.iter_mut().filter(may_be) {
        if programs.binary_search(&area.file()).is_ok() {
            area.kind = Kind::Data;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn segments_of_system_v_are_told_from_others_with_their_number() {
        let file =
            |end: &str| parse_line(&format!("7000-8000 rw-s 00000000 00:01 {end}")).expect("a line").file();
        let zero = file("4    /dev/zero (deleted)");
        assert!(zero.is_some());
        let segments = ["4    /SYSV0000000a (deleted)", "4    /SYSV0000000b (deleted)"].map(file);
        assert!(segments[0].is_some() && segments[1].is_some() && segments[0] != segments[1]);
        assert!(!segments.contains(&zero));
        assert!(file("0    /SYSV00000000 (deleted)").is_some(), "the first segment of a boot");
        assert_eq!(file("0"), None);
        assert_eq!(file("7    anon_inode:[io_uring]"), None);
    }

    #[test]
    fn segments_of_system_v_are_told_from_those_of_another_namespace() {
        let text = "7000-8000 rw-s 00000000 00:01 0 /SYSV00000000 (deleted)\n\
                    8000-9000 rw-s 00000000 00:01 4 /memfd:x (deleted)\n";
        let files = |namespace: Option<u64>| -> Vec<Option<FileId>> {
            let mut areas = parse_maps(text).unwrap();
            areas.iter_mut().for_each(|area| area.ipc_namespace = namespace);
            areas.iter().map(Area::file).collect()
        };
        let [one, other, untold] = [Some(1), Some(2), None].map(files);
        assert!(one[0] != other[0] && one[0] != untold[0] && untold[0].is_some());
        assert!(one[1] == other[1] && one[1] == untold[1], "files of no namespace");
        let mut areas = parse_maps(text).unwrap();
        tell_namespace(&Host::live(), std::process::id(), &mut areas);
        assert_eq!(areas[1].ipc_namespace, None);
        let link = Host::live().read_link("/proc/self/ns/ipc");
        let told = areas[0].ipc_namespace.map(|number| format!("ipc:[{number}]"));
        assert_eq!(told, link, "without namespaces in the kernel neither is told");
    }

    #[test]
    fn names_tell_what_a_mapping_is_for() {
        let kind = |name, permissions: &[u8; 4]| kind_of(name, *permissions);
        assert_eq!(kind("/dev/zero (deleted)", b"rw-s"), Kind::Shared);
        assert_eq!(kind("/SYSV0052e2c1 (deleted)", b"rw-s"), Kind::Shared);
        assert_eq!(kind("/memfd:x (deleted)", b"rw-s"), Kind::Shared);
        assert_eq!(kind("/anon_hugepage (deleted)", b"rw-p"), Kind::Anon);
        assert_eq!(kind("[anon:glibc: malloc]", b"rw-p"), Kind::Anon);
        assert_eq!(kind("[vdso]", b"r-xp"), Kind::Text);
        assert_eq!(kind("/data/table", b"rw-s"), Kind::File);
    }

    #[test]
    fn rings_of_the_kernel_and_secret_memory_are_shared_and_of_no_pool() {
        for name in ["socket:[4711]", "/secretmem (deleted)", "anon_inode:[io_uring]", "/[aio] (deleted)"] {
            let text =
                format!("1000-2000 rw-s 00000000 00:08 7 {name}\n2000-3000 rw-s 00000000 00:01 8 /memfd:x\n");
            let areas = parse_maps(&text).unwrap();
            assert_eq!(areas.iter().map(|area| area.kind).collect::<Vec<_>>(), [Kind::Shared; 2], "{name}");
            assert!(!areas[0].may_be_pooled() && areas[1].may_be_pooled(), "{name}");
        }
    }

    #[test]
    fn code_that_no_file_holds_is_a_jit_compilers() {
        let areas = parse_maps(
            "1000-2000 rwxp 00000000 00:00 0\n\
             2000-3000 r-xs 00000000 00:01 5 /memfd:doublemapper (deleted)\n\
             3000-4000 r-xp 00000000 fe:00 6 /usr/bin/sed\n\
             4000-5000 r-xp 00000000 00:00 0 [vdso]\n\
             5000-6000 rw-p 00001000 fe:00 6 /usr/bin/sed\n",
        )
        .unwrap();
        let jit: Vec<bool> = areas.iter().map(Area::is_jit).collect();
        assert_eq!(jit, [true, true, false, false, false]);
        assert_eq!(areas[4].kind, Kind::Data);
        assert_eq!((areas[2].device, areas[2].inode), ((0xfe, 0), 6));
        assert_eq!(areas[4].extent(), Some(0x1000..0x2000));
    }

    #[test]
    fn a_program_that_lies_in_memory_has_text_and_data() {
        let kinds = |name: &str| -> Vec<(Kind, bool)> {
            let maps = format!(
                "1000-2000 r--p 00000000 00:01 5 {name}\n2000-3000 r-xp 00001000 00:01 5 {name}\n\
                 3000-4000 rw-p 00002000 00:01 5 {name}\n4000-5000 rw-s 00000000 00:01 6 {name}\n\
                 5000-6000 rwxp 00000000 00:01 7 {name}\n6000-7000 rw-p 00000000 00:01 7 {name}\n\
                 7000-8000 r-xp 00000000 00:01 8 {name}\n8000-9000 rw-s 00000000 00:01 8 {name}\n"
            );
            parse_maps(&maps).unwrap().iter().map(|area| (area.kind, area.is_jit())).collect()
        };
        let (data, jit) = ((Kind::Data, false), (Kind::Anon, true));
        let shared = (Kind::Shared, false);
        let expected = [data, (Kind::Text, false), data, shared, jit, (Kind::Anon, false), jit, shared];
        for name in ["/memfd:runc_cloned:/proc/self/exe (deleted)", "/dev/shm/s"] {
            assert_eq!(kinds(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        for odd in ["1-2", "2-1 rw-p 0 0:0 0", "1-2 rw-p 0 00 0", "1-2 rwp 0 0:0 0", "1-2 rw-p z 0:0 0"]
            .into_iter()
            .chain([
                "1-2 rw-p 0 0:0",
                "1-2 rw-p 0 0:0 ",
                "1-2 rw-p 0 0:0 a",
                "1-2 rw-p 0 0:0 1\u{e9}",
                "-2 rw-p 0 0:0 0",
            ])
            .chain([
                "1-10000000000000000 rw-p 0 0:0 0",
                "1-2 rw-p 0 100000000:0 0",
                "1-2 rw-pp 0 0:0 0",
                "1-2",
            ])
        {
            assert_eq!(parse_maps(odd).unwrap_err(), odd);
        }
    }

    #[test]
    fn largest_numbers_and_names_of_any_characters_are_read() {
        let line = "fffffffffffffffe-FFFFFFFFFFFFFFFF rw-p ffffffffffffffff ffffffff:0 18446744073709551615  \
                    /\u{e9} b ";
        let area = parse_line(line).unwrap();
        assert_eq!((area.range, area.offset), (u64::MAX - 1..u64::MAX, u64::MAX));
        assert_eq!((area.device, area.inode, area.name.as_str()), ((u32::MAX, 0), u64::MAX, "/\u{e9} b "));
        assert_eq!(parse_line("1-2 rw-p 0 0:0 0").unwrap().name, "");
    }

    /// Words of a line and rubbish.
    const PIECES: &str = "([0-9a-f]{1,17}-[0-9a-f]{1,17} |rw-[ps] |[0-9a-f]{1,18} |[0-9a-f]{1,9}:[0-9]{1,9} |\
                          \\[heap\\]|/dev/zero|\n|.){0,12}";

    proptest! {
        #[test]
        fn no_text_panics(text in PIECES) {
            for area in parse_maps(&text).unwrap_or_default() {
                let _ = (area.bytes(), area.extent(), area.is_jit());
            }
        }
    }
}
