// The code of a program on huge pages, in C++: it does not matter whether there are any, and the program says so.
//
//     c++ -std=c++17 examples/hugify.cpp $(pkg-config --cflags --libs planish) -o hugify && ./hugify
#include <planish.h>

#include <cstdio>

int main()
{
    planish_hugified hugified{};
    const bool is_huge = planish_hugify_self(&hugified) == PLANISH_OK;
    std::printf("%zu of %zu bytes of text on huge pages%s\n", hugified.huge_bytes, hugified.whole_bytes,
                is_huge ? "" : ", which is all that can be had");
}
