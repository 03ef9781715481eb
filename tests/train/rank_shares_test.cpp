/// What ranks write together is the one checkpoint that one device would write.

#include "tessera/train/rank_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"
#include "tessera/tensor/shard_copy.h"
#include "tessera/train/rank_writer.h"

namespace tessera {
namespace {

struct StateCase {
  const char *name, *home;
  DType dtype;
  Shape shape;
};

/// Along rows, along columns, along both, nested, uneven, replicated; ranks without an element.
const StateCase kStates[] = {
    {"rows", "[dp,-]", DType::F32, {8, 5}},
    {"columns", "[-,tp]", DType::F32, {8, 6}},
    {"both", "[dp,tp]", DType::BF16, {7, 7}},
    {"nested", "[dp.tp,-]", DType::F32, {13, 3}},
    {"middle", "[-,tp.dp,-]", DType::F64, {2, 7, 3}},
    {"few", "[dp.tp]", DType::F32, {3}},
    {"everywhere", "[-]", DType::F32, {9}},
    {"large", "[-,-]", DType::F32, {700, 600}},
    {"counter", "[]", DType::I64, {}},
};

Plan plan_on(const Mesh& mesh, int rank) {
  Plan out;
  out.mesh = mesh;
  out.rank = rank;
  for (const StateCase& c : kStates) {
    StatePlan state;
    state.state.path = c.name;
    state.state.role = Role::Parameter;
    state.state.home = Placement{parse_sharding(c.home)};
    state.logical = c.shape;
    state.type = {c.dtype, local_shape(c.shape, state.state.home->sharding, mesh), {}};
    out.states.push_back(std::move(state));
  }
  // In the middle, so that indices of what is saved differ from those of states.
  StatePlan cache = out.states[1];
  cache.state.path = "everything.cache", cache.state.role = Role::Cache;
  out.states.insert(out.states.begin() + 2, std::move(cache));
  return out;
}

using ShareBytes = std::vector<std::byte>;

struct SharesTest : testing::Test {
  SharesTest() {
    std::mt19937_64 random(1);
    for (const StateCase& c : kStates) {
      ShareBytes& whole = wholes[c.name];
      whole.resize(static_cast<std::size_t>(c.shape.numel() * size_of(c.dtype)));
      for (std::byte& b : whole) b = static_cast<std::byte>(random());
      tensors.push_back({c.name, {c.dtype, c.shape, {}}, Role::Parameter, whole});
    }
  }
  /// The states of a rank; 0xEE in the padding, which no file may hold.
  std::map<std::string, ShareBytes, std::less<>> states_of(const Plan& plan) const {
    std::map<std::string, ShareBytes, std::less<>> out;
    for (const StatePlan& state : plan.states) {
      if (!is_saved(state.state.role)) continue;
      ShareBytes& shard = out[state.state.path];
      shard.assign(static_cast<std::size_t>(state.type.bytes()), std::byte{0xEE});
      each_run(state.logical, state.state.home->sharding, plan.mesh,
               coordinates_of(plan.mesh, plan.rank), [&](const ShardRun& run) {
                 const std::int64_t width = size_of(state.type.dtype);
                 std::copy_n(wholes.at(state.state.path).begin() + run.whole * width,
                             run.count * width, shard.begin() + run.shard * width);
               });
    }
    return out;
  }
  /// Every rank writes, then all is committed.
  std::string save(const Mesh& mesh, const SaveOptions& options, bool copy) {
    const RankShares shares = share_among_ranks(plan_on(mesh, 0), options.file_bytes);
    UnfinishedFolder aside(options.calls, folder.path(), ".tmp-test");
    std::vector<WrittenPart> parts, planned;
    for (int r = 0; r < mesh.ranks(); ++r) {
      const Plan plan = plan_on(mesh, r);
      RankWriter writer(plan, options, copy ? std::make_unique<BackgroundThread>() : nullptr);
      auto states = states_of(plan);
      writer.begin(aside.path(),
                   pieces_of(writer.shares(), plan,
                             [&](std::string_view path) {
                               return std::span<const std::byte>(states.find(path)->second);
                             }),
                   !copy);
      if (copy) {  // what was copied may change
        for (auto& [path, bytes] : states) std::fill(bytes.begin(), bytes.end(), std::byte{0});
      }
      planned = writer.planned();
      const RankResult result = parse_rank_result(to_text(writer.take()));
      EXPECT_EQ(result.problem, "");
      parts.push_back(result.part);
    }
    const CheckpointRecord record{++step, 77, {{"text", "of \"some\" length"}}};
    std::string path = commit_parts(folder.path(), aside, record, shares.tensors, parts, options);
    std::int64_t written = 0;
    for (const auto& file : std::filesystem::directory_iterator(path))
      written += static_cast<std::int64_t>(file.file_size());
    EXPECT_EQ(save_bytes(record, shares.tensors, planned), written) << "known before, to the byte";
    return path;
  }

  const TestFolder folder;
  std::int64_t step = 0;
  std::map<std::string, ShareBytes, std::less<>> wholes;
  std::vector<CheckpointTensor> tensors;
};

TEST_F(SharesTest, AreTogetherTheCheckpointOfOneDevice) {
  const std::string one = save_checkpoint(folder / "one", {1, 0, {}}, tensors);
  const std::string expected = digest(Checkpoint::open(one));
  for (const Mesh& mesh :
       {Mesh({{"dp", 2}}), Mesh({{"tp", 3}}), Mesh({{"dp", 2}, {"tp", 3}}),
        Mesh({{"dp", 3}, {"tp", 2}}), Mesh({{"dp", 4}, {"other", 2}, {"tp", 2}}), Mesh()}) {
    for (const std::int64_t file_bytes : {std::int64_t{1} << 30, std::int64_t{1000}}) {
      SCOPED_TRACE(text(to_text(mesh), " files of ", file_bytes));
      const std::string path = save(mesh, {.file_bytes = file_bytes}, file_bytes == 1000);
      const Checkpoint checkpoint = Checkpoint::open(path);
      EXPECT_EQ(verify(checkpoint), std::vector<std::string>{});
      EXPECT_EQ(digest(checkpoint), expected);
      // Any other mesh reads it.
      const Mesh other({{"dp", 3}, {"tp", 2}});
      for (int r = 0; r < other.ranks(); ++r) {
        const Plan plan = plan_on(other, r);
        for (const StatePlan& state : plan.states) {
          if (!is_saved(state.state.role)) continue;
          const Sharding& home = state.state.home->sharding;
          const Coordinates at = coordinates_of(other, r);
          ShareBytes want(static_cast<std::size_t>(state.type.bytes())), got = want;
          cut_shard(wholes.at(state.state.path), state.logical, state.type.dtype, home, other, at,
                    want);
          checkpoint.read_shard(state.state.path, home, other, at, got);
          EXPECT_EQ(got, want) << state.state.path << " on rank " << r;
        }
      }
    }
  }
}

/// Each element once; no rank writes what it does not hold, nor much more than its share.
TEST_F(SharesTest, AreEven) {
  for (const Mesh& mesh : {Mesh({{"dp", 2}}), Mesh({{"dp", 4}}), Mesh({{"dp", 2}, {"tp", 3}})}) {
    SCOPED_TRACE(to_text(mesh));
    const RankShares shares = share_among_ranks(plan_on(mesh, 0), 1 << 30);
    std::int64_t whole = 0, sum = 0;
    for (const CheckpointTensor& tensor : tensors) whole += tensor.type.bytes();
    for (int r = 0; r < mesh.ranks(); ++r) {
      sum += shares.bytes_of(r);
      EXPECT_LE(shares.bytes_of(r), most_bytes_of_a_share(plan_on(mesh, r)));
      std::int64_t held = 0;
      for (const StatePlan& state : plan_on(mesh, r).states)
        held += saved_box(state, mesh, r).extent.numel() * size_of(state.type.dtype);
      EXPECT_LE(shares.bytes_of(r), held);
    }
    EXPECT_EQ(sum, whole);
    EXPECT_EQ(shares.bytes(), whole);
    EXPECT_LE(most_bytes_of_a_share(plan_on(mesh, 0)), whole / mesh.ranks() + (1 << 20))
        << "one part at most more";
  }
}

TEST(TensorGrid, CellsTileAndRunsCoverABoxOnce) {
  const TensorGrid grid{{5, 7, 3}, {{2}, {1, 4}, {}}};
  EXPECT_EQ(grid.cells(), 6);
  EXPECT_EQ(grid.cell(4), (Box{{2, 1, 0}, {3, 3, 3}}));
  const Box box{{1, 0, 1}, {3, 7, 2}};
  std::vector<int> seen(3 * 7 * 2);
  each_cell_run(grid, box, box.extent.strides(), [&](const CellRun& run) {
    for (std::int64_t i = 0; i < run.count; ++i) ++seen[static_cast<std::size_t>(run.at + i)];
  });
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  for (const std::int64_t most : {1, 2, 3, 10, 21, 22, 63, 105}) {
    const TensorGrid fine = grid.refined(most);
    for (std::int64_t i = 0; i < fine.cells(); ++i)
      EXPECT_LE(fine.cell(i).extent.numel(), most) << "cell " << i;
  }
  EXPECT_EQ(grid.refined(1000), grid);
  EXPECT_EQ(TensorGrid::whole({0, 4}).cells(), 0);
  EXPECT_EQ(TensorGrid::whole({}).cells(), 1);
}

}  // namespace
}  // namespace tessera
