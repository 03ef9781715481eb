/// The memory planner: no two living buffers overlap, and layouts are near the bound.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/plan/memory.h"

namespace tessera {
namespace {

void expect_sound(const std::vector<Lifetime>& buffers, const MemoryLayout& layout) {
  ASSERT_EQ(layout.offsets.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_LE(layout.offsets[i] + buffers[i].bytes, layout.bytes);
    EXPECT_EQ(layout.offsets[i] % 64, 0);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                         layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
      EXPECT_TRUE(!together || apart) << "buffers " << i << " and " << j;
    }
  }
  EXPECT_GE(layout.bytes, layout.lower_bound);
}

TEST(Memory, NothingNeedsNothing) {
  const MemoryLayout layout = plan_memory({}, 64);
  EXPECT_EQ(layout.bytes, 0);
  EXPECT_EQ(layout.lower_bound, 0);
}

TEST(Memory, LifetimesIncludeTheirEnds) {
  // The second is born when the first is last read: they must not share.
  const std::vector<Lifetime> buffers = {{64, 0, 1}, {64, 1, 2}, {64, 2, 3}};
  const MemoryLayout layout = plan_memory(buffers, 64);
  expect_sound(buffers, layout);
  EXPECT_EQ(layout.lower_bound, 128);
  EXPECT_EQ(layout.bytes, 128);
}

TEST(Memory, AStepOfManyLayersReachesTheBound) {
  // Forward saves one value per layer, backward frees it; temporaries of another size come and go.
  std::vector<Lifetime> buffers;
  constexpr int kLayers = 40;
  for (int i = 0; i < kLayers; ++i) {
    buffers.push_back({4096, 4 * i, 8 * kLayers - 4 * i});
    buffers.push_back({16384, 4 * i + 1, 4 * i + 3});
    buffers.push_back({8192, 8 * kLayers - 4 * i - 3, 8 * kLayers - 4 * i - 1});
  }
  const MemoryLayout layout = plan_memory(buffers, 64);
  expect_sound(buffers, layout);
  EXPECT_LE(static_cast<double>(layout.bytes), 1.005 * static_cast<double>(layout.lower_bound));
}

/// A greedy layout leaves gaps here, whatever its order; every buffer is in a layout without any.
TEST(Memory, TheExactSearchGoesOnFromGreedyLayouts) {
  std::vector<Lifetime> buffers;
  std::mt19937 random(11);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const std::function<void(int, int, int, int)> cut = [&](int first, int end, int units,
                                                          int depth) {
    const bool in_time = draw(0, 1) == 0;
    if (depth == 0 || (in_time ? end - first : units) < 2) {
      buffers.push_back({64 * units, first, end - 1});
    } else if (in_time) {
      const int at = draw(first + 1, end - 1);
      cut(first, at, units, depth - 1), cut(at, end, units, depth - 1);
    } else {
      const int at = draw(1, units - 1);
      cut(first, end, at, depth - 1), cut(first, end, units - at, depth - 1);
    }
  };
  cut(0, 1000, 5000, 6);
  const MemoryLayout layout = plan_memory(buffers, 64);
  expect_sound(buffers, layout);
  EXPECT_EQ(layout.lower_bound, 64 * 5000);
  EXPECT_EQ(layout.bytes, layout.lower_bound);
  EXPECT_EQ(plan_memory(buffers, 64).offsets, layout.offsets);
}

TEST(Memory, IdleBuffersBelowTheArenaAreUsed) {
  // Two copies of 128 bytes are read until time 3 and 5 and written again at time 9. A gradient as
  // large as both is there meanwhile, and one that is there for too long.
  const std::vector<KeptBuffer> kept = {{-128, 128, TimeSpan{4, 8}}, {-256, 128, TimeSpan{6, 8}}};
  const MemoryLayout layout = plan_memory(std::vector<Lifetime>{{256, 6, 8}, {64, 6, 9}}, 64, kept);
  EXPECT_EQ(layout.offsets, (std::vector<std::int64_t>{-256, 0}));
  EXPECT_EQ(layout.bytes, 64);
  EXPECT_EQ(layout.lower_bound, 64);
  const MemoryLayout early = plan_memory(std::vector<Lifetime>{{256, 5, 8}}, 64, kept);
  EXPECT_EQ(early.offsets[0], -128);  // beyond the arena's begin
  EXPECT_EQ(early.bytes, 128);
  EXPECT_EQ(early.lower_bound, 128);
}

TEST(Memory, BuffersLieSideBySideInWhatIsIdle) {
  const std::vector<KeptBuffer> kept = {{-256, 256, TimeSpan{4, 8}}};
  const std::vector<Lifetime> buffers = {{512, 0, 9}, {64, 5, 8}, {64, 5, 8}, {64, 5, 8}};
  const MemoryLayout layout = plan_memory(buffers, 64, kept);
  EXPECT_EQ(layout.lower_bound, 512);
  EXPECT_EQ(layout.bytes, 512);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_LT(layout.offsets[i], 0);
}

TEST(Memory, RandomBuffersBesideKeptOnesNeverOverlap) {
  std::mt19937 random(7);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<KeptBuffer> kept;
    std::vector<Lifetime> all;  // those to place, then the kept ones while they are needed
    for (int i = draw(1, 60); i > 0; --i) {
      const std::int32_t first = draw(0, 100);
      all.push_back({draw(0, 5000), first, first + draw(0, 30)});
    }
    const std::vector<Lifetime> buffers = all;
    std::vector<std::int64_t> offsets;
    std::int64_t bottom = 0;
    for (int i = draw(1, 12); i > 0; --i) {
      const std::int64_t bytes = 64 * draw(1, 60);
      bottom -= bytes;
      const std::int32_t first = draw(0, 100), last = first + draw(0, 60);
      kept.push_back({bottom, bytes, std::nullopt});
      if (draw(0, 3) == 0) {
        all.push_back({bytes, 0, 1000}), offsets.push_back(bottom);
        continue;
      }
      kept.back().idle = TimeSpan{first, last};
      if (first > 0) all.push_back({bytes, 0, first - 1}), offsets.push_back(bottom);
      all.push_back({bytes, last + 1, 1000}), offsets.push_back(bottom);
    }
    MemoryLayout layout = plan_memory(buffers, 64, kept);
    for (const std::int64_t offset : layout.offsets) EXPECT_GE(offset, bottom);
    layout.offsets.insert(layout.offsets.end(), offsets.begin(), offsets.end());
    expect_sound(all, layout);
  }
}

TEST(Memory, RandomBuffersNeverOverlap) {
  std::uint64_t n = 7;
  const auto next = [&n](std::uint64_t limit) {
    n = n * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int32_t>((n >> 33) % limit);
  };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Lifetime> buffers;
    for (int i = 0, count = next(60); i < count; ++i) {
      const std::int32_t first = next(50);
      buffers.push_back({1 + next(1300), first, first + next(20)});
    }
    expect_sound(buffers, plan_memory(buffers, 64));
  }
}

/// The public problems of hard static allocation: each has a solution within 1 MiB. Greedy layouts
/// are far from it there (a published study measured 29.6 % on average for the best of eight). The
/// few steps that a plan has for the exact search solve most; the bound here guards against decay.
TEST(Memory, HardPublicProblems) {
  double worst = 0, sum = 0;
  int problems = 0;
  for (const char* name : {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"}) {
    const std::string path = test_data(std::string("minimalloc/") + name + ".1048576.csv");
    if (path.empty()) GTEST_SKIP() << no_test_data("minimalloc");
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);  // id,lower,upper,size; upper is exclusive
    std::vector<Lifetime> buffers;
    while (std::getline(file, line)) {
      const std::vector<std::string> cells = split(line, ',');
      buffers.push_back({std::stoll(cells[3]), std::stoi(cells[1]), std::stoi(cells[2]) - 1});
    }
    const MemoryLayout layout = plan_memory(buffers, 64);
    expect_sound(buffers, layout);
    const double over =
        static_cast<double>(layout.bytes) / static_cast<double>(layout.lower_bound) - 1;
    worst = std::max(worst, over);
    sum += over;
    ++problems;
  }
  EXPECT_LT(sum / problems, 0.08) << "worst " << worst;
}

}  // namespace
}  // namespace tessera
