#include "tessera/comm/backend/cores.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tessera/base/cores.h"
#include "tessera/base/text.h"
#include "tessera/comm/local.h"

namespace tessera::backend {
namespace {

/// "a 0-3": host a, cores 0 to 3.
Seat seat(std::string_view words) {
  const std::size_t space = words.find(' '), dash = words.find('-');
  const auto number = [&](std::size_t at) { return static_cast<unsigned>(words[at] - '0'); };
  Seat out = {words.substr(0, space), {}};
  CPU_ZERO(&out.cores);
  for (unsigned core = number(space + 1); core <= number(dash + 1); ++core)
    CPU_SET(core, &out.cores);
  return out;
}

TEST(Cores, OfEachRank) {
  struct Case {
    const char* name;
    std::vector<const char*> ranks;
    int cores;
  };
  const Case cases[] = {
      {"one rank has all", {"a 0-7"}, 8},
      {"ranks of a host share its cores", {"a 0-7", "a 0-7"}, 4},
      {"ranks of another host take none of them", {"a 0-7", "a 0-7", "b 0-7", "b 0-7"}, 4},
      {"all as many as those of the most crowded host", {"a 0-7", "b 0-7", "b 0-7", "b 0-7"}, 2},
      {"all as many as those of the smaller host", {"a 0-7", "b 0-3"}, 4},
      {"bound to cores of their own", {"a 0-3", "a 4-7", "b 0-3", "b 4-7"}, 4},
      {"bound unevenly: the one with fewest counts", {"a 0-0", "a 1-7"}, 1},
      {"what is left over is nobody's", {"a 0-6", "a 0-6"}, 3},
      {"more ranks than cores, on one host", {"a 0-7", "b 0-0", "b 0-0"}, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<Seat> seats;
    for (const char* rank : c.ranks) seats.push_back(seat(rank));
    EXPECT_EQ(cores_per_rank(seats), c.cores);
  }
}

TEST(Cores, RanksOfThreadsShareThoseThatTheProcessMayUse) {
  std::thread([] {  // of this test alone
    for (const int n : {1, 2}) {
      run_ranks(n, [&](Communicator& world) {
        EXPECT_EQ(world.cores_per_rank(), num_usable_cores() / n);
        EXPECT_EQ(world.cores_of_host(), num_usable_cores());
      });
    }
    const int first = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(first), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    run_ranks(1, [](Communicator& world) { EXPECT_EQ(world.cores_per_rank(), 1); });
    run_ranks(2, [](Communicator& world) { EXPECT_EQ(world.cores_per_rank(), 0); });
  })
      .join();
}

}  // namespace
}  // namespace tessera::backend
