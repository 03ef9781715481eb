/// The time of an all-reduce of f32 among threads, beside the bandwidth of a += b.
///
/// Each rank is pinned to a core (round robin, where ranks outnumber cores) and has a buffer of its
/// own on huge pages, as arenas are, reduced in place. One figure is the mean of a batch of calls,
/// the whole batch timed between two barriers; the median of 15 batches is shown, then the best,
/// which says what a busy machine could do. GB/s are bytes per rank over the best time.
///
/// Run:    build/comm_local [--ranks N]
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/comm/local.h"

namespace {

using namespace tessera;
using Clock = std::chrono::steady_clock;

constexpr int kBatches = 15;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Times {
  double median, best;
};
Times summary(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return {x[x.size() / 2], x[0]};
}

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<float, Free>;

/// Zeros, touched by the caller.
Buffer huge_buffer(std::int64_t bytes) {
  constexpr std::size_t kPage = 2 << 20;
  const std::size_t size = (static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage;
  Buffer out(static_cast<float*>(std::aligned_alloc(kPage, size)));
  if (!out) throw std::bad_alloc();
  madvise(out.get(), size, MADV_HUGEPAGE);  // where the system has them
  std::memset(out.get(), 0, size);
  return out;
}

void pin(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(rank) % std::thread::hardware_concurrency(), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

/// Seconds of one call; `bytes` of each rank.
Times all_reduce_seconds(int ranks, std::int64_t bytes) {
  std::vector<double> batches;
  run_ranks(ranks, [&](Communicator& world) {
    pin(world.rank());
    const Buffer x = huge_buffer(bytes);
    const Collective sum = Collective::all_reduce(DType::F32, {bytes / 4}, Monoid::Sum, "x");
    const Collective barrier = Collective::barrier("b");
    const std::int64_t calls = std::clamp<std::int64_t>((128 << 20) / bytes / ranks, 1, 500);
    for (int batch = -1; batch < kBatches; ++batch) {
      world.run(barrier, nullptr, nullptr);
      const auto start = Clock::now();
      for (std::int64_t i = 0; i < calls; ++i) world.run(sum, x.get(), x.get());
      world.run(barrier, nullptr, nullptr);
      if (world.rank() == 0 && batch >= 0)
        batches.push_back(seconds_since(start) / static_cast<double>(calls));
    }
  });
  return summary(std::move(batches));
}

/// GB/s (two reads, one write) of a += b by `ranks` threads, each on arrays of its own.
double add_bandwidth(int ranks, std::int64_t bytes) {
  std::vector<double> times;
  run_ranks(ranks, [&](Communicator& world) {
    pin(world.rank());
    const Buffer a = huge_buffer(bytes), b = huge_buffer(bytes);
    for (int batch = -1; batch < kBatches; ++batch) {
      world.run(Collective::barrier("b"), nullptr, nullptr);
      const auto start = Clock::now();
      float* __restrict to = a.get();
      const float* __restrict from = b.get();
      for (std::int64_t i = 0; i < bytes / 64 * 16; i += 16) {
        for (std::int64_t k = 0; k < 16; ++k) to[i + k] += from[i + k];
      }
      world.run(Collective::barrier("b"), nullptr, nullptr);
      if (world.rank() == 0 && batch >= 0) times.push_back(seconds_since(start));
    }
  });
  return 3.0 * ranks * static_cast<double>(bytes) / summary(std::move(times)).best / 1e9;
}

void print_table(const std::vector<int>& ranks) {
  std::printf("a += b of 64 MiB, best: %.1f GB/s by 1 thread, %.1f by 2\n",
              add_bandwidth(1, 64 << 20), add_bandwidth(2, 64 << 20));
  std::printf("all_reduce: median us, best us (GB/s)\n%10s", "bytes");
  for (const int n : ranks) std::printf(" %20d ranks", n);
  std::printf("\n");
  for (std::int64_t bytes = 64; bytes <= 64 << 20; bytes *= 4) {
    std::printf("%10lld", static_cast<long long>(bytes));
    for (const int n : ranks) {
      const Times t = all_reduce_seconds(n, bytes);
      std::printf(" %9.2f %8.2f (%5.1f)", t.median * 1e6, t.best * 1e6,
                  static_cast<double>(bytes) / t.best / 1e9);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<int> ranks = {2, 4, 8};
    if (argc == 3 && std::string(argv[1]) == "--ranks") ranks = {std::atoi(argv[2])};
    print_table(ranks);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "comm_local: %s\n", error.what());
    return 1;
  }
}
