//! The preload in a real process: this test program, started once more with it.
//!
//! The child maps through its libc, as any program does, and tells what the kernel says of the mapping. Its own
//! words are compared with what the preload told the launcher.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test: it ends where anything is odd")]

mod child;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use planish_placement::{
    Listener, Notice, PRELOAD, SKIP_FILLED, SKIP_GROUP, SKIP_NOT, SKIP_PLACED, SKIP_ROOM, SKIP_SPARSE,
    SKIP_YET,
};

const MIB: usize = 1 << 20;
/// Which mapping the child is to make; set for children only.
const ROLE: &str = "PLACEMENT_TEST_ROLE";

/// What became of one segment.
struct Placed {
    /// Lines of the child, `name value`.
    said: String,
    notices: Vec<Notice>,
}

impl Placed {
    fn number(&self, name: &str) -> usize {
        let line = self.said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name}: {}", self.said)).parse().unwrap()
    }

    fn text(&self, name: &str) -> &str {
        self.said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap_or_default()
    }
}

fn preload(folder: &Path) -> PathBuf {
    let path = folder.join("preload.so");
    fs::write(&path, PRELOAD).unwrap();
    path
}

/// Runs the child in one role under some settings.
fn placed(role: &str, settings: &str) -> Placed {
    let folder = tempfile::tempdir().unwrap();
    placed_by(&preload(folder.path()).to_string_lossy(), role, settings)
}

/// The same with this list of preloads.
fn placed_by(preloads: &str, role: &str, settings: &str) -> Placed {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    placed_with(&Listener::open(folder.path()).unwrap(), preloads, role, settings)
}

/// The same, heard by this listener.
fn placed_with(listener: &Listener, preloads: &str, role: &str, settings: &str) -> Placed {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_child", "--nocapture", "--test-threads=1"]).stdin(Stdio::null());
    child.env(ROLE, role).env("LD_PRELOAD", preloads);
    child.env("PLANISH_SHM", format!("bytes={MIB}:{settings}:answer={}", listener.name()));
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said} {}", String::from_utf8_lossy(&output.stderr));
    Placed { said, notices: std::iter::from_fn(|| listener.next()).map(|told| told.notice).collect() }
}

/// Whether this kernel lets an ordinary process set a policy.
fn policies_or_skip(test: &str) -> bool {
    let allowed = planish_sys::policy::allowed_nodes();
    allowed.map_err(|error| planish_skip::skip(test, error)).is_ok()
}

/// A hook of the user's: it counts large shared mappings, and calls on to what is behind it.
const HOOK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
static int seen;
void *mmap(void *address, size_t bytes, int rights, int flags, int file, off_t offset) {
    void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    seen += (flags & MAP_SHARED) != 0 && bytes >= 1 << 20;
    return next(address, bytes, rights, flags, file, offset);
}
__attribute__((destructor)) static void tell(void) { printf("hook %d\n", seen); }
"#;

/// Ours calls the kernel itself: a hook in front of it calls on to it, and one behind it sees nothing.
#[test]
fn a_hook_in_front_of_the_preload_sees_calls_and_segments_are_placed() {
    let folder = tempfile::tempdir().unwrap();
    let (source, hook) = (folder.path().join("hook.c"), folder.path().join("hook.so"));
    fs::write(&source, HOOK).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&hook, &source]).status();
    if !made.is_ok_and(|status| status.success()) {
        return planish_skip::skip("a_hook_in_front_of_the_preload_sees_calls", "no C compiler");
    }
    let (ours, hook) = (preload(folder.path()), hook.display().to_string());
    let ours = ours.display();
    for (list, seen) in [(format!("{hook}:{ours}"), 1), (format!("{ours}:{hook}"), 0)] {
        let placed = placed_by(&list, "anonymous", "threads=1:spare=0");
        assert_eq!((placed.notices.len(), placed.number("hook")), (1, seen), "{list}: {}", placed.said);
    }
}

#[test]
fn of_several_places_for_the_answer_the_last_counts() {
    // Each is as long as there is room for, and both together are not.
    let other = "x".repeat(105);
    let placed = placed("anonymous", &format!("threads=1:spare=0:answer={other}:answer={other}"));
    assert_eq!(placed.notices.len(), 1, "{}", placed.said);
}

/// An abstract name is of a network namespace, and a path is of a tree: one of both is nearly always there.
#[test]
fn answers_come_from_other_network_namespaces_users_and_roots() {
    for role in ["net", "net-user", "user", "root", "closed"] {
        let placed = placed(role, "threads=1:spare=0");
        let unshared = placed.text("unshared");
        if !unshared.is_empty() {
            return planish_skip::skip("answers_come_from_other_network_namespaces", unshared);
        }
        assert_eq!(placed.notices.len(), 1, "{role}: {}", placed.said);
    }
}

/// Both of its sockets are read, and what was sent first must be read first: of a segment that is being filled the
/// launcher would wait for an end that it has heard of.
#[test]
fn answers_do_not_go_round_a_queue_that_is_full() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::open(folder.path()).unwrap();
    let sender = UnixDatagram::unbound().unwrap();
    sender.set_nonblocking(true).unwrap();
    let address = SocketAddr::from_abstract_name(listener.name()).unwrap();
    while sender.send_to_addr(b"full", &address).is_ok() {}
    let preloads = preload(folder.path()).display().to_string();
    let placed = placed_with(&listener, &preloads, "anonymous", "threads=1:spare=0");
    assert_eq!(placed.notices, [], "{}", placed.said);
}

#[test]
fn shared_segments_have_their_policy_and_all_their_pages_before_the_program_sees_them() {
    if !policies_or_skip("shared_segments_have_their_policy") {
        return;
    }
    for role in ["anonymous", "memfd", "allocated", "sysv"] {
        let placed = placed(role, "mode=3:nodes=0:threads=2:spare=0");
        // A few pages that the kernel moves at this moment (compaction) are mapped by nobody.
        assert!(placed.number("resident") >= 8 * MIB - 64 * 4096, "{role}: {}", placed.said);
        assert!(placed.text("policy").starts_with("interleave"), "{role}: {}", placed.said);
        // Pages that are there already are moved, and no look may map them meanwhile: the launcher is told before.
        let (first, notice) = match placed.notices[..] {
            [notice] => (SKIP_NOT, notice),
            [first, notice] => (first.skipped, notice),
            _ => panic!("{role}: {:?}", placed.notices),
        };
        assert_eq!(first, if role == "allocated" { SKIP_YET } else { SKIP_NOT }, "{role}");
        let errors = (notice.policy_errno, notice.prefault_errno, notice.huge_errno);
        assert_eq!((errors, notice.skipped), ((0, 0, 0), SKIP_NOT), "{role}: {notice:?}");
        assert_eq!((notice.bytes as usize, notice.address as usize), (8 * MIB, placed.number("address")));
        assert_eq!(notice.threads, 1, "8 MiB are one chunk");
        assert_eq!(placed.text("private"), "default", "{role}: the heap keeps its policy");
    }
}

/// Whatever the base pages are of: behind the last one begins what is not ours, here nothing at all.
#[test]
fn a_segment_ends_with_its_last_page() {
    let page = planish_sys::pages::base_bytes();
    let policy = if policies_or_skip("a_segment_ends_with_its_last_page") { "mode=3:nodes=0:" } else { "" };
    for role in ["odd-anonymous", "odd-memfd", "odd-allocated", "odd-sysv"] {
        let placed = placed(role, &format!("{policy}huge=2097152:threads=2:spare=0"));
        let notice = placed.notices.last().unwrap();
        assert_eq!((notice.policy_errno, notice.prefault_errno), (0, 0), "{role}: {notice:?}");
        assert_eq!((notice.bytes as usize).next_multiple_of(page), 8 * MIB + page, "{role}");
        assert_eq!(placed.text("behind"), "nothing", "{role}: what was reserved to align it is given back");
    }
}

#[test]
fn huge_pages_need_no_change_of_the_host() {
    let Some(thp) = planish_sys::pages::thp_bytes() else {
        return planish_skip::skip("huge_pages_need_no_change_of_the_host", "no transparent huge pages");
    };
    if thp > 8 * MIB {
        return planish_skip::skip(
            "huge_pages_need_no_change_of_the_host",
            "a huge page is larger than the segment",
        );
    }
    let mode = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
    for role in ["anonymous", "memfd", "sysv"] {
        let placed = placed(role, &format!("huge={thp}:threads=2:spare=0"));
        let [notice] = placed.notices[..] else { panic!("{role}: {:?}", placed.notices) };
        assert_eq!(notice.address as usize % thp, 0, "{role}: huge pages can be mapped there");
        if notice.huge_errno == libc::EINVAL || mode.contains("[deny]") {
            return planish_skip::skip(
                "huge_pages_need_no_change_of_the_host",
                "no MADV_COLLAPSE for shared memory",
            );
        }
        // Of a fragmented machine the kernel may have none; then the preload knows how many are missing.
        let huge = placed.number("huge") + notice.small_chunks as usize * thp;
        assert!(huge >= 8 * MIB, "{role}: {notice:?} {}", placed.said);
    }
    // Of what begins and ends within a huge page, all between.
    let within = placed("offset", &format!("huge={thp}:threads=2:spare=0"));
    let notice = within.notices[0];
    assert_eq!((notice.address as usize % thp, notice.prefault_errno), (MIB % thp, 0), "{notice:?}");
    assert!(within.number("resident") >= 8 * MIB - 64 * 4096, "{}", within.said);
    let huge = within.number("huge") + notice.small_chunks as usize * thp;
    assert!(huge >= 8 * MIB - thp, "{notice:?} {}", within.said);
}

/// Who maps it again, or starts again, finds it placed, and the launcher hears of it.
#[test]
fn a_segment_that_has_its_policy_is_told_and_left_alone() {
    if !policies_or_skip("a_segment_that_has_its_policy_is_told_and_left_alone") {
        return;
    }
    let skips = |role: &str, policy: &str| -> Vec<u32> {
        let placed = placed(role, &format!("{policy}threads=1:spare=0"));
        placed.notices.iter().map(|notice| notice.skipped).collect()
    };
    assert_eq!(skips("twice", "mode=3:nodes=0:"), [SKIP_NOT, SKIP_PLACED]);
    assert_eq!(skips("bound", "mode=2:nodes=0:"), [SKIP_PLACED], "as it was bound");
    assert_eq!(skips("bound", "mode=3:nodes=0:"), [SKIP_YET, SKIP_NOT], "as another policy would have it");
}

/// Pages that were never there are not there for the whole segment because the kernel says so of the first.
#[test]
fn no_look_at_one_page_switches_the_guards_off() {
    const TEST: &str = "no_look_at_one_page_switches_the_guards_off";
    if !policies_or_skip(TEST) {
        return;
    }
    for role in ["tmpfs-9", "tmpfs-9-stranger", "tmpfs-9-begun"] {
        let placed = placed(role, "mode=3:nodes=0:threads=1:spare=0");
        if !placed.text("unmounted").is_empty() {
            return planish_skip::skip(TEST, placed.text("unmounted"));
        }
        let [notice] = placed.notices[..] else { panic!("{role}: {:?}", placed.notices) };
        assert_eq!((notice.skipped, notice.policy_errno), (SKIP_ROOM, 0), "{role}: {}", placed.said);
        assert!(placed.number("resident") <= 4 * 4096, "{role}: {}", placed.said);
    }
}

/// What is locked keeps its pages as memory from a pool does, whose pages are larger.
#[test]
fn what_lies_behind_a_locked_segment_is_left_alone() {
    const TEST: &str = "what_lies_behind_a_locked_segment_is_left_alone";
    if !policies_or_skip(TEST) {
        return;
    }
    let placed = placed("locked-sysv", "mode=3:nodes=0:pool=21:threads=1:spare=0");
    let unlocked = placed.text("unlocked");
    if !unlocked.is_empty() {
        return planish_skip::skip(TEST, unlocked);
    }
    assert_eq!(placed.text("behind"), "default", "{}", placed.said);
    let notice = placed.notices.last().unwrap();
    assert_eq!((notice.skipped, notice.policy_errno, notice.prefault_errno), (SKIP_NOT, 0, 0), "{notice:?}");
}

/// A program that keeps pointers of 32 bits has them from the kernel, and huge pages where that puts them.
#[test]
#[cfg(target_arch = "x86_64")]
fn addresses_of_32_bits_stay_such() {
    for pages in ["huge=2097152", "pool=21"] {
        let placed = placed("low", &format!("{pages}:threads=1:spare=0"));
        assert!(placed.number("address") < 1 << 31, "{pages}: {}", placed.said);
        assert!(placed.number("resident") >= 8 * MIB - 64 * 4096, "{pages}: {}", placed.said);
    }
}

/// The launcher waits for it, and must not tell meanwhile that there is none.
#[test]
fn a_segment_that_takes_long_is_told_before_it_is_filled_too() {
    let placed = placed("large", "threads=2:spare=0");
    let [before, after] = placed.notices[..] else { panic!("{:?}", placed.notices) };
    assert_eq!((before.skipped, after.skipped), (SKIP_YET, SKIP_NOT), "{before:?} {after:?}");
    assert_eq!((before.address, before.bytes), (after.address, after.bytes));
    assert_eq!((before.nanoseconds, before.threads, after.threads), (0, 0, 2));
}

#[test]
fn what_is_small_private_sparse_or_too_large_is_left_alone() {
    let fill = "threads=2:spare=0";
    assert!(placed("small", fill).notices.is_empty());
    assert!(placed("private", fill).notices.is_empty());
    assert!(placed("file", fill).notices.is_empty(), "a file on a disk");
    assert!(placed("read", fill).notices.is_empty());
    assert!(placed("heap", fill).notices.is_empty(), "the heap of a JVM");
    let skipped = |role: &str, settings: &str| {
        let placed = placed(role, settings);
        assert_eq!(placed.number("resident"), 0, "{role}: {}", placed.said);
        placed.notices[0].skipped
    };
    assert_eq!(skipped("sparse", fill), SKIP_SPARSE);
    assert_eq!(skipped("anonymous", "threads=2:spare=18446744073709551615"), SKIP_ROOM);
    assert_eq!(skipped("anonymous", "threads=2:spare=0:limit=1048576"), SKIP_GROUP);
    assert_eq!(skipped("anonymous", "threads=0:spare=0"), SKIP_NOT);
}

/// The limit is of the service, and each of several segments alone is below it.
#[test]
fn segments_are_filled_up_to_the_limit_together() {
    let skips = |limit: usize| -> Vec<u32> {
        let placed = placed("two", &format!("threads=1:spare=0:limit={limit}"));
        placed.notices.iter().map(|notice| notice.skipped).collect()
    };
    assert_eq!(skips(16 * MIB), [SKIP_NOT, SKIP_NOT]);
    assert_eq!(skips(15 * MIB), [SKIP_NOT, SKIP_GROUP]);
}

/// A program that maps and unmaps for long fills each segment as it did the first, for as long as its group has room:
/// what was unmapped is not in use any more, and what a child keeps is.
#[test]
fn what_was_unmapped_is_filled_anew_while_the_group_has_room() {
    let folder = tempfile::tempdir().unwrap();
    let usage = folder.path().join("memory.current");
    fs::write(&usage, "5000000\n").unwrap();
    let skips = |group: &str| -> Vec<u32> {
        let placed = placed("again", &format!("threads=1:spare=0:limit={}{group}", 16 * MIB));
        placed.notices.iter().map(|notice| notice.skipped).collect()
    };
    let of = |most: usize| format!(":group={most}+{}", usage.display());
    let all = [SKIP_NOT; 6];
    assert_eq!(skips(&of(5_000_000 + 16 * MIB)), all);
    assert_eq!(skips(&of(5_000_000 + 8 * MIB)), all);
    let twice = [SKIP_NOT, SKIP_NOT, SKIP_GROUP, SKIP_GROUP, SKIP_GROUP, SKIP_GROUP];
    assert_eq!(skips(&of(5_000_000 + 8 * MIB - 1)), twice);
    for unknown in ["", ":group=", ":group=99999999999+/no/such/file", ":group=99999999999+"] {
        assert_eq!(skips(unknown), twice, "{unknown}");
    }
}

#[test]
fn what_a_maker_left_out_of_a_segment_is_not_added() {
    for policy in ["", "mode=3:nodes=0:"] {
        let placed = placed("holes", &format!("{policy}threads=2:spare=0"));
        assert_eq!(placed.notices[0].skipped, SKIP_FILLED, "{policy}{}", placed.said);
        let page = planish_sys::pages::base_bytes() / 512;
        assert_eq!(placed.number("blocks"), page, "one page of it: {policy}{}", placed.said);
    }
}

/// A file system that others write to as well keeps an eighth for them.
#[test]
fn a_file_system_is_not_filled_to_the_brim() {
    for (role, skipped) in [("tmpfs-10", SKIP_NOT), ("tmpfs-9", SKIP_ROOM)] {
        let placed = placed(role, "threads=1:spare=0");
        let unmounted = placed.text("unmounted");
        if !unmounted.is_empty() {
            return planish_skip::skip("a_file_system_is_not_filled_to_the_brim", unmounted);
        }
        assert_eq!(placed.notices[0].skipped, skipped, "{role}: {}", placed.said);
    }
}

#[test]
fn odd_settings_end_no_program() {
    for settings in
        ["", ":::", "=", "mode=999:nodes=9999999+5000+", "weights=1x+x:huge=2097152:threads=9", "zzz=1"]
    {
        // Behind what cannot be read the name of the launcher may be lost too; the program has its memory.
        let placed = placed("anonymous", settings);
        assert!(placed.number("address") > 0 && placed.notices.len() <= 1, "{settings}");
    }
    let refused = placed("anonymous", "mode=999:nodes=0:threads=1:spare=0");
    assert_eq!(refused.notices[0].policy_errno, libc::EINVAL);
    assert!(refused.number("resident") >= 8 * MIB - 64 * 4096, "filled all the same");
}

#[test]
fn errors_are_those_of_the_libc() {
    let placed = placed("errors", "threads=1:spare=0");
    assert_eq!(placed.number("huge-mapping"), libc::ENOMEM as usize);
    assert_eq!(placed.number("odd-offset"), libc::EINVAL as usize);
    assert_eq!(placed.number("bad-file"), libc::EBADF as usize);
    assert_eq!(placed.number("bad-unmap"), libc::EINVAL as usize);
    assert_eq!(placed.number("bad-segment"), libc::EINVAL as usize);
}

#[test]
fn the_preload_is_small_and_needs_no_libc() {
    assert!(!PRELOAD.is_empty() && PRELOAD.len() <= 10 << 10, "{} bytes", PRELOAD.len());
    let names: Vec<&[u8]> = PRELOAD.split(|byte| *byte == 0).collect();
    for wanted in ["environ", "__errno_location", "mmap", "mmap64", "munmap", "shmat", "shmget"] {
        assert!(names.contains(&wanted.as_bytes()), "{wanted}");
    }
    for libc in ["libc.so.6", "libc.so", "strlen", "getauxval", "rust_eh_personality"] {
        assert!(!names.contains(&libc.as_bytes()), "it needs {libc}");
    }
    for inserted in ["memset", "memcpy", "memmove", "memcmp", "bcmp"] {
        assert!(!names.contains(&inserted.as_bytes()), "the compiler calls {inserted}");
    }
}

/// Whoever writes a filter for a program asks which calls the preload makes.
#[test]
fn every_call_of_the_preload_is_in_its_page() {
    let (raw, page) = (include_str!("../../preload/raw.rs"), include_str!("../../../../../docs/run.md"));
    let names = raw.lines().filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once(": usize"));
    let names: Vec<String> = names.map(|(name, _)| name.to_lowercase()).collect();
    assert!(names.len() > 40, "those of two architectures: {names:?}");
    for name in names {
        let real = if name.starts_with("sig") { format!("rt_{name}") } else { name };
        assert!(page.contains(&format!("`{real}`")), "{real}");
    }
}

/// Programs whose handlers of signals are sound in front of mmap(2), since the kernel begins none within it.
const HANDLERS: &str = r#"
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
static sigjmp_buf out;
static pid_t child;
static size_t bytes = 512UL << 20;
static void jump(int signal) { siglongjmp(out, 1); }
static void split(int signal) { child = fork(); }
static void tick(int signal) {}
static char *map(void) { return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); }
static void every(int first, int then) {
    struct itimerval time = {{0, then}, {0, first}};
    setitimer(ITIMER_REAL, &time, 0);
}
static int files(void) {
    int count = 0;
    DIR *open = opendir("/proc/self/fd");
    while (readdir(open))
        count++;
    closedir(open);
    return count;
}
/* Leaves mmap at any place of it, and tells what was left behind. */
static int leave(void) {
    const int before = files();
    bytes = 2UL << 20;
    signal(SIGALRM, jump);
    for (volatile int round = 0; round < 6000; round++)
        if (!sigsetjmp(out, 1)) {
            every(1 + round % 60, 0);
            map();
            pause();
        }
    const int more = files() - before;
    return more ? printf("%d files are open\n", more), 1 : 0;
}
/* A handler that changes what is blocked when it has come back. */
static void blocks(int signal, siginfo_t *from, void *context) {
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGUSR2);
}
static int mask(void) {
    struct sigaction action = {.sa_sigaction = blocks, .sa_flags = SA_SIGINFO};
    sigset_t blocked;
    sigaction(SIGALRM, &action, 0);
    every(20000, 0);
    map();
    usleep(50000);
    sigprocmask(SIG_SETMASK, 0, &blocked);
    return sigismember(&blocked, SIGUSR2) && !sigismember(&blocked, SIGALRM) ? 0 : (printf("the mask is lost\n"), 1);
}
/* What a program does with its stack later on. */
static int work(void) {
    char buffer[4096];
    for (int round = 0; round < 30; round++) {
        memset(buffer, 0x5a, sizeof buffer);
        usleep(20000);
        for (unsigned at = 0; at < sizeof buffer; at++)
            if (((volatile char *)buffer)[at] != 0x5a)
                return printf("byte %u of a local buffer changed\n", at), 1;
    }
    return 0;
}
int main(int count, char **words) {
    switch (words[1][0]) {
    case 'j':
        signal(SIGALRM, jump);
        if (!sigsetjmp(out, 1)) {
            every(20000, 0);
            map();
            pause();
        }
        return work();
    case 'f':
        signal(SIGALRM, split);
        every(20000, 0);
        map();
        while (!child && getppid() == atoi(words[2]))
            usleep(1000);
        if (!child)
            _exit(7);
        for (int tries = 0, status; tries < 200; tries++, usleep(100000))
            if (waitpid(child, &status, WNOHANG) == child)
                return WEXITSTATUS(status) != 7;
        kill(child, SIGKILL);
        return printf("the child hangs in mmap\n"), 1;
    case 'l':
        return leave();
    case 'm':
        return mask();
    case 'e':
        every(20000, 0);
        map();
        pause();
        return 1;
    }
    signal(SIGALRM, tick);
    every(1000, 1000);
    char *memory = map();
    every(0, 0);
    static unsigned char there[512UL << 8];
    size_t missing = 0;
    mincore(memory, bytes, there);
    for (size_t page = 0; page < bytes / 4096; page++)
        missing += !(there[page] & 1);
    return missing > 64 ? printf("%zu pages are missing\n", missing), 1 : 0;
}
"#;

/// The threads write to what lies on the caller's stack: a handler that left it had theirs written over, and a child
/// that it forked waited for threads that it does not have.
#[test]
fn handlers_of_signals_jump_out_fork_and_come_back_while_a_segment_is_filled() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("handlers.c"), folder.path().join("handlers"));
    fs::write(&source, HANDLERS).unwrap();
    let made = Command::new("cc").args(["-O1", "-w", "-o"]).args([&program, &source]).status();
    if !made.is_ok_and(|status| status.success()) {
        return planish_skip::skip("handlers_of_signals_jump_out", "no C compiler");
    }
    for how in ["jump", "fork", "tick", "end", "leave", "mask"] {
        // Outside of the fill: of what mmap itself opens nothing is left.
        let threads = if how == "leave" { 0 } else { 2 };

        let mut command = Command::new(&program);
        command.args([how, &std::process::id().to_string()]).stdin(Stdio::null());
        command
            .env("LD_PRELOAD", preload(folder.path()))
            .env("PLANISH_SHM", format!("bytes=1048576:threads={threads}:spare=0:answer=/nobody"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let ended = (output.status.code(), output.status.signal());
        assert_eq!(ended, if how == "end" { (None, Some(14)) } else { (Some(0), None) }, "{how}: {said}");
    }
}

/// Programs that the kernel answers as they expect, which a preload must not change.
const PARTICULAR: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#define MIB (1UL << 20)
static void tick(int signal) {}
static void answers(int signal, siginfo_t *from, void *context) {}
static char *map(void *at, size_t bytes, int flags, int file) {
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
}
/* One call of the program has this end from here on. */
static void filter(unsigned call, unsigned end) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, end),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
int main(int count, char **words) {
    const int calls[] = {SYS_openat, SYS_rt_sigprocmask, SYS_fstatfs, SYS_socket, SYS_clone};
    struct rlimit none = {MIB, MIB};
    struct itimerval often = {{0, 500}, {0, 500}};
    unsigned char there[1024] = {0};
    char *old;
    switch (words[1][0]) {
    case 'k': /* A filter that ends it at a call that it does not make itself. */
    case 't': /* One by which it answers such a call itself. */
        if (words[1][0] == 't') {
            struct sigaction action = {.sa_sigaction = answers, .sa_flags = SA_SIGINFO};
            sigaction(SIGSYS, &action, 0);
        }
        for (int at = 0; at < 5; at++)
            filter(calls[at], words[1][0] == 't' ? SECCOMP_RET_TRAP : SECCOMP_RET_KILL_PROCESS);
        return map(0, 4 * MIB, 0, -1) == MAP_FAILED;
    case 'e': /* One that it is started under, and that refuses to block signals. */
        filter(SYS_rt_sigprocmask, SECCOMP_RET_ERRNO | EPERM);
        execl(words[0], words[0], "often", (char *)0);
        return 9;
    case 'o':
        signal(SIGALRM, tick);
        setitimer(ITIMER_REAL, &often, 0);
        return map(0, 256 * MIB, 0, -1) == MAP_FAILED;
    case 's': { /* Locked, and longer than its file. */
        const int file = memfd_create("short", 0);
        ftruncate(file, MIB);
        return map(0, 4 * MIB, MAP_LOCKED, file) == MAP_FAILED;
    }
    case 'f': /* Locked where something lies, and more than it may lock. */
        old = map(0, 4 * MIB, 0, -1);
        old[0] = 7;
        setuid(65534);
        setrlimit(RLIMIT_MEMLOCK, &none);
        if (map(old, 4 * MIB, MAP_FIXED | MAP_LOCKED, -1) != MAP_FAILED || errno != EAGAIN)
            return printf("locked, or %s\n", strerror(errno)), 1;
        return old[0] != 7;
    case 'z': /* It may lock nothing. */
        setuid(65534);
        none.rlim_cur = none.rlim_max = 0;
        setrlimit(RLIMIT_MEMLOCK, &none);
        return map(0, 4 * MIB, MAP_LOCKED, -1) != MAP_FAILED || errno != EPERM;
    case 'n': /* The kernel fills nothing that must not block. */
        old = map(0, 4 * MIB, MAP_POPULATE | MAP_NONBLOCK, -1);
        mincore(old, 4 * MIB, there);
        return memchr(there, 1, sizeof there) != 0;
    }
    return 8;
}
"#;

/// What the kernel does of itself, the preload does: nobody is ended, and no error is another.
#[test]
fn programs_under_filters_and_with_locks_see_what_the_kernel_would_answer() {
    const TEST: &str = "programs_under_filters_and_with_locks_see_what_the_kernel_would_answer";
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("particular.c"), folder.path().join("particular"));
    fs::write(&source, PARTICULAR).unwrap();
    let made = Command::new("cc").args(["-O1", "-w", "-o"]).args([&program, &source]).status();
    if !made.is_ok_and(|status| status.success()) {
        return planish_skip::skip(TEST, "no C compiler");
    }
    for (how, threads) in
        [("kill", 2), ("trap", 2), ("eperm", 2), ("short", 2), ("fixed", 2), ("zero", 2), ("nonblock", 0)]
    {
        let run = |is_preloaded: bool| {
            let mut command = Command::new(&program);
            command.arg(how).stdin(Stdio::null());
            if is_preloaded {
                let settings = format!("bytes=1048576:threads={threads}:spare=0:answer=/nobody");
                command.env("LD_PRELOAD", preload(folder.path())).env("PLANISH_SHM", settings);
            }
            let output = command.output().unwrap();
            (output.status, String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (plain, preloaded) = (run(false), run(true));
        assert!(plain.0.success(), "{how}: {plain:?}");
        assert_eq!(preloaded, plain, "{how}");
    }
}

/// What the child does; as a test of its own, nothing.
#[test]
fn the_child() {
    if let Ok(role) = std::env::var(ROLE) {
        // The harness has begun the line with the name of the test.
        println!();
        child::act(&role);
    }
}
