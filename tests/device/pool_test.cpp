#include "tessera/device/cpu/pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tessera/base/error.h"

namespace tessera::cpu {
namespace {

TEST(Pool, CallsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    Pool pool(threads, -1);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 3, 7, 64}) {
      std::vector<int> hits(64, 0);
      pool.run(count, [&](int i) { ++hits[static_cast<std::size_t>(i)]; });
      for (int i = 0; i < 64; ++i)
        EXPECT_EQ(hits[static_cast<std::size_t>(i)], i < count) << threads << " " << i;
    }
  }
}

TEST(Pool, SplitCoversTheRangeInMultiplesOfTheGrain) {
  for (const int threads : {1, 2, 3, 4}) {
    Pool pool(threads, -1);
    for (const std::int64_t n : {0, 1, 15, 16, 17, 100, 1024}) {
      std::vector<int> hits(static_cast<std::size_t>(n), 0);
      std::atomic<int> ranges{0};
      pool.split(n, 16, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_EQ(begin % 16, 0);
        EXPECT_TRUE(end % 16 == 0 || end == n);
        ++ranges;
        for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      EXPECT_LE(ranges, threads);
      for (const int hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(Pool, ManySmallJobsSeeEachOthersWrites) {
  Pool pool(3, -1);
  std::vector<std::int64_t> sums(3, 0);
  for (int job = 0; job < 2000; ++job) {
    // Each task reads what its neighbour wrote in the job before: a race here is a race in every
    // kernel.
    std::vector<std::int64_t> next(3, 0);
    pool.run(3, [&](int i) {
      next[static_cast<std::size_t>(i)] = sums[static_cast<std::size_t>((i + 1) % 3)] + 1;
    });
    sums = next;
  }
  EXPECT_EQ(sums, (std::vector<std::int64_t>{2000, 2000, 2000}));
}

TEST(Pool, TheFirstExceptionComesBackAndThePoolLivesOn) {
  Pool pool(2, -1);
  for (const int guilty : {0, 1}) {
    std::atomic<int> ran{0};
    const auto task = [&](int i) {
      ++ran;
      if (i == guilty) throw std::runtime_error("slice failed");
    };
    EXPECT_THROW(pool.run(2, task), std::runtime_error);
    EXPECT_EQ(ran, 2);
    pool.run(2, [&](int) { ++ran; });
    EXPECT_EQ(ran, 4);
  }
}

TEST(Pool, SleepersWakeUp) {
  Pool pool(2, -1);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than helpers stay awake
    std::atomic<int> ran{0};
    pool.run(2, [&](int) { ++ran; });
    EXPECT_EQ(ran, 2);
  }
}

TEST(Pool, AnIdlePoolBurnsNoCore) {
  Pool pool(4, -1);
  pool.run(4, [](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto cpu_seconds = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(cpu_seconds() - before, 0.02);  // three spinning helpers would burn 0.05 or more
}

TEST(Pool, SeveralPoolsWorkAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      Pool pool(2, -1);
      for (int job = 0; job < 200; ++job) pool.run(2, [&](int) { ++total; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 200 * 2);
}

TEST(Pool, PinsToCores) {
  std::thread([] {  // a thread of its own: the caller stays pinned
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    unsigned first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    Pool pool(1, 0);
    int core = -1;
    pool.run(1, [&](int) { core = sched_getcpu(); });
    EXPECT_EQ(core, static_cast<int>(first));
  })
      .join();
  EXPECT_THROW(Pool(2, 100'000), Error);
  EXPECT_THROW(Pool(0, -1), Error);
}

TEST(Pool, CoresAreCountedAmongThoseThatTheProcessMayUse) {
  std::thread([] {
    cpu_set_t allowed, last;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "needs 2 cores";
    unsigned core = CPU_SETSIZE - 1;
    while (!CPU_ISSET(core, &allowed)) --core;
    CPU_ZERO(&last);
    CPU_SET(core, &last);
    ASSERT_EQ(sched_setaffinity(0, sizeof(last), &last), 0);  // as taskset or a container do
    Pool pool(1, 0);
    int ran_on = -1;
    pool.run(1, [&](int) { ran_on = sched_getcpu(); });
    EXPECT_EQ(ran_on, static_cast<int>(core));
    EXPECT_THROW(Pool(1, 1), Error);
    EXPECT_THROW(Pool(2, 0), Error);
  }).join();
}

}  // namespace
}  // namespace tessera::cpu
