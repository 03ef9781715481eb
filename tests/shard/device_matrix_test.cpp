// Device matrices as MindSpore's users read them in its dumps: maps, slices, groups, refinement.
#include "tessera/shard/device_matrix.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

/// All groups along these dims of the matrix, by their first rank.
Groups groups_of(const DeviceMatrix& matrix, const std::vector<int>& dims) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : matrix) ranks *= size;
  Groups out;
  for (std::int64_t r = 0; r < ranks; ++r) {
    const std::vector<std::int64_t> group = group_of(matrix, dims, r);
    if (group[0] == r) out.push_back(group);
  }
  return out;
}

template <typename Step>
std::string message_of(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

struct LayoutCase {
  const char* name;
  TensorLayout layout;
  const char *text, *canonical;
  Shape shape, slice;
};
const LayoutCase kLayouts[] = {
    {"rows", {{8}, {{0}, {}}}, "(8 | 0, -1)", "(8 | 0, -1)", {16, 4}, {2, 4}},
    {"rows and columns", {{4, 2}, {{1}, {0}}}, "(4, 2 | 1, 0)", "(4, 2 | 1, 0)", {16, 4}, {4, 2}},
    {"columns major, rows minor",
     {{4, 2}, {{0}, {1}}},
     "(4, 2 | 0, 1)",
     "(4, 2 | 0, 1)",
     {16, 4},
     {8, 1}},
    {"x of ((2,4),(4,1))",
     {{2, 4, 1}, {{2}, {1}}},
     "(2, 4, 1 | 2, 1)",
     "(2, 4 | 1, 0)",
     {16, 32},
     {8, 8}},
    {"w of ((2,4),(4,1)): its columns lie along a dim of size 1",
     {{2, 4, 1}, {{1}, {0}}},
     "(2, 4, 1 | 1, 0)",
     "(2, 4 | 0, -1)",
     {32, 16},
     {8, 16}},
    {"one dim along two",
     {{2, 2, 2}, {{2, 0}, {1}}},
     "(2, 2, 2 | (2, 0), 1)",
     "(2, 2, 2 | (2, 0), 1)",
     {8, 8},
     {2, 4}},
    {"size 1 leaves a pair",
     {{2, 1, 2}, {{2, 1}, {0}}},
     "(2, 1, 2 | (2, 1), 0)",
     "(2, 2 | 1, 0)",
     {8, 8},
     {4, 4}},
    {"a scalar", {{8}, {}}, "(8 | )", "(8 | )", {}, {}},
};

TEST(DeviceMatrix, LayoutsAsText) {
  for (const LayoutCase& c : kLayouts) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(to_text(c.layout), c.text);
    EXPECT_EQ(to_text(canonical(c.layout)), c.canonical);
    EXPECT_EQ(c.layout.slice_shape(c.shape), c.slice);
    EXPECT_EQ(canonical(c.layout).slice_shape(c.shape), c.slice) << "size 1 splits nothing";
  }
}

struct GroupCase {
  const char* name;
  DeviceMatrix matrix;
  std::vector<int> dims;  // from the right
  Groups groups;
};
const GroupCase kGroups[] = {
    {"the last dim is a run of neighbours", {2, 4}, {0}, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
    {"the first one strides", {2, 4}, {1}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
    {"the sums of ((2,4),(4,1))", {2, 4, 1}, {1}, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
    {"the replicas of its weight", {2, 4, 1}, {2}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
    {"the sums of ((2,2),(2,1)) on 8", {2, 2, 1, 2}, {2}, {{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
    {"the replicas of its weight", {2, 2, 1, 2}, {3, 0}, {{0, 1, 4, 5}, {2, 3, 6, 7}}},
    {"two dims next to each other", {2, 2, 2}, {0, 1}, {{0, 1, 2, 3}, {4, 5, 6, 7}}},
    {"all of them", {2, 2}, {1, 0}, {{0, 1, 2, 3}}},
    {"none of them", {2, 2}, {}, {{0}, {1}, {2}, {3}}},
};

TEST(DeviceMatrix, GroupsDifferInTheirDimsAlone) {
  for (const GroupCase& c : kGroups) {
    SCOPED_TRACE(text(c.name, ", along ", c.dims.size(), " dims"));
    EXPECT_EQ(groups_of(c.matrix, c.dims), c.groups);
  }
}

TEST(DeviceMatrix, RepeatedDimsAreThoseThatSplitNothing) {
  EXPECT_EQ((TensorLayout{{2, 2, 1, 2}, {{2}, {1}}}.repeated()), (std::vector<int>{3, 0}));
  EXPECT_EQ((TensorLayout{{4, 2}, {{1, 0}}}.repeated()), std::vector<int>{});
  EXPECT_EQ((TensorLayout{{4, 2}, {{1, 0}, {}}}.splits()), (std::vector<std::int64_t>{8, 1}));
}

TEST(DeviceMatrix, SlicesAreEven) {
  const TensorLayout layout{{4, 2}, {{1}, {0}}};
  EXPECT_EQ(message_of([&] {
              (void)layout.slice_shape({6, 2});
            }),
            "dim 0 of shape [6,2] is split 4 times, which does not divide it");
  EXPECT_EQ(message_of([&] { (void)layout.slice_shape({8}); }),
            "a layout of 2 dims does not fit a tensor of shape [8]");
}

struct RefinedCase {
  const char* name;
  std::vector<DeviceMatrix> matrices;
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<int>> axes;  // of the first matrix' dims, outermost first
};
const RefinedCase kRefined[] = {
    {"one matrix", {{2, 4}}, {2, 4}, {{0}, {1}}},
    {"the cuts of both", {{8, 4}, {2, 16}}, {2, 4, 4}, {{0, 1}, {2}}},
    {"and the other way round", {{2, 16}, {8, 4}}, {2, 4, 4}, {{0}, {1, 2}}},
    {"sizes of 1 cut nothing", {{2, 1, 4, 1}, {8}}, {2, 4}, {{0}, {}, {1}, {}}},
    {"three", {{2, 8}, {4, 4}, {8, 2}}, {2, 2, 2, 2}, {{0}, {1, 2, 3}}},
    {"the seed's two products and its batch", {{2, 4, 1}, {2, 4}, {8}}, {2, 4}, {{0}, {1}, {}}},
    {"one rank", {{1}, {1, 1}}, {}, {{}}},
};

TEST(RefinedMatrix, EveryDimIsARunOfAxes) {
  for (const RefinedCase& c : kRefined) {
    SCOPED_TRACE(c.name);
    const RefinedMatrix refined(c.matrices);
    EXPECT_EQ(refined.sizes(), c.sizes);
    const DeviceMatrix& first = c.matrices[0];
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_EQ(refined.axes_of(first, static_cast<int>(first.size() - 1 - i)), c.axes[i]) << i;
    }
  }
}

TEST(RefinedMatrix, RefusesWhatDoesNotNest) {
  EXPECT_EQ(message_of([] {
              RefinedMatrix({{3, 4}, {4, 3}});
            }),
            "device matrices (3, 4) and (4, 3) have no common refinement: groups of 4 and of 3 "
            "ranks do not nest; split so that one divides the other");
  EXPECT_EQ(message_of([] {
              RefinedMatrix({{2, 4}, {2, 2}});
            }),
            "device matrices (2, 4) and (2, 2) number 8 and 4 ranks; use one number");
}

TEST(DeviceLayout, NamesMeanDims) {
  const DeviceLayout layout({2, 2, 2}, {"dp", "sp", "mp"});
  EXPECT_EQ(to_text(layout("dp", "mp")), "(2, 2, 2 | 2, 0)");
  EXPECT_EQ(to_text(layout("dp", {"sp", "mp"})), "(2, 2, 2 | 2, (1, 0))");
  EXPECT_EQ(to_text(layout({"mp", "dp"}, "None")), "(2, 2, 2 | (0, 2), -1)");
  EXPECT_EQ(to_text(layout("sp")), "(2, 2, 2 | 1)");
  EXPECT_EQ(to_text(layout({"sp", "mp"})), "(2, 2, 2 | (1, 0))");
  EXPECT_EQ(to_text(layout("None", "None", "dp", "None")), "(2, 2, 2 | -1, -1, 2, -1)");
  EXPECT_EQ(layout("dp", {"sp", "mp"}).aliases, (std::vector<std::string>{"dp", "sp", "mp"}));
}

TEST(DeviceLayout, Refusals) {
  const DeviceLayout layout({2, 2}, {"dp", "mp"});
  const std::pair<const char*, std::string> kRows[] = {
      {"'dp' splits two dims of one tensor; use it once",
       message_of([&] { (void)layout("dp", "dp"); })},
      {"'mp' splits two dims of one tensor; use it once", message_of([&] {
         (void)layout({"mp", "mp"}, "None");
       })},
      {"layout has no 'tp'; it has dp, mp, and None for a dim that stays whole",
       message_of([&] { (void)layout("tp", "None"); })},
      {"a layout has 2 sizes but 1 names (dp); give each size one", message_of([] {
         DeviceLayout({2, 2}, {"dp"});
       })},
      {"'dp' names two dims of one layout (dp, dp); give each its own name", message_of([] {
         DeviceLayout({2, 2}, {"dp", "dp"});
       })},
      {"size 0 of 'dp' in a layout; it must be at least 1", message_of([] {
         DeviceLayout({0, 2}, {"dp", "mp"});
       })},
  };
  for (const auto& [expected, got] : kRows) EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace tessera
