/// The time of an all-reduce of f32 among processes: ours, which adds in rank order, beside the
/// bare MPI_Allreduce of the library, in turns.
///
/// Each rank has a buffer of its own on huge pages, reduced in place. One figure is the mean of a
/// batch of calls, the whole batch timed between two barriers; the median of 15 batches is shown,
/// then the best. GB/s are bytes per rank over the median.
///
/// Run:    mpirun -n 2 --bind-to core build/comm_mpi [LARGEST]
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "tessera/comm/processes.h"

namespace {

using namespace tessera;
using Clock = std::chrono::steady_clock;

constexpr int kBatches = 15;

struct Free {
  void operator()(float* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<float, Free>;

Buffer huge_buffer(std::int64_t bytes) {
  constexpr std::size_t kPage = 2 << 20;
  const std::size_t size = (static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage;
  Buffer out(static_cast<float*>(std::aligned_alloc(kPage, size)));
  if (!out) throw std::bad_alloc();
  madvise(out.get(), size, MADV_HUGEPAGE);  // where the system has them
  std::memset(out.get(), 0, size);
  return out;
}

/// Seconds of one call, the mean of a batch.
template <typename Call>
double batch_seconds(Communicator& world, std::int64_t calls, const Call& call) {
  const Collective barrier = Collective::barrier("b");
  world.run(barrier, nullptr, nullptr);
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  world.run(barrier, nullptr, nullptr);
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(calls);
}

void print_table(Communicator& world, std::int64_t largest) {
  const bool prints = world.rank() == 0;
  if (prints) {
    std::printf("all_reduce among %d processes: median us, best us (GB/s)\n", world.size());
    std::printf("%10s %32s %32s %9s\n", "bytes", "ours, in rank order", "MPI_Allreduce",
                "ours/MPI");
  }
  for (std::int64_t bytes = 64; bytes <= largest; bytes *= 4) {
    const Buffer x = huge_buffer(bytes);
    const Collective sum = Collective::all_reduce(DType::F32, {bytes / 4}, Monoid::Sum, "x");
    const std::int64_t calls = std::clamp<std::int64_t>((64 << 20) / bytes / world.size(), 1, 500);
    std::vector<double> ours, theirs;
    for (int batch = -1; batch < kBatches; ++batch) {
      const double a = batch_seconds(world, calls, [&] { world.run(sum, x.get(), x.get()); });
      const double b = batch_seconds(world, calls, [&] {
        MPI_Allreduce(MPI_IN_PLACE, x.get(), static_cast<int>(bytes / 4), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      });
      if (batch >= 0) ours.push_back(a), theirs.push_back(b);
    }
    if (!prints) continue;
    std::printf("%10lld", static_cast<long long>(bytes));
    for (std::vector<double>* times : {&ours, &theirs}) {
      std::sort(times->begin(), times->end());
      const double median = (*times)[kBatches / 2];
      std::printf(" %11.2f %11.2f (%6.2f)", median * 1e6, times->front() * 1e6,
                  static_cast<double>(bytes) / median / 1e9);
    }
    std::printf(" %9.2f\n", ours[kBatches / 2] / theirs[kBatches / 2]);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::int64_t largest = argc > 1 ? std::atoll(argv[1]) : 64 << 20;
    Launched launched;
    launched.how = Launched::Mpi;
    run_launched(launched, [&](Communicator& world) { print_table(world, largest); });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "comm_mpi: %s\n", error.what());
    return 1;
  }
}
