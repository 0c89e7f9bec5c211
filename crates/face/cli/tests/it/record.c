/* What tests of `planish text record` record: two functions whose work is as 3 : 1, and processes of every kind. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

#define HOT(name) \
    __attribute__((noinline)) void name(uint64_t rounds) { for (uint64_t i = 0; i < rounds; i++) sink += i; }
HOT(three)
HOT(one)
HOT(in_thread)
HOT(in_fork)
HOT(in_exec)

static double cpu_seconds(void) {
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

static void *thread(void *arg) {
    (void)arg;
    in_thread(60000000);
    return NULL;
}

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (strcmp(mode, "shares") == 0) {
        /* How long a turn takes is the CPU's to say, and its neighbours': what it was so far is written beside. */
        double of_three = 0, of_one = 0;
        FILE *measured = fopen("measured", "w");
        for (uint64_t i = 0; i < rounds; i += 10) {
            double start = cpu_seconds();
            three(3000000);
            double middle = cpu_seconds();
            one(1000000);
            of_three += middle - start;
            of_one += cpu_seconds() - middle;
            if (measured != NULL) {
                rewind(measured);
                fprintf(measured, "%20.9f %20.9f\n", of_three, of_one);
                fflush(measured);
            }
        }
        if (measured != NULL) fclose(measured);
        puts("the program's own words");
        return argc > 3 ? atoi(argv[3]) : 0;
    }
    if (strcmp(mode, "exec") == 0) {
        in_exec(60000000);
        return 0;
    }
    pthread_t worker;
    if (pthread_create(&worker, NULL, thread, NULL) != 0) return 1;
    pid_t forked = fork();
    if (forked == 0) {
        in_fork(60000000);
        _exit(0);
    }
    pid_t started = fork();
    if (started == 0) {
        execl(argv[0], argv[0], "exec", (char *)NULL);
        _exit(1);
    }
    pthread_join(worker, NULL);
    waitpid(forked, NULL, 0);
    waitpid(started, NULL, 0);
    return 0;
}
