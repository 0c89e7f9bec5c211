/*
 * A program of 7 MiB of code that puts it on huge pages while two threads run it, and forks afterwards; with a word,
 * one whose code somebody has patched in memory, as a breakpoint does (patched), one that runs it until nobody listens
 * any more (stays), or one that does what it is told (obeys). With -DCOLD it has 22 MiB of other code before that, of
 * which it touches every page before it asks.
 */
#include <planish.h>

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef COLD
__asm__(".text\n.globl cold\n.p2align 21\ncold:\n .fill 23068672, 1, 0x90\n");
extern const volatile char cold[];
#endif

__asm__(".text\n.globl big\n.type big, %function\n.p2align 12\nbig:\n"
        ".rept 1792\n nop\n .p2align 12, 0x90\n .endr\n ret\n.size big, .-big\n");
extern void big(void);

static volatile int is_over;

static void *run(void *unused)
{
    unsigned long rounds = 0;
    while (!is_over || rounds == 0) {
        big();
        rounds++;
    }
    (void)unused;
    return NULL;
}

/* A page of code that is like no other, in memory alone. */
static int patch(void)
{
    uintptr_t page = ((uintptr_t)big + (4u << 20)) & ~(uintptr_t)0xfff;
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return 0;
    *(unsigned char *)(page + 64) = 0xcc;
    return mprotect((void *)page, 4096, PROT_READ | PROT_EXEC) == 0;
}

/* Whether this process has names for perf, for code that has no file any more. They go. */
static int named(void)
{
    char path[64], line[256];
    int is_named = 0;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *names = fopen(path, "r");
    while (names && fgets(line, sizeof line, names)) {
        unsigned long at = 0;
        if (strstr(line, " big\n") && sscanf(line, "%lx", &at) == 1)
            is_named = at == (unsigned long)(uintptr_t)big;
    }
    if (names) {
        fclose(names);
        unlink(path);
    }
    return is_named;
}

/* Runs the code until its standard input ends. */
static void stay(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0)
        for (int index = 0; index < 100; index++)
            big();
    named();
}

static planish_result huge(planish_hugified *hugified)
{
    planish_result result = planish_hugify_self(hugified);
    printf("%s route %u huge %zu of %zu before %zu\n", planish_result_name(result), hugified->route,
           hugified->huge_bytes, hugified->whole_bytes, hugified->before_bytes);
    return result;
}

/* With what a child left, which runs the code, or is a program of its own that runs it. */
static int left(int execs)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        big();
        if (execs)
            execl("/proc/self/exe", "hugify", "runs", (char *)NULL);
        _exit(7);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Answers each word of its standard input with a line (huge: with two), and leaves with 7 when there is no more. */
static int obey(void)
{
    char word[16];
    planish_hugified hugified;
    while (scanf("%15s", word) == 1) {
        memset(&hugified, 0, sizeof hugified);
        if (strcmp(word, "huge") == 0)
            printf("%s\n", huge(&hugified) == PLANISH_OK ? "" : planish_error_message());
        if (strcmp(word, "run") == 0) {
            big();
            printf("ran\n");
        }
        if (strcmp(word, "fork") == 0 || strcmp(word, "exec") == 0)
            printf("left %d\n", left(word[0] == 'e'));
        fflush(stdout);
    }
    named();
    return 7;
}

int main(int count, char **words)
{
    if (count > 1 && strcmp(words[1], "obeys") == 0)
        return obey();
    if (count > 1 && strcmp(words[1], "runs") == 0) {
        big();
        return 7;
    }
    int stays = count > 1 && strcmp(words[1], "stays") == 0;
    if (count > 1 && !stays && !patch()) {
        printf("not patched\n");
        return 0;
    }
#ifdef COLD
    for (int at = 0; at < 23068672; at += 4096)
        (void)cold[at];
#endif
    pthread_t threads[2];
    if (count == 1)
        for (int index = 0; index < 2; index++)
            pthread_create(&threads[index], NULL, run, NULL);
    planish_hugified hugified = {0};
    planish_result result = huge(&hugified);
    is_over = 1;
    if (count == 1)
        for (int index = 0; index < 2; index++)
            pthread_join(threads[index], NULL);
    if (result != PLANISH_OK)
        printf("%s\n", planish_error_message());
    fflush(stdout);
    if (stays)
        stay();
    if (count > 1)
        return 0;
    printf("named %d\n", named());
    big();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        big();
        /* It has the copy already, and asks for names under its own number. */
        result = planish_hugify_self(NULL);
        _exit(result == PLANISH_OK ? 7 + named() : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    /* Once more it is so already. */
    result = planish_hugify_self(NULL);
    printf("again %s\n", planish_result_name(result));
    named();
    return 0;
}
