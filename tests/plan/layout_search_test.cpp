/// The exact search for layouts: equal to trying everything where that can be done, sound
/// everywhere, and the public hard problems within their capacity.

#include "tessera/plan/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "files/test_data.h"
#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/plan/buffer_file.h"

namespace tessera {
namespace {

constexpr std::int64_t kPlenty = 50'000'000;

void expect_layout(const std::vector<TimedBuffer>& buffers,
                   const std::vector<std::int64_t>& offsets, std::int64_t height) {
  ASSERT_EQ(offsets.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const TimedBuffer& a = buffers[i];
    EXPECT_GE(offsets[i], 0);
    EXPECT_TRUE(a.bytes == 0 || offsets[i] + a.bytes <= height);
    EXPECT_EQ(offsets[i] % a.alignment, 0);
    EXPECT_EQ(a.offset.value_or(offsets[i]), offsets[i]);
    for (std::size_t j = 0; j < i; ++j) {
      const TimedBuffer& b = buffers[j];
      const bool together = a.lower < b.upper && b.lower < a.upper;
      const bool apart = offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
      EXPECT_TRUE(!together || apart || a.bytes == 0 || b.bytes == 0)
          << "buffers " << i << " and " << j;
    }
  }
}

/// The least height over every order of placing buffers, each at the lowest free place: some order
/// gives the smallest layout, that of its offsets. None where given places contradict each other.
std::optional<std::int64_t> least_height(const std::vector<TimedBuffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::optional<std::int64_t> best;
  do {
    std::vector<std::int64_t> offsets(buffers.size());
    std::int64_t height = 0;
    bool fits = true;
    for (std::size_t k = 0; k < order.size() && fits; ++k) {
      const TimedBuffer& a = buffers[order[k]];
      const auto free = [&](std::int64_t low) {
        return std::all_of(
            order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), [&](std::size_t j) {
              const TimedBuffer& b = buffers[j];
              return a.lower >= b.upper || b.lower >= a.upper || a.bytes == 0 || b.bytes == 0 ||
                     low + a.bytes <= offsets[j] || offsets[j] + b.bytes <= low;
            });
      };
      std::int64_t low = a.offset.value_or(0);
      if (a.offset) {
        fits = free(low);
      } else {
        while (!free(low)) low += a.alignment;
      }
      offsets[order[k]] = low;
      if (a.bytes > 0) height = std::max(height, low + a.bytes);
    }
    if (fits && (!best || height < *best)) best = height;
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

class RandomBuffers {
 public:
  explicit RandomBuffers(unsigned seed) : random_(seed) {}
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::vector<TimedBuffer> of(int count, int times, int bytes, bool aligned, bool given) {
    std::vector<TimedBuffer> out;
    for (int i = 0; i < count; ++i) {
      TimedBuffer b;
      b.lower = draw(0, times - 1);
      b.upper = draw(static_cast<int>(b.lower) + 1, times);
      b.bytes = draw(0, bytes);
      if (aligned) b.alignment = std::array{1, 2, 3, 4}[static_cast<std::size_t>(draw(0, 3))];
      if (given && draw(0, 3) == 0) b.offset = b.alignment * draw(0, 8);
      out.push_back(b);
    }
    return out;
  }

 private:
  std::mt19937 random_;
};

TEST(LayoutSearch, AsSmallAsTryingEveryOrder) {
  RandomBuffers random(1);
  int above_the_fullest_moment = 0, contradictions = 0;
  for (int round = 0; round < 1200; ++round) {
    SCOPED_TRACE(round);
    const bool aligned = round % 4 == 1, given = round % 4 >= 2;
    const std::vector<TimedBuffer> buffers =
        random.of(random.draw(1, 7), random.draw(2, 9), 9, aligned, given);
    const std::optional<std::int64_t> least = least_height(buffers);
    const std::optional<SmallestLayout> smallest = smallest_layout(buffers, kPlenty);
    ASSERT_EQ(smallest.has_value(), least.has_value());
    if (!least) {
      ++contradictions;
      EXPECT_EQ(search_layout(buffers, 1000, kPlenty).outcome, LayoutOutcome::Impossible);
      continue;
    }
    EXPECT_EQ(smallest->height, *least);
    EXPECT_EQ(std::max(smallest->lower_bound, fullest_moment_bytes(buffers)), *least)
        << "a height that the steps suffice to refute";
    expect_layout(buffers, smallest->offsets, smallest->height);
    EXPECT_EQ(search_layout(buffers, *least, kPlenty).outcome, LayoutOutcome::Found);
    if (*least > 0) {
      EXPECT_EQ(search_layout(buffers, *least - 1, kPlenty).outcome, LayoutOutcome::Impossible);
    }
    if (*least > fullest_moment_bytes(buffers)) ++above_the_fullest_moment;
  }
  EXPECT_GT(above_the_fullest_moment, 100) << "the bound alone would do";
  EXPECT_GT(contradictions, 20);
}

/// Buffers cut from a full rectangle: they have a layout as high as it, without any gap.
TEST(LayoutSearch, FindsLayoutsWithoutGaps) {
  RandomBuffers random(2);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    std::vector<TimedBuffer> buffers;
    const std::function<void(int, int, int, int)> cut = [&](int lower, int upper, int bytes,
                                                            int depth) {
      const bool in_time = random.draw(0, 1) == 0;
      if (depth == 0 || (in_time ? upper - lower : bytes) < 2) {
        buffers.push_back({lower, upper, bytes});
      } else if (in_time) {
        const int at = random.draw(lower + 1, upper - 1);
        cut(lower, at, bytes, depth - 1), cut(at, upper, bytes, depth - 1);
      } else {
        const int at = random.draw(1, bytes - 1);
        cut(lower, upper, at, depth - 1), cut(lower, upper, bytes - at, depth - 1);
      }
    };
    cut(0, 1000, 5000, 5);
    const FoundLayout found = search_layout(buffers, 5000, kPlenty);
    ASSERT_EQ(found.outcome, LayoutOutcome::Found) << buffers.size();
    expect_layout(buffers, found.offsets, 5000);
  }
}

TEST(LayoutSearch, LargerProblemsAreSoundAndAlwaysTheSame) {
  RandomBuffers random(3);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const std::vector<TimedBuffer> buffers =
        random.of(random.draw(50, 150), 200, 1000, round % 2 == 0, false);
    const std::optional<SmallestLayout> smallest = smallest_layout(buffers, 3'000'000);
    ASSERT_TRUE(smallest.has_value());
    expect_layout(buffers, smallest->offsets, smallest->height);
    EXPECT_GE(smallest->height, smallest->lower_bound);
    EXPECT_GE(smallest->lower_bound, fullest_moment_bytes(buffers));
    EXPECT_LE(static_cast<double>(smallest->height),
              1.1 * static_cast<double>(smallest->lower_bound));
    EXPECT_EQ(smallest_layout(buffers, 3'000'000)->offsets, smallest->offsets);
  }
}

TEST(LayoutSearch, StepsEndIt) {
  const std::vector<TimedBuffer> buffers = RandomBuffers(4).of(100, 50, 1000, false, false);
  const FoundLayout none = search_layout(buffers, fullest_moment_bytes(buffers), 100);
  EXPECT_EQ(none.outcome, LayoutOutcome::GaveUp);
  EXPECT_LT(none.steps, 100'000);  // steps are counted once per decision
  EXPECT_EQ(search_layout(buffers, fullest_moment_bytes(buffers) - 1, 1'000'000).outcome,
            LayoutOutcome::Impossible);
}

TEST(LayoutSearch, NothingAndTooMuch) {
  EXPECT_EQ(search_layout({}, 0, 10'000).outcome, LayoutOutcome::Found);
  EXPECT_EQ(smallest_layout({}, 10'000)->height, 0);
  const std::vector<TimedBuffer> huge = {{0, 1, kMaxSize / 2}, {0, 1, kMaxSize / 2}};
  EXPECT_EQ(smallest_layout(huge, 10'000)->height, kMaxSize);
  const std::vector<TimedBuffer> more = {{0, 1, kMaxSize}, {0, 1, 1}};
  EXPECT_THROW(search_layout(more, kMaxSize, 10'000), Error);
}

/// So many that looking at all pairs takes minutes.
constexpr int kMany = 60'000;

std::vector<TimedBuffer> many_alive_together(bool aligned) {
  std::vector<TimedBuffer> out;
  for (int i = 0; i < kMany; ++i) out.push_back({0, 10, 64 + i % 1000, aligned ? 64 : 1});
  return out;
}

TEST(LayoutSearch, ManyBuffersThatAnyOrderPlacesTakeFewSteps) {
  for (const bool aligned : {false, true}) {
    std::vector<TimedBuffer> buffers = many_alive_together(aligned);
    const std::int64_t room = aligned ? 63 * kMany : 0;  // for gaps below multiples of 64
    const FoundLayout found =
        search_layout(buffers, fullest_moment_bytes(buffers) + room, 10'000'000);
    ASSERT_EQ(found.outcome, LayoutOutcome::Found);
    EXPECT_LE(found.steps, 20 * kMany);
    const std::optional<SmallestLayout> smallest = smallest_layout(buffers, 10'000'000);
    EXPECT_LE(smallest.value().height, found.height);
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].offset = found.offsets[i];
    EXPECT_EQ(smallest_layout(buffers, 10'000'000).value().offsets, found.offsets);
    *buffers[1].offset = *buffers[0].offset;
    EXPECT_EQ(search_layout(buffers, kMaxSize, 10'000'000).outcome, LayoutOutcome::Impossible);
  }
}

TEST(LayoutSearch, ManyBuffersWithGapsEndByTheirSteps) {
  std::vector<TimedBuffer> buffers = many_alive_together(false);
  for (std::size_t i = 0; i < buffers.size(); i += 2) buffers[i].alignment = 512;
  const std::vector<std::int64_t> offsets = smallest_layout(buffers, 10'000'000).value().offsets;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    EXPECT_EQ(offsets[i] % buffers[i].alignment, 0);
    places.emplace_back(offsets[i], offsets[i] + buffers[i].bytes);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) EXPECT_LE(places[i - 1].second, places[i].first);
  EXPECT_EQ(search_layout(buffers, fullest_moment_bytes(buffers), 10'000'000).outcome,
            LayoutOutcome::GaveUp);
  for (std::size_t i = 0; i < buffers.size(); i += 2) buffers[i].offset = 512 * 3 * i;
  EXPECT_EQ(search_layout(buffers, fullest_moment_bytes(buffers), 10'000'000).outcome,
            LayoutOutcome::GaveUp);
  EXPECT_EQ(search_layout(buffers, kMaxSize, 10'000'000).outcome, LayoutOutcome::Found);
}

/// The benchmark of Moffitt 2023: each has a solution within 1 MiB, and no heuristic of greedy
/// layouts finds it.
TEST(LayoutSearch, SolvesTheHardPublicProblems) {
  for (const char* name : {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K"}) {
    SCOPED_TRACE(name);
    const std::string path = test_data(std::string("minimalloc/") + name + ".1048576.csv");
    if (path.empty()) GTEST_SKIP() << no_test_data("minimalloc");
    std::ifstream file(path);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const std::vector<TimedBuffer> buffers = parse_buffer_file(bytes.str(), path).buffers;
    const FoundLayout found = search_layout(buffers, 1'048'576, 1'000'000'000);
    ASSERT_EQ(found.outcome, LayoutOutcome::Found);
    expect_layout(buffers, found.offsets, 1'048'576);
  }
}

}  // namespace
}  // namespace tessera
