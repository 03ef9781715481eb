/// Groups and collectives as values.

#include "tessera/comm/collective.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/comm/group.h"

namespace tessera {
namespace {

TEST(Group, RanksThatDifferAlongAxes) {
  struct Case {
    const char* mesh;
    std::vector<std::string> axes;
    int rank;
    std::vector<int> ranks;
  };
  const Case cases[] = {
      {"dp=2 tp=4", {"tp"}, 5, {4, 5, 6, 7}},  // the innermost axis: neighbours
      {"dp=2 tp=4", {"dp"}, 5, {1, 5}},
      {"dp=2 tp=4", {"dp", "tp"}, 5, {0, 1, 2, 3, 4, 5, 6, 7}},
      {"dp=2 tp=2", {"tp", "dp"}, 0, {0, 2, 1, 3}},  // the first axis is outermost
      {"pp=2 dp=2 tp=2", {"pp", "tp"}, 2, {2, 3, 6, 7}},
      {"dp=2 mb=8@time tp=2", {"dp"}, 1, {1, 3}},  // time has no ranks
      {"dp=2", {"tp"}, 1, {1}},                    // an axis that is not there
      {"dp=2", {}, 1, {1}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.mesh);
    EXPECT_EQ(group_of(parse_mesh(c.mesh), c.axes, c.rank).ranks, c.ranks);
  }
  EXPECT_EQ(group_of(parse_mesh("dp=2 tp=2"), {"dp", "tp"}, 0).name, "dp.tp");
  EXPECT_THROW(group_of(parse_mesh("dp=2 mb=2@time"), {"mb"}, 0), Error);
  EXPECT_THROW(group_of(parse_mesh("dp=2"), {"dp", "dp"}, 0), Error);
  EXPECT_THROW(group_of(parse_mesh("dp=2"), {"dp"}, 2), Error);
}

TEST(Collective, BytesThatLeaveARank) {
  struct Case {
    Collective c;
    int ranks;
    std::int64_t bytes;
  };
  const Case cases[] = {
      {Collective::all_reduce(DType::F32, {8, 2}, Monoid::Sum, ""), 4, 2 * 3 * 16},
      {Collective::all_reduce(DType::F32, {8}, Monoid::Sum, ""), 1, 0},
      {Collective::all_gather(DType::F64, {8, 3}, 0, ""), 4, 3 * 2 * 3 * 8},
      {Collective::reduce_scatter(DType::F32, {3, 7}, 1, Monoid::Sum, ""), 2, 3 * 4 * 4},  // padded
      {Collective::all_to_all(DType::BF16, {4, 6}, 0, 1, ""), 2, 2 * 3 * 2},
      {Collective::broadcast(DType::I32, {10}, 1, ""), 5, 4 * 8},
      {Collective::send(DType::I32, {10}, 1, ""), 5, 40},
      {Collective::recv(DType::I32, {10}, 1, ""), 5, 0},
      {Collective::barrier(""), 5, 0},
  };
  for (const Case& c : cases) EXPECT_EQ(bytes_sent(c.c, c.ranks), c.bytes) << to_text(c.c);
}

TEST(Collective, RefusesWhatHasNoMeaning) {
  const Collective cases[] = {
      Collective::all_gather(DType::F32, {4}, 1, "x"),
      Collective::reduce_scatter(DType::F32, {4}, -1, Monoid::Sum, "x"),
      Collective::all_to_all(DType::F32, {4, 4}, 1, 1, "x"),
      Collective::broadcast(DType::F32, {4}, 2, "x"),
      Collective::all_reduce(DType::Bool, {4}, Monoid::Sum, "x"),
  };
  for (const Collective& c : cases) EXPECT_THROW(validate(c, 2), Broken) << to_text(c);
  validate(Collective::all_reduce(DType::Bool, {4}, Monoid::Max, "x"), 2);
}

}  // namespace
}  // namespace tessera
