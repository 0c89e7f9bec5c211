/* A program with 7 MiB of code, for the guests: what lies on huge pages of its text once every page of it has run.
 *
 * It says so, and waits until it is ended. No header is included, as in the other programs. */

int puts(const char *);
int fflush(void *);
int pause(void);
void big(void);

/* One jump on each page: more would only be more to emulate. */
__asm__(".text\n.globl big\n.type big, @function\n.p2align 12\nbig:\n"
        ".rept 1792\n jmp 1f\n .p2align 12, 0x90\n1:\n.endr\n ret\n");

int main(void)
{
    big();
    puts("ready");
    fflush(0);
    return pause();
}
