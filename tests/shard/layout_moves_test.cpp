// MindSpore's worked cases of tensors that go from one layout to another, with our moves. Theirs
// are found dim by dim: slice what nobody holds, gather what stands in the way, slice again; ours
// are a shortest path. That they never receive more is tested on random pairs of layouts,
// redistribution_campaign_test.cpp.
#include <gtest/gtest.h>

#include "shard/their_moves.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/passes/redistribute.h"
#include "tessera/shard/refined_axes.h"

namespace tessera {
namespace {

struct Case {
  const char* name;
  Shape shape;  // of f32
  TensorLayout from, to;
  const char* moves;
  const char* theirs;
  std::int64_t their_bytes;  // that each rank receives
};
const Case kCases[] = {
    {"rows to columns",
     {16, 8},
     {{8}, {{0}, {}}},
     {{8}, {{}, {0}}},
     "all_to_all d0 0->1 56B [-,d0]",
     "all_gather dim 0 over all 8 ranks, slice dim 1 (all_to_all where enable_alltoall is set)",
     7 * 64},
    {"both dims to whole",
     {16, 8},
     {{4, 2}, {{1}, {0}}},
     {{4, 2}, {{}, {}}},
     "all_gather d1 1-> 64B [d0,-]; all_gather d0 0-> 384B [-,-]",
     "all_gather dim 0 over (0, 2, 4, 6), then dim 1 over (0, 1)",
     3 * 64 + 256},
    {"a dim cut less",
     {32, 256},
     {{1, 8}, {{1}, {0}}},
     {{1, 4, 2}, {{2}, {1}}},
     "all_gather d1 1-> 4096B [-,d0]",
     "reshape to (32, 1, 32), all_gather dim 2 over (0, 1), reshape to (32, 64)",
     4096},
    {"one dim cut more, the other along another axis, 16 ranks",
     {512, 1024},
     {{2, 4, 2}, {{2}, {0}}},
     {{4, 2, 2}, {{2}, {1}}},
     "slice d1 ->0 0B [d0.d1,d3]; permute d2.d3 262144B [d0.d1,d2]",
     "reshape, slice dim 0, all_gather dim 1 over the last axis, split, concat, slice dim 1, "
     "reshape",
     262144},
    {"the same: dims of size 1 come and go in a reshape, which moves nothing",
     {128, 64},
     {{4, 2}, {{1}, {0}}},
     {{4, 2, 1, 1}, {{3}, {2}}},
     "",
     "reshape",
     0},
};

/// Where a rank stands in a matrix.
std::vector<std::int64_t> digits(const DeviceMatrix& matrix, std::int64_t rank) {
  std::vector<std::int64_t> out(matrix.size());
  for (std::size_t i = matrix.size(); i-- > 0; rank /= matrix[i]) out[i] = rank % matrix[i];
  return out;
}

TEST(LayoutMoves, WorkedCases) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(text(c.name, "; theirs: ", c.theirs));
    const RefinedAxes axes({{c.from, "from"}, {c.to, "to"}});
    Redistributor redistributor(axes.mesh({"mb", 1, Level::Time}));
    const Redistribution& ours =
        redistributor.plan(c.shape, DType::F32, axes.sharding(c.from), axes.sharding(c.to));
    EXPECT_EQ(join(ours.moves, "; "), c.moves);
    EXPECT_LE(ours.bytes(), c.their_bytes);
    // The model of theirs that the campaign uses says the same.
    EXPECT_EQ(test::their_bytes(c.from, c.to, {c.shape.begin(), c.shape.end()}, false),
              c.their_bytes);
  }
}

/// Axes are a matrix of the same ranks: each holds what its layout says.
TEST(LayoutMoves, EveryRankHoldsItsSlice) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const RefinedAxes axes({{c.from, "from"}, {c.to, "to"}});
    const Mesh mesh = axes.mesh({"mb", 1, Level::Time});
    for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
      const std::vector<std::int64_t> coordinates = digits(c.from.matrix, r);
      for (std::size_t d = 0; d < c.from.map.size(); ++d) {
        std::int64_t index = 0;
        for (const int dim : c.from.map[d]) {
          const std::size_t place = c.from.matrix.size() - 1 - static_cast<std::size_t>(dim);
          index = index * c.from.matrix[place] + coordinates[place];
        }
        const std::int64_t size = c.shape[static_cast<int>(d)];
        EXPECT_EQ(extent(size, axes.sharding(c.from).dims[d], mesh, coordinates_of(mesh, r)).start,
                  index * (size / c.from.splits()[d]))
            << "rank " << r << " dim " << d;
      }
    }
  }
}

TEST(LayoutMoves, AxesAreCalledAsTheirLayoutsCallThem) {
  const DeviceLayout layout({2, 4}, {"dp", "mp"}), coarse({8}, {"all"}), odd({2, 4}, {"mb", "d0"});
  const auto names = [](const std::vector<TensorLayout>& layouts) {
    std::vector<GivenLayout> given;
    for (const TensorLayout& one : layouts) given.push_back({one, "x"});
    return join(RefinedAxes(given).names());
  };
  EXPECT_EQ(names({layout("dp", "mp")}), "dp, mp");
  EXPECT_EQ(names({coarse("all"), layout("dp", "None")}), "dp, mp") << "two axes: no name fits";
  EXPECT_EQ(names({{{2, 4}, {{1}, {0}}}}), "d0, d1");
  EXPECT_EQ(names({odd("mb", "None")}), "d0, d1") << "mb is the axis of time, d0 another axis";
}

TEST(LayoutMoves, AxesOfOneDimHaveOneOrder) {
  const DeviceLayout layout({2, 4}, {"dp", "mp"});
  const TensorLayout rows = {{8, 1}, {{1}, {}}};  // no order of its own
  const RefinedAxes axes({{layout({"mp", "dp"}), "op 'relu'"}}, {rows});
  EXPECT_EQ(join(axes.major()), "mp, dp");
  EXPECT_EQ(to_text(axes.sharding(rows)), "[mp.dp,-]");
  try {
    RefinedAxes({{layout({"mp", "dp"}), "op 'relu'"}, {layout({"dp", "mp"}), "op 'tanh'"}});
    FAIL() << "two orders";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "layouts order the axes dp, mp in two ways: op 'tanh' cuts a dim by dp and then by "
        "mp, op 'relu' cuts a dim by mp and then by dp; use the same order in all layouts");
  }
}

}  // namespace
}  // namespace tessera
