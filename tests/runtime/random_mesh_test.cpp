/// Mesh fuzzing: random train steps, spread over random meshes in random ways and interpreted on
/// all ranks in f64, against the whole graph on one device. A strategy may be refused with a
/// reason.
///
/// More of them, from a seed on: TESSERA_MESH_FUZZ="FIRST COUNT" runtime_test
/// --gtest_filter='MoreRandomMeshes.Asked'

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "runtime/random_graph.h"
#include "runtime/random_mesh_check.h"

namespace tessera::fuzz {
namespace {

void check_mesh_seeds(std::uint64_t first, std::uint64_t count, MeshTally& tally) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const int ops = random_size(seed);
    const std::string what = mesh_wrong(seed, ops, tally);
    if (!what.empty())
      ADD_FAILURE() << "seed " << seed << ", " << ops << " ops: " << what
                    << "\nat its smallest: " << smallest_mesh_failure(seed, ops);
  }
}

void print_tally(const MeshTally& tally) {
  std::cout << tally.triples << " triples equal to one device, " << tally.compared << " numbers\n";
  for (const auto& [why, times] : tally.refused)
    std::cout << "refused: " << why << " " << times << "\n";
  for (const auto& [what, triples] : tally.met) std::cout << what << ": " << triples << "\n";
}

class RandomMeshes : public testing::TestWithParam<int> {};

TEST_P(RandomMeshes, EqualOneDevice) {
  constexpr int kSeeds = 40;
  MeshTally tally;
  check_mesh_seeds(static_cast<std::uint64_t>(GetParam() * kSeeds), kSeeds, tally);
  print_tally(tally);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMeshes, testing::Range(0, 4));

/// What was wrong once, by seed and why.
TEST(MoreRandomMeshes, FoundOnce) {
  const struct {
    std::uint64_t seed;
    const char* why;
  } kFound[] = {
      {6, "a state is cut along a dim of size 1: refused, as if it were about micro-batches"},
      {36, "two states of one node lie otherwise: refused"},
      {1845, "a gradient known before the first micro-batch was cut by them, as its forward node"},
      {3434, "the interpreter of ranks spoiled the padding of a state that a permute had sent"},
      {1113, "and that of a gradient: its norm was NaN, by which no gradient was clipped"},
      {142, "a state cannot stay as it lies: refused, as if rows were mixed"},
  };
  for (const auto& found : kFound) {
    SCOPED_TRACE(found.why);
    MeshTally tally;
    EXPECT_EQ(mesh_wrong(found.seed, random_size(found.seed), tally), "");
  }
}

TEST(MoreRandomMeshes, Asked) {
  const char* asked = std::getenv("TESSERA_MESH_FUZZ");
  if (asked == nullptr) GTEST_SKIP() << "set TESSERA_MESH_FUZZ to \"FIRST COUNT\"";
  std::uint64_t first = 0, count = 0;
  std::istringstream(asked) >> first >> count;
  MeshTally tally;
  check_mesh_seeds(first, count, tally);
  print_tally(tally);
  if (tally.triples < 1000) return;
  for (const char* what :
       {"pass sharded", "pass reduced", "max sharded", "max reduced", "stat sharded",
        "whole beside a sharded factor", "compound dim cut", "uneven shards", "micro-batches",
        "all_gather", "all_reduce", "all_to_all", "permute", "reduce_scatter", "shard",
        "mark_partial", "clear_padding"})
    EXPECT_GE(tally.met[what], 20) << what;
}

}  // namespace
}  // namespace tessera::fuzz
