/// Calls allocate nothing of ours once each has been made: MPI's own memory does not come from
/// operator new.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "comm/backend.h"

namespace {
std::atomic<long> allocations = 0;
}

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* out = std::malloc(bytes)) return out;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tessera {
namespace {

TEST(Allocation, CallsAllocateNothingOnceTheyHaveBeenMade) {
  if (worlds().back() < 2) GTEST_SKIP() << "needs 2 ranks";
  run_world(worlds().back(), [](Communicator& world) {
    const int n = world.size(), next = (world.rank() + 1) % n, last = (world.rank() + n - 1) % n;
    const Shape large = {301, 1001};
    std::vector<Collective> calls = {Collective::barrier("b")};
    for (const Shape& shape : {Shape{7, 5}, large}) {
      calls.push_back(Collective::all_reduce(DType::F32, shape, Monoid::Sum, "gradients"));
      calls.push_back(Collective::broadcast(DType::F32, shape, n - 1, "weights"));
      for (const int dim : {0, 1}) {
        calls.push_back(Collective::all_gather(DType::F32, shape, dim, "x"));
        calls.push_back(Collective::reduce_scatter(DType::F32, shape, dim, Monoid::Max, "x"));
        calls.push_back(Collective::all_to_all(DType::F32, shape, dim, 1 - dim, "x"));
      }
    }
    const auto send = Collective::send(DType::F32, large, next, "to the next stage");
    const auto recv = Collective::recv(DType::F32, large, last, "from the last stage");
    const auto floats = static_cast<std::size_t>((large[0] + n) * (large[1] + n));
    std::vector<float> in(floats), out(floats), received(floats);
    long before = 0;
    for (int round = 0; round < 12; ++round) {
      if (round == 10) before = allocations;  // every place of a send in flight has been used
      world.set_step(round);
      Ticket sent = world.start(send, in.data(), nullptr);
      Ticket coming = world.start(recv, nullptr, received.data());
      for (const Collective& c : calls) world.run(c, in.data(), out.data());
      world.wait(coming);
      world.wait(sent);
    }
    EXPECT_EQ(allocations - before, 0);
  });
}

}  // namespace
}  // namespace tessera
