#include "tessera/bench/timed_steps.h"

#include "tessera/bench/random_steps.h"
#include "tessera/train/programs.h"
#include "tessera/train/rank_group.h"

namespace tessera {

std::vector<double> time_steps(const RunConfig& config, std::int64_t steps, const Backend& backend,
                               Communicator* world) {
  const RunSetup setup(config);
  const WantedPrograms wanted{.evaluate = false, .texts = 0};
  const int rank = world == nullptr ? 0 : world->rank();
  RankGroup group(compile_programs(setup, wanted, backend, rank).plan, backend, world,
                  {.poison = false});
  std::vector<double> out;
  run_random_steps(group, setup, steps + 1, [&](double seconds) { out.push_back(seconds); });
  if (!out.empty()) out.erase(out.begin());
  return out;
}

}  // namespace tessera
