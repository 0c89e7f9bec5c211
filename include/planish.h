/*
 * libplanish: arenas and a program's code on huge pages, NUMA nodes, pinned threads, and whether a thread has its CPU to
 * itself.
 *
 * Conventions, the same for every function:
 *
 * - A function that can fail returns a planish_result, and PLANISH_OK is 0. planish_error_message() and
 *   planish_error_cure() then say what happened in this thread, and what to do about it.
 * - Results are left where the last arguments point to, and only when the call succeeds; but a pointer that is asked
 *   for (an arena, memory) is set to null when the call fails, unless it is to memory that is there already
 *   (planish_growing_resize).
 * - Lists are filled as far as `capacity` goes, and *count is how many there are: (NULL, 0, &count) asks for that.
 * - Numbers of an enumeration are passed as uint32_t: one that the library does not know is PLANISH_ERROR_INVALID.
 * - Strings are UTF-8, end with a zero byte, and belong to the library.
 * - Null, pointers that are not aligned, sizes that overflow and memory that is not leased are errors. That a pointer
 *   points to memory that is there and large enough, and that nobody uses a handle while it is freed, or after, is what
 *   the caller owes: the library cannot see it.
 * - Every function may be called by several threads at once, with the same arena too, but for those that free, and
 *   those of a planish_bump, which is one thread's at a time.
 * - What fails leaves everything as it was. The process ends only where Rust ends it: when malloc has nothing left.
 *
 * Arenas and memory that grows belong to the process that made them. In a child of fork(2) the functions that free them
 * only forget them and unmap nothing, and all others are PLANISH_ERROR_INVALID for such a handle. The child has a copy
 * of what they gave out, but nothing of a pool: it must not touch that, for its own memory may lie there by then.
 *
 * Nothing here changes the machine, and nothing needs a right. Raising a pool of huge pages or isolating a CPU is the
 * work of the program planish.
 *
 * docs/c.md tells how to build with it; examples/ has a program in C, in C++ and in Rust.
 */
#ifndef PLANISH_H
#define PLANISH_H

#include <stddef.h>
#include <stdint.h>

/* Of this header; planish_version() is that of the library. */
#define PLANISH_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- How calls end ---------------------------------------------------------------------------------------------- */

typedef enum planish_result {
    /* It did what it says. */
    PLANISH_OK = 0,
    /* A pointer was null that must not be. */
    PLANISH_ERROR_NULL = 1,
    /* An argument makes no sense; the message says which. */
    PLANISH_ERROR_INVALID = 2,
    /* More bytes than an address space has. */
    PLANISH_ERROR_TOO_LARGE = 3,
    /* The pool of huge pages has too few free, on the chosen nodes where the choice binds. */
    PLANISH_ERROR_POOL_SHORT = 4,
    /* The kernel has no pages of this size at all. */
    PLANISH_ERROR_NO_SUCH_PAGE = 5,
    /* The memory lay on other pages than those that were asked for exactly, and was given back; or text stayed where it
     * was. */
    PLANISH_ERROR_NOT_BACKED = 6,
    /* There is less memory, on the machine or in the control group, and the kernel would kill somebody for it. */
    PLANISH_ERROR_MEMORY = 7,
    /* The kernel refused to place memory on these nodes, or it lay on others and was given back (exact). */
    PLANISH_ERROR_PLACEMENT = 8,
    /* The kernel refused to map or to fault in. */
    PLANISH_ERROR_MAP = 9,
    /* What the kernel gave cannot be read back: /proc is not mounted. */
    PLANISH_ERROR_READ_BACK = 10,
    /* A seccomp filter or a security module forbids the call, as containers do with those about nodes. */
    PLANISH_ERROR_FORBIDDEN = 11,
    /* The kernel does not have the call, or does not tell what was asked. */
    PLANISH_ERROR_MISSING = 12,
    /* A CPU is offline, or the cpuset of the process does not have the CPU or the node. */
    PLANISH_ERROR_OUTSIDE = 13,
    /* No page is there: nobody has written to it yet, or nothing is mapped at the address. */
    PLANISH_ERROR_ABSENT = 14,
    /* This machine has no such node, or none with memory. */
    PLANISH_ERROR_NO_SUCH_NODE = 15,
    /* Another call of the kernel failed; the message has its words. */
    PLANISH_ERROR_SYSTEM = 16,
    /* Memory that grows in place has no more addresses. */
    PLANISH_ERROR_FULL = 17,
    /* A mistake of libplanish, to be reported with the message. What it was at work on must not be used again. */
    PLANISH_ERROR_BUG = 18
} planish_result;

/* The name of a result, "PLANISH_OK"; never null. */
const char *planish_result_name(uint32_t result);

/*
 * Why the last call of this thread that failed did, and what to do about it. Never null; empty before the first
 * failure. Valid until the next failure of the same thread, or its end.
 */
const char *planish_error_message(void);
const char *planish_error_cure(void);

/* The version of the library, "0.1.0". Before version 1 a program works with the minor version it was linked with. */
const char *planish_version(void);

/* ---- Arenas ----------------------------------------------------------------------------------------------------- */

/*
 * Growing memory on pages of one kind and one placement: chunks, each twice the last up to a cap. A chunk is mapped,
 * placed on its nodes, faulted in by several threads and read back before any of it is handed out; nothing that was
 * handed out ever moves.
 */
typedef struct planish_arena planish_arena;

/* The kind of page that an arena begins with. */
typedef enum planish_page {
    /* Transparent huge pages: no reservation is needed. */
    PLANISH_PAGE_THP = 0,
    /* Base pages for certain, also where transparent huge pages are `always`. */
    PLANISH_PAGE_BASE = 1,
    /* Pages of `page_bytes` from a pool that somebody has raised (planish size, planish apply). */
    PLANISH_PAGE_HUGETLB = 2,
    /* The largest pages that a chunk can fill half of. */
    PLANISH_PAGE_LARGEST = 3
} planish_page;

/* On which nodes memory lies. */
typedef enum planish_nodes {
    /* As the memory policy of the thread says that asks; the local node where there is none. */
    PLANISH_NODES_INHERIT = 0,
    /* On the node of the thread that faults it in, whatever its policy: those threads run where the asking one may, so
     * that it is one node where that thread is kept on one, or `threads` is 1. */
    PLANISH_NODES_LOCAL = 1,
    /* On the named nodes only. */
    PLANISH_NODES_BIND = 2,
    /* Page by page round the named nodes. */
    PLANISH_NODES_INTERLEAVE = 3,
    /* On the named nodes first, on others where those are full, do not exist or may not be used: then
     * planish_achieved_why_not says so, and with `exact` it is an error. */
    PLANISH_NODES_PREFER = 4
} planish_nodes;

/* What an arena is asked for. All zero is the default: `planish_arena_options options = {0};` (C++: `{}`). */
typedef struct planish_arena_options {
    /* A planish_page. */
    uint32_t page;
    /* 0: where these pages cannot be had the next smaller ones are taken, and planish_achieved_why_not says why.
     * 1: it is an error, and so is memory on other nodes than those that are named. */
    uint32_t exact;
    /* A planish_nodes. */
    uint32_t node_choice;
    /* Threads that fault a chunk in, the calling one included; 0: one for each CPU that the process may use. */
    uint32_t threads;
    /* Size of a page of the pool: PLANISH_PAGE_HUGETLB needs it, all others want 0. */
    size_t page_bytes;
    /* The nodes, where the choice has any; they are copied. */
    const uint32_t *nodes;
    /* How many. */
    size_t nodes_count;
    /* Bytes that a first chunk is to hold, made at once; 0: the first chunk is made for the first memory. */
    size_t capacity_bytes;
    /* Bytes of the first chunk where no capacity is given; 0: 2 MB. */
    size_t first_bytes;
    /* Bytes above which chunks no longer double; 0: 1 GB. */
    size_t cap_bytes;
} planish_arena_options;

/* Makes an arena; null options are the default. To be freed by planish_arena_free. */
planish_result planish_arena_new(const planish_arena_options *options, planish_arena **arena);

/*
 * Makes an arena on each node that this process can have memory from, in the order of planish_numa_nodes, so that the
 * one at index i is on the node at index i there. Each prefers its node, or with `exact` is bound to it; node_choice is
 * PLANISH_NODES_INHERIT. All are made or none: a capacity that is too small, but for (NULL, 0, &count), is
 * PLANISH_ERROR_INVALID. Each is to be freed by planish_arena_free.
 */
planish_result planish_arena_new_per_node(const planish_arena_options *options, planish_arena **arenas,
                                          size_t capacity, size_t *count);

/*
 * Unmaps an arena with everything that it has handed out, but while a planish_bump has blocks of it: then the last of
 * those takes it along. Null is nothing to do.
 */
void planish_arena_free(planish_arena *arena);

/*
 * Zeroed memory that stays until the arena is freed, on a multiple of `align` (a power of two), of a cache line at
 * least; 0 is a cache line. `bytes` is not 0. It costs a lock and a sum, but where it needs a new chunk.
 */
planish_result planish_arena_alloc(planish_arena *arena, size_t bytes, size_t align, void **memory);

/*
 * Zeroed memory that can be given back, on a multiple of a cache line. What others gave back is taken before anything
 * new.
 */
planish_result planish_arena_lease(planish_arena *arena, size_t bytes, void **memory);

/*
 * Takes back what planish_arena_lease gave; it is memory for the next lease. Null is nothing to do. What is not leased
 * from this arena, or not any more, is PLANISH_ERROR_INVALID.
 */
planish_result planish_arena_give_back(planish_arena *arena, void *memory);

/* Makes sure that `bytes` in all, alignment included, can be handed out without a call to the kernel. */
planish_result planish_arena_reserve(planish_arena *arena, size_t bytes);

/*
 * Hands memory that nobody leases to the kernel until no more than `keep_bytes` of it are left: whole pages, those of a
 * pool back to the pool. `handed_bytes` may be null.
 */
planish_result planish_arena_trim(planish_arena *arena, size_t keep_bytes, size_t *handed_bytes);

/* Bytes that are handed out, alignment included. */
planish_result planish_arena_used_bytes(const planish_arena *arena, size_t *bytes);

/* ---- Memory of one thread --------------------------------------------------------------------------------------- */

/*
 * Blocks of an arena that one thread fills: taking some is a sum and a comparison, without a lock and without a line of
 * memory that another thread writes. Nothing that was handed out moves. It all goes back as a whole, and what a thread
 * leaves behind is there for the next. It may be handed to another thread, which then is the one to call.
 */
typedef struct planish_bump planish_bump;

/*
 * Makes one; it has no memory yet. Blocks have first_bytes (0: 64 KB), then twice as many each, up to cap_bytes (0:
 * 2 MB); the tails of chunks and what others gave back are taken before new memory, whatever they have. To be freed by
 * planish_bump_free.
 */
planish_result planish_bump_new(planish_arena *arena, size_t first_bytes, size_t cap_bytes, planish_bump **bump);

/* Gives everything that it has back to its arena. Null is nothing to do. */
void planish_bump_free(planish_bump *bump);

/*
 * Zeroed memory that stays until the bump is cleared or freed, on a multiple of `align` (a power of two; 0 is 16).
 * `bytes` is not 0.
 */
planish_result planish_bump_alloc(planish_bump *bump, size_t bytes, size_t align, void **memory);

/* Takes everything back at once, for what comes next; all blocks but the newest go to the arena. */
planish_result planish_bump_clear(planish_bump *bump);

/* Bytes that it has handed out, alignment included. */
planish_result planish_bump_used_bytes(const planish_bump *bump, size_t *bytes);

/* ---- What an arena really has ----------------------------------------------------------------------------------- */

/* What an arena had at one moment, read back from the kernel. */
typedef struct planish_achieved planish_achieved;

/* Bytes by the kind of page that they lie on. */
typedef struct planish_backing {
    /* All that is mapped, handed out or not. */
    size_t mapped_bytes;
    /* On base pages; those between base and transparent huge pages count here. */
    size_t base_bytes;
    /* On transparent huge pages. */
    size_t thp_bytes;
    /* On pages of pools. */
    size_t hugetlb_bytes;
    /* On no page now: swapped out, or handed to the kernel by planish_arena_trim. */
    size_t absent_bytes;
    /* 1: all that is there lies on the pages that were asked for. */
    uint32_t as_requested;
} planish_backing;

/* Bytes on one node. */
typedef struct planish_node_bytes {
    uint32_t node;
    size_t bytes;
} planish_node_bytes;

/* Reads back what the arena has now. It reads /proc/self/smaps: not for a hot path. To be freed. */
planish_result planish_arena_achieved(const planish_arena *arena, planish_achieved **achieved);

/*
 * Puts what wanted transparent huge pages and lies on others onto huge pages now, and reads back. The kernel copies
 * while others use the memory (MADV_COLLAPSE, Linux 6.1); only calls with this arena wait. That it did not is no
 * failure of the call: planish_achieved_why_not says why. To be freed.
 */
planish_result planish_arena_collapse(planish_arena *arena, planish_achieved **achieved);

/* Frees it. Null is nothing to do. */
void planish_achieved_free(planish_achieved *achieved);

/* Bytes by the kind of page. */
planish_result planish_achieved_backing(const planish_achieved *achieved, planish_backing *backing);

/* Bytes on each node that has any, by number; PLANISH_ERROR_FORBIDDEN where the kernel does not tell. */
planish_result planish_achieved_nodes(const planish_achieved *achieved, planish_node_bytes *nodes, size_t capacity,
                                      size_t *count);

/* The reason number `index`, from 0 on, why something is not as asked for; null after the last. Valid until freed. */
const char *planish_achieved_why_not(const planish_achieved *achieved, size_t index);

/* ---- Memory that grows where it is ------------------------------------------------------------------------------ */

/*
 * One run of addresses that never moves: what points into it stays good, and nothing is copied. Addresses for the most
 * that it may ever have are taken first, which costs no memory; memory comes in pieces, each twice the last up to a
 * cap, and each is placed, faulted in and read back like a chunk of an arena. All of it lies on the kind of page that
 * the first piece got: a pool that runs short later is PLANISH_ERROR_POOL_SHORT.
 */
typedef struct planish_growing planish_growing;

/*
 * Takes the addresses, and memory for the first piece (capacity_bytes, or else first_bytes of the options; null options
 * are the default). It has no bytes yet. To be freed by planish_growing_free.
 */
planish_result planish_growing_new(const planish_arena_options *options, size_t most_bytes, planish_growing **growing);

/* Unmaps it. Null is nothing to do. */
void planish_growing_free(planish_growing *growing);

/*
 * It has `bytes` from now on: new ones are zero, those beyond are gone. *memory is where it begins, the same each time
 * it succeeds, and left as it was when the call fails. More than most_bytes is PLANISH_ERROR_FULL. Others may use what
 * it had before and still has meanwhile.
 */
planish_result planish_growing_resize(planish_growing *growing, size_t bytes, void **memory);

/*
 * Hands memory beyond its end to the kernel: whole pages, those of a pool back to the pool. `handed_bytes` may be null.
 */
planish_result planish_growing_trim(planish_growing *growing, size_t *handed_bytes);

/* Reads back what it has now, as planish_arena_achieved does; addresses that never had memory do not count. To be
 * freed. */
planish_result planish_growing_achieved(const planish_growing *growing, planish_achieved **achieved);

/* Puts what wanted transparent huge pages and lies on others onto huge pages now, and reads back, as
 * planish_arena_collapse does. To be freed. */
planish_result planish_growing_collapse(planish_growing *growing, planish_achieved **achieved);

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* The nodes that this process can have memory from, by number: those with memory, within its cpuset. */
planish_result planish_numa_nodes(uint32_t *nodes, size_t capacity, size_t *count);

/* The CPUs of a node that are online, by number; none for a node of memory alone. */
planish_result planish_numa_cpus(uint32_t node, uint32_t *cpus, size_t capacity, size_t *count);

/* How far memory of node `to` is for CPUs of node `from`, as the firmware says; 10 is a node's own. */
planish_result planish_numa_distance(uint32_t from, uint32_t to, uint32_t *distance);

/*
 * The node whose memory is nearest to CPUs of node `from`, among those that this process can have memory from: itself,
 * but for a node without memory or outside of the cpuset.
 */
planish_result planish_numa_memory_node(uint32_t from, uint32_t *node);

/* Where the calling thread runs at this moment; it stays true while the thread is pinned. */
planish_result planish_numa_here(uint32_t *cpu, uint32_t *node);

/* The node that the page at this address lies on. Nothing is touched: PLANISH_ERROR_ABSENT where no page is there. */
planish_result planish_numa_node_of(const void *address, uint32_t *node);

/* ---- Threads and CPUs ------------------------------------------------------------------------------------------- */

/*
 * The CPUs that the calling thread can have: those online in its cpuset, whatever it has now. Those of isolcpus are
 * among them. There may be more than 1024.
 */
planish_result planish_pin_allowed(uint32_t *cpus, size_t capacity, size_t *count);

/* The CPUs that the calling thread may run on now. */
planish_result planish_pin_current(uint32_t *cpus, size_t capacity, size_t *count);

/*
 * Keeps the calling thread on exactly these CPUs. Where any of them cannot be had, which sched_setaffinity would leave
 * out without a word, it is PLANISH_ERROR_OUTSIDE, and the thread stays as it was.
 */
planish_result planish_pin_cpus(const uint32_t *cpus, size_t count);

/*
 * Keeps the calling thread on the CPUs of a node that it can have, but isolated ones: from those no task is moved away,
 * so they are for threads that name them. A node of which it can have isolated ones only gives those.
 */
planish_result planish_pin_node(uint32_t node);

/* Lets the calling thread run on all CPUs that it can have, with the same exception. */
planish_result planish_pin_clear(void);

/* ---- Is the thread alone? --------------------------------------------------------------------------------------- */

/* What keeps a thread from having its CPU, or its memory near, to itself; each a bit. */
typedef enum planish_problem {
    /* The thread may be moved to other CPUs. */
    PLANISH_PROBLEM_NOT_PINNED = 1,
    /* The scheduler puts other tasks on the CPU: neither isolcpus nor an isolated cpuset has it. */
    PLANISH_PROBLEM_NOT_ISOLATED = 2,
    /* Another hardware thread of the core takes ordinary tasks. */
    PLANISH_PROBLEM_SHARED_CORE = 4,
    /* The timer interrupts the thread while it is busy: no nohz_full, or another task is on the CPU. */
    PLANISH_PROBLEM_TICKS = 8,
    /* Interrupts of devices are delivered to the CPU. */
    PLANISH_PROBLEM_IRQS = 16,
    /* The memory of the arena lies on other pages than it was asked for. */
    PLANISH_PROBLEM_BACKING = 32,
    /* Memory of the arena lies on other nodes than that of the CPU. */
    PLANISH_PROBLEM_REMOTE = 64
} planish_problem;

/* What was found. */
typedef struct planish_isolation {
    /* Bits of planish_problem that there are. */
    uint32_t problems;
    /* Bits of planish_problem that cannot be judged: the kernel does not tell, or nothing was asked. */
    uint32_t unknown;
    /* The CPU that the thread runs on. */
    uint32_t cpu;
    /* The node of that CPU. */
    uint32_t node;
    /* CPUs that the thread may run on. */
    uint32_t cpus_count;
    /* Interrupts of devices that are delivered to the CPU; 0 as well where `unknown` has them. */
    uint32_t irqs_count;
    /* Timer interrupts in a second; below 0 where unknown, as after a watch of less than 40 ms. */
    double ticks_per_s;
    /* All other interrupts in a second, those of other CPUs among them; below 0 where unknown. */
    double irqs_per_s;
    /* The pages of the arena; all 0 without one. */
    planish_backing backing;
} planish_isolation;

/*
 * Looks at the calling thread, its CPU, and the memory of an arena, which may be null. The thread spins for `watch_ms`
 * (at most 60000; 200 are enough to see a tick) while interrupts are counted; 0 leaves them unknown, and less than 40
 * leaves ticks unknown.
 */
planish_result planish_isolation_check(const planish_arena *arena, uint32_t watch_ms, planish_isolation *isolation);

/* One problem in words, with what to do about it; null for a number that is none. */
const char *planish_problem_text(uint32_t problem);

/* ---- The program's own code on huge pages ------------------------------------------------------------------------ */

/* By which route the text of a program came to lie on huge pages. */
typedef enum planish_hugify_route {
    /* By none; the result is PLANISH_ERROR_NOT_BACKED, and the message tells why not. */
    PLANISH_HUGIFY_NONE = 0,
    /* It did already: its file is cached in huge pieces (planish text huge). */
    PLANISH_HUGIFY_ALREADY = 1,
    /* The kernel has made huge pages of the file's own, which all processes share. */
    PLANISH_HUGIFY_FILE = 2,
    /* On a copy of this process alone: of the file, and the same as memory was. */
    PLANISH_HUGIFY_ANONYMOUS = 3,
    /* On such a copy, sealed, in memory that processes share which this one forks. */
    PLANISH_HUGIFY_MEMFD = 4,
    /* On such a copy, on pages that an administrator has reserved (vm.nr_hugepages). */
    PLANISH_HUGIFY_HUGETLB = 5
} planish_hugify_route;

/* What was achieved, read back from the kernel. */
typedef struct planish_hugified {
    /* Bytes of the program's text. */
    size_t text_bytes;
    /* Bytes of it in whole huge pages, the most that there can be; from __hot_start to __hot_end where it has both. */
    size_t whole_bytes;
    /* Of these, bytes on huge pages before. */
    size_t before_bytes;
    /* The same now. */
    size_t huge_bytes;
    /* A planish_hugify_route. */
    uint32_t route;
} planish_hugified;

/*
 * Puts the text of the calling program on huge pages: not that of its libraries. First thing in main, before there are
 * threads; later it works as well. `hugified` may be null, and is set also when the result is PLANISH_ERROR_NOT_BACKED:
 * too little text, no huge page free, or memory that is not what the file says, as under a uprobe. The program goes on
 * as before then. PLANISH_HUGIFY=off in the environment has it do nothing, and words say which routes are gone:
 * file,anonymous,hugetlb is what it does without any, in that order; =file makes no copy, and memfd is gone only where it
 * is named. The functions of a copy that has no file are named for perf, in /tmp/perf-PID.map, but with nomap; a child
 * that is forked later has them under its own number when it calls this, too. A program that is started with more rights
 * than who starts it has (set-user-id) writes no such file, and does not look at the environment.
 */
planish_result planish_hugify_self(planish_hugified *hugified);

#ifdef __cplusplus
}
#endif

#endif
