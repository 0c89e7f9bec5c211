/* Starts a program under a seccomp filter, as a container's: denied CALL=ERRNO ... -- PROGRAM ARGUMENT ...
 * A kernel whose userfaultfd has no minor faults is `minor=22` (EINVAL of UFFDIO_API): nothing else tells; one before
 * Linux 6.7 is `scan=25` (ENOTTY of PAGEMAP_SCAN, which headers of such a kernel do not have). */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL(name) {#name, SYS_##name, 0}
#define REQUEST(name, request) {name, SYS_ioctl, request}

static const struct rule {
    const char *name;
    unsigned call, request;
} RULES[] = {
    CALL(mbind), CALL(set_mempolicy), CALL(get_mempolicy), CALL(move_pages), CALL(migrate_pages), CALL(userfaultfd),
    CALL(sched_setaffinity), CALL(perf_event_open), CALL(process_vm_readv), CALL(pidfd_open),
    REQUEST("minor", (unsigned)UFFDIO_API), REQUEST("scan", 0xc0606610),
};

static struct sock_filter code[256];
static unsigned short length;

static void add(unsigned short what, unsigned char yes, unsigned char no, unsigned value)
{
    code[length++] = (struct sock_filter){what, yes, no, value};
}

static void deny(const struct rule *rule, unsigned error)
{
    /* Its lower half: x86-64 and aarch64 are little-endian. */
    const unsigned request = offsetof(struct seccomp_data, args[1]);

    add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, rule->request ? 3 : 1, rule->call);
    if (rule->request) {
        add(BPF_LD | BPF_W | BPF_ABS, 0, 0, request);
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, rule->request);
    }
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | error);
}

int main(int count, char **words)
{
    int at = 1;
    for (; at < count && strcmp(words[at], "--"); at++) {
        char *error = strchr(words[at], '=');
        size_t known = sizeof RULES / sizeof *RULES;
        if (!error)
            return 99;
        *error++ = 0;
        for (const struct rule *rule = RULES; known--; rule++)
            if (!strcmp(rule->name, words[at])) {
                deny(rule, (unsigned)atoi(error));
                error = NULL;
                break;
            }
        if (error)
            return 99;
    }
    if (at + 1 >= count)
        return 99;
    add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
        perror("denied: no seccomp filter here");
        return 98;
    }
    execv(words[at + 1], words + at + 1);
    perror(words[at + 1]);
    return 97;
}
