/* A program with a shared segment and a heap, for the guests: `place KIND MIB`.
 *
 * It knows nothing of planish. No header is included, because the same source is compiled for two libcs.
 * It fills its heap, maps and fills a segment, prints what the kernel says of both, and stays until it is ended. */

typedef unsigned long size_t;

void *mmap(void *, size_t, int, int, int, long);
void *malloc(size_t);
void *memset(void *, int, size_t);
void *shmat(int, const void *, int);
int munmap(void *, size_t);
int shmget(int, size_t, int);
int shmctl(int, int, void *);
int memfd_create(const char *, unsigned);
int ftruncate(int, long);
int posix_fallocate(int, long, long);
int open(const char *, int, ...);
long read(int, void *, size_t);
long pwrite(int, const void *, size_t, long);
int pipe(int *);
long splice(int, long *, int, long *, size_t, unsigned);
int printf(const char *, ...);
int atoi(const char *);
int strcmp(const char *, const char *);
int mlockall(int);
int fflush(void *);
unsigned sleep(unsigned);

enum { READ_WRITE = 3, SHARED = 1, PRIVATE = 2, FIXED = 0x10, ANONYMOUS = 0x20, CREATE = 01000, REMOVE = 0, KEY = 4711 };
enum { NOREPLACE = 0x100000, ODD = 3 << 20, EVEN = 4 << 20 };
enum { HEAP = 16 << 20, SMALL = 4096, SMALL_COUNT = 1024 };
/* Fewer than a pipe holds, each of them one that is wanted on the other node. */
enum { PIN_COUNT = 12, PIN_STEP = 4 << 20, PIN_FIRST = 4096 };

/* Pages of a file that nobody can copy elsewhere while the pipe holds them, as those of a device's input are. */
static int pin(int file)
{
    int ends[2], i;
    long at;

    if (pipe(ends))
        return 0;
    for (i = 0; i < PIN_COUNT; i++) {
        at = (long)i * PIN_STEP + PIN_FIRST;
        /* Of a page that nobody has written yet a pipe gets zeros, and not the page. */
        if (pwrite(file, "", 1, at) != 1 || splice(file, &at, ends[1], 0, 4096, 0) != 4096)
            return 0;
    }
    return 1;
}

/* Mappings that do not end on a huge page go whole; what was put in the place of one goes alone. */
static int replace(void)
{
    char *first = mmap(0, ODD, READ_WRITE, SHARED | ANONYMOUS, -1, 0), *second;

    if (munmap(first, ODD) || mmap(first, EVEN, READ_WRITE, PRIVATE | ANONYMOUS | NOREPLACE, -1, 0) != first)
        return 0;
    second = mmap(0, ODD, READ_WRITE, SHARED | ANONYMOUS, -1, 0);
    if (mmap(second, EVEN, READ_WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0) != second || munmap(second, ODD))
        return 0;
    second[ODD] = 1;
    return 1;
}

static void *segment(const char *kind, size_t bytes)
{
    int file, id;
    void *at;

    /* MCL_FUTURE: the kernel fills what is mapped from here on. */
    if (!strcmp(kind, "locked") && mlockall(2))
        return (void *)-1;
    if (!strcmp(kind, "replaced") && !replace())
        return (void *)-1;
    if (!strcmp(kind, "anonymous") || !strcmp(kind, "locked") || !strcmp(kind, "replaced"))
        return mmap(0, bytes, READ_WRITE, SHARED | ANONYMOUS, -1, 0);
    if (!strcmp(kind, "sysv")) {
        id = shmget(0, bytes, CREATE | 0600);
        at = shmat(id, 0, 0);
        shmctl(id, REMOVE, 0);
        return at;
    }
    /* One that outlives its program, until the last start of it. */
    if (!strcmp(kind, "kept") || !strcmp(kind, "last")) {
        id = shmget(KEY, bytes, CREATE | 0600);
        at = shmat(id, 0, 0);
        if (!strcmp(kind, "last"))
            shmctl(id, REMOVE, 0);
        return at;
    }
    file = memfd_create("segment", 0);
    if (!strcmp(kind, "allocated") || !strcmp(kind, "pinned"))
        posix_fallocate(file, 0, (long)bytes);
    else
        ftruncate(file, (long)bytes);
    if (!strcmp(kind, "pinned") && !pin(file))
        return (void *)-1;
    return mmap(0, bytes, READ_WRITE, SHARED, file, 0);
}

int main(int count, char **words)
{
    static char text[1 << 16];
    long length, part;
    int file, i;
    size_t bytes;
    void *at;

    if (count != 3)
        return 2;
    memset(malloc(HEAP), 1, HEAP);
    for (i = 0; i < SMALL_COUNT; i++)
        memset(malloc(SMALL), 1, SMALL);
    bytes = (size_t)atoi(words[2]) << 20;
    at = segment(words[1], bytes);
    if (at == (void *)-1)
        return 3;
    memset(at, 1, bytes);
    file = open("/proc/self/numa_maps", 0);
    for (length = 0; (part = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += part;
    printf("segment %lx\n%send\n", (unsigned long)at, text);
    fflush(0);
    sleep(600);
    return 9;
}
