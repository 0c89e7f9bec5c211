/*
 * The code of a program on huge pages: one line of include, one call. The rest tells what came of it.
 *
 *     cc examples/hugify.c $(pkg-config --cflags --libs planish) -o hugify && ./hugify
 */
#include <planish.h>

#include <stdio.h>

int main(void)
{
    planish_hugified hugified = {0};
    planish_result result = planish_hugify_self(&hugified);
    printf("%zu of %zu bytes of text on huge pages, %zu before\n", hugified.huge_bytes, hugified.whole_bytes,
           hugified.before_bytes);
    if (result != PLANISH_OK)
        printf("%s\n  to cure it: %s\n", planish_error_message(), planish_error_cure());
    return 0;
}
