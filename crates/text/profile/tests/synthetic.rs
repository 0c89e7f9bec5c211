//! What this kind of machine cannot record, written by hand: branch stacks, group reads, several events, exec.

use planish_profile::perf_data::{ObjectFile, Traces, contention};
use planish_profile::{Edges, ImportOptions, Imported, ProfileError, Program, Weights, import};

const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const BRANCH_STACK: u64 = 1 << 11;
const IDENTIFIER: u64 = 1 << 16;
const PID: u32 = 7;
/// Where the program is mapped, and where its code starts in the file.
const BASE: u64 = 0x5555_0000_0000;
const USER: u16 = 2;
const CONTEXT_USER: u64 = -512_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;

/// This test's own binary: a real ELF file whose functions are looked up by address.
fn program() -> Program {
    #[expect(clippy::disallowed_methods, reason = "a test reads its own binary")]
    let bytes = std::fs::read("/proc/self/exe").expect("this test can read itself");
    Program::parse("/bin/server", &bytes).expect("an ELF file")
}

/// Two functions that are long enough, as file offsets of their first bytes, with their names.
fn two(program: &Program) -> [(u64, String); 2] {
    let in_file = |address: u64| {
        let segment = program
            .segments
            .iter()
            .find(|segment| address >= segment.address && address - segment.address < segment.file_bytes);
        segment.map(|segment| address - segment.address + segment.offset)
    };
    let mut long = program.functions().iter().filter(|function| function.bytes >= 64);
    std::array::from_fn(|_| {
        let function = long.next().expect("two long functions");
        (in_file(function.address).expect("code is in the file"), function.name.clone())
    })
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("a short record");
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), body].concat()
}

/// An attribute in a pipe, with its ids.
fn attribute(sample_type: u64, read_format: u64, ids: &[u64]) -> Vec<u8> {
    // type 1 and size 128, then config, period, sample type, read format, flags (sample_id_all), ...
    let mut body = [&1_u32.to_le_bytes()[..], &128_u32.to_le_bytes()].concat();
    body.extend(words(&[0, 1, sample_type, read_format, 1 << 18]));
    body.resize(128, 0);
    body.extend(words(ids));
    record(64, 0, &body)
}

/// A mapping of the whole file at [`BASE`], written at a time.
fn mapping(trailer: &[u64]) -> Vec<u8> {
    let mut body = [PID.to_le_bytes(), PID.to_le_bytes()].concat();
    body.extend(words(&[BASE, 1 << 40, 0, 0, 0, 0]));
    // Protection r-x, no flags; then the path.
    body.extend([5_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat());
    body.truncate(56);
    body.extend([5_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat());
    body.extend(b"/bin/server\0\0\0\0\0");
    body.extend(words(trailer));
    record(10, USER, &body)
}

fn tid() -> u64 {
    u64::from(PID) << 32 | u64::from(PID)
}

fn pipe(records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"PERFILE2".to_vec();
    file.extend(words(&[16]));
    records.iter().for_each(|record| file.extend(record));
    file
}

fn imported(file: &[u8], program: &Program, event: Option<&str>) -> Result<Imported, ProfileError> {
    let event = event.map(str::to_owned);
    import(file, &ImportOptions { program: Some(program), event, ..ImportOptions::default() })
}

#[test]
fn branch_stacks_are_calls() {
    let program = program();
    let [(one, caller), (two, callee)] = two(&program);
    let branch = |from: u64, to: u64| [BASE + from, BASE + to, 0];
    let mut body = words(&[BASE + two + 8, tid(), 20, 2]);
    body.extend(words(&branch(one + 16, two)));
    body.extend(words(&branch(two + 9, two + 4)));
    let sample_type = IP | TID | TIME | BRANCH_STACK;
    // The mapping stands behind the sample in the file and before it in time.
    let file = pipe(&[attribute(sample_type, 0, &[]), record(9, USER, &body), mapping(&[tid(), 10])]);
    let profile = imported(&file, &program, None).unwrap().profile;
    assert_eq!((profile.weights, profile.edges_are), (Weights::Branches, Edges::Calls));
    let name = |index: u32| profile.functions[index as usize].name.as_str();
    let calls: Vec<_> =
        profile.edges.iter().map(|edge| (name(edge.caller), name(edge.callee), edge.weight)).collect();
    assert_eq!(calls, [(caller.as_str(), callee.as_str(), 1)]);
}

#[test]
fn branch_stacks_are_summed_up_as_branches_and_as_runs_between_them() {
    let program = program();
    let [(one, _), (two, _)] = two(&program);
    let address = |offset: u64| program.address_of(offset).unwrap();
    // The youngest first; the last one comes from a library, and its target starts a run all the same.
    let stack = [(two + 9, two + 4, 1), (one + 16, two, 0), (1 << 41, one + 2, 0)];
    let mut body = words(&[BASE + two + 8, tid(), 20, 3]);
    stack.iter().for_each(|(from, to, flags)| body.extend(words(&[BASE + from, BASE + to, *flags])));
    let sample_type = IP | TID | TIME | BRANCH_STACK;
    let sample = || record(9, USER, &body);
    let file = pipe(&[attribute(sample_type, 0, &[]), mapping(&[tid(), 10]), sample(), sample()]);
    let traces = Traces::read(&file, &program, None).unwrap();
    let [one, two] = [one, two].map(address);
    let mut lines = vec![
        format!("B {:x} {two:x} 2 0", one + 16),
        format!("B {:x} {:x} 2 2", two + 9, two + 4),
        format!("F {:x} {:x} 2", one + 2, one + 16),
        format!("F {two:x} {:x} 2", two + 9),
    ];
    lines.sort();
    let mut text: Vec<String> = traces.text().lines().map(str::to_owned).collect();
    text.sort();
    assert_eq!((text, traces.total()), (lines, 4));
    let flat = pipe(&[attribute(IP | TID | TIME, 0, &[]), mapping(&[tid(), 10])]);
    assert!(matches!(Traces::read(&flat, &program, None), Err(ProfileError::NoSamples { .. })));
}

#[test]
fn group_reads_and_several_events_are_told_apart() {
    let program = program();
    let [(one, hot), (two, caller)] = two(&program);
    // ENABLED, RUNNING, ID, GROUP: count, two times, then value and id of each member.
    let group = words(&[2, 5, 5, 100, 11, 7, 12]);
    let sample = |id: u64, time: u64, chain: &[u64]| {
        let mut body = words(&[id, BASE + one + 4, tid(), time]);
        body.extend(&group);
        body.extend(words(&[chain.len() as u64]));
        body.extend(words(chain));
        record(9, USER, &body)
    };
    let sample_type = IDENTIFIER | IP | TID | TIME | READ | CALLCHAIN;
    let stack = [CONTEXT_KERNEL, 0xffff_ffff_8000_0000, CONTEXT_USER, BASE + one + 4, BASE + two + 9];
    let file = pipe(&[
        attribute(sample_type, 0b1111, &[11]),
        attribute(sample_type, 0b1111, &[12]),
        mapping(&[tid(), 1, 11]),
        sample(11, 5, &stack[2..]),
        sample(11, 6, &stack),
        sample(12, 7, &stack[2..]),
    ]);
    let profile = imported(&file, &program, Some("cpu-clock")).unwrap().profile;
    assert_eq!((profile.total, profile.outside), (2, 1), "the kernel's sample is elsewhere");
    assert_eq!((profile.functions[0].name.as_str(), profile.functions[0].weight), (hot.as_str(), 1));
    assert_eq!(profile.functions[1].name, caller);
    assert_eq!(profile.edges.len(), 1);
    assert!(matches!(imported(&file, &program, Some("cycles")), Err(ProfileError::NoEvent { .. })));
}

#[test]
fn an_exec_forgets_what_was_mapped_before() {
    let program = program();
    let [(one, _), _] = two(&program);
    let sample = |time: u64| record(9, USER, &words(&[BASE + one, tid(), time]));
    let exec = {
        let mut body = [PID.to_le_bytes(), PID.to_le_bytes()].concat();
        body.extend(b"other\0\0\0");
        body.extend(words(&[tid(), 6]));
        record(3, 1 << 13, &body)
    };
    let file = pipe(&[attribute(IP | TID | TIME, 0, &[]), mapping(&[tid(), 1]), sample(5), exec, sample(7)]);
    let profile = imported(&file, &program, None).unwrap().profile;
    assert_eq!((profile.total, profile.outside), (2, 1));
}

#[test]
fn compression_and_damage_are_told() {
    let program = program();
    let compressed = pipe(&[attribute(IP, 0, &[]), record(81, 0, &[1, 2, 3, 4])]);
    let error = imported(&compressed, &program, None).unwrap_err();
    assert!(error.to_string().contains("perf inject"), "{error}");
    assert!(imported(b"PERFILE2", &program, None).is_err());
    let mut huge = b"PERFILE2".to_vec();
    huge.extend(words(&[104, 144, 104, u64::MAX, 104, u64::MAX, 0, 0, u64::MAX, 0, 0, 0]));
    assert!(imported(&huge, &program, None).is_err());
}

/// Samples of accesses: ip, tid, time, address, cpu, weight, source.
const ACCESSES: u64 = IP | TID | TIME | 1 << 3 | 1 << 7 | 1 << 14 | 1 << 15;
const PHYSICAL: u64 = 1 << 19;
const LOAD: u64 = 2;
const STORE: u64 = 4;
const HITM: u64 = 0x10 << 19;
const REMOTE: u64 = 1 << 37;
const LOCAL_RAM: u64 = 0x82 << 5;

/// An access by a process, at a place of its program.
fn access(
    pid: u32,
    ip: u64,
    time: u64,
    address: u64,
    cpu: u64,
    source: u64,
    physical: Option<u64>,
) -> Vec<u8> {
    let who = u64::from(pid) << 32 | u64::from(pid);
    let mut fields = vec![BASE + ip, who, time, address, cpu, 100, source];
    fields.extend(physical);
    record(9, USER, &words(&fields))
}

fn by_name(program: &Program) -> impl FnMut(&ObjectFile, u64) -> Option<String> + '_ {
    |file, offset| {
        assert_eq!(file.path, "/bin/server");
        let (function, _) = program.at(program.address_of(offset)?)?;
        Some(program.functions()[function as usize].name.clone())
    }
}

#[test]
fn lines_that_cpus_take_from_each_other_are_found_with_the_code_that_does() {
    let program = program();
    let [(reader, reads), (writer, writes)] = two(&program);
    let line = 0x7f00_0000_1000;
    let file = pipe(&[
        attribute(ACCESSES, 0, &[]),
        mapping(&[tid(), 1, 0]),
        access(PID, reader, 2, line + 8, 0, LOAD | HITM | REMOTE, None),
        access(PID, reader + 4, 3, line + 8, 1, LOAD | HITM, None),
        access(PID, writer, 4, line + 40, 9, STORE, None),
        // Read often, and never taken from anybody; and memory.
        access(PID, reader, 5, line + 64, 0, LOAD, None),
        access(PID, reader, 6, line + 4096, 0, LOAD | LOCAL_RAM, None),
        // No access at all.
        access(PID, reader, 7, line, 0, 1, None),
    ]);
    let told = contention(&file, &mut by_name(&program)).expect("it has accesses");
    assert_eq!((told.loads, told.stores, told.taken, told.taken_remote), (4, 1, 2, 1));
    assert_eq!((told.memory, told.memory_remote, told.others, told.lines_more), (1, 0, 1, 0));
    let [found] = told.lines.as_slice() else { panic!("one line: {:?}", told.lines) };
    assert_eq!((found.address, found.loads, found.stores, found.taken), (line, 2, 1, 2));
    assert_eq!((found.pids.as_slice(), found.cpus.as_slice()), (&[PID][..], &[0, 1, 9][..]));
    assert_eq!(found.taken_cycles, Some(100.0));
    let sites: Vec<(u64, &str, u64, u64)> =
        found.sites.iter().map(|site| (site.offset, site.code.as_str(), site.taken, site.stores)).collect();
    assert_eq!(sites, [(8, reads.as_str(), 2, 0), (40, writes.as_str(), 0, 1)], "two fields on one line");
}

#[test]
fn a_line_that_processes_map_at_several_places_is_one_by_its_physical_address() {
    let program = program();
    let [(reader, _), _] = two(&program);
    let of = |physical: Option<u64>| {
        let kind = if physical.is_some() { ACCESSES | PHYSICAL } else { ACCESSES };
        let file = pipe(&[
            attribute(kind, 0, &[]),
            mapping(&[tid(), 1, 0]),
            access(PID, reader, 2, 0x1000, 0, LOAD | HITM, physical),
            access(PID + 1, reader, 3, 0x9000, 1, LOAD | HITM, physical),
        ]);
        contention(&file, &mut by_name(&program)).expect("it has accesses")
    };
    let (seen, blind) = (of(Some(0x5_0000)), of(None));
    assert!(seen.by_physical && seen.lines.len() == 1, "{seen:?}");
    assert_eq!((seen.lines[0].pids.as_slice(), seen.lines[0].address), (&[PID, PID + 1][..], 0x1000));
    assert!(!blind.by_physical && blind.lines.len() == 2, "{blind:?}");
}

#[test]
fn a_recording_without_accesses_is_refused_and_a_cut_one_never_panics() {
    let program = program();
    let plain = pipe(&[attribute(IP | TID | TIME, 0, &[]), record(9, USER, &words(&[BASE, tid(), 1]))]);
    let error = contention(&plain, &mut by_name(&program)).expect_err("cycles are no accesses");
    assert!(error.to_string().contains("perf c2c record"), "{error}");
    let whole = pipe(&[
        attribute(ACCESSES | PHYSICAL, 0, &[]),
        mapping(&[tid(), 1, 0]),
        access(PID, 0, 2, 0x1000, 0, LOAD | HITM, Some(1)),
    ]);
    for end in 0..whole.len() {
        let _ = contention(&whole[..end], &mut |_, _| None);
    }
    for at in 16..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        let _ = contention(&damaged, &mut |_, _| None);
    }
}
