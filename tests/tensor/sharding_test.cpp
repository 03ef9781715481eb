// Shards: nested ceil division, local shapes, and the text forms of meshes, shardings and
// placements.
#include "tessera/tensor/sharding.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// The valid sizes on all coordinates of `axes`, the last axis fastest.
std::vector<std::int64_t> valid_sizes(std::int64_t size, const std::vector<std::string>& axes,
                                      const Mesh& mesh) {
  std::vector<std::int64_t> out;
  std::vector<std::int64_t> at(axes.size(), 0);
  for (;;) {
    Coordinates coordinates;
    for (std::size_t i = 0; i < axes.size(); ++i) coordinates[axes[i]] = at[i];
    out.push_back(extent(size, axes, mesh, coordinates).valid);
    std::size_t i = axes.size();
    while (i > 0 && ++at[i - 1] == mesh.size(axes[i - 1])) at[--i] = 0;
    if (i == 0) return out;
  }
}

/// Turned, a rank has the part of the one before it, and the first that of the last.
TEST(AxisPart, MayBeTurned) {
  const Mesh mesh = parse_mesh("a=2 b=4");
  const std::string by_one = axis_part({"b", 1, 4, 1}), minor = axis_part({"b", 2, 2, 1});
  EXPECT_EQ(by_one, "b__1x4t1");
  EXPECT_TRUE(mesh.size(by_one) == 4 && mesh.stride(by_one) == mesh.stride("b"));
  for (const char* none : {"b__1x4t5", "b__1x4t0", "b__1x4t", "b__1x4tx", "b__1x4-", "b__1x4ee"})
    EXPECT_EQ(mesh.size(none), 1) << none;
  const Sharding before{{{"b"}}, {}}, after{{{by_one}}, {}};
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates at = coordinates_of(mesh, rank);
    const std::int64_t b = at.at("b");
    EXPECT_EQ(coordinate(mesh, at, by_one), (b + 3) % 4);
    EXPECT_EQ(coordinate(mesh, at, "b__1x4t4"), b);
    EXPECT_EQ(coordinate(mesh, at, minor), (b + 1) % 2);
    EXPECT_EQ(extent(8, {by_one}, mesh, at), extent(8, {"b"}, mesh, {{"b", (b + 3) % 4}}));
    for (const std::int64_t other : ranks_along(mesh, {"b"}, rank)) {
      const Coordinates giver = coordinates_of(mesh, other);
      EXPECT_EQ(permutes(before, giver, after, at, {"b"}, mesh), giver.at("b") == (b + 3) % 4);
    }
  }
}

/// Halves of a dim are cut as often again; those of a zigzag lie on one rank that has the other half
/// from the other end.
TEST(AxisPart, MayHaveHalves) {
  const Mesh mesh = parse_mesh("b=4");
  const auto of = [](Half half, std::int64_t turned = 0) {
    return axis_part({"b", 1, 4, turned, half});
  };
  EXPECT_EQ(of(Half::Even, 1), "b__1x4t1e");
  EXPECT_EQ(mesh.size(of(Half::Odd)), 8);
  const std::vector<std::int64_t> low = {0, 2, 4, 6}, high = {1, 3, 5, 7}, even = {0, 6, 2, 4},
                                  odd = {7, 1, 5, 3};
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    const auto i = static_cast<std::size_t>(rank), before = static_cast<std::size_t>(rank + 3) % 4;
    const auto part = [&](const std::string& name) {
      return coordinate(mesh, coordinates_of(mesh, rank), name);
    };
    EXPECT_EQ(part(of(Half::Low)), low[i]);
    EXPECT_EQ(part(of(Half::High)), high[i]);
    EXPECT_EQ(part(of(Half::Even)), even[i]);
    EXPECT_EQ(part(of(Half::Odd)), odd[i]);
    EXPECT_EQ(part(of(Half::Odd, 1)), odd[before]);
    EXPECT_EQ(extent(16, {of(Half::Odd)}, mesh, coordinates_of(mesh, rank)),
              (Extent{2 * odd[i], 2, 2}));
  }
}

/// A part of an axis is an axis whose coordinate is one digit of the axis' coordinate.
TEST(AxisPart, SizesStridesAndCoordinates) {
  const Mesh mesh = parse_mesh("a=2 b=12 c=2");
  const std::string major = axis_part("b", 1, 2), middle = axis_part("b", 2, 3),
                    minor = axis_part("b", 6, 2);
  EXPECT_EQ(middle, "b__2x3");
  EXPECT_TRUE(mesh.size(major) == 2 && mesh.size(middle) == 3 && mesh.size(minor) == 2);
  EXPECT_TRUE(mesh.stride(major) == 12 && mesh.stride(middle) == 4 && mesh.stride(minor) == 2);
  EXPECT_TRUE(mesh.stride("a") == 24 && mesh.stride("b") == 2 && mesh.stride("c") == 1);
  for (const char* none : {"b__5x2", "d__1x2", "b__0x2", "b__2", "b__x2"})
    EXPECT_EQ(mesh.size(none), 1) << none;
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    const Coordinates at = coordinates_of(mesh, rank);
    EXPECT_EQ((coordinate(mesh, at, major) * 3 + coordinate(mesh, at, middle)) * 2 +
                  coordinate(mesh, at, minor),
              at.at("b"));
    for (const std::string& part : {major, middle, minor})
      EXPECT_EQ(rank / mesh.stride(part) % mesh.size(part), coordinate(mesh, at, part));
    EXPECT_EQ(extent(24, {major, middle, minor}, mesh, at), extent(24, {"b"}, mesh, at));
  }
  EXPECT_EQ(ranks_along(mesh, {minor, "a"}, 3), (std::vector<std::int64_t>{1, 25, 3, 27}));
}

TEST(Extent, ShardsNest) {
  const Mesh mesh = parse_mesh("dp=3 mb=2@time");
  EXPECT_EQ(valid_sizes(8, {"dp", "mb"}, mesh), (std::vector<std::int64_t>{2, 1, 2, 1, 2, 0}));
  EXPECT_EQ(valid_sizes(8, {"mb", "dp"}, mesh), (std::vector<std::int64_t>{2, 2, 0, 2, 2, 0}));
  EXPECT_EQ(valid_sizes(2, {"dp"}, mesh), (std::vector<std::int64_t>{1, 1, 0}));
  EXPECT_EQ(valid_sizes(0, {"dp"}, mesh), (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(valid_sizes(6, {"dp", "mb"}, mesh), (std::vector<std::int64_t>{1, 1, 1, 1, 1, 1}));
}

TEST(Extent, StartsAreLogical) {
  const Mesh mesh = parse_mesh("dp=3 mb=2@time");
  EXPECT_EQ(extent(8, {"dp", "mb"}, mesh, {{"dp", 1}, {"mb", 1}}), (Extent{5, 1, 2}));
  EXPECT_EQ(extent(8, {"dp", "mb"}, mesh, {{"dp", 2}}),
            (Extent{6, 2, 2}));  // an absent axis counts as 0
  EXPECT_EQ(extent(8, {"dp"}, mesh, {{"dp", 2}}), (Extent{6, 2, 3}));
  EXPECT_EQ(extent(8, {}, mesh, {{"dp", 2}}), (Extent{0, 8, 8}));
  EXPECT_EQ(extent(8, {"absent"}, mesh, {}), (Extent{0, 8, 8}));
}

/// On any nesting the valid parts, in order, are the dim: no element twice, none left out.
TEST(Extent, PartsMakeTheWhole) {
  for (std::int64_t size = 0; size <= 20; ++size) {
    for (std::int64_t a = 1; a <= 4; ++a) {
      for (std::int64_t b = 1; b <= 4; ++b) {
        const Mesh mesh({{"a", a, Level::Core}, {"b", b, Level::Core}});
        std::int64_t next = 0;
        for (std::int64_t i = 0; i < a; ++i) {
          for (std::int64_t j = 0; j < b; ++j) {
            const Extent e = extent(size, {"a", "b"}, mesh, {{"a", i}, {"b", j}});
            EXPECT_TRUE(e.valid == 0 || e.start == next) << size << " on " << a << " x " << b;
            EXPECT_LE(e.valid, e.padded);
            EXPECT_EQ(e.padded, extent(size, {"a", "b"}, mesh, {}).padded);
            next += e.valid;
          }
        }
        EXPECT_EQ(next, size) << "on " << a << " x " << b;
      }
    }
  }
}

TEST(Sharding, LocalShapes) {
  const Mesh mesh = parse_mesh("dp=3 mb=2@time tp=4");
  const auto local = [&](const Shape& shape, const char* sharding) {
    return to_text(local_shape(shape, parse_sharding(sharding), mesh));
  };
  EXPECT_EQ(local({8, 16}, "[dp.mb,tp]"), "[2,4]");
  EXPECT_EQ(local({8, 16}, "[-,-]+dp"), "[8,16]");
  EXPECT_EQ(local({}, "[]"), "[]");
  EXPECT_EQ(local({7}, "[tp]"), "[2]");
  EXPECT_THROW(local({8, 16}, "[dp]"), Broken);
}

struct TextCase {
  const char* text;
  bool replicated;
};
const TextCase kTexts[] = {
    {"[]", true},         {"[-]", true},         {"[-,-,-]", true},        {"[dp.mb,-,tp]", false},
    {"[-,tp]+dp", false}, {"[-]+tp:max", false}, {"[-]+dp+tp:min", false},
};

TEST(Sharding, TextAndBack) {
  for (const TextCase& c : kTexts) {
    const Sharding sharding = parse_sharding(c.text);
    EXPECT_EQ(to_text(sharding), c.text);
    EXPECT_EQ(sharding.is_replicated(), c.replicated) << c.text;
    EXPECT_EQ(parse_sharding(to_text(sharding)), sharding);
    for (const Memory memory : {Memory::Device, Memory::Host}) {
      const Placement placement{sharding, memory};
      EXPECT_EQ(parse_placement(to_text(placement)), placement);
    }
  }
  EXPECT_EQ(to_text(parse_sharding("[-]+tp+dp:max")), "[-]+dp:max+tp");  // partial axes are a set
  EXPECT_EQ(to_text(parse_placement("[dp]+tp@host")), "[dp]+tp@host");
  for (const char* bad : {"", "dp", "[dp", "[-]+tp:mean", "[a b]", "[.dp]", "[dp,]", "[-]tp",
                          "[-]+t[p", "[-]+dp:sum:max", "[-]+dp+dp"})
    EXPECT_THROW(parse_sharding(bad), Error) << bad;
}

TEST(Sharding, AxesComeAndGo) {
  const Sharding sharding = parse_sharding("[dp,-]+tp");
  EXPECT_EQ(sharding.ndim(), 2);
  EXPECT_EQ(sharding.dim_of("dp"), 0);
  EXPECT_EQ(sharding.dim_of("tp"), -1);
  EXPECT_TRUE(sharding.is_partial("tp"));
  EXPECT_FALSE(sharding.is_partial("dp"));
  EXPECT_EQ(to_text(sharding.without("dp")), "[-,-]+tp");
  EXPECT_EQ(to_text(sharding.without("tp")), "[dp,-]");
  EXPECT_EQ(to_text(sharding.with("mb", 0)), "[dp.mb,-]+tp");
  EXPECT_EQ(to_text(sharding.with_partial("a", Monoid::Max)), "[dp,-]+a:max+tp");
  EXPECT_TRUE(Sharding::replicated(3).is_replicated());
}

TEST(Mesh, TextAndBack) {
  const Mesh mesh = parse_mesh("rack=2@rack host=3@host  socket=2@socket dp=4 one=1 mb=3@time");
  EXPECT_EQ(to_text(mesh), "rack=2@rack host=3@host socket=2@socket dp=4 mb=3@time");
  EXPECT_EQ(parse_mesh(to_text(mesh)), mesh);
  EXPECT_EQ(mesh.ranks(), 48);
  EXPECT_EQ(mesh.size("mb"), 3);
  EXPECT_TRUE(mesh.is_time("mb"));
  EXPECT_FALSE(mesh.is_time("dp"));
  EXPECT_FALSE(mesh.has("one"));
  EXPECT_EQ(mesh.size("one"), 1);
  EXPECT_EQ(Mesh().ranks(), 1);
  EXPECT_EQ(parse_mesh("dp=4\r"), parse_mesh("dp=4"));
  for (const char* bad : {"dp", "dp=", "dp=x", "dp=0", "dp=-2", "dp=2@moon", "dp=2 dp=2", "=2",
                          "d[p=2", "dp=1048576 tp=1048577"}) {
    EXPECT_THROW(parse_mesh(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace tessera
