// A table whose columns lie on an arena for each node, in C++: handles own, failures are exceptions.
//
//     c++ -std=c++17 examples/arena.cpp $(pkg-config --cflags --libs planish) -pthread -o arena && ./arena
#include <planish.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Failed : std::runtime_error {
    explicit Failed(planish_result returned)
        : std::runtime_error(std::string(planish_result_name(returned)) + ": " + planish_error_message() +
                             "; to cure it: " + planish_error_cure()),
          result(returned)
    {
    }
    planish_result result;
};

void must(planish_result result)
{
    if (result != PLANISH_OK)
        throw Failed(result);
}

struct Free {
    void operator()(planish_arena *arena) const { planish_arena_free(arena); }
    void operator()(planish_achieved *achieved) const { planish_achieved_free(achieved); }
    void operator()(planish_bump *bump) const { planish_bump_free(bump); }
};
using Arena = std::unique_ptr<planish_arena, Free>;
using Bump = std::unique_ptr<planish_bump, Free>;
using Achieved = std::unique_ptr<planish_achieved, Free>;

// For containers: memory goes back to the arena when the container lets go of it.
template <class T> struct Allocator {
    using value_type = T;
    planish_arena *arena;

    explicit Allocator(planish_arena *from) : arena(from) {}
    template <class U> Allocator(const Allocator<U> &other) : arena(other.arena) {}

    T *allocate(std::size_t count)
    {
        if (count > SIZE_MAX / sizeof(T))
            throw std::bad_array_new_length();
        void *memory = nullptr;
        if (planish_arena_lease(arena, count * sizeof(T), &memory) != PLANISH_OK)
            throw std::bad_alloc();
        return static_cast<T *>(memory);
    }
    void deallocate(T *memory, std::size_t) noexcept { planish_arena_give_back(arena, memory); }
    template <class U> bool operator==(const Allocator<U> &other) const { return arena == other.arena; }
    template <class U> bool operator!=(const Allocator<U> &other) const { return arena != other.arena; }
};

using Column = std::vector<std::int64_t, Allocator<std::int64_t>>;

std::vector<std::uint32_t> nodes()
{
    std::size_t count = 0;
    must(planish_numa_nodes(nullptr, 0, &count));
    std::vector<std::uint32_t> nodes(count);
    must(planish_numa_nodes(nodes.data(), nodes.size(), &count));
    nodes.resize(std::min(count, nodes.size()));
    return nodes;
}

// One on each node, in the order of nodes(). A container that forbids to choose nodes gets them all the same, and is
// told that they may lie anywhere.
std::vector<Arena> arenas_of(std::size_t nodes)
{
    planish_arena_options options{};
    options.capacity_bytes = 4 << 20;
    std::vector<planish_arena *> made(nodes);
    std::size_t count = 0;
    must(planish_arena_new_per_node(&options, made.data(), made.size(), &count));
    return std::vector<Arena>(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(count));
}

void tell(std::uint32_t node, const planish_arena *arena)
{
    planish_achieved *read = nullptr;
    must(planish_arena_achieved(arena, &read));
    Achieved achieved(read);
    planish_backing backing{};
    must(planish_achieved_backing(achieved.get(), &backing));
    std::printf("node %u: %zu bytes mapped, %s\n", static_cast<unsigned>(node), backing.mapped_bytes,
                backing.as_requested ? "as asked for" : "not as asked for");
    for (std::size_t index = 0; planish_achieved_why_not(achieved.get(), index) != nullptr; ++index)
        std::printf("  %s\n", planish_achieved_why_not(achieved.get(), index));
}

// A thread beside its memory: a column that it leases, and pieces that nobody else takes a lock for.
std::int64_t work(std::uint32_t node, planish_arena *arena)
{
    // A node may have memory and no CPU.
    planish_result pinned = planish_pin_node(node);
    if (pinned != PLANISH_OK && pinned != PLANISH_ERROR_OUTSIDE)
        throw Failed(pinned);
    Column column{Allocator<std::int64_t>(arena)};
    for (std::int64_t row = 0; row < 50000; ++row)
        column.push_back(row);

    planish_bump *made = nullptr;
    must(planish_bump_new(arena, 0, 0, &made));
    Bump bump(made);
    std::int64_t sum = 0;
    for (std::int64_t row : column) {
        void *memory = nullptr;
        must(planish_bump_alloc(bump.get(), sizeof(std::int64_t), alignof(std::int64_t), &memory));
        sum += *new (memory) std::int64_t(row);
    }
    return sum;
}

} // namespace

int main()
{
    try {
        const std::vector<std::uint32_t> all = nodes();
        const std::vector<Arena> arenas = arenas_of(all.size());
        const std::size_t count = 2 * arenas.size();
        // Two threads on each node.
        std::vector<std::int64_t> sums(count);
        std::vector<std::string> failed(count);
        std::vector<std::thread> threads;
        for (std::size_t index = 0; index < count; ++index)
            threads.emplace_back([&, index] {
                try {
                    sums[index] = work(all[index / 2], arenas[index / 2].get());
                } catch (const std::exception &error) {
                    failed[index] = error.what();
                }
            });
        for (std::thread &thread : threads)
            thread.join();
        for (const std::string &reason : failed)
            if (!reason.empty())
                throw std::runtime_error(reason);
        for (std::size_t index = 0; index < arenas.size(); ++index)
            tell(all[index], arenas[index].get());
        const std::int64_t sum = std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
        std::printf("sum %lld\n", static_cast<long long>(sum));
        return sum == 1249975000 * static_cast<std::int64_t>(count) ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
