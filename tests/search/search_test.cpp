// What all modes of a search have in common.
#include "tessera/search/search.h"

#include <gtest/gtest.h>

#include "machine_line.h"
#include "search/random_steps.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr SearchMode kModes[] = {SearchMode::DynamicProgramming, SearchMode::RecursiveProgramming,
                                 SearchMode::ShardingPropagation};

TEST(SearchPlacements, EveryModeKeepsToTheLimitOrFails) {
  std::mt19937 random(4);
  const Graph step = test::random_step(16, random);
  const Strategy strategy{parse_mesh("a=2 b=2")};
  const Machine machine = parse_machine("core=1GB/s+0us compute=1GFLOP/s memory=4GB/s");
  for (const SearchMode mode : kModes) {
    SCOPED_TRACE(to_text(mode));
    const SearchReport free = search_placements(step, strategy, mode, machine).report;
    const SearchReport enough =
        search_placements(step, strategy, mode, machine, {.bytes = free.bytes}).report;
    EXPECT_EQ(enough.step_seconds, free.step_seconds);
    try {
      (void)search_placements(step, strategy, mode, machine, {.bytes = 10});
      ADD_FAILURE() << "kept to 10 bytes";
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find(text(
                    to_text(mode),
                    " found no placements within 10 bytes per device; the least it found is ")),
                std::string::npos)
          << said;
    }
  }
}

}  // namespace
}  // namespace tessera
