#include "tessera/comm/process/hosts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tessera::process {
namespace {

Process process(int machine, const char* host_name, ino_t pid_space, unsigned first_core) {
  Process out;
  out.machine = machine, out.pid = 100 + machine, out.pid_space = pid_space;
  std::strncpy(out.host_name.data(), host_name, out.host_name.size() - 1);
  CPU_ZERO(&out.cores);
  CPU_SET(first_core, &out.cores), CPU_SET(first_core + 1, &out.cores);
  return out;
}

TEST(Hosts, WhoseDeathsCanBeWatched) {
  struct Case {
    const char* name;
    Process other;
    bool watched;
  };
  Process mine = process(0, "alpha", 7, 0);
  mine.pid = 99;
  const Case cases[] = {
      {"another rank of this process, a thread", mine, false},
      {"a neighbour", process(0, "alpha", 7, 2), true},
      {"a neighbour whose host name was changed", process(0, "beta", 7, 2), true},
      {"another machine of the same name: its pid is another process here",
       process(1, "alpha", 7, 0), false},
      {"a container of this machine", process(0, "alpha", 8, 2), false},
      {"the system does not say which pid namespace", process(0, "alpha", 0, 2), false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<Process> all = {mine, c.other};
    const std::vector<Watch::Pid> watched = watchable(all, 0);
    ASSERT_EQ(watched.size(), c.watched ? 1u : 0u);
    if (c.watched) {
      EXPECT_EQ(watched[0].pid, c.other.pid);
    }
  }
}

TEST(Hosts, CoresAreSharedByTheRanksOfAMachineWhateverItsName) {
  const std::vector<Process> one = {process(0, "alpha", 7, 0), process(0, "beta", 7, 0)};
  EXPECT_EQ(cores_per_rank(one), 1);
  EXPECT_EQ(neighbours(one, 0).ranks, 2);
  EXPECT_EQ(neighbours(one, 0).cores, 2);
  const std::vector<Process> two = {process(0, "alpha", 7, 0), process(1, "alpha", 7, 0)};
  EXPECT_EQ(cores_per_rank(two), 2);
  EXPECT_EQ(neighbours(two, 1).ranks, 1);
}

/// A process that ends has its connections closed, or reset; where nothing comes any more, nobody
/// knows whether it has ended.
TEST(Hosts, HowARankWasLost) {
  for (const int closed : {0, ECONNRESET, EPIPE})
    EXPECT_EQ(loss_text("rank 3", closed), "rank 3 has died");
  EXPECT_EQ(
      loss_text("rank 3 (process 7 of beta)", ETIMEDOUT),
      "the connection to rank 3 (process 7 of beta) broke (Connection timed out): its host or "
      "the network has failed");
}

TEST(Hosts, AProcessKnowsItsNamespace) {
  const Process mine = this_process(3);
  EXPECT_EQ(mine.machine, 3);
  EXPECT_EQ(mine.pid, getpid());
  EXPECT_NE(mine.pid_space, 0u);
}

}  // namespace
}  // namespace tessera::process
