/*
 * A child of fork(2) with the handles of its parent: each call but those that free is refused, and those that free
 * leave alone what lies at the addresses. For a pool that is memory of the child's own; it needs no pool to be seen here,
 * because the process is the rule.
 */
#define _POSIX_C_SOURCE 200809L
#include <planish.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, planish_error_message());                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define REFUSED(call) MUST((call) == PLANISH_ERROR_INVALID && strstr(planish_error_message(), "made by process"))

enum { BYTES = 1 << 20 };

static void in_child(planish_arena *arena, planish_growing *growing, planish_bump *bump, unsigned char *leased,
                     unsigned char *grown) {
    void *memory = leased;
    size_t bytes = 0;
    planish_achieved *achieved = NULL;
    planish_isolation isolation;
    REFUSED(planish_arena_alloc(arena, 1, 0, &memory));
    REFUSED(planish_arena_lease(arena, 1, &memory));
    MUST(memory == NULL);
    REFUSED(planish_arena_give_back(arena, leased));
    REFUSED(planish_arena_reserve(arena, BYTES));
    REFUSED(planish_arena_trim(arena, 0, &bytes));
    REFUSED(planish_arena_used_bytes(arena, &bytes));
    REFUSED(planish_arena_achieved(arena, &achieved));
    REFUSED(planish_arena_collapse(arena, &achieved));
    REFUSED(planish_isolation_check(arena, 0, &isolation));
    REFUSED(planish_growing_resize(growing, 1, &memory));
    REFUSED(planish_growing_trim(growing, &bytes));
    REFUSED(planish_growing_achieved(growing, &achieved));
    REFUSED(planish_growing_collapse(growing, &achieved));
    REFUSED(planish_bump_alloc(bump, 1, 0, &memory));
    REFUSED(planish_bump_clear(bump));
    REFUSED(planish_bump_used_bytes(bump, &bytes));
    REFUSED(planish_bump_new(arena, 0, 0, &bump));
    planish_arena_free(arena);
    planish_growing_free(growing);
    MUST(leased[0] == 7 && leased[BYTES - 1] == 7 && grown[0] == 8 && grown[BYTES - 1] == 8);

    /* One of its own is as good as any. */
    planish_arena *own = NULL;
    MUST(planish_arena_new(NULL, &own) == PLANISH_OK);
    MUST(planish_arena_lease(own, BYTES, &memory) == PLANISH_OK && memory != leased);
    memset(memory, 9, BYTES);
    MUST(planish_arena_give_back(own, memory) == PLANISH_OK);
    planish_arena_free(own);
    puts("child is done");
}

int main(void) {
    planish_arena_options options = {0};
    options.page = PLANISH_PAGE_BASE;
    options.threads = 1;
    options.capacity_bytes = BYTES;
    planish_arena *arena = NULL;
    planish_growing *growing = NULL;
    planish_bump *bump = NULL;
    void *leased = NULL, *grown = NULL, *bumped = NULL;
    MUST(planish_arena_new(&options, &arena) == PLANISH_OK);
    MUST(planish_growing_new(&options, BYTES, &growing) == PLANISH_OK);
    MUST(planish_arena_lease(arena, BYTES, &leased) == PLANISH_OK);
    MUST(planish_growing_resize(growing, BYTES, &grown) == PLANISH_OK);
    MUST(planish_bump_new(arena, 0, 0, &bump) == PLANISH_OK);
    MUST(planish_bump_alloc(bump, 100, 0, &bumped) == PLANISH_OK);
    memset(leased, 7, BYTES);
    memset(grown, 8, BYTES);

    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        in_child(arena, growing, bump, leased, grown);
        exit(0);
    }
    int status = -1;
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    MUST(((unsigned char *)leased)[0] == 7 && ((unsigned char *)grown)[BYTES - 1] == 8);
    MUST(planish_arena_give_back(arena, leased) == PLANISH_OK);
    MUST(planish_bump_alloc(bump, 100, 0, &bumped) == PLANISH_OK);
    planish_bump_free(bump);
    planish_growing_free(growing);
    planish_arena_free(arena);
    puts("parent is done");
    return 0;
}
