// Views with dims split where a sharding cuts them.
#include "tessera/passes/split_view.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"

namespace tessera {
namespace {

TEST(SplitView, Cases) {
  const struct {
    const char *name, *mesh;
    Shape shape;
    const char *from, *to, *view;
  } kCases[] = {
      {"each cut is a border",
       "a=2 b=16",
       {2, 4096},
       "[a,-]",
       "[-,a.b]",
       "[2,2,2048] [a,-,-] [-,a,b]"},
      {"nothing to split", "a=2 b=2", {8, 8}, "[a,b]", "[b,a]", "[8,8] [a,b] [b,a]"},
      {"sums stay", "a=2 b=2", {8}, "[-]+a", "[b.a]", "[2,4] [-,-]+a [b,a]"},
      {"a border splits an axis", "a=2 b=6", {6}, "[a]", "[b]", "[2,3] [a,-] [b__1x2,b__2x3]"},
      {"on both sides",
       "a=4 b=2",
       {16, 4},
       "[a,-]",
       "[b,a]",
       "[2,8,2,2] [a__1x2,a__2x2,-,-] [b,-,a__1x2,a__2x2]"},
      {"cuts that do not nest share a dim", "a=4 b=6", {24}, "[a]", "[b]", "[24] [a] [b]"},
      {"time stays in one part", "a=2 mb=4@time", {8}, "[a]", "[mb]", "[8] [a] [mb]"},
      {"uneven shards", "a=2 b=2", {6}, "[a.b]", "[b]", "none"},
      {"more dims than shapes have: neighbours share one",
       "a=2 b=2 c=2 d=2 e=2 f=2 g=2 h=2",
       {256, 256},
       "[a.b.c.d.e.f.g.h,-]",
       "[-,h.g.f.e.d.c.a.b]",
       "[4,2,2,2,2,2,2,2,2,2,2,2,2,4] [a.b,c,d,e,f,g,h,-,-,-,-,-,-,-] "
       "[-,-,-,-,-,-,-,h,g,f,e,d,c,a.b]"},
      {"three axes that part ways",
       "a=4 b=4 c=4",
       {64, 64, 64},
       "[a.b.c,-,-]",
       "[-,c.b,a]",
       "[4,4,4,4,16,64] [a,b,c,-,-,-] [-,-,-,c,b,a]"},
  };
  for (const auto& c : kCases) {
    const auto view =
        split_view(c.shape, parse_sharding(c.from), parse_sharding(c.to), parse_mesh(c.mesh));
    EXPECT_EQ(view ? text(view->shape, " ", view->from, " ", view->to) : "none", c.view) << c.name;
  }
}

}  // namespace
}  // namespace tessera
