/// Calls allocate nothing of ours once each has been made: MPI's own memory does not come from
/// operator new.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "comm/backend.h"
#include "tessera/comm/local.h"

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

/// What start and wait allocate in two rounds, on the rank where that is most: of the first two
/// after ten, or of later ones if a rank ran further ahead in them than ever before. Zero ends it.
long allocated(Communicator& world) {
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
  std::vector<float> in(floats), received(floats), ahead(4 * floats);
  const Group back{"back", {world.group().ranks.rbegin(), world.group().ranks.rend()}};
  const auto channel = world.join(back);  // in which messages go the other way round
  const auto to = Collective::send(DType::F32, large, (n - world.rank()) % n, "gradients");
  const auto from =
      Collective::recv(DType::F32, large, (2 * n - 2 - world.rank()) % n, "gradients");
  std::array<Ticket, 4> given, taken;
  std::vector<std::vector<float>> outs(calls.size(), std::vector<float>(floats));
  std::vector<Ticket> under_way(calls.size());
  const auto most = Collective::all_reduce(DType::I64, {1}, Monoid::Max, "allocated");
  constexpr int kWarmUp = 10, kMost = 40;
  std::int64_t count = 1;
  long before = 0;
  for (int round = 0; round < kMost && count > 0; ++round) {
    if (round % 2 == 0) before = allocations;
    world.set_step(round);
    Ticket sent = world.start(send, in.data(), nullptr);
    Ticket coming = world.start(recv, nullptr, received.data());
    for (std::size_t i = 0; i < taken.size(); ++i)
      taken[i] = channel->start(from, nullptr, ahead.data() + i * floats);
    for (Ticket& ticket : given) ticket = channel->start(to, in.data(), nullptr);
    for (int i = 0; i < 10; ++i) world.alive();
    for (std::size_t i = 0; i < calls.size(); ++i) world.run(calls[i], in.data(), outs[i].data());
    for (std::size_t i = 0; i < calls.size(); ++i)
      under_way[i] = world.start(calls[i], in.data(), outs[i].data());
    for (std::size_t i = calls.size(); i > 0; --i) world.wait(under_way[i - 1]);
    for (Ticket& ticket : taken) channel->wait(ticket);
    for (Ticket& ticket : given) channel->wait(ticket);
    world.wait(coming);
    world.wait(sent);
    if (round % 2 == 0) continue;
    count = round < kWarmUp ? 1 : allocations - before;
    world.run(most, &count, &count);
  }
  return static_cast<long>(count);
}

TEST(Allocation, CallsAllocateNothingOnceTheyHaveBeenMade) {
  if (worlds().back() < 2) GTEST_SKIP() << "needs 2 ranks";
  run_world(worlds().back(), [](Communicator& world) { EXPECT_EQ(allocated(world), 0); });
}

TEST(Allocation, CallsOfThreadsAllocateNothing) {
  run_ranks(2, [](Communicator& world) {
    const long count = allocated(world);
    // A short name, which allocates nothing while the other still counts.
    world.run(Collective::barrier("end"), nullptr, nullptr);
    EXPECT_EQ(count, 0);
  });
}

}  // namespace
}  // namespace tessera
