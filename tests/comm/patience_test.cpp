#include "tessera/comm/backend/patience.h"

#include <gtest/gtest.h>

namespace tessera::backend {
namespace {

TEST(Patience, PaceOfRanksThatShareCores) {
  struct Case {
    const char* name;
    std::int64_t ranks, cores;
    int spins, nap;  // us
  };
  const Case cases[] = {
      {"a core for each", 4, 8, 1000, 100},
      {"just so many", 8, 8, 1000, 100},
      {"the awaited one may need this core", 9, 8, 0, 100},
      {"four on a core nap as one does", 32, 8, 0, 100},
      {"more nap for longer", 64, 8, 0, 200},
      {"all on one core", 64, 1, 0, 1600},
      {"never for so long that another's limit passes in a nap", 4096, 1, 0, 10'000},
      {"cores that nobody could count", 2, 0, 0, 100},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Pace pace = pace_of(c.ranks, c.cores, 1000);
    EXPECT_EQ(pace.spins, c.spins);
    EXPECT_EQ(pace.nap.count(), c.nap);
  }
}

}  // namespace
}  // namespace tessera::backend
