/// Worlds of threads, for the tests of every backend, and what only threads can show.

#include "tessera/comm/local.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "comm/backend.h"

namespace tessera {

const std::vector<int>& worlds() {
  static const std::vector<int> sizes = {1, 2, 3, 4, 8};
  return sizes;
}
bool has_world(int) { return true; }
void run_world(int n, const std::function<void(Communicator&)>& body) { run_ranks(n, body); }

namespace {

TEST(Local, ABarrierHoldsEveryRank) {
  std::atomic<int> arrived{0};
  run_ranks(4, [&](Communicator& world) {
    for (int round = 1; round <= 200; ++round) {
      ++arrived;
      world.run(Collective::barrier("b"), nullptr, nullptr);
      EXPECT_GE(arrived.load(), 4 * round);
      world.run(Collective::barrier("b"), nullptr, nullptr);
    }
  });
}

}  // namespace
}  // namespace tessera
