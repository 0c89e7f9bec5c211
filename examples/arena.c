/*
 * An engine of one thread: it takes a CPU and memory beside it, works there, and says what it did not get.
 *
 *     cc examples/arena.c $(pkg-config --cflags --libs planish) -o arena && ./arena
 */
#include <planish.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with what went wrong and what to do about it. */
static void must(planish_result result, const char *what)
{
    if (result == PLANISH_OK)
        return;
    fprintf(stderr, "%s: %s (%s)\n  to cure it: %s\n", what, planish_error_message(), planish_result_name(result),
            planish_error_cure());
    exit(1);
}

/* Pins this thread to the last CPU that it can have. */
static uint32_t take_cpu(void)
{
    size_t count = 0;
    must(planish_pin_allowed(NULL, 0, &count), "CPUs");
    uint32_t *cpus = calloc(count, sizeof *cpus);
    if (cpus == NULL)
        exit(1);
    size_t capacity = count;
    must(planish_pin_allowed(cpus, capacity, &count), "CPUs");
    uint32_t cpu = cpus[(count < capacity ? count : capacity) - 1];
    free(cpus);
    must(planish_pin_cpus(&cpu, 1), "pin");
    return cpu;
}

static void tell_backing(const planish_arena *arena)
{
    planish_achieved *achieved;
    planish_backing backing;
    must(planish_arena_achieved(arena, &achieved), "achieved");
    must(planish_achieved_backing(achieved, &backing), "backing");
    printf("mapped %zu bytes: %zu on base pages, %zu on transparent huge pages, %zu from pools\n",
           backing.mapped_bytes, backing.base_bytes, backing.thp_bytes, backing.hugetlb_bytes);
    for (size_t index = 0; planish_achieved_why_not(achieved, index) != NULL; index++)
        printf("  not as asked for: %s\n", planish_achieved_why_not(achieved, index));
    planish_achieved_free(achieved);
}

int main(void)
{
    uint32_t cpu, node;
    take_cpu();
    must(planish_numa_here(&cpu, &node), "here");
    printf("libplanish %s on CPU %u of node %u\n", planish_version(), (unsigned)cpu, (unsigned)node);

    /* Local memory, for the thread is pinned; 4 MB of it at once. */
    planish_arena_options options = {0};
    options.node_choice = PLANISH_NODES_LOCAL;
    options.capacity_bytes = 4 << 20;
    planish_arena *arena;
    planish_result made = planish_arena_new(&options, &arena);
    if (made == PLANISH_ERROR_PLACEMENT) {
        /* A container may forbid to choose nodes. */
        printf("anywhere: %s\n", planish_error_message());
        options.node_choice = PLANISH_NODES_INHERIT;
        made = planish_arena_new(&options, &arena);
    }
    must(made, "arena");

    /* A column that grows where it is: it may have a billion rows one day, and has memory for those that it has. */
    void *memory;
    const size_t rows = 100000;
    planish_growing *growing;
    must(planish_growing_new(&options, sizeof(double) * 1000000000, &growing), "growing");
    double *column = NULL;
    for (size_t row = 0; row < rows; row++) {
        if (row % 10000 == 0) {
            must(planish_growing_resize(growing, (row + 10000) * sizeof(double), &memory), "grow");
            if (column != NULL && memory != column)
                return 1;
            column = memory;
        }
        column[row] = (double)row;
    }

    /* Names that stay, and room for one query that comes back. */
    must(planish_arena_alloc(arena, 1000, 0, &memory), "names");
    strcpy(memory, "trades");
    must(planish_arena_lease(arena, 1 << 20, &memory), "lease");
    memset(memory, 1, 1 << 20);
    must(planish_arena_give_back(arena, memory), "give back");

    /* What one query finds, piece by piece: this thread's own memory, without a lock, and all of it gone at once. */
    planish_bump *bump;
    must(planish_bump_new(arena, 0, 0, &bump), "bump");
    for (int query = 0; query < 3; query++) {
        struct found {
            struct found *next;
            size_t row;
        } *found = NULL;
        for (size_t row = 0; row < 1000; row++) {
            must(planish_bump_alloc(bump, sizeof *found, 0, &memory), "found");
            struct found *one = memory;
            one->next = found;
            one->row = row;
            found = one;
        }
        size_t count = 0;
        for (; found != NULL; found = found->next)
            count += found->row < rows;
        if (count != 1000)
            return 1;
        must(planish_bump_clear(bump), "clear");
    }
    planish_bump_free(bump);

    /* What is wrong is told, and the program goes on. */
    if (planish_arena_give_back(arena, memory) == PLANISH_ERROR_INVALID)
        printf("twice is refused: %s\n", planish_error_message());

    tell_backing(arena);
    planish_isolation isolation;
    must(planish_isolation_check(arena, 50, &isolation), "isolation");
    printf("%.0f ticks and %.0f other interrupts in a second\n", isolation.ticks_per_s, isolation.irqs_per_s);
    for (uint32_t problem = 1; planish_problem_text(problem) != NULL; problem *= 2)
        if (isolation.problems & problem)
            printf("  %s\n", planish_problem_text(problem));

    double sum = 0;
    for (size_t row = 0; row < rows; row++)
        sum += column[row];
    planish_growing_free(growing);
    planish_arena_free(arena);
    must(planish_pin_clear(), "unpin");
    printf("sum %.0f\n", sum);
    return sum == 4999950000.0 ? 0 : 1;
}
