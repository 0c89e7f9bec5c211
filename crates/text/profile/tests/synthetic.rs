//! What this kind of machine cannot record, written by hand: branch stacks, group reads, several events, exec.

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
