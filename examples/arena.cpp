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
    explicit Failed(planish_result result)
        : std::runtime_error(std::string(planish_result_name(result)) + ": " + planish_error_message() +
                             "; to cure it: " + planish_error_cure()),
          result(result)
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
};
using Arena = std::unique_ptr<planish_arena, Free>;
using Achieved = std::unique_ptr<planish_achieved, Free>;

// For containers: memory goes back to the arena when the container lets go of it.
template <class T> struct Allocator {
    using value_type = T;
    planish_arena *arena;

    explicit Allocator(planish_arena *arena) : arena(arena) {}
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

Arena arena_on(std::uint32_t node)
{
    planish_arena_options options{};
    options.node_choice = PLANISH_NODES_BIND;
    options.nodes = &node;
    options.nodes_count = 1;
    planish_arena *arena = nullptr;
    planish_result result = planish_arena_new(&options, &arena);
    must(result);
    // The first chunk is made here, where a refusal is still a choice.
    Arena owned(arena);
    result = planish_arena_reserve(arena, 4 << 20);
    if (result == PLANISH_ERROR_PLACEMENT) {
        std::printf("anywhere: %s\n", planish_error_message());
        must(planish_arena_new(nullptr, &arena));
        return Arena(arena);
    }
    must(result);
    return owned;
}

std::int64_t work(std::uint32_t node)
{
    // A node may have memory and no CPU.
    planish_result pinned = planish_pin_node(node);
    if (pinned != PLANISH_OK && pinned != PLANISH_ERROR_OUTSIDE)
        throw Failed(pinned);
    Arena arena = arena_on(node);
    Column column(Allocator<std::int64_t>(arena.get()));
    for (std::int64_t row = 0; row < 50000; ++row)
        column.push_back(row);

    planish_achieved *read = nullptr;
    must(planish_arena_achieved(arena.get(), &read));
    Achieved achieved(read);
    planish_backing backing{};
    must(planish_achieved_backing(achieved.get(), &backing));
    std::printf("node %u: %zu bytes mapped, %s\n", static_cast<unsigned>(node), backing.mapped_bytes,
                backing.as_requested ? "as asked for" : "not as asked for");
    return std::accumulate(column.begin(), column.end(), std::int64_t{0});
}

} // namespace

int main()
{
    try {
        std::int64_t sum = 0;
        std::string failed;
        const std::vector<std::uint32_t> all = nodes();
        for (std::uint32_t node : all) {
            std::thread thread([&] {
                try {
                    sum += work(node);
                } catch (const std::exception &error) {
                    failed = error.what();
                }
            });
            thread.join();
        }
        if (!failed.empty())
            throw std::runtime_error(failed);
        std::printf("sum %lld\n", static_cast<long long>(sum));
        return sum == 1249975000 * static_cast<std::int64_t>(all.size()) ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
